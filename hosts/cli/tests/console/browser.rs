//! A browser of this test's own, driven by its driver's protocol (WebDriver).

use reqwest::{Client, Method};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The time limit for everything that the test waits for.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time limit for one command: a browser that hangs fails its test and holds up nothing else.
const COMMAND: Duration = Duration::from_secs(150);
const PAUSE: Duration = Duration::from_millis(50);
/// The key under which the protocol names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

pub const TAB: &str = "\u{e004}";
pub const CONTROL: &str = "\u{e009}";
pub const ENTER: &str = "\u{e007}";

/// The driver with one browser. Both end with the test.
pub struct Browser {
    driver: Child,
    client: Client,
    session: String,
    profile: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A driver whose browser hangs does not end by itself.
        let _ = self.driver.kill();
        let _ = self.driver.wait();
        // It leaves its browser behind, whose arguments name its profile.
        let profile = self.profile.path().display().to_string();
        let _ = Command::new("pkill").args(["-KILL", "-f", &profile]).status();
    }
}

impl Browser {
    pub async fn start() -> Self {
        let program = std::env::var_os("STARBRIDGE_CHROMEDRIVER").expect("STARBRIDGE_CHROMEDRIVER names the driver");
        let mut driver = Command::new(program)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let line = line.ok()?;
            let port = line.split_once("successfully on port ")?.1;
            Some(port.trim_end_matches('.').to_owned())
        });
        let base = format!("http://127.0.0.1:{}/session", port.expect("the driver listens"));
        std::thread::spawn(move || lines.for_each(drop));
        let _ = rustls::crypto::ring::default_provider().install_default();
        let profile = tempfile::tempdir().unwrap();
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--accept-lang=en",
            // A name of somebody else that leads to this machine.
            "--host-resolver-rules=MAP rebound.example 127.0.0.1",
            &format!("--user-data-dir={}", profile.path().display()),
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "timeouts": {"pageLoad": 60_000, "script": 60_000},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "goog:chromeOptions": {"args": arguments},
        }}});
        let mut browser = Self {
            driver,
            client: Client::builder().timeout(COMMAND).build().unwrap(),
            session: base,
            profile,
        };
        let begun = browser.ask(Method::POST, "", Some(wanted)).await.unwrap();
        let id = begun["sessionId"].as_str().expect("a session").to_owned();
        browser.session = format!("{}/{id}", browser.session);
        browser
    }

    /// A command of the protocol; the error is what the driver says.
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, Value> {
        let mut request = self.client.request(method, format!("{}{path}", self.session));
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        let answer = request.send().await.unwrap();
        let well = answer.status().is_success();
        let mut said: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        let value = said["value"].take();
        if well { Ok(value) } else { Err(value) }
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let done = self.ask(Method::POST, path, Some(body.clone())).await;
        done.unwrap_or_else(|why| panic!("{path} {body}: {why}"))
    }

    pub async fn go(&self, address: &str) {
        self.post("/url", json!({"url": address})).await;
    }

    /// What a script returns.
    pub async fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", json!({"script": script, "args": []})).await
    }

    /// What a script gives to its callback.
    pub async fn run_later(&self, script: &str) -> Value {
        self.post("/execute/async", json!({"script": script, "args": []})).await
    }

    async fn find(&self, selector: &str) -> Result<String, Value> {
        let asked = json!({"using": "css selector", "value": selector});
        let found = self.ask(Method::POST, "/element", Some(asked)).await?;
        Ok(found[ELEMENT].as_str().unwrap_or_default().to_owned())
    }

    /// Clicks what the selector finds first. A page that changes by itself may replace it in between.
    pub async fn click(&self, selector: &str) {
        const TRIES: u32 = 10;
        for _ in 0..TRIES {
            let found = self.find(selector).await;
            let element = found.unwrap_or_else(|why| panic!("{selector}: {why}"));
            let clicked = self
                .ask(Method::POST, &format!("/element/{element}/click"), Some(json!({})))
                .await;
            match clicked {
                Ok(_) => return,
                Err(why) if why["error"] == "stale element reference" => {}
                Err(why) => panic!("{selector}: {why}"),
            }
        }
        panic!("{selector} is replaced again and again");
    }

    /// Clicks, and waits for the page that it leads to.
    pub async fn click_to(&self, selector: &str) {
        self.run("window.leaving = true").await;
        self.click(selector).await;
        self.until("another page", || async {
            self.run("return !window.leaving && document.readyState === 'complete'")
                .await
                == true
        })
        .await;
    }

    pub async fn write(&self, selector: &str, text: &str) {
        let element = self
            .find(selector)
            .await
            .unwrap_or_else(|why| panic!("{selector}: {why}"));
        self.post(&format!("/element/{element}/value"), json!({"text": text}))
            .await;
    }

    /// Waits until the page was painted: before that, the browser drops what is typed.
    async fn is_painted(&self) {
        let look = "const done = arguments[0]; const end = performance.now() + 5000; \
            const painted = () => performance.getEntriesByType('paint').length > 0 || performance.now() > end; \
            const look = () => painted() ? requestAnimationFrame(() => setTimeout(done, 20)) : setTimeout(look, 20); \
            look();";
        self.run_later(look).await;
    }

    /// Presses keys where the focus is.
    pub async fn press(&self, keys: &str) {
        self.is_painted().await;
        let pressed = keys.chars().flat_map(|key| {
            let key = key.to_string();
            [
                json!({"type": "keyDown", "value": key}),
                json!({"type": "keyUp", "value": key}),
            ]
        });
        let actions = json!({"actions": [{"type": "key", "id": "keys", "actions": pressed.collect::<Vec<_>>()}]});
        self.post("/actions", actions).await;
    }

    /// Presses a key while another one is down.
    pub async fn chord(&self, held: &str, key: &str) {
        self.is_painted().await;
        let step = |kind: &str, value: &str| json!({"type": kind, "value": value});
        let steps = [
            step("keyDown", held),
            step("keyDown", key),
            step("keyUp", key),
            step("keyUp", held),
        ];
        let actions = json!({"actions": [{"type": "key", "id": "keys", "actions": steps}]});
        self.post("/actions", actions).await;
    }

    /// Goes by keys to what fits the selector.
    pub async fn tab_to(&self, selector: &str) {
        for _ in 0..120 {
            let script = format!("return document.activeElement.matches({})", json!(selector));
            if self.run(&script).await == true {
                return;
            }
            self.press(TAB).await;
        }
        panic!("the keys do not lead to {selector}");
    }

    /// Drags over what fits the selector, from one part of its width to another.
    pub async fn drag(&self, selector: &str, from: f64, to: f64) {
        let script = format!(
            "const box = document.querySelector({}).getBoundingClientRect(); return [box.left, box.top, box.width, box.height]",
            json!(selector)
        );
        let place = self.run(&script).await;
        let at = |index: usize| place[index].as_f64().unwrap();
        let step = |part: f64| {
            let x = (at(0) + (at(2) - 1.0) * part).round() as i64;
            let y = (at(1) + at(3) / 2.0).round() as i64;
            json!({"type": "pointerMove", "duration": 0, "x": x, "y": y})
        };
        let (down, up) = (
            json!({"type": "pointerDown", "button": 0}),
            json!({"type": "pointerUp", "button": 0}),
        );
        let actions = json!([step(from), down, step((from + to) / 2.0), step(to), up]);
        let pointer =
            json!({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions});
        self.post("/actions", json!({"actions": [pointer]})).await;
    }

    /// Clicks twice without a pause.
    pub async fn double_click(&self, selector: &str) {
        let found = self.find(selector).await;
        let element = found.unwrap_or_else(|why| panic!("{selector}: {why}"));
        let there = json!({"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": {ELEMENT: element}});
        let (down, up) = (
            json!({"type": "pointerDown", "button": 0}),
            json!({"type": "pointerUp", "button": 0}),
        );
        let actions = json!([there, down, up, down, up]);
        let pointer =
            json!({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions});
        self.post("/actions", json!({"actions": [pointer]})).await;
    }

    /// The text that one sees.
    pub async fn text(&self) -> String {
        let text = self.run("return document.body.innerText").await;
        text.as_str().unwrap_or_default().to_owned()
    }

    pub async fn until<F: Future<Output = bool>>(&self, what: &str, holds: impl Fn() -> F) {
        let begun = Instant::now();
        while !holds().await {
            if begun.elapsed() > PATIENCE {
                panic!("there is no {what}: {}", self.text().await);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until a text is seen.
    pub async fn sees(&self, wanted: &str) {
        self.until(wanted, || async { self.text().await.contains(wanted) })
            .await;
    }

    /// Waits until the address has this part. A page that is loaded again before that is not the one that the form leads to.
    pub async fn comes_to(&self, part: &str) {
        let script = format!("return location.href.includes({})", json!(part));
        self.until(part, || async { self.run(&script).await == true }).await;
    }

    /// Waits until a text is seen on a page that does not change by itself.
    pub async fn sees_anew(&self, wanted: &str) {
        self.until(wanted, || async {
            self.post("/refresh", json!({})).await;
            self.text().await.contains(wanted)
        })
        .await;
    }

    /// A command of the browser's own protocol.
    pub async fn tell(&self, command: &str, parameters: Value) {
        let body = json!({"cmd": command, "params": parameters});
        self.post("/goog/cdp/execute", body).await;
    }

    /// How wide the window's content is.
    pub async fn wide(&self, width: u32) {
        self.sized(width, 900).await;
    }

    pub async fn sized(&self, width: u32, height: u32) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.tell("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    /// What was logged since it was last asked for.
    pub async fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.post("/se/log", json!({"type": kind})).await;
        entries.as_array().cloned().unwrap_or_default()
    }

    /// The addresses that were asked for since this was last called.
    pub async fn requests(&self) -> Vec<String> {
        let mut asked = Vec::new();
        for entry in self.log("performance").await {
            let message: Value = serde_json::from_str(entry["message"].as_str().unwrap_or("{}")).unwrap();
            let message = &message["message"];
            if message["method"] == "Network.requestWillBeSent" {
                asked.extend(message["params"]["request"]["url"].as_str().map(str::to_owned));
            }
        }
        asked
    }

    /// A further tab, in front.
    pub async fn tab(&self) -> String {
        let made = self.post("/window/new", json!({"type": "tab"})).await;
        let handle = made["handle"].as_str().unwrap_or_default().to_owned();
        self.show(&handle).await;
        handle
    }

    pub async fn show(&self, tab: &str) {
        self.post("/window", json!({"handle": tab})).await;
    }

    /// A picture of what is seen.
    pub async fn picture(&self, file: &Path) {
        let taken = self.ask(Method::GET, "/screenshot", None).await.unwrap();
        std::fs::write(file, unpacked(taken.as_str().unwrap_or_default())).unwrap();
    }
}

/// The bytes of a text in base 64.
fn unpacked(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let (mut bytes, mut kept, mut bits) = (Vec::new(), 0_u32, 0);
    for six in text.bytes().filter_map(value) {
        kept = (kept << 6 | u32::from(six)) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((kept >> bits & 0xff) as u8);
        }
    }
    bytes
}
