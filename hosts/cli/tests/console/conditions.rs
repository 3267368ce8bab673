//! Pages under conditions that are not good: a stream that is cut, clocks that differ, the system's colours, readers that do not read.

use crate::browser::Browser;
use crate::pages;
use crate::server::{Server, flow};
use reqwest::Method;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn nap() -> Value {
    flow("nap", json!([{"type": "wait", "name": "sleep", "duration": 3600}]))
}

/// Something between browser and server that cuts each stream after a second.
struct Cutter {
    at: SocketAddr,
    cuts: Arc<AtomicUsize>,
}

impl Cutter {
    fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let cutter = Self {
            at: listener.local_addr().unwrap(),
            cuts: Arc::default(),
        };
        let cuts = cutter.cuts.clone();
        std::thread::spawn(move || {
            for browser in listener.incoming().map_while(Result::ok) {
                let cuts = cuts.clone();
                std::thread::spawn(move || pass(&browser, server, &cuts));
            }
        });
        cutter
    }
}

/// Passes on what both say, until a stream was open for a second.
fn pass(browser: &TcpStream, server: SocketAddr, cuts: &AtomicUsize) {
    let Ok(server) = TcpStream::connect(server) else { return };
    let (mut asks, mut asked) = (browser.try_clone().unwrap(), server.try_clone().unwrap());
    let (begun, begins) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 1 << 14];
        while let Ok(read @ 1..) = asks.read(&mut buffer) {
            if buffer.starts_with(b"GET /stream") {
                let _ = begun.send(Instant::now());
            }
            if asked.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let _ = asked.shutdown(Shutdown::Write);
    });
    let (mut buffer, mut since) = ([0; 1 << 14], None);
    let mut answers = &server;
    server.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    loop {
        since = begins.try_iter().last().or(since);
        if since.is_some_and(|since: Instant| since.elapsed() >= Duration::from_secs(1)) {
            cuts.fetch_add(1, Ordering::SeqCst);
            break;
        }
        match answers.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) if (&*browser).write_all(&buffer[..read]).is_err() => break,
            Ok(_) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) => {}
            Err(_) => break,
        }
    }
    let _ = (browser.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
}

#[tokio::test]
async fn stream_that_is_cut_each_second_loses_nothing() {
    let (server, browser) = (Server::start(), Browser::start().await);
    browser.wide(1440).await;
    server.put("nap", nap()).await;
    let cutter = Cutter::before(server.listens());
    let id = server.begin("nap", json!({"name": "n-0"})).await;
    let list = browser.tab().await;
    browser.go(&format!("http://{}/executions?flow=nap", cutter.at)).await;
    browser.sees("n-0").await;
    let mut cuts = 0;
    for number in 1..=4 {
        // Each comes after a further cut, so that some come while there is no stream.
        browser
            .until("a further cut", || async { cutter.cuts.load(Ordering::SeqCst) > cuts })
            .await;
        cuts = cutter.cuts.load(Ordering::SeqCst);
        let name = format!("n-{number}");
        server.begin("nap", json!({"name": name})).await;
        browser.sees(&name).await;
    }
    let page = browser.tab().await;
    browser.go(&format!("http://{}/executions/{id}", cutter.at)).await;
    // It says when it does not follow.
    let says = "return document.querySelector('#live').textContent.startsWith('Not live')";
    browser
        .until("word that it is not live", || async { browser.run(says).await == true })
        .await;
    server
        .ask(Method::POST, &format!("/v1/executions/{id}/stop"), json!({}))
        .await;
    browser.sees("Stopped").await;
    browser.show(&list).await;
    let states = "return [...document.querySelectorAll('table.picked tbody tr')].filter((row) => row.innerText.includes('Stopped')).length";
    browser
        .until("stopped one in the list", || async { browser.run(states).await == 1 })
        .await;
    browser.show(&page).await;
}

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// Its hash, as `sha256sum` tells it.
const HASH: &str = "3eb1bd439947eb762998e566ccc2e099c791118b2f40579cc4f7da2b5061b7f9";

