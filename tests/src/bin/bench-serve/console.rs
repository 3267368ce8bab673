//! Pages of the console: what they weigh, and how long the server takes for each.

use crate::browser::{self, Browser};
use crate::crowd::{Connection, start_all, until_status, until_succeeded};
use crate::load;
use crate::scenes::{folder, put};
use crate::server::Server;
use crate::sizes::Sizes;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Of those in the list, each of so many fails, and each of so many others succeeds.
const FAILS: usize = 100;
const SUCCEEDS: usize = 10;
const STEPS: usize = 1_000;
/// Iterations of one `pass`: some 99,900 events.
const ITERATIONS: usize = 16_640;
const WATCHERS: usize = 200;
const PART: Duration = Duration::from_secs(5);
const ROUNDS: usize = 3;
const MOST: Duration = Duration::from_secs(600);

/// What is measured, each for itself: a scene `console-list` has the first only.
pub const PARTS: [&str; 5] = ["list", "history", "graph", "map", "streams"];

/// These parts; what only a browser can tell is left out where `STARBRIDGE_CHROMEDRIVER` names no driver.
pub async fn some(parts: &[&str], sizes: Sizes) -> Result<(), String> {
    let mut browser = match std::env::var_os("STARBRIDGE_CHROMEDRIVER") {
        Some(driver) => Some(Browser::start(&driver).await?),
        None => {
            println!("console: no browser, STARBRIDGE_CHROMEDRIVER names no driver");
            None
        }
    };
    let has = |part: &str| parts.contains(&part);
    if has("list") {
        list(sizes, &mut browser).await?;
    }
    let folder = folder()?;
    let server = Server::start(folder.path())?;
    // How often a page is asked for.
    let asked = sizes.of(20, 200);
    if has("history") {
        history(&server, asked, &mut browser).await?;
    }
    if has("graph") {
        graph(&server, asked / 4, &mut browser).await?;
    }
    if has("map") {
        map(&server, &mut browser).await?;
    }
    if has("streams") {
        watchers(&server).await?;
    }
    Ok(())
}

/// A connection as a browser has it: answers are compressed.
struct Pages {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Pages {
    async fn to(address: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
        let _ = stream.set_nodelay(true);
        let buffer = Vec::new();
        Ok(Self { stream, buffer })
    }

    /// Milliseconds until an answer was there whole, and the bytes of its body as they were sent.
    async fn ask(&mut self, path: &str) -> Result<(f64, usize), String> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept-encoding: gzip\r\n\r\n");
        let begun = Instant::now();
        let sent = self.stream.write_all(request.as_bytes()).await;
        sent.map_err(|error| error.to_string())?;
        let status = load::answer(&mut self.stream, &mut self.buffer).await?;
        let took = begun.elapsed().as_secs_f64() * 1000.0;
        if status != 200 {
            return Err(format!("{path}: {status}"));
        }
        let head = self.buffer.windows(4).position(|four| four == b"\r\n\r\n");
        Ok((took, self.buffer.len() - head.unwrap_or_default() - 4))
    }

    /// Asks for each, and prints the times of all, and what the server worked: that tells more where others use the machine.
    async fn times(
        &mut self,
        server: &Server,
        what: &str,
        paths: impl IntoIterator<Item = String>,
    ) -> Result<(), String> {
        let (mut times, mut bytes) = (Vec::new(), 0);
        let before = server.processor();
        for path in paths {
            let (took, size) = self.ask(&path).await?;
            times.push(took);
            bytes = bytes.max(size);
        }
        let worked = (server.processor() - before) * 1000.0 / times.len().max(1) as f64;
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or(0.0);
        println!(
            "console, {what}: p50 {:.1} ms, p99 {:.1} ms, {worked:.1} ms of processor each, {bytes} bytes gzip at most",
            at(0.5),
            at(0.99)
        );
        Ok(())
    }
}

