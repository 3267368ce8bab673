//! The console in a real browser.

#[path = "console/browser.rs"]
mod browser;
#[path = "console/conditions.rs"]
mod conditions;
#[path = "console/elsewhere.rs"]
mod elsewhere;
#[path = "console/reading.rs"]
mod reading;
#[path = "console/server.rs"]
mod server;
#[path = "console/walk.rs"]
mod walk;

use browser::{Browser, CONTROL, ENTER};
use reqwest::Method;
use serde_json::{Value, json};
use server::{Function, Server, flow};
use std::path::PathBuf;

/// An order whose last step calls the function.
fn order(function: &Function) -> Value {
    let ship = json!({"type": "task", "name": "ship", "resourceArn": format!("http://{}/ship", function.at)});
    let mut order = flow("order", json!([{"type": "pass", "name": "check"}, ship]));
    order["inputSchema"] = json!({"type": "object", "required": ["item"], "properties": {"item": {"type": "string"}}});
    order
}

#[tokio::test]
async fn order_fails_is_understood_and_redriven() {
    let (server, browser, function) = (Server::start(), Browser::start().await, Function::broken());
    server.put("order", order(&function)).await;
    browser.go(&format!("{}/flows/order", server.base)).await;
    browser.write("[name='field.item']", "lamp").await;
    browser.click_to("form[action$='/start'] button.first").await;
    // The page follows by itself, and says why.
    browser.sees("Failed").await;
    browser.sees("Ship.NoCarrier").await;
    browser.sees("no carrier on Sunday").await;
    function.repair();
    // The failed attempt is shown before the execution has ended.
    let offered = "return document.querySelector(\"form[action$='/redrive']\") !== null";
    browser
        .until("form to redrive it", || async { browser.run(offered).await == true })
        .await;
    browser
        .click("details.fold:has(form[action$='/redrive']) > summary")
        .await;
    // The form lies over the page, and moves nothing.
    let lies = "return getComputedStyle(document.querySelector(\"form[action$='/redrive']\")).position";
    let lies = browser.run(lies).await;
    assert!(lies == "absolute" || lies == "fixed", "{lies}");
    browser.click_to("form[action$='/redrive'] button.first").await;
    browser.sees("Succeeded").await;
    assert!(browser.text().await.contains("It goes on."));
    // Nothing can change any more, so nothing is said about being live.
    let said = "const live = document.querySelector('#live'); return !live || live.hidden";
    browser
        .until("page that is no longer live", || async {
            browser.run(said).await == true
        })
        .await;
}

#[tokio::test]
async fn double_click_starts_one() {
    let (server, browser, function) = (Server::start(), Browser::start().await, Function::broken());
    server.put("order", order(&function)).await;
    let counted = async || {
        let list = server.ask(Method::GET, "/v1/executions?flow=order", Value::Null).await;
        list["items"].as_array().unwrap().len()
    };
    let twice = "document.querySelector(\"form[action$='/start'] button.first\").dispatchEvent(new MouseEvent('click', \
        {bubbles: true, cancelable: true})); document.querySelector(\"form[action$='/start'] button.first\").click();";
    browser.go(&format!("{}/flows/order", server.base)).await;
    browser.write("[name='field.item']", "lamp").await;
    browser.run(twice).await;
    browser.sees("Ship.NoCarrier").await;
    assert_eq!(counted().await, 1);
    // Without script, two requests come.
    browser
        .tell("Emulation.setScriptExecutionDisabled", json!({"value": true}))
        .await;
    browser.go(&format!("{}/flows/order", server.base)).await;
    browser.write("[name='field.item']", "chair").await;
    browser.double_click("form[action$='/start'] button.first").await;
    browser.comes_to("/executions/").await;
    browser.sees_anew("no carrier on Sunday").await;
    assert_eq!(counted().await, 2);
}

#[tokio::test]
async fn the_same_by_keys_only() {
    let (server, browser, function) = (Server::start(), Browser::start().await, Function::broken());
    server.put("order", order(&function)).await;
    browser.go(&format!("{}/flows/order", server.base)).await;
    browser.tab_to("[name='field.item']").await;
    browser.press("lamp").await;
    browser.press(ENTER).await;
    browser.sees("Ship.NoCarrier").await;
    function.repair();
    browser
        .tab_to("details.fold:has(form[action$='/redrive']) > summary")
        .await;
    browser.press(ENTER).await;
    browser.tab_to("form[action$='/redrive'] button.first").await;
    browser.press(ENTER).await;
    browser.sees("Succeeded").await;
}

