//! Executions that wait for others, or for a time.

use crate::crowd::{Connection, Gate, start_all, until_status, until_succeeded};
use crate::scenes::{folder, put};
use crate::server::Server;
use crate::sizes::Sizes;
use serde_json::{Value, json};
use starbridge_flow::time::Timestamp;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const MOST: Duration = Duration::from_secs(300);
/// The chain has as many links at either size.
const CHAIN: usize = 1_000;
/// The time within which the delayed ones are due.
const DUE: Duration = Duration::from_secs(1);

async fn server(folder: &tempfile::TempDir, gate: &Gate) -> Result<Server, String> {
    let server = Server::start(folder.path())?;
    gate.put(&server, "gate").await?;
    put(&server, "one", json!([{"type": "pass", "name": "p"}])).await?;
    let first = json!({"name": "first"}).to_string();
    server.ask("POST", "/v1/flows/gate/executions", &first).await?;
    Ok(server)
}

/// Many that wait for one, and a chain.
pub async fn after(sizes: Sizes) -> Result<(), String> {
    let many = sizes.of(1_000, 10_000);
    let each = |_| json!({"flow": "one", "after": ["gate/first"]});
    released(many, each, "that wait for one").await?;
    let linked = |at| {
        let before = match at {
            0 => "gate/first".to_owned(),
            at => format!("one/c{}", at - 1),
        };
        json!({"flow": "one", "name": format!("c{at}"), "after": [before]})
    };
    released(CHAIN, linked, "in a chain").await
}

async fn released(
    many: usize,
    entry: impl Fn(usize) -> Value + Send + Sync + 'static,
    what: &str,
) -> Result<(), String> {
    let folder = folder()?;
    let gate = Gate::new().await?;
    let server = server(&folder, &gate).await?;
    let pace = start_all(&server, many, entry).await?;
    until_status(&server, "Blocked", many).await?;
    let begun = Instant::now();
    gate.open();
    until_succeeded(&server, many + 1, MOST).await?;
    println!(
        "after, {many} {what} (put in at {pace:.0}/s): all have begun and ended {:.2} s after it ended",
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Many that are due within one second: when the last began, and whether one began early.
pub async fn delayed(sizes: Sizes) -> Result<(), String> {
    let many = sizes.of(10_000, 100_000);
    let folder = folder()?;
    let server = Server::start(folder.path())?;
    put(&server, "one", json!([{"type": "pass", "name": "p"}])).await?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_err(|error| error.to_string())?.as_millis();
    let ahead = sizes.of(8_000, 40_000);
    let first = i64::try_from(now).unwrap_or(0) + i64::try_from(ahead).unwrap_or(0);
    let due = move |at: usize| first + i64::try_from(at * 1_000 / many).unwrap_or(0);
    let pace = start_all(&server, many, move |at| {
        let start = Timestamp(due(at)).to_string();
        json!({"flow": "one", "name": format!("d{at}"), "startAt": start})
    })
    .await?;
    until_status(&server, "Delayed", many)
        .await
        .map_err(|error| format!("{error}: they were not in time"))?;
    until_succeeded(&server, many, MOST).await?;
    let (early, last) = begun_early(&server, due).await?;
    let late = last - first - i64::try_from(DUE.as_millis()).unwrap_or(0);
    println!(
        "delayed, {many} due in one second (put in at {pace:.0}/s): the last began {late} ms after the last was due, {early} early"
    );
    Ok(())
}

/// How many began before their time, and when the last one began.
async fn begun_early(server: &Server, due: impl Fn(usize) -> i64) -> Result<(usize, i64), String> {
    let mut connection = Connection::to(server.address).await?;
    let (mut early, mut last) = (0, 0);
    let mut cursor = String::new();
    loop {
        let path = format!("/v1/executions?flow=one&limit=500{cursor}");
        let page = connection.value("GET", &path, "").await?;
        for item in page["items"].as_array().into_iter().flatten() {
            let at = item["name"].as_str().and_then(|name| name.strip_prefix('d'));
            let at: usize = at.and_then(|at| at.parse().ok()).ok_or("a name is not known")?;
            let begun = item["startedTime"].as_str().and_then(Timestamp::parse);
            let begun = begun.ok_or("no time of beginning")?.0;
            early += usize::from(begun < due(at));
            last = last.max(begun);
        }
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok((early, last)),
        }
    }
}
