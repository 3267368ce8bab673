//! Each page of the console is walked through, once with a mouse and once with keys only.

use crate::browser::{Browser, ENTER, TAB};
use crate::order;
use crate::server::{Function, Server, flow};
use reqwest::Method;
use serde_json::{Value, json};

/// Whoever uses the pages.
struct Hand<'a> {
    browser: &'a Browser,
    base: String,
    by_keys: bool,
}

impl Hand<'_> {
    /// Opens a page. Whoever uses keys goes past the menu by the link for that.
    async fn open(&self, path: &str) {
        self.browser.go(&format!("{}{path}", self.base)).await;
        if self.by_keys {
            self.browser.press(TAB).await;
            self.browser.press(ENTER).await;
        }
    }

    /// Uses something that changes the page it stands on, or opens a part of it.
    async fn on(&self, selector: &str) {
        match self.by_keys {
            true => {
                self.browser.tab_to(selector).await;
                let is_box = "return document.activeElement.matches('input[type=checkbox]')";
                let key = if self.browser.run(is_box).await == true {
                    " "
                } else {
                    ENTER
                };
                self.browser.press(key).await;
            }
            false => self.browser.click(selector).await,
        }
    }

    /// Uses something that leads to another page.
    async fn to(&self, selector: &str) {
        self.browser.run("window.leaving = true").await;
        self.on(selector).await;
        self.arrives().await;
    }

    async fn arrives(&self) {
        let there = "return !window.leaving && document.readyState === 'complete'";
        self.browser
            .until("another page", || async { self.browser.run(there).await == true })
            .await;
        // Whoever is led to a part of a page is past the menu already.
        if self.by_keys && self.browser.run("return location.hash").await == "" {
            self.browser.press(TAB).await;
            self.browser.press(ENTER).await;
        }
    }

    /// Writes into a field what it shall have.
    async fn write(&self, selector: &str, text: &str) {
        match self.by_keys {
            true => {
                self.browser.tab_to(selector).await;
                self.browser.run("document.activeElement.select()").await;
                self.browser.press(text).await;
            }
            false => {
                self.browser
                    .run(&format!("document.querySelector({}).value = ''", json!(selector)))
                    .await;
                self.browser.write(selector, text).await;
            }
        }
    }

    /// Opens the form of an action, and sends it.
    async fn act(&self, action: &str) {
        self.on(&format!("details.fold:has(form[action$='/{action}']) > summary"))
            .await;
        self.to(&format!("form[action$='/{action}'] button.first")).await;
    }

    async fn sees(&self, text: &str) {
        self.browser.sees(text).await;
    }
}

async fn status(server: &Server, id: &str) -> Value {
    let path = format!("/v1/executions/{id}");
    server.ask(Method::GET, &path, Value::Null).await["status"].clone()
}

/// What the walk goes through: ids of executions.
struct Ground {
    failed: String,
    sleeps: String,
    asks: String,
    awaits: String,
}

async fn ground(server: &Server, function: &Function) -> Ground {
    server.put("order", order(function)).await;
    let failed = server
        .begin("order", json!({"input": {"item": "lamp"}, "name": "o-1"}))
        .await;
    let nap = json!([{"type": "wait", "name": "sleep", "duration": 3600}]);
    server.put("nap", flow("nap", nap)).await;
    let sleeps = server.begin("nap", json!({"name": "n-1"})).await;
    let pack = json!([{"type": "task", "name": "pack", "resourceArn": "queue:packing"}]);
    let mut pack = flow("pack", pack);
    pack["concurrency"] = json!([{"key": "shop-1", "limit": 1, "pool": "shops"}]);
    server.put("pack", pack).await;
    server.begin("pack", json!({"name": "p-1"})).await;
    let pay = json!([{"type": "task", "name": "pay", "resourceArn": format!("http://{}/ship", function.at), "retry": [],
        "catch": [{"errors": ["FnF.ALL"], "manual": true}]}]);
    server.put("pay", flow("pay", pay)).await;
    let asks = server.begin("pay", json!({"name": "a-1"})).await;
    let approve = json!([{"type": "task", "name": "approve", "resourceArn": format!("http://{}/well", function.at),
        "pattern": "waitForCallback"}]);
    server.put("approve", flow("approve", approve)).await;
    let awaits = server.begin("approve", json!({"name": "c-1"})).await;
    let nightly = json!({"flow": "nap", "cron": "0 3 1 1 *"});
    server.ask(Method::PUT, "/v1/schedules/nightly", nightly).await;
    let ended = format!("/v1/executions/{failed}?wait=30");
    assert_eq!(server.ask(Method::GET, &ended, Value::Null).await["status"], "Failed");
    Ground {
        failed,
        sleeps,
        asks,
        awaits,
    }
}