#[tokio::test]
async fn single_keys_lead_on_and_can_be_switched_off() {
    let (server, browser, function) = (Server::start(), Browser::start().await, Function::broken());
    server.put("order", order(&function)).await;
    let id = server
        .begin("order", json!({"input": {"item": "lamp"}, "name": "o-1"}))
        .await;
    server
        .ask(Method::GET, &format!("/v1/executions/{id}?wait=30"), Value::Null)
        .await;
    browser.go(&server.base).await;
    let is_at = |path: &'static str| {
        format!("return location.pathname.startsWith('{path}') && document.readyState === 'complete'")
    };
    let comes_to = async |path: &'static str| {
        let script = is_at(path);
        browser
            .until(path, || async { browser.run(&script).await == true })
            .await;
    };
    browser.press("ge").await;
    comes_to("/executions").await;
    browser.press("j").await;
    browser.press("x").await;
    let ticked =
        "return document.activeElement.textContent === 'o-1' && document.querySelector('input[name=id]').checked";
    assert_eq!(browser.run(ticked).await, true);
    browser.press(ENTER).await;
    comes_to("/executions/").await;
    function.repair();
    browser.press("r").await;
    browser.press(ENTER).await;
    browser.sees("It goes on.").await;
    browser.press("3").await;
    browser.sees("ExecutionRedriven").await;
    // What is written into a field leads nowhere.
    browser.tab_to("input[name=type]").await;
    browser.press("gf").await;
    browser.press("\u{e004}\u{e004}").await;
    browser.press("?").await;
    browser.sees("Single keys").await;
    browser.click("#keys-on").await;
    browser.click("#all-keys button").await;
    browser.press("gf").await;
    browser.press("?").await;
    let here = "return location.pathname.startsWith('/executions/') && document.querySelector('dialog[open]') === null";
    assert_eq!(browser.run(here).await, true);
}

#[tokio::test]
async fn history_is_played_and_things_are_found_by_keys() {
    let (server, browser, function) = (Server::start(), Browser::start().await, Function::broken());
    server.put("order", order(&function)).await;
    let id = server.begin("order", json!({"input": {"item": "lamp"}})).await;
    server
        .ask(Method::GET, &format!("/v1/executions/{id}?wait=30"), Value::Null)
        .await;
    let holds = async |what: &str, script: &str| {
        browser
            .until(what, || async { browser.run(script).await == true })
            .await;
    };
    browser.go(&format!("{}/executions/{id}", server.base)).await;
    let at =
        "const at = new URLSearchParams(location.search).get('at'); const range = document.querySelector('#slider');";
    browser.press(",").await;
    holds(
        "event before",
        &format!("{at} return Number(at) === Number(range.max) - 1"),
    )
    .await;
    browser.press(".").await;
    holds(
        "last event",
        &format!("{at} return at === null && range.value === range.max"),
    )
    .await;
    // From the end it begins anew, goes on by itself, and stops at the end.
    browser.press(" ").await;
    holds("first event", &format!("{at} return at === '1'")).await;
    let plays = "document.querySelector('#play').getAttribute('aria-pressed') === 'true'";
    holds("next event", &format!("{at} return at === '2' && {plays}")).await;
    browser.press(" ").await;
    holds("pause", &format!("return !({plays})")).await;
    browser.press(" ").await;
    holds("end", &format!("{at} return at === null && !({plays})")).await;

    browser.chord(CONTROL, "k").await;
    holds("field to search in", "return document.activeElement.name === 'q'").await;
    // What is written into it is nothing else.
    browser.press("order").await;
    browser.press(ENTER).await;
    holds("flow", "return location.pathname === '/flows/order'").await;
    browser.go(&format!("{}/executions", server.base)).await;
    browser.press("f").await;
    holds("filter", "return document.activeElement.name === 'flow'").await;
    browser.press("f[ ").await;
    let written = "return document.activeElement.value === 'f[ ' && location.pathname === '/executions'";
    assert_eq!(browser.run(written).await, true);
    let strip = "const strip = document.querySelector('td.strips svg.strip'); \
        return strip !== null && strip.querySelector('.b-fail') !== null && strip.getAttribute('aria-label').includes('Ship.NoCarrier')";
    holds("strip of steps", strip).await;
}

