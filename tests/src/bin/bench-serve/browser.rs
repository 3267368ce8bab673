//! What only a browser can tell: when a page is painted, and what it takes there. Driven by WebDriver.

use crate::crowd::{self, Connection};
use axum::Router;
use axum::response::Html;
use axum::routing::get;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const ROUNDS: usize = 11;

/// The driver with one browser.
pub struct Browser {
    driver: Child,
    connection: Connection,
    session: String,
    _profile: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends its browser when it is asked to end by itself.
        let _ = Command::new("kill").arg(self.driver.id().to_string()).status();
        let _ = self.driver.wait();
    }
}

impl Browser {
    pub async fn start(driver: &OsStr) -> Result<Self, String> {
        let mut driver = Command::new(driver)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut lines = BufReader::new(driver.stdout.take().ok_or("no output")?).lines();
        let port = lines.find_map(|line| {
            let line = line.ok()?;
            let port = line.split_once("successfully on port ")?.1;
            port.trim_end_matches('.').parse::<u16>().ok()
        });
        std::thread::spawn(move || lines.for_each(drop));
        let port = port.ok_or("the driver does not listen")?;
        let mut connection = Connection::to(([127, 0, 0, 1], port).into()).await?;
        let profile = tempfile::tempdir().map_err(|error| error.to_string())?;
        let folder = format!("--user-data-dir={}", profile.path().display());
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            // Otherwise the heap is told in steps, and rarely.
            "--enable-precise-memory-info",
            "--js-flags=--expose-gc",
            &folder,
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {"browserName": "chrome",
            "timeouts": {"script": 300_000, "pageLoad": 300_000}, "goog:chromeOptions": {"args": arguments}}}});
        let begun = connection.value("POST", "/session", &wanted.to_string()).await?;
        let session = begun["value"]["sessionId"].as_str().ok_or("no session")?.to_owned();
        Ok(Self {
            driver,
            connection,
            session,
            _profile: profile,
        })
    }

    async fn go(&mut self, address: &str) -> Result<(), String> {
        let path = format!("/session/{}/url", self.session);
        let body = json!({ "url": address }).to_string();
        self.connection.ask("POST", &path, &body).await.map(drop)
    }

    /// What a script gives to `done`.
    async fn run(&mut self, script: &str) -> Result<Value, String> {
        let script = format!(
            "const done = arguments[0]; const frame = () => new Promise(requestAnimationFrame);\
             (async () => {{ {script} }})().then(done, (error) => done(String(error)))"
        );
        let path = format!("/session/{}/execute/async", self.session);
        let body = json!({"script": script, "args": []}).to_string();
        let mut said = self.connection.value("POST", &path, &body).await?;
        match said["value"].take() {
            Value::String(problem) => Err(problem),
            value => Ok(value),
        }
    }

    /// Milliseconds from the navigation to the first paint with content, and from the first byte to it.
    async fn painted(&mut self, address: &str) -> Result<[f64; 2], String> {
        self.go(address).await?;
        let found = self
            .run(
                "let paint; while (!(paint = performance.getEntriesByName('first-contentful-paint')[0])) await frame();\
                 const page = performance.getEntriesByType('navigation')[0];\
                 return [paint.startTime, paint.startTime - page.responseStart];",
            )
            .await?;
        let at = |place: usize| found[place].as_f64().unwrap_or(0.0);
        Ok([at(0), at(1)])
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}

/// The first paint of a page, and of one with nothing but a word, in turns.
pub async fn first_paint(browser: &mut Browser, address: &str) -> Result<(), String> {
    let page = Html("<!doctype html><html lang=en><title>bare</title><p>bare</p></html>");
    let bare = crowd::serve(Router::new().route("/", get(move || async move { page }))).await?;
    let bare = format!("http://{bare}/");
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let (one, other) = (browser.painted(&bare).await?[0], browser.painted(address).await?[0]);
        // The first has nothing kept.
        if round == 0 {
            println!("console, first paint of a first visit: {other:.0} ms, a bare page {one:.0} ms");
            continue;
        }
        theirs.push(one);
        ours.push(other);
    }
    let beyond = theirs.iter().zip(&ours).map(|(bare, page)| page - bare).collect();
    println!(
        "console, first paint: {:.0} ms, a bare page {:.0} ms, beyond it {:.0} ms (medians of {ROUNDS})",
        median(ours),
        median(theirs),
        median(beyond)
    );
    Ok(())
}

