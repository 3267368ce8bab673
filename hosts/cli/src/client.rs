//! The client of a server, for commands: sends requests, reads answers, prints problems.

pub mod lists;
mod near;
mod problem;
mod remote;
mod stream;
mod token;

pub use problem::{Problem, diagnostics, show};
pub use remote::Remote;
pub use stream::follow;

use crate::exit::Exit;
use crate::output::{Output, bad, fault};
use clap::Args;
use remote::Servers;
use reqwest::Method;
use starbridge_flow::value::{Object, Value};
use starbridge_node::system::reason;
use std::error::Error;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;
use token::Token;

/// The server's address if none is given.
const DEFAULT_SERVER: &str = "http://127.0.0.1:7878";
/// The time limit for opening a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// The time limit for an answer. The server answers a waiting request after a minute at most.
const ANSWER: Duration = Duration::from_secs(90);
/// The time limit for requests that only add help.
const ASIDE: Duration = Duration::from_secs(5);
/// A stream that is silent for longer is broken: the server sends something every 15 seconds.
const SILENCE: Duration = Duration::from_secs(60);

/// Which server is asked, and as whom.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server")]
pub struct ServerOptions {
    /// The server, or several nodes of one with commas between them; otherwise STARBRIDGE_SERVER, otherwise http://127.0.0.1:7878
    #[arg(long, global = true, value_name = "URL")]
    pub server: Option<String>,
    /// A file with the token; otherwise STARBRIDGE_TOKEN
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The token; others on this machine can see it while the command runs
    #[arg(long, global = true, value_name = "TOKEN", conflicts_with = "token_file")]
    token: Option<Token>,
}

/// A client for one server.
pub struct Client {
    output: Output,
    runtime: tokio::runtime::Runtime,
    remote: Remote,
}

/// The body of a request.
#[derive(Clone)]
pub enum Body<'a> {
    /// The request has no body.
    Nothing,
    /// An object.
    Json(&'a Object),
    /// A text of that media type.
    Text(&'static str, String),
}

/// An answer of a server.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code of HTTP.
    pub status: u16,
    /// The body.
    pub text: String,
}

impl Answer {
    /// The body as an object; empty if it is not one.
    pub fn object(&self) -> Object {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// The items of a page, and the cursor of the next one.
    pub fn page(&self) -> (Vec<Object>, Option<String>) {
        let page = self.object();
        let items = page.get("items").and_then(Value::as_array);
        let items = items.into_iter().flat_map(|items| items.values());
        let next = page.get("next").filter(|next| **next != Value::Null);
        (
            items.filter_map(|item| item.as_object().cloned()).collect(),
            next.map(Value::to_plain_text),
        )
    }
}

impl Client {
    /// A client for the given server.
    pub fn new(options: &ServerOptions, output: Output) -> Result<Self, Exit> {
        let named = options.server.clone().or_else(|| set("STARBRIDGE_SERVER"));
        let named = named.unwrap_or_else(|| DEFAULT_SERVER.to_owned());
        let servers = Servers::read(&named).map_err(|one| {
            let message = format!("`{one}` is no address of a server");
            bad(
                output,
                &message,
                &format!("write it as a URL, for example {DEFAULT_SERVER}"),
            )
        })?;
        let token = match (&options.token, &options.token_file) {
            (Some(token), _) => Some(token.clone()),
            (None, Some(file)) => Some(Token::read(file, output)?),
            (None, None) => set("STARBRIDGE_TOKEN").map(Token::from),
        };
        if token.as_ref().is_some_and(|token| !token.can_be_sent()) {
            let help = "a token has letters, digits and signs of ASCII, and no spaces";
            return Err(bad(output, "what was given as the token is none", help));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| fault(output, &format!("the runtime can't be started: {error}"), ""))?;
        let http = http_client(&servers);
        let http = http.map_err(|error| fault(output, &format!("no HTTP client can be made: {}", root(&error)), ""))?;
        Ok(Self {
            output,
            runtime,
            remote: Remote { http, servers, token },
        })
    }

    /// The server, for code that sends several requests at once.
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Runs long work that handles signals itself.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// The output for messages.
    pub fn output(&self) -> Output {
        self.output
    }

    /// Reads something.
    pub fn get(&self, path: &[&str], query: &[(&str, String)]) -> Result<Answer, Exit> {
        self.well(Method::GET, path, query, Body::Nothing)
    }

    /// Starts an action.
    pub fn post(&self, path: &[&str], query: &[(&str, String)], body: &Object) -> Result<Answer, Exit> {
        self.well(Method::POST, path, query, Body::Json(body))
    }

    /// Puts something at a path.
    pub fn put(&self, path: &[&str], body: &Object) -> Result<Answer, Exit> {
        self.well(Method::PUT, path, &[], Body::Json(body))
    }

    /// Changes the given members of something.
    pub fn patch(&self, path: &[&str], body: &Object) -> Result<Answer, Exit> {
        self.well(Method::PATCH, path, &[], Body::Json(body))
    }

    /// Deletes something.
    pub fn delete(&self, path: &[&str]) -> Result<Answer, Exit> {
        self.well(Method::DELETE, path, &[], Body::Nothing)
    }

    /// Sends a request; prints a problem.
    fn well(&self, method: Method, path: &[&str], query: &[(&str, String)], body: Body<'_>) -> Result<Answer, Exit> {
        let flow = match &body {
            Body::Json(body) => body.get("flow").and_then(Value::as_str).map(str::to_owned),
            _ => None,
        };
        match self.ask(method, path, query, body)? {
            Ok(answer) => Ok(answer),
            Err(problem) => Err(self.say_near(&problem, path, flow.as_deref())),
        }
    }