#[tokio::test]
async fn the_same_without_script() {
    let (server, browser, function) = (Server::start(), Browser::start().await, Function::broken());
    server.put("order", order(&function)).await;
    browser
        .tell("Emulation.setScriptExecutionDisabled", json!({"value": true}))
        .await;
    browser.go(&format!("{}/flows/order", server.base)).await;
    browser.write("[name='field.item']", "lamp").await;
    browser.click("form[action$='/start'] button.first").await;
    browser.comes_to("/executions/").await;
    browser.sees_anew("no carrier on Sunday").await;
    function.repair();
    browser
        .click("details.fold:has(form[action$='/redrive']) > summary")
        .await;
    browser.click("form[action$='/redrive'] button.first").await;
    browser.comes_to("?done=redrive").await;
    browser.sees_anew("Succeeded").await;
    browser.go(&format!("{}/executions", server.base)).await;
    browser.click(".views a:nth-child(2)").await;
    browser.sees("No execution matches the filter.").await;
}

#[tokio::test]
async fn two_hundred_are_stopped_at_once() {
    let (server, browser) = (Server::start(), Browser::start().await);
    server
        .put(
            "nap",
            flow("nap", json!([{"type": "wait", "name": "sleep", "duration": 3600}])),
        )
        .await;
    let starts: Vec<Value> = (0..200).map(|_| json!({"flow": "nap"})).collect();
    server.ask(Method::POST, "/v1/executions/batch", starts.into()).await;
    browser.go(&format!("{}/executions?status=Running", server.base)).await;
    browser.click("input[name=match]").await;
    browser.click_to("button[name=action][value=stop]").await;
    browser.sees("Stop: 200 executions").await;
    browser.write("[name=typed]", "200").await;
    browser.click_to("form[action='/bulk/new'] button.first").await;
    assert!(browser.text().await.contains("The job is made."));
    browser
        .until("end of the job", || async {
            let counts = server.ask(Method::GET, "/v1/executions/counts", Value::Null).await;
            counts["statuses"]["Stopped"] == 200
        })
        .await;
    browser.go(&format!("{}/", server.base)).await;
    browser.sees("200").await;
}

#[tokio::test]
async fn span_of_the_day_is_dragged_over_and_kept_as_a_view() {
    let (server, browser) = (Server::start(), Browser::start().await);
    server
        .put("well", flow("well", json!([{"type": "pass", "name": "a"}])))
        .await;
    server.begin("well", json!({"name": "w-1"})).await;
    browser.go(&format!("{}/executions?flow=well", server.base)).await;
    // The count comes just after the end.
    browser
        .until("a bar", || async {
            browser.run("return document.querySelectorAll('.day a').length").await == 1
        })
        .await;
    browser.drag(".day", 0.6, 1.0).await;
    browser.sees("Ended from").await;
    browser.sees("w-1").await;
    let address = browser.run("return location.search").await;
    assert!(address.as_str().unwrap().contains("flow=well&endedFrom="), "{address}");
    browser.write("[name=view]", "lately <well>").await;
    browser.click_to("form[action='/views'] button").await;
    browser.sees("The view is saved.").await;
    browser.go(&format!("{}/executions", server.base)).await;
    browser.click_to(".views a:last-child").await;
    browser.sees("w-1").await;
    browser.click_to("form[action='/views/delete'] button").await;
    browser.sees("The view is deleted.").await;
    assert!(!browser.text().await.contains("lately"));
    // Without script each hour is a link.
    browser.tab_to(".day a").await;
    browser.press(ENTER).await;
    browser.sees("Ended from").await;
}

#[tokio::test]
async fn page_survives_the_death_of_its_server() {
    let (mut server, browser) = (Server::start(), Browser::start().await);
    server
        .put(
            "nap",
            flow("nap", json!([{"type": "wait", "name": "sleep", "duration": 3600}])),
        )
        .await;
    let id = server.begin("nap", json!({"name": "n-1"})).await;
    browser.go(&format!("{}/executions/{id}", server.base)).await;
    browser.sees("Live").await;
    server.kill();
    browser.sees("Not live").await;
    server.again();
    server
        .ask(Method::POST, &format!("/v1/executions/{id}/stop"), json!({}))
        .await;
    browser.sees("Stopped").await;
}

#[tokio::test]
async fn all_tabs_share_one_stream_and_all_are_live() {
    let (server, browser) = (Server::start(), Browser::start().await);
    server
        .put(
            "nap",
            flow("nap", json!([{"type": "wait", "name": "sleep", "duration": 3600}])),
        )
        .await;
    let mut tabs = Vec::new();
    for number in 0..8 {
        let id = server.begin("nap", json!({"name": format!("n-{number}")})).await;
        let tab = browser.tab().await;
        browser.go(&format!("{}/executions/{id}", server.base)).await;
        browser.sees("Live").await;
        tabs.push((tab, id));
    }
    let stats = server.ask(Method::GET, "/v1/stats", Value::Null).await;
    // One that is replaced ends a moment later.
    assert!(stats["server"]["followers"].as_u64().unwrap() <= 2, "{stats}");
    for (tab, id) in &tabs {
        server
            .ask(Method::POST, &format!("/v1/executions/{id}/stop"), json!({}))
            .await;
        browser.show(tab).await;
        browser.sees("Stopped").await;
    }
}

