//! Reading with script: the zone, the time line, a list and the way back to it.

use crate::browser::{Browser, ENTER};
use crate::order;
use crate::server::{Function, Server, flow};
use reqwest::Method;
use serde_json::{Value, json};

/// Waits until a script answers true.
async fn holds(browser: &Browser, what: &str, script: &str) {
    browser
        .until(what, || async { browser.run(script).await == true })
        .await;
}

/// An order that failed.
async fn failed(server: &Server, function: &Function, name: &str) -> String {
    server.put("order", order(function)).await;
    let start = json!({"input": {"item": "lamp"}, "name": name});
    let id = server.begin("order", start).await;
    let ended = format!("/v1/executions/{id}?wait=30");
    assert_eq!(server.ask(Method::GET, &ended, Value::Null).await["status"], "Failed");
    id
}

/// What a browser far from UTC shows is what the clocks there show, on all pages, and a copied link says in which zone.
#[tokio::test]
async fn zone_is_set_once_counts_everywhere_and_is_in_a_copied_link() {
    let (server, browser, function) = (Server::start(), Browser::start().await, Function::broken());
    browser.wide(1440).await;
    let id = failed(&server, &function, "o-1").await;
    let told = server
        .ask(Method::GET, &format!("/v1/executions/{id}"), Value::Null)
        .await;
    let began = told["startedTime"].as_str().unwrap().to_owned();
    browser
        .tell("Emulation.setTimezoneOverride", json!({"timezoneId": "Asia/Shanghai"}))
        .await;
    let page = format!("{}/executions/{id}", server.base);
    browser.go(&page).await;
    browser.click(".zone > summary").await;
    browser.click_to("#zone-here").await;
    let shown = format!(
        "const two = (part) => String(part).padStart(2, '0'); const at = new Date('{began}'); \
         return `${{two(at.getMonth() + 1)}}-${{two(at.getDate())}} ${{two(at.getHours())}}:${{two(at.getMinutes())}}:${{two(at.getSeconds())}}`"
    );
    let shown = browser.run(&shown).await.as_str().unwrap().to_owned();
    for path in [
        format!("/executions/{id}"),
        "/executions".to_owned(),
        format!("/executions/{id}?tab=events"),
    ] {
        browser.go(&format!("{}{path}", server.base)).await;
        browser.sees("UTC+8").await;
        browser.sees(&shown).await;
    }
    // A filter that is written by hand means the same clocks.
    let hour = |more: i64| {
        format!(
            "const at = new Date(new Date('{began}').getTime() + {more}); const two = (part) => String(part).padStart(2, '0'); \
        return `${{at.getFullYear()}}-${{two(at.getMonth() + 1)}}-${{two(at.getDate())}} ${{two(at.getHours())}}:${{two(at.getMinutes())}}`"
        )
    };
    for (more, found) in [(-3_600_000, true), (3_600_000, false)] {
        let from = browser.run(&hour(more)).await;
        let from = from.as_str().unwrap().replace(' ', "+");
        browser.go(&format!("{}/executions?from={from}", server.base)).await;
        assert_eq!(browser.text().await.contains("o-1"), found, "{from}");
    }
    // The address that is copied names the zone, and whoever opens it elsewhere sees the same times.
    browser.go(&page).await;
    browser.run("window.copied = null; Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => { window.copied = text; }}})").await;
    browser.click("#copy-link").await;
    holds(&browser, "a copied link", "return window.copied !== null").await;
    let link = browser.run("return window.copied").await.as_str().unwrap().to_owned();
    assert!(link.ends_with("zone=Asia%2FShanghai"), "{link}");
    let other = Browser::start().await;
    other.wide(1440).await;
    other.go(&link).await;
    other.sees(&shown).await;
    other.sees("Times are as in the link").await;
    other.click_to("main .why.note a").await;
    other.sees("UTC").await;
    assert!(!other.text().await.contains(&shown));
    other.go(&format!("{page}?zone=Mars/Olympus")).await;
    other.sees("there is no time zone `Mars/Olympus`").await;
}