    /// Prints a problem.
    pub fn say(&self, problem: &Problem) -> Exit {
        self.say_with(problem, None)
    }

    /// Prints a problem of a request for this path, with what may have been meant.
    pub fn say_near(&self, problem: &Problem, path: &[&str], flow: Option<&str>) -> Exit {
        let near = self.near(problem, path, flow);
        self.say_with(problem, near.as_deref())
    }

    fn say_with(&self, problem: &Problem, near: Option<&str>) -> Exit {
        problem.say(self.output, self.remote.token.is_some(), near)
    }

    /// The answer to an additional request; `None` if there is none.
    fn aside(&self, path: &[&str], query: &[(&str, String)]) -> Option<Answer> {
        let request = self.remote.request(Method::GET, path, query).ok()?;
        let answer = self.runtime.block_on(remote::exchange(request, Body::Nothing, ASIDE));
        answer.ok()?.ok()
    }

    /// Reads an object for commands that can do without it: `None` if that fails.
    pub fn look(&self, path: &[&str], query: &[(&str, String)]) -> Option<Object> {
        self.aside(path, query).map(|answer| answer.object())
    }

    /// Sends a request. Returns the answer, or the problem in its place.
    pub fn ask(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
        body: Body<'_>,
    ) -> Result<Result<Answer, Problem>, Exit> {
        let does = method != Method::GET;
        let named = match (&body, path) {
            (Body::Json(body), ["flows", _, "executions"]) => body.contains_key("name"),
            _ => false,
        };
        let servers = &self.remote.servers;
        for _ in 1..servers.count() {
            let request = self.request(method.clone(), path, query)?;
            let answer = self.until_interrupted(remote::exchange(request, body.clone(), ANSWER))?;
            if !is_for_another(&answer, !does || named) {
                return answer.map_err(|error| self.unreachable(&error, does, named));
            }
            servers.turn();
        }
        let request = self.request(method, path, query)?;
        let answer = self.until_interrupted(remote::exchange(request, body, ANSWER))?;
        answer.map_err(|error| self.unreachable(&error, does, named))
    }

    fn request(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<reqwest::RequestBuilder, Exit> {
        let request = self.remote.request(method, path, query);
        request.map_err(|segment| {
            let help = "a name is missing, or it is one that no server can have; an execution is given by its id or as FLOW/NAME";
            bad(self.output, &format!("`{segment}` names nothing"), help)
        })
    }

    /// Does some work, unless the user interrupts it.
    fn until_interrupted<T>(&self, work: impl Future<Output = T>) -> Result<T, Exit> {
        self.runtime.block_on(async {
            tokio::select! {
                done = work => Ok(done),
                _ = tokio::signal::ctrl_c() => Err(Exit::Interrupted),
            }
        })
    }

    /// `does`: the request changes something; `named`: a start that can be repeated.
    fn unreachable(&self, error: &reqwest::Error, does: bool, named: bool) -> Exit {
        let server = self.remote.address();
        let why = root(error);
        if error.is_connect() || !does {
            let message = format!("can't reach {server}: {why}");
            let help = "`starbridge serve` starts a server; `--server` or STARBRIDGE_SERVER names another one";
            let plain = server.strip_prefix("https://").filter(|_| is_not_tls(error));
            let plain =
                plain.map(|rest| format!("what answers there speaks no TLS: `--server http://{rest}` asks without it"));
            return unreached(self.output, &message, plain.as_deref().unwrap_or(help));
        }
        let message = format!("{server} went away before it answered: {why}");
        let help = match named {
            true => "ask the same again: with `--name` nothing is started twice",
            false => "it may have done what was asked: look before you ask again",
        };
        unreached(self.output, &message, help)
    }
}

/// Whether another node may answer what this one did not. `safe`: the request may be carried out twice.
fn is_for_another(answer: &reqwest::Result<Result<Answer, Problem>>, safe: bool) -> bool {
    match answer {
        Err(error) => safe || error.is_connect(),
        Ok(Err(problem)) => problem.status == 503 && (safe || matches!(problem.code(), "NoOwner" | "Stopping")),
        Ok(Ok(_)) => false,
    }
}

/// Whether the other side answered the first words of TLS with something else.
fn is_not_tls(error: &reqwest::Error) -> bool {
    let mut inner: Option<&(dyn Error + 'static)> = error.source();
    while let Some(one) = inner {
        let held = one.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if let Some(rustls::Error::InvalidMessage(_)) = one.downcast_ref() {
            return true;
        }
        // An I/O error is not the source of what holds it, and passes over the error that it holds itself.
        inner = match held {
            Some(held) => Some(held),
            None => one.source(),
        };
    }
    false
}

/// Reports that there is no answer.
fn unreached(output: Output, message: &str, help: &str) -> Exit {
    output.fail_as(Exit::Fault, "Unreachable", message, Some(help))
}

/// A variable of the environment that is not empty.
fn set(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}

fn http_client(servers: &Servers) -> reqwest::Result<reqwest::Client> {
    // There may be one already, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client = reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .read_timeout(SILENCE.max(ANSWER))
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .http1_only();
    if servers.are_plain() {
        // Reading the system's certificates takes a while, and they are not needed here.
        client = client.tls_certs_only([]);
    }
    client.build()
}

/// The innermost reason of a failure, in the form of our messages.
fn root(error: &reqwest::Error) -> String {
    let mut inner: &dyn Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    if error.is_timeout() {
        return "it took too long".to_owned();
    }
    match inner.downcast_ref::<std::io::Error>() {
        Some(io) => reason(io),
        None => inner.to_string(),
    }
}
