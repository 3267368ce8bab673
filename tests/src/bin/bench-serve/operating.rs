//! Actions of operators on many executions, and their queries.

use crate::admission::put_standing;
use crate::crowd::{Connection, Fragile, start_all, until_in_line, until_status};
use crate::load;
use crate::pace::KEYS;
use crate::scenes::{folder, put, put_flow};
use crate::server::Server;
use crate::sizes::Sizes;
use serde_json::json;
use std::time::{Duration, Instant};

/// Iterations that fail.
const FAILING: usize = 10;
/// Starts are measured so long before and, as often as it takes, while a bulk job runs.
const PART: Duration = Duration::from_secs(5);
/// How often a measured answer is asked for.
const ASKED: usize = 1_000;
const LOOK: Duration = Duration::from_millis(20);
const MOST: Duration = Duration::from_secs(600);

/// A wide foreach of which a few iterations failed: the time until those are called again.
pub async fn redrive(sizes: Sizes) -> Result<(), String> {
    let items = sizes.of(10_000, 100_000);
    let folder = folder()?;
    let fragile = Fragile::new(items, FAILING).await?;
    let server = Server::start(folder.path())?;
    let steps = json!([{"type": "foreach", "name": "each", "concurrency": 1_000, "tolerance": {"count": FAILING - 1},
        "iterationMapping": {"collection": "$.items", "item": "item"},
        "steps": [{"type": "task", "name": "t", "resourceArn": format!("http://{}/{{$input.item}}", fragile.address),
            "timeoutSeconds": 3_600,
            // Without it each call would be sent all items.
            "inputMappings": [{"target": "item", "source": "$input.item"}]}]}]);
    put_flow(&server, "wide", &json!({"steps": steps})).await?;
    let mut connection = Connection::to(server.address).await?;
    let body = json!({"input": {"items": (0..items).collect::<Vec<_>>()}}).to_string();
    let begun = Instant::now();
    let started = connection.value("POST", "/v1/flows/wide/executions", &body).await?;
    let id = started["id"].as_str().unwrap_or_default().to_owned();
    let path = format!("/v1/executions/{id}");
    loop {
        let found = connection.value("GET", &format!("{path}?wait=20"), "").await?;
        match found["status"].as_str() {
            Some("Failed") => break,
            Some("Running") if begun.elapsed() < MOST => {}
            other => return Err(format!("the foreach is {other:?}: {found}")),
        }
    }
    let ran = begun.elapsed();
    fragile.repair();
    let asked = Instant::now();
    connection.ask("POST", &format!("{path}/redrive"), "{}").await?;
    let answered = Instant::now();
    while fragile.again().len() < FAILING {
        if answered.elapsed() > MOST {
            return Err(format!("only {} were called again", fragile.again().len()));
        }
        tokio::time::sleep(LOOK).await;
    }
    let last = fragile.again().last().copied().unwrap_or(answered);
    println!(
        "redrive, a foreach of {items} ({:.1} s) of which {FAILING} failed: answered after {:.0} ms, the last of the {FAILING} called {:.0} ms after the answer",
        ran.as_secs_f64(),
        (answered - asked).as_secs_f64() * 1000.0,
        last.saturating_duration_since(answered).as_secs_f64() * 1000.0,
    );
    Ok(())
}

