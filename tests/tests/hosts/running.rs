//! The hosts: the command, the server, and the function under the emulator of Lambda's runtime.

use crate::cases::Tried;
use crate::functions::Functions;
use serde_json::{Value, json};
use starbridge_services::{Kind, Service, ask};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Runs cases.
pub trait Host {
    /// The history of the execution under test.
    fn run(&self, case: &Tried) -> Result<Vec<Value>, String>;
}

fn program(variable: &str) -> PathBuf {
    let named = std::env::var_os(variable);
    named
        .map(PathBuf::from)
        .unwrap_or_else(|| panic!("{variable} names no program: `cargo xtask test` runs this"))
}

/// The resource map: children are unchanged, everything else is a function.
fn resources(functions: &Functions) -> [(&'static str, String); 2] {
    [
        ("flow:{name}", "flow:{name}".to_owned()),
        ("{resource}", format!("{}/", functions.url())),
    ]
}

/// The same as a configuration.
fn configuration(functions: &Functions) -> String {
    let lines = resources(functions).map(|(pattern, target)| format!("{pattern:?} = {target:?}\n"));
    format!("[http]\nprivate_addresses = true\n\n[resources]\n{}", lines.concat())
}

/// `starbridge exec`.
pub struct Exec {
    program: PathBuf,
    folder: TempDir,
    resources: Vec<String>,
}

impl Exec {
    pub fn new(functions: &Functions) -> Self {
        Self {
            program: program("STARBRIDGE_COMMAND"),
            folder: tempfile::tempdir().unwrap(),
            resources: resources(functions)
                .map(|(pattern, target)| format!("{pattern}={target}"))
                .to_vec(),
        }
    }
}

impl Host for Exec {
    fn run(&self, case: &Tried) -> Result<Vec<Value>, String> {
        let path = |name: &str| self.folder.path().join(format!("{name}.json"));
        std::fs::write(path(&case.flow), case.definition.to_string()).unwrap();
        let history = self.folder.path().join("history");
        // Remains of the previous case do not belong to this one.
        let _ = std::fs::remove_file(&history);
        let mut command = Command::new(&self.program);
        command
            .arg("exec")
            .arg(path(&case.flow))
            .arg("--input")
            .arg(case.input.to_string())
            .arg("--quiet");
        command.arg("--history").arg(&history);
        for entry in &self.resources {
            command.args(["--resource", entry]);
        }
        for (name, definition) in &case.children {
            std::fs::write(path(name), definition.to_string()).unwrap();
            command.arg("--flow").arg(path(name));
        }
        let done = command.stdin(Stdio::null()).output().unwrap();
        let text = std::fs::read_to_string(&history);
        let text = text.map_err(|_| format!("{}: {}", done.status, String::from_utf8_lossy(&done.stderr)))?;
        let lines = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or(Value::Null));
        Ok(lines.filter(|line| line.get("type").is_some()).collect())
    }
}

/// `starbridge serve`.
pub struct Serve {
    child: Child,
    url: String,
    _folder: TempDir,
}

impl Serve {
    pub fn start(functions: &Functions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("starbridge.toml");
        std::fs::write(&config, configuration(functions)).unwrap();
        let mut command = Command::new(program("STARBRIDGE_COMMAND"));
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(&config)
            .arg("--db")
            .arg(folder.path().join("db"));
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let line = lines.find(|line| line.contains("http://")).unwrap();
        let from = line.find("http://").unwrap();
        let url = line[from..].split([',', ' ']).next().unwrap().to_owned();
        // The writer must not wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            url,
            _folder: folder,
        }
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let kind = ["Content-Type: application/json".to_owned()];
        let answer = ask(
            method,
            &format!("{}{path}", self.url),
            &kind,
            body.to_string().as_bytes(),
        )
        .ok_or("no answer")?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        match answer.status {
            200..300 => serde_json::from_str(&text).map_err(|error| error.to_string()),
            status => Err(format!("{status}: {text}")),
        }
    }
}

impl Host for Serve {
    fn run(&self, case: &Tried) -> Result<Vec<Value>, String> {
        for (name, definition) in &case.children {
            self.ask("PUT", &format!("/v1/flows/{name}"), definition)?;
        }
        self.ask("PUT", &format!("/v1/flows/{}", case.flow), &case.definition)?;
        let begun = self.ask(
            "POST",
            &format!("/v1/flows/{}/executions?wait=30", case.flow),
            &json!({"input": case.input}),
        )?;
        let id = begun["id"].as_str().unwrap_or_default();
        let mut events = Vec::new();
        loop {
            let page = self.ask(
                "GET",
                &format!("/v1/executions/{id}/history?limit=1000&from={}", events.len() + 1),
                &Value::Null,
            )?;
            let items = page["items"].as_array().cloned().unwrap_or_default();
            if items.is_empty() {
                return Ok(events);
            }
            events.extend(items);
        }
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The function of Lambda.
pub struct Lambda {
    service: Service,
    _package: TempDir,
}

impl Lambda {
    pub fn start(functions: &Functions) -> Self {
        let package = tempfile::tempdir().unwrap();
        std::fs::write(package.path().join("starbridge.toml"), configuration(functions)).unwrap();
        let program = program("STARBRIDGE_BOOTSTRAP");
        let environment = [
            ("LAMBDA_TASK_ROOT", text(package.path())),
            ("AWS_LAMBDA_FUNCTION_TIMEOUT", "60"),
        ];
        Self {
            service: Service::start_in(Kind::Rie, &[text(&program)], &environment),
            _package: package,
        }
    }

    fn invoke(&self, event: &Value) -> Result<Value, String> {
        let url = format!("{}/2015-03-31/functions/function/invocations", self.service.url());
        let answer = ask("POST", &url, &[], event.to_string().as_bytes()).ok_or("no answer")?;
        serde_json::from_slice(&answer.body).map_err(|error| error.to_string())
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

impl Host for Lambda {
    fn run(&self, case: &Tried) -> Result<Vec<Value>, String> {
        for (name, definition) in &case.children {
            let path = format!("/v1/flows/{name}");
            let put = json!({"version": "2.0", "rawPath": path, "headers": {"content-type": "application/json"},
                "requestContext": {"http": {"method": "PUT", "path": path, "sourceIp": "127.0.0.1"}, "authorizer": {"iam": {}}},
                "body": definition.to_string()});
            let answer = self.invoke(&put)?;
            if !matches!(answer["statusCode"].as_u64(), Some(200 | 201)) {
                return Err(answer.to_string());
            }
        }
        let answer = self.invoke(&json!({"flow": case.flow, "definition": case.definition, "input": case.input}))?;
        match answer["history"].as_array() {
            Some(history) => Ok(history.clone()),
            None => Err(answer.to_string()),
        }
    }
}