/// The pages that are looked at, and a name for the picture of each.
async fn pages(server: &Server) -> Vec<(&'static str, String)> {
    let function = Function::broken();
    server.put("order", order(&function)).await;
    let id = server
        .begin(
            "order",
            json!({"input": {"item": "<b>lamp\u{202e}"}, "name": "order-7"}),
        )
        .await;
    let nap = json!([{"type": "wait", "name": "sleep", "duration": 3600}]);
    server.put("nap", flow("nap", nap)).await;
    server
        .begin("nap", json!({"name": "a-name-that-is-rather-long-for-a-narrow-table"}))
        .await;
    let pack = json!([{"type": "task", "name": "pack", "resourceArn": "queue:packing"}]);
    let mut pack = flow("pack", pack);
    pack["concurrency"] = json!([{"key": "shop-1", "limit": 1, "pool": "shops"}]);
    server.put("pack", pack).await;
    server.begin("pack", json!({"name": "pack-1"})).await;
    server.begin("pack", json!({"name": "pack-2"})).await;
    let pay = json!([{"type": "task", "name": "pay", "resourceArn": format!("http://{}/ship", function.at), "retry": [],
        "catch": [{"errors": ["FnF.ALL"], "manual": true}]}]);
    server.put("pay", flow("pay", pay)).await;
    let asks = server
        .begin("pay", json!({"input": {"amount": 120, "to": "Ada"}}))
        .await;
    let nightly = json!({"flow": "nap", "cron": "CRON_TZ=Asia/Shanghai 0 3 * * *", "payload": {"all": true}});
    server.ask(Method::PUT, "/v1/schedules/nightly", nightly).await;
    let steps = server
        .ask(
            Method::GET,
            &format!("/v1/executions/{id}/steps?step=ship"),
            Value::Null,
        )
        .await;
    let visit = &steps["items"][0]["event"];
    let job = json!({"action": "pause", "filter": {"flow": "nap"}});
    let job = server.ask(Method::POST, "/v1/bulk", job).await;
    let ended = server
        .ask(Method::GET, &format!("/v1/executions/{id}?wait=30"), Value::Null)
        .await;
    assert_eq!(ended["status"], "Failed");
    vec![
        ("overview", "/".to_owned()),
        ("executions", "/executions".to_owned()),
        ("execution", format!("/executions/{id}")),
        ("events", format!("/executions/{id}?tab=events")),
        ("data", format!("/executions/{id}?tab=data")),
        ("raw", format!("/executions/{id}?tab=raw")),
        ("visit", format!("/executions/{id}?visit={visit}")),
        ("schedule", "/schedules/nightly".to_owned()),
        ("answer", format!("/inbox?of={asks}")),
        ("flows", "/flows".to_owned()),
        ("flow", "/flows/order".to_owned()),
        ("queues", "/queues".to_owned()),
        ("queue", "/queues/packing".to_owned()),
        ("keys", "/keys".to_owned()),
        ("schedules", "/schedules".to_owned()),
        ("inbox", "/inbox".to_owned()),
        ("bulk", "/bulk".to_owned()),
        ("job", format!("/bulk/{}", job["id"].as_str().unwrap())),
        ("new-job", "/bulk/new?action=stop&match=all&flow=nap".to_owned()),
        ("audit", "/audit".to_owned()),
        ("settings", "/settings".to_owned()),
        ("problem", "/executions/none".to_owned()),
    ]
}

/// What is wider than the page, though it may not be scrolled by itself.
const TOO_WIDE: &str = "const wide = document.documentElement; if (wide.scrollWidth <= wide.clientWidth) return []; \
    return ['the page can be scrolled sideways', ...[...document.querySelectorAll('main *, header *')].filter((part) => part.getBoundingClientRect().right > wide.clientWidth + 1 \
    && !part.closest('.table, .scroll, .canvas')).map((part) => part.outerHTML.slice(0, 200)).slice(0, 4)]";