/// Many running executions are stopped, and others start meanwhile.
pub async fn bulk(sizes: Sizes) -> Result<(), String> {
    let many = sizes.of(10_000, 100_000);
    let folder = folder()?;
    let server = Server::start(folder.path())?;
    let sleep = json!([{"type": "wait", "name": "w", "duration": 30_000_000}]);
    put(&server, "sleep", sleep).await?;
    put(&server, "one", json!([{"type": "pass", "name": "p"}])).await?;
    start_all(&server, many, |at| json!({"flow": "sleep", "input": {"id": at}})).await?;
    until_status(&server, "Running", many).await?;
    let start = load::post("/v1/flows/one/executions?wait=30", "{}");
    let alone = load::run(server.address, start.clone(), 16, PART, usize::MAX).await?;
    let mut connection = Connection::to(server.address).await?;
    let job = json!({"action": "stop", "filter": {"flow": "sleep", "status": ["Running"]}}).to_string();
    let begun = Instant::now();
    let job = connection.value("POST", "/v1/bulk", &job).await?;
    let path = format!("/v1/bulk/{}", job["id"].as_str().unwrap_or_default());
    let address = server.address;
    let (over, stopped) = tokio::sync::watch::channel(false);
    let meanwhile = tokio::spawn(async move {
        let (mut answers, begun) = (0, Instant::now());
        while !*stopped.borrow() {
            let part = load::run(address, start.clone(), 16, PART / 10, usize::MAX).await?;
            answers += part.answers;
        }
        Ok::<f64, String>(answers as f64 / begun.elapsed().as_secs_f64())
    });
    let done = loop {
        let job = connection.value("GET", &path, "").await?;
        if job["state"] == "done" {
            break job;
        }
        if begun.elapsed() > MOST {
            return Err(format!("the job is not done: {job}"));
        }
        tokio::time::sleep(LOOK).await;
    };
    let took = begun.elapsed().as_secs_f64();
    over.send_replace(true);
    let with = meanwhile.await.map_err(|error| error.to_string())??;
    if done["done"] != many {
        return Err(format!("not all were stopped: {done}"));
    }
    println!(
        "bulk, stop of {many} that run: {took:.1} s; starts {:.0}/s without, {with:.0}/s meanwhile: {:.2} of it",
        alone.per_second(),
        with / alone.per_second()
    );
    Ok(())
}

/// The answer for an execution that waits behind many, and pages of a list.
pub async fn why(sizes: Sizes) -> Result<(), String> {
    let many = sizes.of(100_000, 1_000_000);
    let folder = folder()?;
    let server = Server::start(folder.path())?;
    put_standing(&server, 5).await?;
    start_all(
        &server,
        KEYS * 5 + many,
        |at| json!({"flow": "standing", "name": format!("w{at}"), "input": {"key": at % KEYS}}),
    )
    .await?;
    until_in_line(&server, many).await?;
    let mut connection = Connection::to(server.address).await?;
    let mut ids = Vec::new();
    for at in 0..ASKED {
        let at = KEYS * 5 + at * (many / ASKED);
        let found = connection
            .value("GET", &format!("/v1/flows/standing/executions/w{at}"), "")
            .await?;
        ids.push(found["id"].as_str().unwrap_or_default().to_owned());
    }
    let asked = ids.iter().map(|id| format!("/v1/executions/{id}"));
    times(&server, "what one waits for", asked.collect()).await?;
    let asked = ids.iter().map(|id| format!("/v1/executions/{id}/why"));
    times(&server, "why one does not go on", asked.collect()).await?;
    for (what, query) in [
        ("by status", "status=Queued"),
        ("by flow and status", "flow=standing&status=Queued"),
        ("by reason", "reason=key"),
    ] {
        let path = format!("/v1/executions?limit=100&{query}");
        times(&server, &format!("a page of the list {what}"), vec![path; 200]).await?;
    }
    Ok(())
}

/// Asks one after the other.
async fn times(server: &Server, what: &str, paths: Vec<String>) -> Result<(), String> {
    let mut connection = Connection::to(server.address).await?;
    let mut times = Vec::new();
    let mut last = String::new();
    for path in paths {
        let begun = Instant::now();
        match connection.ask("GET", &path, "").await {
            Ok(answer) => last = answer,
            Err(problem) => {
                println!("why, {what}: refused: {problem}");
                return Ok(());
            }
        }
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or(0.0);
    println!(
        "why, {what}: p50 {:.2} ms, p99 {:.2} ms, {} bytes",
        at(0.5),
        at(0.99),
        last.len()
    );
    Ok(())
}
