//! Access: bearer tokens with scopes, and a limit for failed attempts.

mod browser;
mod client_address;
mod host;
mod limiter;

pub use limiter::Limiter;

use crate::App;
use crate::caller::Caller;
use crate::routes::{OF_SEVERAL, QUEUE, routes};
use crate::scope::{Scope, allow, lacks};
use axum::RequestExt;
use axum::extract::{ConnectInfo, MatchedPath, RawPathParams, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use browser::Sent;
use client_address::{client_address, is_passed_on};
use sha2::{Digest, Sha256};
use starbridge_flow::hex;
use starbridge_flow::value::Text;
use starbridge_node::callbacks::{Client, invalid_token};
use starbridge_node::config::TokenConfig;
use starbridge_node::offload::for_sender;
use starbridge_node::problem::Problem;
use starbridge_runtime::SignedCall;
use std::net::{IpAddr, SocketAddr};

/// The SHA-256 of a token; the token itself is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// The hash of a token.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// Reads a hash from its 64 hexadecimal digits.
    pub fn parse(digits: &str) -> Option<Self> {
        hex::decode_array(digits).map(Self)
    }

    /// Compares in constant time.
    fn is(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        pairs.fold(0, |difference, (one, two)| difference | (one ^ two)) == 0
    }
}

impl Token {
    /// The hash of the token, which distinguishes it from others.
    #[cfg(feature = "console")]
    pub(crate) fn hash(&self) -> &[u8] {
        &self.hash.0
    }

    /// Whether it allows requests that need this scope.
    pub(crate) fn may(&self, scope: Scope) -> bool {
        allow(&self.scopes, scope)
    }
}

/// The tokens and what they allow.
#[derive(Clone, Debug, Default)]
pub struct Access {
    tokens: Vec<Token>,
}

/// A token, and the rights of its holder.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) name: Text,
    hash: TokenHash,
    pub(crate) scopes: Vec<Scope>,
}

impl Access {
    /// Gives these rights to holders of the token with this hash. Their acts are recorded under
    /// this name.
    pub fn grant(&mut self, name: impl Into<Text>, hash: TokenHash, scopes: Vec<Scope>) {
        let name = name.into();
        self.tokens.push(Token { name, hash, scopes });
    }

    /// Whether there are no tokens, so that no request needs one.
    pub fn is_open(&self) -> bool {
        self.tokens.is_empty()
    }

    /// As the configuration has them.
    #[cfg(feature = "console")]
    pub(crate) fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Whether a request with these headers may do something that needs this scope.
    pub(crate) fn allows(&self, headers: &HeaderMap, scope: Scope) -> bool {
        let known = bearer(headers).and_then(|token| self.known(token));
        self.is_open() || known.is_some_and(|token| token.may(scope))
    }

    /// The rights of the token with this name; all rights if no token is needed.
    pub(crate) fn scopes_of(&self, name: Option<&str>) -> Vec<Scope> {
        if self.is_open() {
            return vec![Scope::Admin];
        }
        let named = self.tokens.iter().find(|token| Some(token.name.as_str()) == name);
        named.map_or_else(Vec::new, |token| token.scopes.clone())
    }

    /// Whether the token with this name may do something that needs this scope.
    pub(crate) fn may(&self, name: Option<&str>, scope: Scope) -> bool {
        allow(&self.scopes_of(name), scope)
    }

    /// The token's entry; `None` if it is not one of ours.
    pub(crate) fn known(&self, token: &str) -> Option<&Token> {
        let hash = TokenHash::of(token);
        let mut found = None;
        for known in &self.tokens {
            if known.hash.is(&hash) {
                found = Some(known);
            }
        }
        found
    }
}

/// The access for these tokens.
///
/// # Errors
///
/// The name of a scope that does not exist.
pub fn access_of(tokens: &[TokenConfig]) -> Result<Access, String> {
    let mut access = Access::default();
    for token in tokens {
        let mut scopes = Vec::new();
        for word in &token.scopes {
            let scope = Scope::parse(word);
            scopes
                .push(scope.ok_or_else(|| format!("the token `{}` has a scope `{word}`, which is none", token.name))?);
        }
        if let Some(hash) = TokenHash::parse(&token.sha256) {
            access.grant(token.name.as_str(), hash, scopes);
        }
    }
    Ok(access)
}

/// The route of one report. The token in its path gives access.
const REPORT: &str = "/v1/callbacks/{token}/{verb}";
/// The route of many reports, each with its token.
const REPORTS: &str = "/v1/callbacks";

