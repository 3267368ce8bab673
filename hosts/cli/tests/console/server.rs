//! A server of this test's own, and a function that can be broken and repaired.

use reqwest::{Client, Method};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// `starbridge serve` in a folder of its own.
pub struct Server {
    child: Child,
    pub base: String,
    listen: String,
    folder: tempfile::TempDir,
    client: Client,
    environment: Vec<(&'static str, String)>,
    /// The token that requests bring, if the server wants one.
    token: Option<String>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn serve(folder: &Path, listen: &str, environment: &[(&'static str, String)]) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_starbridge"))
        .args([
            "serve",
            "--db",
            "flows.db",
            "--config",
            "server.toml",
            "--listen",
            listen,
        ])
        .current_dir(folder)
        .env_clear()
        .envs(environment.iter().cloned())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let (out, errors) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let streams: [Box<dyn Read + Send>; 2] = [Box::new(out), Box::new(errors)];
    for stream in streams {
        let tell = tell.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if let Some((_, rest)) = line.split_once("listening on ") {
                    let _ = tell.send(rest.split_whitespace().next().unwrap_or_default().to_owned());
                }
            }
        });
    }
    drop(tell);
    let base = told.recv().expect("the server listens");
    (child, base.trim_end_matches('/').to_owned())
}

impl Server {
    pub fn start() -> Self {
        Self::start_with("", None, Vec::new())
    }

    /// With further settings, the token that they ask for, and variables of its environment.
    pub fn start_with(settings: &str, token: Option<&str>, environment: Vec<(&'static str, String)>) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let settings = format!("[http]\nprivate_addresses = true\n[log]\nlevel = \"error\"\n{settings}");
        std::fs::write(folder.path().join("server.toml"), settings).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let listen = free.to_string();
        let (child, _) = serve(folder.path(), &listen, &environment);
        Self {
            child,
            base: format!("http://{listen}"),
            listen,
            folder,
            client: Client::new(),
            environment,
            token: token.map(str::to_owned),
        }
    }

    /// The address at which it listens.
    pub fn listens(&self) -> SocketAddr {
        self.listen.parse().unwrap()
    }

    /// The memory of its process that is in use, in bytes.
    pub fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        1024 * kilobytes.and_then(|number| number.trim().parse::<u64>().ok()).unwrap()
    }

    /// Ends it at once, as a failure of the machine does.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again at the same address.
    pub fn again(&mut self) {
        (self.child, _) = serve(self.folder.path(), &self.listen, &self.environment);
    }

    pub async fn ask(&self, method: Method, path: &str, body: Value) -> Value {
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let answer = request.body(body.to_string()).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub async fn put(&self, name: &str, flow: Value) {
        self.ask(Method::PUT, &format!("/v1/flows/{name}"), flow).await;
    }

    pub async fn begin(&self, flow: &str, start: Value) -> String {
        let begun = self
            .ask(Method::POST, &format!("/v1/flows/{flow}/executions"), start)
            .await;
        begun["id"].as_str().unwrap().to_owned()
    }
}

/// A flow of these steps.
#[expect(clippy::needless_pass_by_value, reason = "callers have made them for this")]
pub fn flow(name: &str, steps: Value) -> Value {
    json!({"version": "v1", "type": "flow", "name": name, "steps": steps})
}

/// What a function answers that would like to be more than a text.
const ODD: &str = r#"{"error": "Odd.Markup", "cause": "\"'><img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>\u202e"}"#;

/// An HTTP function that fails until it is repaired.
pub struct Function {
    pub at: SocketAddr,
    well: Arc<AtomicBool>,
}

impl Function {
    pub fn broken() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let well = Arc::new(AtomicBool::new(false));
        let is_well = well.clone();
        std::thread::spawn(move || {
            let mut asked = 0;
            for stream in listener.incoming().map_while(Result::ok) {
                let mut reader = BufReader::new(&stream);
                let (mut line, mut length, mut path) = (String::new(), 0, String::new());
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                    let lower = line.to_ascii_lowercase();
                    if let Some(rest) = lower.strip_prefix("post ") {
                        path = rest.split(' ').next().unwrap_or_default().to_owned();
                    }
                    if let Some(bytes) = lower.strip_prefix("content-length:") {
                        length = bytes.trim().parse().unwrap_or(0);
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                let _ = reader.read_exact(&mut body);
                // What begins with `once` is broken the first time, what begins with `well` never is.
                asked += u32::from(path.starts_with("/once"));
                let is_well = match path.split('/').nth(1) {
                    Some("well") => true,
                    Some("once") => asked > 1,
                    _ => is_well.load(Ordering::SeqCst),
                };
                let odd = path.starts_with("/odd");
                let (status, said) = match is_well {
                    true => ("200 OK", r#"{"parcel": 7}"#),
                    false if odd => ("422 Unprocessable", ODD),
                    false => (
                        "422 Unprocessable",
                        r#"{"error": "Ship.NoCarrier", "cause": "no carrier on Sunday"}"#,
                    ),
                };
                let _ = write!(
                    &stream,
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{said}",
                    said.len()
                );
            }
        });
        Self { at, well }
    }

    pub fn repair(&self) {
        self.well.store(true, Ordering::SeqCst);
    }
}
