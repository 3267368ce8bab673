//! Serves the functions of an example: `functions [--port N] FILE|FOLDER`.

use starbridge_tests::functions::{Script, serve};
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: functions [--port N] FILE|FOLDER";

#[tokio::main]
async fn main() -> ExitCode {
    let Some((port, path)) = arguments(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let script = match Script::load(&path) {
        Ok(script) => script,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let listener = match tokio::net::TcpListener::bind(("127.0.0.1", port)).await {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("error: can't listen on port {port}: {error}");
            return ExitCode::from(3);
        }
    };
    if let Ok(address) = listener.local_addr() {
        println!("listening on http://{address}");
    }
    match serve(listener, script).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(3)
        }
    }
}

/// Port and path, if the arguments are those of the usage.
fn arguments(mut arguments: impl Iterator<Item = String>) -> Option<(u16, PathBuf)> {
    let mut port = 9000;
    let mut path = None;
    while let Some(argument) = arguments.next() {
        if argument == "--port" {
            port = arguments.next()?.parse().ok()?;
        } else if argument.starts_with('-') || path.is_some() {
            return None;
        } else {
            path = Some(PathBuf::from(argument));
        }
    }
    Some((port, path?))
}