/// The list, by each filter.
async fn list(sizes: Sizes, browser: &mut Option<Browser>) -> Result<(), String> {
    let (many, asked) = (sizes.of(20_000, 1_000_000), sizes.of(20, 200));
    let folder = folder()?;
    let server = Server::start(folder.path())?;
    put(&server, "done", json!([{"type": "pass", "name": "p"}])).await?;
    let fails = json!([{"type": "fail", "name": "f", "error": "Ship.NoCarrier"}]);
    put(&server, "broken", fails).await?;
    put(
        &server,
        "sleep",
        json!([{"type": "wait", "name": "w", "duration": 30_000_000}]),
    )
    .await?;
    start_all(&server, many, |at| {
        let flow = match at {
            _ if at % FAILS == 0 => "broken",
            _ if at % SUCCEEDS == 1 => "done",
            _ => "sleep",
        };
        json!({"flow": flow, "input": {"id": at}})
    })
    .await?;
    until_succeeded(&server, many / SUCCEEDS, MOST).await?;
    until_status(&server, "Running", many - many / SUCCEEDS - many / FAILS).await?;
    println!("console, a list of {many}");
    first_visit(&server).await?;
    let mut pages = Pages::to(server.address).await?;
    for filter in FILTERS {
        let path = format!("/executions{filter}");
        pages.times(&server, &path, vec![path.clone(); asked]).await?;
    }
    match browser {
        Some(browser) => browser::first_paint(browser, &format!("http://{}/executions", server.address)).await,
        None => Ok(()),
    }
}

/// What the list is asked for; the second half finds nothing.
const FILTERS: [&str; 16] = [
    "",
    "?flow=sleep",
    "?status=Running",
    "?status=Failed",
    "?status=Succeeded",
    "?flow=broken&status=Failed",
    "?reason=timer",
    "?error=Ship.NoCarrier",
    "?flow=none",
    "?status=Stopped",
    "?reason=callback",
    "?name=none",
    "?label=none%3Anone",
    "?error=None.Such",
    "?step=none",
    "?endedFrom=2100-01-01T00%3A00%3A00Z",
];

/// What a browser without anything kept gets for the list.
async fn first_visit(server: &Server) -> Result<(), String> {
    let page = server.ask("GET", "/executions", "").await?;
    let mut pages = Pages::to(server.address).await?;
    let (_, alone) = pages.ask("/executions").await?;
    let mut files: Vec<&str> = page.split('"').filter(|text| text.starts_with("/console/")).collect();
    files.sort_unstable();
    files.dedup();
    let mut whole = alone;
    for file in &files {
        whole += pages.ask(file).await?.1;
    }
    println!(
        "console, a first visit: {whole} bytes gzip with {} files, the page alone {alone}",
        files.len()
    );
    Ok(())
}

/// Starts an execution, waits for its end and answers the address of its page.
async fn ended(server: &Server, flow: &str, input: &Value) -> Result<String, String> {
    let mut connection = Connection::to(server.address).await?;
    let body = json!({ "input": input }).to_string();
    let path = format!("/v1/flows/{flow}/executions");
    let started = connection.value("POST", &path, &body).await?;
    let id = started["id"].as_str().unwrap_or_default();
    let begun = Instant::now();
    loop {
        let now = connection
            .value("GET", &format!("/v1/executions/{id}?wait=20"), "")
            .await?;
        match now["status"].as_str() {
            Some("Succeeded") => return Ok(format!("/executions/{id}")),
            Some("Running") if begun.elapsed() < MOST => {}
            other => return Err(format!("{flow} is {other:?}")),
        }
    }
}

fn each() -> Value {
    json!([{"type": "foreach", "name": "each", "iterationMapping": {"collection": "$.items", "item": "item"},
        "steps": [{"type": "pass", "name": "p"}]}])
}

/// A long history: its page before and after it was read, at an event, and what a browser makes of it.
async fn history(server: &Server, asked: usize, browser: &mut Option<Browser>) -> Result<(), String> {
    put(server, "long", each()).await?;
    let items: Vec<usize> = (0..ITERATIONS).collect();
    let page = ended(server, "long", &json!({ "items": items })).await?;
    let last = server
        .ask("GET", &format!("/v1{page}/history?limit=1&order=desc"), "")
        .await?;
    let last: Value = serde_json::from_str(&last).map_err(|error| error.to_string())?;
    let events = last["items"][0]["id"].as_u64().ok_or("no event")?;
    println!("console, a history of {events} events");
    let mut pages = Pages::to(server.address).await?;
    pages.times(server, "it cold", [page.clone()]).await?;
    pages.times(server, "it warm", vec![page.clone(); asked]).await?;
    let tab = format!("{page}?tab=events");
    pages
        .times(server, "its events, warm", vec![tab.clone(); asked])
        .await?;
    // Far from each other, as somebody who jumps, and one after the other, as the slider.
    let asked = asked as u64;
    let jump = (0..asked).map(|at| 1 + at * 7_919 % events);
    let jump = jump.map(|at| format!("{page}?at={at}"));
    pages.times(server, "at event N", jump).await?;
    let stops = (0..asked).map(|at| 1 + at * (events / asked));
    let stops = stops.map(|at| format!("{page}?at={at}"));
    pages.times(server, "stops of the slider", stops).await?;
    if let Some(browser) = browser {
        for (what, path) in [("time line", &page), ("events", &tab)] {
            browser::scrolled(browser, what, &format!("http://{}{path}", server.address)).await?;
        }
    }
    Ok(())
}