/// `/`: what fails, what waits, queues and firings lead to what they count.
async fn overview(hand: &Hand<'_>) {
    hand.open("/").await;
    // What ended is counted a moment later.
    hand.browser
        .until("a failure", || async {
            hand.browser
                .run("return document.querySelector('[data-part=failures] tbody a') !== null")
                .await
                == true
        })
        .await;
    hand.sees("Ship.NoCarrier").await;
    hand.to("[data-part=failures] tbody a").await;
    hand.sees("o-1").await;
    for (link, path) in [
        ("[data-part=waits] a", "/executions?reason="),
        ("[data-part=queues] tbody a", "/queues/packing"),
        ("[data-part=schedules] tbody a", "/schedules"),
    ] {
        hand.open("/").await;
        hand.to(link).await;
        let here = hand.browser.run("return location.pathname + location.search").await;
        assert!(here.as_str().unwrap().starts_with(path), "{here}");
    }
    // The menu says how many wait for a decision.
    let said = "return document.querySelector('.top [href=\"/inbox\"]').innerText";
    let said = hand.browser.run(said).await;
    assert!(said.as_str().unwrap().contains('1'), "{said}");
}

/// `/executions`: filter, view, and what is done to those that are chosen.
async fn list(hand: &Hand<'_>, server: &Server, ground: &Ground) {
    hand.open("/executions").await;
    hand.write("form.filters [name=flow]", "nap").await;
    hand.to("form.filters > button").await;
    hand.sees("n-1").await;
    hand.write("form[action='/views'] [name=view]", "naps").await;
    hand.to("form[action='/views'] button").await;
    hand.sees("The view is saved.").await;
    hand.on("table.picked tbody input[name=id]").await;
    hand.sees("1 chosen").await;
    hand.to("button[name=action][value=pause]").await;
    hand.sees("Pause: 1 execution").await;
    hand.to("form[action='/bulk/new'] button.first").await;
    hand.sees("The job is made.").await;
    // `/bulk`: the job, with a result for each.
    hand.sees(&ground.sleeps).await;
    hand.open("/bulk").await;
    hand.to("main tbody a").await;
    hand.sees("pause").await;
    let paused = async || {
        let path = format!("/v1/executions/{}", ground.sleeps);
        server.ask(Method::GET, &path, Value::Null).await["waitingFor"]["reason"] == "paused"
    };
    hand.browser.until("pause", paused).await;
}

/// `/executions/{id}`: resumed, stopped; another looked at in all tabs and at other events, forked, started like it, redriven.
async fn execution(hand: &Hand<'_>, server: &Server, ground: &Ground, function: &Function) {
    hand.open(&format!("/executions/{}", ground.sleeps)).await;
    hand.act("resume").await;
    hand.sees("It goes on.").await;
    hand.act("stop").await;
    hand.sees("Stopped").await;
    let failed = format!("/executions/{}", ground.failed);
    hand.open(&failed).await;
    for (at, seen) in [
        (2, "Attempts"),
        (3, "ExecutionStarted"),
        (4, "lamp"),
        (6, "resourceArn"),
        (7, "causedBy"),
        (5, "no child"),
    ] {
        match hand.by_keys {
            true => {
                hand.browser.run("window.leaving = true").await;
                hand.browser.press(&at.to_string()).await;
                hand.arrives().await;
            }
            false => hand.to(&format!(".tabs a:nth-child({at})")).await,
        }
        if at != 5 {
            hand.sees(seen).await;
        }
    }
    hand.open(&failed).await;
    // Another event, and back to the last.
    let at = "return new URLSearchParams(location.search).get('at')";
    let until_at = async |wanted: bool| {
        hand.browser
            .until("another event", || async {
                (hand.browser.run(at).await != Value::Null) == wanted
            })
            .await;
    };
    match hand.by_keys {
        true => hand.browser.press(",").await,
        false => hand.browser.click(".travel a[rel=prev]").await,
    }
    until_at(true).await;
    match hand.by_keys {
        true => hand.browser.press(".").await,
        false => hand.browser.click(".travel a[rel=next]").await,
    }
    until_at(false).await;
    // A step of it: what went in, what came back.
    hand.open(&format!("{failed}?tab=steps")).await;
    hand.to("main [data-part=steps] tbody tr:nth-child(2) a.name").await;
    hand.sees("Next attempt").await;
    hand.sees("no carrier on Sunday").await;
    hand.act("fork").await;
    hand.sees("This is the fork.").await;
    hand.open(&failed).await;
    hand.to(".actions > a.button").await;
    hand.to("#start form button.first").await;
    hand.sees("It is started.").await;
    function.repair();
    hand.open(&failed).await;
    hand.act("redrive").await;
    hand.sees("Succeeded").await;
    assert_eq!(status(server, &ground.failed).await, "Succeeded");
}

