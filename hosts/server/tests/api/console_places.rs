//! Where pages of the console lead, and by which clocks they tell the time.

use crate::console::{Browser, serving};
use crate::harness::{Running, asleep, definition};
use crate::keys::{runs, start, waits};
use crate::mailbox::eventually;
use reqwest::Method;
use serde_json::json;
use starbridge_flow::time::Timestamp;
use starbridge_server::Access;

/// What a page shows as the time of an instant, hours ahead of UTC.
fn shown(instant: &str, hours: i64) -> String {
    let at = Timestamp::parse(instant).unwrap();
    let there = Timestamp(at.0 + hours * 3_600_000).to_string();
    format!("{} {}", &there[5..10], &there[11..19])
}

/// The id of an execution that has run, and when it began.
async fn ran(server: &Running) -> (String, String) {
    server.flow("f", json!([{"type": "pass", "name": "a"}])).await;
    let start = json!({"name": "one"});
    let begun = server.post("/v1/flows/f/executions?wait=30", start).await;
    let id = begun.body["id"].as_str().unwrap();
    let told = server.get(&format!("/v1/executions/{id}")).await.body;
    (id.to_owned(), told["startedTime"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn times_are_those_of_the_zone_that_is_set_or_that_a_link_names() {
    let server = serving(Access::default()).await;
    let (id, began) = ran(&server).await;
    let began = began.as_str();
    let page = format!("/executions/{id}");
    let mut browser = Browser::at(&server.base);
    let first = browser.get(&page).await;
    assert!(first.text.contains(&shown(began, 0)) && first.text.contains("data-zone=\"UTC\""));

    let forgery = first.forgery();
    let set = async |browser: &Browser, field: &str, zone: &str| {
        let fields = [("forgery", forgery.as_str()), (field, zone), ("to", page.as_str())];
        browser.send("/settings", &fields).await
    };
    let odd = set(&browser, "zone", "Mars/Olympus").await;
    assert_eq!(odd.status, 400);
    assert!(
        odd.text.contains("there is no time zone `Mars/Olympus`"),
        "{}",
        odd.text
    );
    assert!(odd.cookies.is_empty());
    let done = set(&browser, "zone", "asia/shanghai").await;
    assert_eq!((done.status, done.leads.as_str()), (303, page.as_str()));
    assert!(
        done.cookies[0].starts_with("starbridge-zone=Asia/Shanghai;"),
        "{:?}",
        done.cookies
    );
    browser.cookie = done.cookies[0].split(';').next().map(str::to_owned);
    for path in [
        &page,
        &format!("{page}?tab=steps"),
        &format!("{page}?tab=events"),
        &"/executions".to_owned(),
    ] {
        let text = browser.get(path).await.text;
        assert!(
            text.contains(&shown(began, 8)) && !text.contains(&shown(began, 0)),
            "{path}"
        );
        assert!(text.contains(">UTC+8</summary>"), "{path}");
    }
    // Events as they are keep their times.
    let raw = browser.get(&format!("{page}?tab=raw")).await.text;
    assert!(raw.contains(&began[..19]));

    // A link that names a zone is opened in it, and says so; the setting stays.
    let linked = browser.get(&format!("{page}?zone=Asia%2FTokyo")).await;
    assert!(linked.text.contains(&shown(began, 9)) && linked.text.contains("Times are as in the link"));
    assert!(linked.text.contains(&format!("<a href=\"{page}\">")), "{}", linked.text);
    assert!(browser.get(&page).await.text.contains(&shown(began, 8)));
    let same = browser.get(&format!("{page}?zone=Asia/Shanghai")).await.text;
    assert!(!same.contains("Times are as in the link"));
    let odd = browser.get(&format!("{page}?zone=Mars")).await;
    assert_eq!(odd.status, 400);
    assert!(odd.text.contains("there is no time zone `Mars`"), "{}", odd.text);
}

#[tokio::test]
async fn times_of_a_filter_are_meant_by_the_clocks_of_the_page() {
    let server = serving(Access::default()).await;
    let (_, began) = ran(&server).await;
    let began = began.as_str();
    let mut browser = Browser::at(&server.base);
    browser.cookie = Some("starbridge-zone=Asia/Shanghai".to_owned());
    let at = Timestamp::parse(began).unwrap().0 + 8 * 3_600_000;
    for (more, found) in [(-60_000, true), (60_000, false)] {
        let there = Timestamp(at + more).to_string();
        let written = format!("{}%20{}", &there[..10], &there[11..19]);
        let list = browser.get(&format!("/executions?from={written}")).await.text;
        assert_eq!(list.contains(">one</a>"), found, "{written}: {list}");
        let chip = format!("{} {}", &there[..10], &there[11..19]);
        assert!(list.contains(&format!("value=\"{chip}\"")), "{chip}: {list}");
    }
    let list = browser.get("/executions?from=yesterday").await;
    assert_eq!(list.status, 400, "{}", list.text);
}

#[tokio::test]
async fn key_shows_who_holds_it_and_leads_to_those_who_wait() {
    let server = serving(Access::default()).await;
    let mut flow = definition(asleep());
    flow["concurrency"] = json!([{"key": "$input.cluster", "limit": 1}]);
    assert_eq!(server.put("/v1/flows/deploy", flow).await.status, 201);
    let holder = start(&server, "deploy", "first").await;
    runs(&server, &holder).await;
    let waiting = start(&server, "deploy", "second").await;
    waits(&server, &waiting, "key").await;
    let browser = Browser::at(&server.base);
    let keys = browser.get("/keys").await.text;
    assert!(keys.contains("href=\"/keys/deploy/a%2Fb\""), "{keys}");
    assert!(
        keys.contains("href=\"/executions?reason=key&amp;reasonOf=a%2Fb\""),
        "{keys}"
    );
    let key = browser.get("/keys/deploy/a%2Fb").await;
    assert_eq!(key.status, 200, "{}", key.text);
    assert!(
        key.text.contains(&format!("href=\"/executions/{holder}\">first</a>")),
        "{}",
        key.text
    );
    assert!(!key.text.contains(">second</a>") && key.text.contains("starbridge key show deploy a/b"));
    let list = browser.get("/executions?reason=key&reasonOf=a%2Fb").await.text;
    assert!(list.contains(">second</a>") && !list.contains(">first</a>"), "{list}");
    assert_eq!(browser.get("/keys/deploy/none").await.status, 404);
}

#[tokio::test]
async fn queue_shows_how_many_waited_in_the_last_hour() {
    let server = serving(Access::default()).await;
    server
        .flow(
            "f",
            json!([{"type": "task", "name": "work", "resourceArn": "queue:jobs"}]),
        )
        .await;
    for name in ["a", "b", "c"] {
        server.post("/v1/flows/f/executions", json!({"name": name})).await;
    }
    let queued = || async { (server.get("/v1/queues/jobs").await.body["waiting"] == 3).then_some(()) };
    eventually("three tasks", queued).await;
    assert_eq!(server.get("/v1/queues/jobs").await.body["minutes"], json!([]));
    let watching = tokio::spawn(server.node.clone().watch_queue_depths());
    let seen = || async {
        let minutes = server.get("/v1/queues/jobs").await.body["minutes"].clone();
        (minutes != json!([])).then_some(minutes)
    };
    let minutes = eventually("a look", seen).await;
    watching.abort();
    assert_eq!(minutes[0]["waiting"], 3, "{minutes}");
    let page = Browser::at(&server.base).get("/queues/jobs").await.text;
    assert!(
        page.contains("Waiting, by minute of the last hour; at most 3"),
        "{page}"
    );
}

#[tokio::test]
async fn graph_leads_to_its_steps_and_the_time_line_to_a_part_of_it() {
    let server = serving(Access::default()).await;
    let steps =
        json!([{"type": "pass", "name": "first"}, {"type": "fail", "name": "last", "error": "E.One", "cause": "so"}]);
    server.flow("f", steps).await;
    let begun = server
        .post("/v1/flows/f/executions?wait=30", json!({"name": "a"}))
        .await;
    let id = begun.body["id"].as_str().unwrap();
    let browser = Browser::at(&server.base);
    let page = format!("/executions/{id}");
    let whole = browser.get(&page).await.text;
    assert!(whole.contains("href=\"?of=last#visit\""), "{whole}");
    assert!(
        whole.contains("href=\"/executions?flow=f&amp;error=E.One&amp;step=last\""),
        "{whole}"
    );
    let visit = browser.get(&format!("{page}?of=last")).await.text;
    assert!(
        visit.contains("id=\"visit\"") && visit.contains("class=\"card fa at\""),
        "{visit}"
    );
    assert!(
        !browser
            .get(&format!("{page}?of=none"))
            .await
            .text
            .contains("id=\"visit\"")
    );
    // A step leads to the time that it took, a stretch to all of it.
    let stretch = visit.split("href=\"").find(|link| link.contains("from=")).unwrap();
    let stretch = stretch.split('"').next().unwrap().replace("&amp;", "&");
    let part = browser.get(&stretch).await.text;
    assert!(
        part.contains("Show all of it") && !whole.contains("Show all of it"),
        "{part}"
    );
    let odd = browser.get(&format!("{page}?from=soon")).await;
    assert_eq!(odd.status, 400);
    assert!(odd.text.contains("`from` must be a time"), "{}", odd.text);
    let compact = format!("/v1{page}/graph.svg?look=compact");
    let compact = server.raw(Method::GET, &compact, None).await.text().await.unwrap();
    assert!(compact.contains(">last</text>"), "{compact}");
}