/// Admits a request or refuses it. The token is checked before the sender is: only wrong tokens are counted, and only
/// their senders are turned away.
pub async fn check(
    State(app): State<App>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    path: Option<MatchedPath>,
    mut request: Request,
    next: Next,
) -> Response {
    let path = path.as_ref().map(MatchedPath::as_str).unwrap_or_default();
    if let Err(problem) = check_sender(&app, path, &request) {
        return problem.into_response();
    }
    let client = |request: &Request| client_address(from.ip(), request.headers(), &app.trusted_proxies);
    let sender = match admit(&app, path, &request) {
        Ok(caller) => {
            let sender = caller.0.clone();
            let operator = caller.operator(request.headers());
            request.extensions_mut().insert(caller);
            request.extensions_mut().insert(operator);
            sender
        }
        Err(problem) if problem.status() == StatusCode::UNAUTHORIZED => {
            return failed(&app, client(&request), problem).into_response();
        }
        Err(problem) => return problem.into_response(),
    };
    if path == REPORTS {
        let client = Client(client(&request));
        request.extensions_mut().insert(client);
    }
    if path == REPORT && request.method() == Method::POST {
        // Before the body is read: without a token it is not needed.
        let parameters = request.extract_parts::<RawPathParams>().await;
        let token = parameters.iter().flatten().find(|(name, _)| *name == "token");
        let token = token.map(|(_, token)| token).unwrap_or_default();
        match verify_task_token(&app, token, Some(Client(client(&request)))) {
            Ok(call) => request.extensions_mut().insert(call),
            Err(problem) => return problem.into_response(),
        };
    }
    for_sender(sender, next.run(request)).await
}

/// Refuses requests that no program and no page of ours sends, with any token.
///
/// # Errors
///
/// The problem to answer with.
pub(crate) fn check_sender(app: &App, path: &str, request: &Request) -> Result<(), Problem> {
    if !is_utf8(request.uri().path()) {
        return Err(Problem::bad("the path is not UTF-8"));
    }
    let sent = Sent {
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
        // A page from any site that knows the token of a task may report it, because no browser
        // adds the token by itself.
        has_token: (path == REPORT && request.method() == Method::POST) || bearer(request.headers()).is_some(),
        is_probe: matches!(path, "/healthz" | "/readyz"),
    };
    if app.access.is_open() && is_passed_on(request.headers()) {
        app.proxy_said.call_once(|| {
            tracing::warn!(
                "a proxy passed a request on, and this server has no tokens: whoever reaches the proxy may do everything here; \
                 `[[tokens]]` in the configuration says who may do what"
            );
        });
    }
    browser::check(&sent, &app.hosts, app.access.is_open())
}

/// The address of the sender of a request, also behind a trusted proxy.
#[cfg(feature = "console")]
pub(crate) fn sender(app: &App, from: SocketAddr, request: &Request) -> IpAddr {
    client_address(from.ip(), request.headers(), &app.trusted_proxies)
}

/// The call that a task token was signed for. One that is not ours counts as a failure of its sender.
///
/// # Errors
///
/// The problem to answer with: the token is not ours, or the sender has sent too many wrong ones.
pub fn verify_task_token(app: &App, token: &str, from: Option<Client>) -> Result<SignedCall, Problem> {
    app.node.verify(token).map_err(|_| match from {
        Some(Client(from)) => failed(app, from, invalid_token()),
        None => invalid_token(),
    })
}

/// The problem for a client that failed: this one, unless it has failed too often.
pub(crate) fn failed(app: &App, client: IpAddr, problem: Problem) -> Problem {
    if app.limiter.may_fail(client) {
        return problem;
    }
    let detail = "too many tokens from here were wrong: wait a little";
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "TooManyFailures", detail)
}

/// Whether a path is text after its `%xx` are decoded.
fn is_utf8(path: &str) -> bool {
    if !path.contains('%') {
        return true;
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut parts = path.split('%');
    bytes.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        match part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(part.as_bytes().get(2..).unwrap_or_default());
            }
            None => bytes.extend_from_slice(part.as_bytes()),
        }
    }
    std::str::from_utf8(&bytes).is_ok()
}

/// Which token a request needs.
#[derive(Clone, Copy)]
enum Needed {
    /// None.
    Nothing,
    /// There is no such route. A sender with any of our tokens may learn that.
    Any,
    /// A token with this scope.
    Scope(Scope),
}

fn needed(path: &str, method: &Method) -> Needed {
    // HEAD is answered like GET.
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    let path = match path {
        OF_SEVERAL if *method != Method::POST => QUEUE,
        path => path,
    };
    let mut routes = routes().filter(|route| route.path == path).peekable();
    if routes.peek().is_none() {
        return Needed::Any;
    }
    let mut open = false;
    for route in routes {
        if route.method == method.as_str() {
            return route.scope.map_or(Needed::Nothing, Needed::Scope);
        }
        open |= route.scope.is_none();
    }
    if open { Needed::Nothing } else { Needed::Any }
}

/// Whether a request's token allows it, and the token's name. `path` is the route's; empty if there
/// is none.
fn admit(app: &App, path: &str, request: &Request) -> Result<Caller, Problem> {
    let needed = needed(path, request.method());
    if app.access.is_open() || matches!(needed, Needed::Nothing) {
        return Ok(Caller::default());
    }
    let token = bearer(request.headers());
    let Some(known) = token.and_then(|token| app.access.known(token)) else {
        let detail = match token {
            None => "this needs a token: send it as `Authorization: Bearer …`",
            Some(_) => "the token is not one of this server's",
        };
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "Unauthorized", detail));
    };
    let caller = Caller(Some(known.name.clone()));
    let Needed::Scope(scope) = needed else {
        return Ok(caller);
    };
    if known.may(scope) {
        return Ok(caller);
    }
    Err(lacks(scope))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (kind, token) = value.split_once(' ')?;
    kind.eq_ignore_ascii_case("bearer").then_some(token.trim())
}
