//! `exec` against a bare HTTP client: a foreach of 10,000 tasks at concurrency 100, and as many requests by a loop around the
//! same client library, against the same server, in turns in one run.
//!
//! `cargo build --release && cargo run --release -p starbridge-tests --bin bench-exec`

use axum::Router;
use axum::routing::post;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const REQUESTS: usize = 10_000;
const AT_ONCE: usize = 100;
const ROUNDS: usize = 5;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        eprintln!("the runtime can't be started");
        return ExitCode::FAILURE;
    };
    if std::env::args().nth(1).as_deref() == Some("serve") {
        runtime.block_on(serve());
        return ExitCode::SUCCESS;
    }
    match runtime.block_on(compare()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// A function that answers at once, in a separate process.
async fn serve() {
    let router = Router::new().route(
        "/f",
        post(|| async { ([("content-type", "application/json")], r#"{"ok":true}"#) }),
    );
    if let Ok(listener) = tokio::net::TcpListener::bind("127.0.0.1:0").await
        && let Ok(address) = listener.local_addr()
    {
        println!("{address}");
        let _ = axum::serve(listener, router).await;
    }
}

async fn compare() -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let starbridge = program.with_file_name("starbridge");
    if !starbridge.is_file() {
        return Err(format!("`{}` is not there: build it first", starbridge.display()));
    }
    let mut server = Command::new(&program)
        .arg("serve")
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut address = String::new();
    if let Some(out) = server.stdout.take() {
        use std::io::BufRead;
        let _ = std::io::BufReader::new(out).read_line(&mut address);
    }
    let url = format!("http://{}/f", address.trim());
    let result = rounds(&url, &starbridge).await;
    let _ = server.kill();
    let _ = server.wait();
    result
}

async fn rounds(url: &str, starbridge: &PathBuf) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let flow = folder.path().join("flow.json");
    let definition = format!(
        r#"{{"version":"v1","type":"flow","steps":[{{"type":"foreach","name":"each","concurrency":{AT_ONCE},
            "iterationMapping":{{"collection":"$.items","item":"item"}},
            "steps":[{{"type":"task","name":"call","resourceArn":"{url}","inputMappings":[{{"target":"n","source":"$input.item"}}]}}]}}]}}"#
    );
    let items: Vec<String> = (0..REQUESTS).map(|n| n.to_string()).collect();
    let input = folder.path().join("input.json");
    std::fs::write(&flow, definition).map_err(|error| error.to_string())?;
    std::fs::write(&input, format!(r#"{{"items":[{}]}}"#, items.join(","))).map_err(|error| error.to_string())?;
    println!(
        "{:>6} {:>16} {:>16} {:>8}",
        "round", "bare requests/s", "exec tasks/s", "ratio"
    );
    let mut ratios = Vec::new();
    for round in 1..=ROUNDS {
        let bare = bare(url).await?;
        let begun = Instant::now();
        let status = Command::new(starbridge)
            .args(["exec", "--quiet"])
            .arg(&flow)
            .arg("--input-file")
            .arg(&input)
            .stdout(Stdio::null())
            .status()
            .map_err(|error| error.to_string())?;
        let exec = REQUESTS as f64 / begun.elapsed().as_secs_f64();
        if !status.success() {
            return Err(format!("exec ended with {status}"));
        }
        println!("{round:>6} {bare:>16.0} {exec:>16.0} {:>8.2}", exec / bare);
        ratios.push(exec / bare);
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(ROUNDS / 2).copied().unwrap_or_default();
    println!("median ratio {median:.2} (goal 0.70)");
    Ok(())
}

/// Requests a second of a loop around the client, whole answers read.
async fn bare(url: &str) -> Result<f64, String> {
    let client = starbridge_tests::client();
    let next = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let workers: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let (client, next, url) = (client.clone(), next.clone(), url.to_owned());
            tokio::spawn(async move {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= REQUESTS {
                        return Ok::<(), reqwest::Error>(());
                    }
                    let body = format!(r#"{{"n":{n}}}"#);
                    let sent = client
                        .post(&url)
                        .header("content-type", "application/json")
                        .body(body)
                        .send();
                    sent.await?.bytes().await?;
                }
            })
        })
        .collect();
    for worker in workers {
        worker
            .await
            .map_err(|error| error.to_string())?
            .map_err(|error| error.to_string())?;
    }
    Ok(REQUESTS as f64 / begun.elapsed().as_secs_f64())
}
