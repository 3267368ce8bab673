//! Forms of pages that come twice: a double click, or a form sent again because its answer was lost.

use crate::console::{Browser, serving};
use crate::harness::{Running, asleep};
use serde_json::json;
use starbridge_server::Access;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// The number of the page's forms.
fn number(page: &str) -> String {
    let rest = page.split_once("name=\"once\" value=\"").unwrap().1;
    rest.split('"').next().unwrap().to_owned()
}

async fn count(server: &Running, flow: &str) -> usize {
    let list = server.get(&format!("/v1/executions?flow={flow}")).await;
    list.body["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn start_that_comes_twice_starts_one() {
    let server = serving(Access::default()).await;
    server.flow("nap", asleep()).await;
    let browser = Browser::at(&server.base);
    let page = browser.get("/flows/nap").await;
    let (forgery, once) = (page.forgery(), number(&page.text));
    let form = |input: &'static str| [("forgery", forgery.as_str()), ("once", once.as_str()), ("input", input)];

    // What is wrong is not kept, and can be sent again.
    for _ in 0..2 {
        assert_eq!(browser.send("/flows/nap/start", &form("{")).await.status, 400);
    }
    let double = form("{}");
    let (first, second) = tokio::join!(
        browser.send("/flows/nap/start", &double),
        browser.send("/flows/nap/start", &double)
    );
    assert_eq!((first.status, second.status), (303, 303), "{}", second.text);
    assert_eq!(first.leads, second.leads);
    assert_eq!(browser.send("/flows/nap/start", &double).await.leads, first.leads);
    assert_eq!(count(&server, "nap").await, 1);
    // A process that does not remember the form knows it by the key of the execution.
    let at = first.leads.split('?').next().unwrap();
    let key = server.get(&format!("/v1{at}")).await.body["onceKey"].clone();
    assert!(key.as_str().unwrap().starts_with("console-"), "{key}");

    // Another input, or the form of the page as it is loaded again, is another start.
    let other = browser.send("/flows/nap/start", &form("{\"n\": 1}")).await;
    assert_ne!(other.leads, first.leads);
    let anew = browser.get("/flows/nap").await;
    let (forgery, once) = (anew.forgery(), number(&anew.text));
    let form = [("forgery", forgery.as_str()), ("once", once.as_str()), ("input", "{}")];
    assert_ne!(browser.send("/flows/nap/start", &form).await.leads, first.leads);
    assert_eq!(count(&server, "nap").await, 3);
}

#[tokio::test]
async fn form_whose_sender_left_is_done_and_not_done_again() {
    let server = serving(Access::default()).await;
    server.flow("nap", asleep()).await;
    let schedule = json!({"flow": "nap", "cron": "0 3 * * *"});
    assert_eq!(server.put("/v1/schedules/nightly", schedule).await.status, 200);
    let browser = Browser::at(&server.base);
    let page = browser.get("/schedules").await;
    let form = [("forgery", page.forgery()), ("once", number(&page.text))];
    let body = form.iter().map(|(key, value)| format!("{key}={value}"));
    let body = body.collect::<Vec<_>>().join("&");
    let host = server.base.strip_prefix("http://").unwrap();
    for _ in 0..3 {
        let mut gone = TcpStream::connect(host).await.unwrap();
        let head = format!(
            "POST /schedules/nightly/run HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/x-www-form-urlencoded\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        gone.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    }
    let fields = form.each_ref().map(|(key, value)| (*key, value.as_str()));
    let sent = browser.send("/schedules/nightly/run", &fields).await;
    assert_eq!((sent.status, sent.leads.as_str()), (303, "/schedules?done=start"));
    assert_eq!(count(&server, "nap").await, 1);
}

#[tokio::test]
async fn fork_and_bulk_job_that_come_twice_are_made_once() {
    let server = serving(Access::default()).await;
    server.flow("nap", asleep()).await;
    let begun = server.post("/v1/flows/nap/executions", json!({"name": "a"})).await;
    let at = format!("/executions/{}", begun.body["id"].as_str().unwrap());
    let browser = Browser::at(&server.base);
    let page = browser.get(&at).await;
    let (forgery, once) = (page.forgery(), number(&page.text));
    let fork = [("forgery", forgery.as_str()), ("once", once.as_str()), ("event", "1")];
    let first = browser.send(&format!("{at}/fork"), &fork).await;
    assert_eq!(first.status, 303, "{}", first.text);
    assert_eq!(browser.send(&format!("{at}/fork"), &fork).await.leads, first.leads);
    assert_eq!(count(&server, "nap").await, 2);
    // An act that its own state would refuse the second time is answered as the first time.
    let stop = [fork[0], fork[1]];
    for _ in 0..2 {
        let stopped = browser.send(&format!("{at}/stop"), &stop).await;
        assert_eq!(stopped.leads, format!("{at}?done=stop"), "{}", stopped.text);
    }

    let preview = browser.get("/bulk/new?action=pause&match=all&flow=nap").await;
    let (forgery, once) = (preview.forgery(), number(&preview.text));
    let job = [
        ("forgery", forgery.as_str()),
        ("once", once.as_str()),
        ("action", "pause"),
        ("filter", "{\"flow\": \"nap\"}"),
    ];
    let first = browser.send("/bulk/new", &job).await;
    assert_eq!(first.status, 303, "{}", first.text);
    assert_eq!(browser.send("/bulk/new", &job).await.leads, first.leads);
    let jobs = server.get("/v1/bulk").await.body;
    assert_eq!(jobs["items"].as_array().unwrap().len(), 1);
}