/// A page that is scrolled from end to end, and all boxes in it.
pub async fn scrolled(browser: &mut Browser, what: &str, address: &str) -> Result<(), String> {
    browser.go(address).await?;
    let found = browser
        .run(
            "let longest = 0; const note = (list) => { for (const task of list.getEntries()) longest = Math.max(longest, task.duration); };\
             const watch = new PerformanceObserver(note); watch.observe({ type: 'longtask' });\
             const boxes = [document.scrollingElement, ...document.querySelectorAll('.scroll, .canvas')];\
             let frames = 0; const begun = performance.now();\
             for (const box of boxes) for (let at = 0; at < box.scrollHeight && frames < 2000; at += 200, frames += 1) { box.scrollTop = at; await frame(); }\
             const took = performance.now() - begun; await frame(); await frame(); note({ getEntries: () => watch.takeRecords() });\
             gc(); return [document.querySelectorAll('*').length, performance.memory.usedJSHeapSize / 1e6, longest, frames, took];",
        )
        .await?;
    println!(
        "console, {what} scrolled from end to end: {} elements, {:.1} MB of script heap, longest task {:.0} ms (0: none over 50), {} frames in {:.0} ms",
        found[0],
        found[1].as_f64().unwrap_or(0.0),
        found[2].as_f64().unwrap_or(0.0),
        found[3],
        found[4].as_f64().unwrap_or(0.0)
    );
    Ok(())
}

/// How long the picture of a foreach takes to be drawn, once the states of its items are there.
pub async fn map(browser: &mut Browser, address: &str) -> Result<(), String> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        browser.go(address).await?;
        let found = browser
            .run(
                "let drawn; while (!(drawn = performance.getEntriesByName('map')[0])) await frame();\
                 const canvas = document.querySelector('#items canvas'); return [drawn.duration, canvas.width, canvas.height];",
            )
            .await?;
        times.push(found[0].as_f64().unwrap_or(0.0));
        if times.len() == 1 {
            println!("console, its picture has {} by {} pixels", found[1], found[2]);
        }
    }
    println!(
        "console, its picture: drawn within {:.0} ms (median of {ROUNDS})",
        median(times)
    );
    Ok(())
}

/// A page with a large graph: painted, drawn anew at another event, scrolled.
pub async fn graph(browser: &mut Browser, address: &str) -> Result<(), String> {
    let (mut painted, mut drawn, mut frames) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS / 2 {
        painted.push(browser.painted(address).await?[1]);
        let again = browser
            .run(
                "const slider = document.querySelector('#slider'); slider.value = Math.floor(slider.max / 2);\
                 performance.clearResourceTimings();\
                 const shown = new Promise((resolve) => document.addEventListener('shown', resolve, { once: true }));\
                 slider.dispatchEvent(new Event('input', { bubbles: true })); await shown; await frame(); await frame();\
                 const end = performance.now(); await new Promise((resolve) => setTimeout(resolve, 100));\
                 const asked = performance.getEntriesByType('resource').filter((one) => one.name.includes('at=')).pop();\
                 const box = document.querySelector('.canvas'); const begun = performance.now(); const count = 100;\
                 for (let at = 0; at < count; at += 1) { box.scrollTop = at * (box.scrollHeight / count); await frame(); }\
                 return [end - asked.responseEnd, 1000 * count / (performance.now() - begun), box.querySelectorAll('*').length];",
            )
            .await?;
        drawn.push(again[0].as_f64().unwrap_or(0.0));
        frames.push(again[1].as_f64().unwrap_or(0.0));
        if painted.len() == 1 {
            println!("console, its graph has {} elements", again[2]);
        }
    }
    println!(
        "console, its page in a browser: painted {:.0} ms after the first byte, another event drawn {:.0} ms after it came, {:.0} frames/s while scrolled (medians of {})",
        median(painted),
        median(drawn),
        median(frames),
        ROUNDS / 2
    );
    Ok(())
}