#[tokio::test]
async fn clocks_an_hour_apart_change_neither_session_nor_times() {
    let library = std::env::var("STARBRIDGE_FAKETIME").expect("STARBRIDGE_FAKETIME names libfaketime.so.1");
    let settings = format!("[[tokens]]\nname = \"lin\"\nsha256 = \"{HASH}\"\nscopes = [\"admin\"]\n");
    for off in ["+3600s", "-3600s"] {
        let environment = vec![
            ("LD_PRELOAD", library.clone()),
            ("FAKETIME", off.to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ];
        let (server, browser) = (
            Server::start_with(&settings, Some(TOKEN), environment),
            Browser::start().await,
        );
        browser.wide(1440).await;
        server.put("nap", nap()).await;
        let id = server.begin("nap", json!({"name": "n-1"})).await;
        browser.go(&format!("{}/executions/{id}", server.base)).await;
        browser.write("[name=token]", TOKEN).await;
        browser.click_to("main form button").await;
        browser.sees("n-1").await;
        browser.sees("Live").await;
        // Times are those of the server, and how long something took follows from its clock alone.
        let told = server
            .ask(Method::GET, &format!("/v1/executions/{id}"), Value::Null)
            .await;
        let began = told["startedTime"].as_str().unwrap();
        let apart = "return Math.round((Date.parse(arguments[0] ?? '') - Date.now()) / 600000)"
            .replace("arguments[0] ?? ''", &json!(began).to_string());
        let apart = browser.run(&apart).await.as_i64().unwrap();
        assert_eq!(apart, if off.starts_with('+') { 6 } else { -6 }, "{began}");
        let shown = format!("{} {}", &began[5..10], &began[11..19]);
        browser.sees(&shown).await;
        let took = "return document.querySelector('.facts > div:nth-child(2) dd').textContent";
        let took = browser.run(took).await;
        assert!(!took.as_str().unwrap().contains(['h', 'd', '-']), "{took}");
        let counted = "return document.querySelector('.pulse .tallies b').textContent";
        browser.go(&format!("{}/", server.base)).await;
        browser
            .until("one that began in the last hour", || async {
                browser.run(counted).await == "1"
            })
            .await;
        // The session goes on, and the page is told what happens.
        browser.go(&format!("{}/executions/{id}", server.base)).await;
        browser.sees("Live").await;
        server
            .ask(Method::POST, &format!("/v1/executions/{id}/stop"), json!({}))
            .await;
        browser.sees("Stopped").await;
    }
}

/// Texts and signs that one cannot see against what is behind them. Nothing else is looked at: grids and rails are decoration.
const UNSEEN: &str = "const brush = document.createElement('canvas').getContext('2d', { willReadFrequently: true }); \
    const rgba = (colour) => { brush.clearRect(0, 0, 1, 1); brush.fillStyle = colour; brush.fillRect(0, 0, 1, 1); return [...brush.getImageData(0, 0, 1, 1).data]; }; \
    const light = (colour) => colour.slice(0, 3).map((part) => part / 255).map((part) => part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4) \
      .reduce((sum, part, at) => sum + part * [.2126, .7152, .0722][at], 0); \
    const ratio = (one, other) => { const [low, high] = [light(one), light(other)].sort((one, other) => one - other); return (high + .05) / (low + .05); }; \
    const behind = (part) => { for (let at = part; at; at = at.parentElement) { const colour = rgba(getComputedStyle(at).backgroundColor); if (colour[3] > 200) return colour; } return rgba('Canvas'); }; \
    const seen = (part) => { const box = part.getBoundingClientRect(); return box.width > 0 && box.height > 0 && part.checkVisibility({ visibilityProperty: true }); }; \
    const wrong = []; const tell = (part, what) => wrong.push(`${what}: ${part.outerHTML.slice(0, 140)}`); \
    for (const part of document.querySelectorAll('body *')) { \
      if (!seen(part) || part.closest('option, :disabled, [aria-disabled=true], .unseen')) continue; \
      const style = getComputedStyle(part); \
      if (part instanceof SVGElement) { \
        if (!part.matches('path, rect, circle, line, polyline, text, use') || part.closest('defs, symbol') || part.matches('.hit, .grid, .base, .rail, .gap, .b-none, .hatch, .span, [href=\"#lane-back\"]')) continue; \
        const paints = [style.fill, style.stroke].filter((paint) => paint !== 'none').map(rgba).filter((paint) => paint[3] > 40); \
        if (part.matches('text, use') ? false : paints.length === 0) continue; \
        if (!part.matches('use') && !paints.some((paint) => ratio(paint, behind(part)) >= 2.5)) tell(part, 'shape'); \
        if (part.matches('use') && ratio(rgba(style.stroke), behind(part)) < 2.5) tell(part.parentElement, 'sign'); \
      } else if ([...part.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) { \
        if (ratio(rgba(style.color), behind(part)) < 4.4) tell(part, 'text'); \
      } \
    } return [...new Set(wrong)].slice(0, 6)";

#[tokio::test]
async fn every_page_is_readable_in_the_colours_of_the_system() {
    let (server, browser) = (Server::start(), Browser::start().await);
    browser.wide(1440).await;
    let pages = pages(&server).await;
    let pictures = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("console/forced");
    std::fs::create_dir_all(&pictures).unwrap();
    let mut wrong = Vec::new();
    for scheme in ["light", "dark"] {
        let media = json!({"features": [{"name": "forced-colors", "value": "active"}, {"name": "prefers-color-scheme", "value": scheme}]});
        browser.tell("Emulation.setEmulatedMedia", media).await;
        for (name, path) in &pages {
            browser.go(&format!("{}{path}", server.base)).await;
            assert_eq!(
                browser
                    .run("return matchMedia('(forced-colors: active)').matches")
                    .await,
                true
            );
            let unseen = browser.run(UNSEEN).await;
            if unseen != json!([]) {
                wrong.push(format!("{path}, {scheme}: {unseen:#}"));
            }
            browser.picture(&pictures.join(format!("{name}-{scheme}.png"))).await;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A stream of which nothing is read but its head.
fn stream(server: SocketAddr, topics: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(server).unwrap();
    let request =
        format!("GET /stream?topics={topics} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 200"), "{line}");
    reader
}

/// The frames until one has this id, or until the stream ends.
fn frames_to(reader: &mut BufReader<TcpStream>, id: &str) -> usize {
    reader
        .get_ref()
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let (mut frames, mut line) = (0, String::new());
    loop {
        line.clear();
        let read = reader.read_line(&mut line);
        assert!(
            read.is_ok_and(|read| read > 0),
            "no frame with {id} after {frames} others"
        );
        if let Some(told) = line.strip_prefix("id: ") {
            frames += 1;
            if told.trim() == id {
                return frames;
            }
        }
    }
}

/// Each reader that does not read costs little, however much happens, and the last that it is told is how things are.
#[tokio::test]
async fn readers_that_do_not_read_cost_little_and_are_told_how_it_is_now() {
    const READERS: usize = 100;
    let server = Server::start();
    server
        .put("well", flow("well", json!([{"type": "pass", "name": "a"}])))
        .await;
    let many = |count: usize| Value::from(vec![json!({"flow": "well"}); count]);
    let all_ended = async |count: u64| loop {
        let counts = server.ask(Method::GET, "/v1/executions/counts", Value::Null).await;
        if counts["statuses"]["Succeeded"] == count {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    // What the executions themselves take is there before it is counted.
    server.ask(Method::POST, "/v1/executions/batch", many(1_000)).await;
    all_ended(1_000).await;
    let mut readers: Vec<_> = (0..READERS).map(|_| stream(server.listens(), "executions")).collect();
    let (before, begun) = (server.memory(), Instant::now());
    for round in 0..5 {
        server.ask(Method::POST, "/v1/executions/batch", many(200)).await;
        all_ended(1_200 + 200 * round).await;
    }
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more");
    // A reader that comes now has the id of what is now.
    let mut fresh = stream(server.listens(), "executions");
    let mut line = String::new();
    while !line.starts_with("id: ") {
        line.clear();
        fresh.read_line(&mut line).unwrap();
    }
    let now = line.trim_start_matches("id: ").trim();
    for reader in &mut readers {
        // Of a list there is word once a second at most.
        let frames = frames_to(reader, now);
        let most = 3 + usize::try_from(begun.elapsed().as_secs()).unwrap();
        assert!(frames <= most, "{frames} frames, {most} at most");
    }
}