#[tokio::test]
async fn part_of_the_time_line_is_dragged_over_and_stands_in_the_address() {
    let (server, browser) = (Server::start(), Browser::start().await);
    browser.wide(1440).await;
    let wait = |name: &str, seconds: u32| json!({"type": "wait", "name": name, "duration": seconds});
    server
        .put(
            "waits",
            flow("waits", json!([wait("first", 1), wait("second", 1), wait("third", 1)])),
        )
        .await;
    let id = server.begin("waits", json!({})).await;
    server
        .ask(Method::GET, &format!("/v1/executions/{id}?wait=30"), Value::Null)
        .await;
    browser.go(&format!("{}/executions/{id}", server.base)).await;
    let lanes = "return [...document.querySelectorAll('.lanes tbody .name')].map((name) => name.textContent).join()";
    assert_eq!(browser.run(lanes).await, "first,second,third");
    browser.drag(".lanes tbody .axis svg", 0.4, 0.6).await;
    holds(
        &browser,
        "a stretch",
        "return new URLSearchParams(location.search).has('from')",
    )
    .await;
    holds(&browser, "the step of that time", &format!("{} === 'second'", lanes)).await;
    // It is in the address, so it is there after loading; other views keep it.
    let here = browser.run("return location.href").await;
    browser.go(here.as_str().unwrap()).await;
    assert_eq!(browser.run(lanes).await, "second");
    browser.click_to(".tabs a:nth-child(2)").await;
    browser.click_to(".tabs a:nth-child(1)").await;
    assert_eq!(browser.run(lanes).await, "second");
    browser.click_to(".foot a").await;
    assert_eq!(browser.run(lanes).await, "first,second,third");
    // By keys, a step leads to its stretch.
    browser.tab_to(".lanes tbody tr:nth-child(3) .name").await;
    browser.press(ENTER).await;
    browser.sees("Only this stretch of time").await;
    browser.tab_to(".inspector .pane-head a").await;
    browser.press(ENTER).await;
    let alone = lanes.replace("return ", "const all = ")
        + "; return location.search.includes('from=') && all.endsWith('third') && !all.includes('first')";
    holds(&browser, "the step alone", &alone).await;
}

#[tokio::test]
async fn list_is_left_for_a_row_and_come_back_to_as_it_was() {
    let (server, browser, function) = (Server::start(), Browser::start().await, Function::broken());
    browser.wide(1440).await;
    for name in ["o-1", "o-2", "o-3"] {
        failed(&server, &function, name).await;
    }
    let list = format!("{}/executions?flow=order&status=Failed", server.base);
    browser.go(&list).await;
    browser.press("jj").await;
    // A look at the row does not leave the list.
    browser.press(" ").await;
    holds(
        &browser,
        "a look at the row",
        "return document.querySelector('#peek[open]')?.innerText.includes('no carrier on Sunday')",
    )
    .await;
    assert!(browser.text().await.contains("o-2"));
    browser.press("\u{e00c}").await;
    holds(
        &browser,
        "the list",
        "return document.querySelector('#peek[open]') === null && document.activeElement.textContent === 'o-2'",
    )
    .await;
    browser.press(ENTER).await;
    browser.comes_to("/executions/").await;
    browser.sees("2 / 3").await;
    let title = "return document.querySelector('h1').textContent";
    browser.press("]").await;
    holds(&browser, "next of the list", &format!("{title} === 'o-1'")).await;
    browser.press("[").await;
    holds(&browser, "one before", &format!("{title} === 'o-2'")).await;
    // The next failed event, from the last on from the beginning.
    browser.press("f").await;
    holds(
        &browser,
        "failed event",
        "return new URLSearchParams(location.search).get('at') !== null",
    )
    .await;
    browser.click_to(".crumbs a").await;
    assert_eq!(browser.run("return location.href").await, list);
    // Those that failed alike are one step away.
    browser.click_to("table.picked tbody tr a.name").await;
    browser.click_to(".why a").await;
    browser.sees("o-3").await;
    let asked = browser.run("return location.search").await;
    assert_eq!(asked, "?flow=order&error=Ship.NoCarrier&step=ship");
}