/// A graph with many steps.
async fn graph(server: &Server, asked: usize, browser: &mut Option<Browser>) -> Result<(), String> {
    let steps = (0..STEPS).map(|number| json!({"type": "pass", "name": format!("step-{number}")}));
    put(server, "wide", steps.collect()).await?;
    let page = ended(server, "wide", &json!({})).await?;
    println!("console, a graph of {STEPS} steps");
    let mut pages = Pages::to(server.address).await?;
    pages.times(server, "its page cold", [page.clone()]).await?;
    pages.times(server, "its page warm", vec![page.clone(); asked]).await?;
    let picture = format!("/v1{page}/graph.svg");
    if let Err(missing) = pages.times(server, "its picture alone", vec![picture; asked]).await {
        println!("console, its picture alone: {missing}");
    }
    match browser {
        Some(browser) => browser::graph(browser, &format!("http://{}{page}", server.address)).await,
        None => Ok(()),
    }
}

/// The map of a wide foreach.
async fn map(server: &Server, browser: &mut Option<Browser>) -> Result<(), String> {
    put(server, "long", each()).await?;
    let page = ended(server, "long", &json!({"items": (0..100_000).collect::<Vec<_>>()})).await?;
    println!("console, a foreach of 100,000");
    let mut pages = Pages::to(server.address).await?;
    pages.times(server, "its page cold", [page.clone()]).await?;
    pages.times(server, "its page again", vec![page.clone(); 5]).await?;
    let found = server.ask("GET", &format!("{page}?tab=steps"), "").await?;
    // The foreach is the first row of the steps: its inspector has the map.
    let visit = found.split("visit=").nth(1);
    let visit: String = visit
        .unwrap_or_default()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    let shown = format!("{page}?tab=steps&visit={visit}");
    pages.times(server, "its map", vec![shown.clone(); 5]).await?;
    let letters = format!("{page}/map?event={visit}");
    pages
        .times(server, "the letters of its items", vec![letters; 5])
        .await?;
    match browser {
        Some(browser) => browser::map(browser, &format!("http://{}{shown}", server.address)).await,
        None => Ok(()),
    }
}

/// Streams on the list, while flows start at full pace: without and with them, in turns.
async fn watchers(server: &Server) -> Result<(), String> {
    put(server, "one", json!([{"type": "pass", "name": "p"}])).await?;
    let start = load::post("/v1/flows/one/executions?wait=30", "{}");
    let (mut ratios, mut kilobytes) = (Vec::new(), 0.0);
    load::run(server.address, start.clone(), 16, PART, usize::MAX).await?;
    for round in 0..ROUNDS {
        let without = load::run(server.address, start.clone(), 16, PART, usize::MAX).await?;
        let before = server.memory();
        let mut watching = Vec::new();
        for _ in 0..WATCHERS {
            watching.push(watch(server.address).await?);
        }
        let with = load::run(server.address, start.clone(), 16, PART, usize::MAX).await?;
        if round == 0 {
            kilobytes = (server.memory() - before) * 1024.0 / WATCHERS as f64;
        }
        for one in watching {
            one.abort();
        }
        ratios.push(with.per_second() / without.per_second());
        println!(
            "console, starts without and with {WATCHERS} streams: {:.0}/s, {:.0}/s",
            without.per_second(),
            with.per_second()
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "console, {WATCHERS} streams on a list: {:.2} of the pace without at the median, {kilobytes:.0} KB more memory for each, with what the starts took",
        ratios.get(ROUNDS / 2).copied().unwrap_or(0.0)
    );
    Ok(())
}

/// Follows what the list shows, and drops what it reads.
async fn watch(address: SocketAddr) -> Result<tokio::task::JoinHandle<()>, String> {
    let mut stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    let request = b"GET /stream?topics=executions HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
    stream.write_all(request).await.map_err(|error| error.to_string())?;
    let mut buffer = vec![0; 4096];
    let read = stream.read(&mut buffer).await.map_err(|error| error.to_string())?;
    let head = String::from_utf8_lossy(buffer.get(..read).unwrap_or_default()).into_owned();
    if !head.starts_with("HTTP/1.1 200") {
        return Err(head);
    }
    Ok(tokio::spawn(async move {
        while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
    }))
}