/// `/flows`: a version is put once what it changes was shown; pause, limit, hide.
async fn flows(hand: &Hand<'_>, server: &Server) {
    hand.open("/flows").await;
    hand.to("main tbody a[href='/flows/nap']").await;
    hand.on("details.fold:has(form[action$='/check']) > summary").await;
    let next = flow("nap", json!([{"type": "wait", "name": "sleep", "duration": 60}])).to_string();
    hand.write("form[action$='/check'] textarea", &next).await;
    hand.to("form[action$='/check'] button.first").await;
    hand.sees("What differs from the latest version").await;
    hand.to("button[formaction$='/put']").await;
    hand.sees("The version is put.").await;
    hand.to("form[action$='/pause'] button").await;
    hand.sees("Paused").await;
    hand.to("form[action$='/resume'] button").await;
    hand.on("details.fold:has(form[action$='/limit']) > summary").await;
    hand.write("form[action$='/limit'] input[name=maxRunning]", "7").await;
    hand.to("form[action$='/limit'] button.first").await;
    hand.sees("It is set.").await;
    let set = server.ask(Method::GET, "/v1/flows/nap", Value::Null).await;
    let set = (&set["version"], &set["maxRunning"], &set["paused"]);
    assert_eq!(set, (&json!(2), &json!(7), &json!(false)));
    hand.open("/flows/approve").await;
    hand.act("hide").await;
    hand.sees("It is hidden.").await;
}

/// `/queues` and `/keys`: settings, pause, limit.
async fn queues(hand: &Hand<'_>, server: &Server) {
    hand.open("/queues").await;
    hand.to("main tbody a[href='/queues/packing']").await;
    hand.sees("p-1").await;
    hand.to("form[action$='/pause'] button").await;
    hand.sees("Paused").await;
    hand.to("form[action$='/resume'] button").await;
    hand.on("details.fold:has(form[action$='/set']) > summary").await;
    hand.write("form[action$='/set'] [name=maxConcurrent]", "3").await;
    hand.to("form[action$='/set'] button.first").await;
    hand.sees("It is set.").await;
    for at in [2, 3, 4] {
        hand.to(&format!(".tabs a:nth-child({at})")).await;
    }
    let queue = server.ask(Method::GET, "/v1/queues/packing", Value::Null).await;
    assert_eq!((&queue["maxConcurrent"], &queue["paused"]), (&json!(3), &json!(false)));
    hand.open("/keys").await;
    hand.write("form[action='/keys/shops/shop-1/set'] [name=limit]", "4")
        .await;
    hand.to("form[action='/keys/shops/shop-1/set'] button").await;
    hand.sees("It is set.").await;
    hand.to("main tbody a[href='/keys/shops/shop-1']").await;
    hand.sees("p-1").await;
}

/// `/schedules`: pause, resume, now, change.
async fn schedules(hand: &Hand<'_>, server: &Server) {
    hand.open("/schedules").await;
    hand.to("form[action$='/pause'] button").await;
    hand.to("form[action$='/resume'] button").await;
    hand.to("form[action$='/run'] button").await;
    hand.to("main tbody a[href='/schedules/nightly']").await;
    hand.write("form[action$='/change'] [name=cron]", "0 4 1 1 *").await;
    hand.to("form[action$='/change'] button.first").await;
    hand.sees("It is set.").await;
    let schedule = server.ask(Method::GET, "/v1/schedules/nightly", Value::Null).await;
    assert_eq!(
        (&schedule["cron"], &schedule["paused"]),
        (&json!("0 4 1 1 *"), &json!(false))
    );
    assert_ne!(schedule["latestExecution"], Value::Null);
}

/// `/inbox`: a decision with a note, and a callback that is reported by hand.
async fn inbox(hand: &Hand<'_>, server: &Server, ground: &Ground) {
    hand.open("/inbox").await;
    hand.to(&format!("main tbody a[href*='of={}']", ground.asks)).await;
    hand.write("form:has([name=action][value=succeed]) [name=note]", "paid by hand")
        .await;
    hand.to("form:has([name=action][value=succeed]) button").await;
    assert_eq!(status(server, &ground.asks).await, "Succeeded");
    hand.open("/inbox").await;
    hand.to(&format!("main tbody a[href*='of={}']", ground.awaits)).await;
    hand.write(
        "form[action$='/report']:has([value=succeed]) [name=note]",
        "asked by telephone",
    )
    .await;
    hand.to("form[action$='/report']:has([value=succeed]) button").await;
    assert_eq!(status(server, &ground.awaits).await, "Succeeded");
}

async fn walk(by_keys: bool) {
    let (server, browser, function) = (Server::start(), Browser::start().await, Function::broken());
    browser.wide(1440).await;
    let ground = ground(&server, &function).await;
    let hand = Hand {
        browser: &browser,
        base: server.base.clone(),
        by_keys,
    };
    overview(&hand).await;
    list(&hand, &server, &ground).await;
    inbox(&hand, &server, &ground).await;
    execution(&hand, &server, &ground, &function).await;
    queues(&hand, &server).await;
    schedules(&hand, &server).await;
    flows(&hand, &server).await;
    // `/audit` has all of it, `/settings` who one is and what serves.
    hand.open("/audit").await;
    for done in ["paid by hand", "asked by telephone"] {
        hand.sees(done).await;
    }
    hand.open("/settings").await;
    hand.sees("private_addresses").await;
}

#[tokio::test]
async fn every_page_by_mouse() {
    walk(false).await;
}

#[tokio::test]
async fn every_page_by_keys() {
    walk(true).await;
}