#[tokio::test]
async fn new_rows_wait_and_what_is_chosen_is_kept_over_pages() {
    let (server, browser) = (Server::start(), Browser::start().await);
    browser.wide(1440).await;
    let nap = json!([{"type": "wait", "name": "sleep", "duration": 3600}]);
    server.put("nap", flow("nap", nap)).await;
    let starts: Vec<Value> = (0..70)
        .map(|number| json!({"flow": "nap", "name": format!("n-{number}")}))
        .collect();
    server.ask(Method::POST, "/v1/executions/batch", starts.into()).await;
    browser.go(&format!("{}/executions?flow=nap", server.base)).await;
    browser.sees("Live").await;
    browser.click("table.picked tbody tr:nth-child(3) input[name=id]").await;
    browser.sees("1 chosen").await;
    let first = "return document.querySelector('table.picked tbody a.name').textContent";
    let before = browser.run(first).await;
    server.begin("nap", json!({"name": "n-new"})).await;
    browser.sees("1 new").await;
    assert_eq!(browser.run(first).await, before);
    browser.click_to(".fresh").await;
    assert_eq!(browser.run(first).await, "n-new");
    browser.sees("1 chosen").await;
    browser.click_to(".foot a[rel=next]").await;
    browser.sees("1 chosen, 1 of them on other pages").await;
    browser.click("table.picked tbody tr:nth-child(2) input[name=id]").await;
    browser.sees("2 chosen, 1 of them on other pages").await;
    browser.click_to("button[name=action][value=pause]").await;
    browser.sees("Pause: 2 executions").await;
}

#[tokio::test]
async fn each_of_many_items_is_drawn_and_leads_to_itself() {
    let (server, browser) = (Server::start(), Browser::start().await);
    browser.wide(1440).await;
    let each = json!([{"type": "foreach", "name": "each", "iterationMapping": {"collection": "$.items", "item": "item"},
        "steps": [{"type": "pass", "name": "p"}]}]);
    server.put("many", flow("many", each)).await;
    let items: Vec<u32> = (0..2_000).collect();
    let id = server.begin("many", json!({"input": {"items": items}})).await;
    let ended = format!("/v1/executions/{id}?wait=60");
    assert_eq!(
        server.ask(Method::GET, &ended, Value::Null).await["status"],
        "Succeeded"
    );
    let steps = server
        .ask(Method::GET, &format!("/v1/executions/{id}/steps?limit=1"), Value::Null)
        .await;
    let page = format!("{}/executions/{id}?visit={}", server.base, steps["items"][0]["event"]);
    browser.go(&page).await;
    let drawn = "return performance.getEntriesByName('map').length > 0 && !document.querySelector('#items').hidden";
    holds(&browser, "a picture of the items", drawn).await;
    // Each has its cell: the first and the last one are there, and behind the last one there is nothing.
    let cells = "const canvas = document.querySelector('#items canvas'); const brush = canvas.getContext('2d'); \
        const columns = canvas.width / 12; const seen = (at) => brush.getImageData((at % columns) * 12 + 4, Math.floor(at / columns) * 12 + 10, 1, 1).data[3] > 0; \
        return [seen(0), seen(1999), 2000 % columns === 0 || !seen(2000)]";
    assert_eq!(browser.run(cells).await, json!([true, true, true]));
    browser.click("#items canvas").await;
    holds(
        &browser,
        "the item",
        "const item = new URLSearchParams(location.search).get('item'); \
         return item !== null && item > 0 && document.querySelector('#map tbody td').textContent === item",
    )
    .await;
    // What is drawn stays when the page is drawn anew.
    holds(&browser, "the picture", drawn).await;
    // Without script the bands lead there.
    browser
        .tell("Emulation.setScriptExecutionDisabled", json!({"value": true}))
        .await;
    browser.go(&page).await;
    browser.click("svg.map a:nth-child(3) rect").await;
    browser.comes_to("item=").await;
}