#[tokio::test]
async fn every_page_is_whole_silent_and_asks_nobody_else() {
    let (server, browser) = (Server::start(), Browser::start().await);
    let pages = pages(&server).await;
    let pictures = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("console");
    std::fs::create_dir_all(&pictures).unwrap();
    let mut wrong = Vec::new();
    for (language, theme) in [("en", "light"), ("zh", "dark")] {
        for (name, value) in [("language", language), ("theme", theme)] {
            let cookie = json!({"name": format!("starbridge-{name}"), "value": value, "url": server.base});
            browser.tell("Network.setCookie", cookie).await;
        }
        for (name, path) in &pages {
            browser.go(&format!("{}{path}", server.base)).await;
            // 320 pixels are what 1280 are at 400 %.
            for width in [1440, 768, 320] {
                browser.wide(width).await;
                let wide = browser.run(TOO_WIDE).await;
                if wide != json!([]) {
                    wrong.push(format!("{path} at {width}, {language}: {wide}"));
                }
                browser
                    .picture(&pictures.join(format!("{name}-{language}-{width}.png")))
                    .await;
            }
            browser.wide(1440).await;
            wrong.extend(
                findings(&browser)
                    .await
                    .into_iter()
                    .map(|found| format!("{path}, {language}: {found}")),
            );
        }
    }
    for entry in browser.log("browser").await {
        // The page that is not there is one of those that were asked for.
        if !entry["message"]
            .as_str()
            .unwrap_or_default()
            .contains("/executions/none")
        {
            wrong.push(format!("the browser says {entry}"));
        }
    }
    for address in browser.requests().await {
        // The page with which a browser begins is its own.
        let own =
            address.starts_with("data:") || address.starts_with("chrome:") || address.starts_with("chrome-untrusted:");
        if !address.starts_with(&server.base) && !own {
            wrong.push(format!("{address} was asked for"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An order that failed, was undone, and is shown as the README shows it.
#[tokio::test]
async fn picture_of_the_readme_is_taken() {
    let (server, browser, function) = (Server::start(), Browser::start().await, Function::broken());
    let at = |path: &str| format!("http://{}/{path}", function.at);
    let task = |name: &str, more: Value| {
        let mut task = json!({"type": "task", "name": name, "resourceArn": at(name)});
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        task
    };
    let retry = json!([{"errors": ["FnF.ALL"], "intervalSeconds": 1, "maxAttempts": 1}]);
    let steps = json!([
        task(
            "well/reserve",
            json!({"name": "reserve", "rollback": {"resourceArn": at("well/release")}})
        ),
        task(
            "once/pay",
            json!({"name": "pay", "retry": retry, "rollback": {"resourceArn": at("well/refund")}})
        ),
        task("ship", json!({})),
    ]);
    server.put("order", flow("order", steps)).await;
    let id = server
        .begin("order", json!({"name": "order-10427", "labels": {"shop": "berlin"}}))
        .await;
    server
        .ask(Method::GET, &format!("/v1/executions/{id}?wait=30"), Value::Null)
        .await;
    let dark = json!({"name": "starbridge-theme", "value": "dark", "url": server.base});
    browser.tell("Network.setCookie", dark).await;
    browser.sized(1200, 660).await;
    browser.go(&format!("{}/executions/{id}", server.base)).await;
    browser.sees("no carrier on Sunday").await;
    let pictures = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("console");
    std::fs::create_dir_all(&pictures).unwrap();
    browser.picture(&pictures.join("readme.png")).await;
    let colours = json!({"features": [{"name": "forced-colors", "value": "active"}]});
    browser.tell("Emulation.setEmulatedMedia", colours).await;
    browser.picture(&pictures.join("forced-colours.png")).await;
    let marked = "return getComputedStyle(document.querySelector('.tabs [aria-current]'), '::after').backgroundColor";
    let chosen = browser.run(marked).await;
    assert!(!chosen.as_str().unwrap().contains("rgba(0, 0, 0, 0)"), "{chosen}");
}

/// What the checker of accessibility finds on a page; nothing where there is no checker.
async fn findings(browser: &Browser) -> Vec<String> {
    let Some(checker) = std::env::var_os("STARBRIDGE_AXE") else {
        return Vec::new();
    };
    let checker = std::fs::read_to_string(checker).unwrap();
    browser.run(&checker).await;
    let tags = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']";
    let script = format!(
        "const done = arguments[0]; axe.run(document, {{ runOnly: {tags} }}).then((found) => done(found.violations.map((one) => \
         one.id + ': ' + one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | '))), (error) => done([String(error)]))"
    );
    let found = browser.run_later(&script).await;
    let found = found.as_array().cloned().unwrap_or_default();
    found
        .iter()
        .map(|one| one.as_str().unwrap_or_default().to_owned())
        .collect()
}
