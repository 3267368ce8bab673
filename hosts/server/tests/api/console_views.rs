//! What pages of the console show of an execution, of schedules and of flows, and the answers they take.

use crate::console::{Browser, Shown, serving};
use crate::harness::{Running, asleep};
use crate::mailbox::{Mailbox, ended, eventually};
use serde_json::{Value, json};
use starbridge_server::Access;

/// Takes the next task of the queue `jobs` and reports it.
async fn work(server: &Running, verb: &str, report: Value) {
    let hold = json!({"worker": "desk-2", "waitSeconds": 20});
    let held = server.post("/v1/queues/jobs/hold", hold).await;
    let token = held.body["tasks"][0]["token"].as_str().unwrap().to_owned();
    let done = server.post(&format!("/v1/callbacks/{token}/{verb}"), report).await;
    assert_eq!(done.status, 204, "{done:?}");
}

#[tokio::test]
async fn attempt_has_its_log_its_commands_and_its_lines() {
    let server = serving(Access::default()).await;
    let text = "version: v1\ntype: flow\nname: f\nsteps:\n  - type: task\n    name: the work\n    resourceArn: queue:jobs\n    retry:\n      \
                - errors: [Busy]\n        intervalSeconds: 0\n";
    let put = server
        .raw(reqwest::Method::PUT, "/v1/flows/f", Some(text.to_owned()))
        .await;
    assert_eq!(put.status(), 201);
    server.post("/v1/flows/f/executions", json!({"name": "a"})).await;
    work(
        &server,
        "fail",
        json!({"error": "Busy", "cause": "", "log": "first <try>\n"}),
    )
    .await;
    work(&server, "succeed", json!({"output": {}, "log": "second try\n"})).await;
    let end = ended(&server, "f", "a").await;
    let id = end["id"].as_str().unwrap();
    let steps = server.get(&format!("/v1/executions/{id}/steps")).await.body;
    let event = &steps["items"][0]["event"];
    let browser = Browser::at(&server.base);
    let last = browser.get(&format!("/executions/{id}?visit={event}")).await.text;
    assert!(
        last.contains("second try") && !last.contains("first &lt;try&gt;"),
        "{last}"
    );
    let first = browser
        .get(&format!("/executions/{id}?visit={event}&attempt=1"))
        .await
        .text;
    assert!(
        first.contains("first &lt;try&gt;") && !first.contains("second try"),
        "{first}"
    );
    assert!(
        first.contains(&format!("starbridge show {id} --attempts {event}")),
        "{first}"
    );
    assert!(
        first.contains(&format!("starbridge logs {id} --step &#39;the work&#39;")),
        "{first}"
    );
    assert!(first.contains("In the definition, line 5–10</summary>"), "{first}");
    assert!(first.contains("intervalSeconds: 0"), "{first}");
}

/// An execution with this input, by its id.
async fn begun(server: &Running, flow: &str, name: &str) -> String {
    let start = json!({"name": name, "input": {"amount": 120}});
    let begun = server.post(&format!("/v1/flows/{flow}/executions"), start).await;
    begun.body["id"].as_str().unwrap().to_owned()
}

/// The inbox with the questions of an execution, once it says this.
async fn asked(browser: &Browser, id: &str, what: &str) -> Shown {
    let look = || async {
        let inbox = browser.get(&format!("/inbox?of={id}")).await;
        inbox.text.contains(what).then_some(inbox)
    };
    eventually("a question", look).await
}

/// Answers the first question of a page.
async fn answered(browser: &Browser, page: &Shown, path: &str, answer: &[(&str, &str)]) -> Shown {
    let rest = page.text.split_once("name=\"event\" value=\"").unwrap().1;
    let (forgery, event) = (page.forgery(), rest.split('"').next().unwrap());
    let own = [("forgery", forgery.as_str()), ("event", event), ("from", "inbox")];
    browser.send(path, &[&own[..], answer].concat()).await
}

#[tokio::test]
async fn inbox_takes_a_report_with_a_note() {
    let server = serving(Access::default()).await;
    let mailbox = Mailbox::open().await;
    server.flow("f", json!([mailbox.ask("approve")])).await;
    let browser = Browser::at(&server.base);
    let id = begun(&server, "f", "a").await;
    let page = asked(&browser, &id, "approve waits for a report").await;
    let path = format!("/executions/{id}/report");
    assert_eq!(page.text.matches(&format!("action=\"{path}\"")).count(), 2);
    let answer = [
        ("action", "succeed"),
        ("output", "{\"approved\": true}"),
        ("note", "by phone"),
    ];
    let done = answered(&browser, &page, &path, &answer).await;
    assert_eq!(done.leads, "/inbox?done=report", "{}", done.text);
    assert_eq!(ended(&server, "f", "a").await["output"]["approved"], true);
    let audit = server.get("/v1/audit?action=report").await.body;
    assert_eq!(audit["items"][0]["detail"]["note"], "by phone", "{audit}");
    let over = browser.get(&format!("/inbox?of={id}")).await.text;
    assert!(over.contains("Nothing of it waits for an answer any more."), "{over}");
    assert_eq!(browser.get("/inbox?of=nobody").await.status, 404);
    assert_eq!(browser.get("/inbox?odd=1").await.status, 400);
}

#[tokio::test]
async fn inbox_shows_what_a_decision_is_about_and_takes_it() {
    let server = serving(Access::default()).await;
    let pay = json!({"type": "task", "name": "pay", "resourceArn": "http://127.0.0.1:1/", "retry": [],
        "catch": [{"errors": ["FnF.ALL"], "manual": true}]});
    server.flow("g", json!([pay])).await;
    let browser = Browser::at(&server.base);
    let id = begun(&server, "g", "b").await;
    let page = asked(&browser, &id, "pay needs a decision").await;
    let shown = &page.text;
    assert!(
        shown.contains("&quot;amount&quot;: 120") && shown.contains(">g / b</a>"),
        "{shown}"
    );
    // A form for each answer, with its own fields.
    let path = format!("/executions/{id}/resolve");
    assert_eq!(shown.matches(&format!("action=\"{path}\"")).count(), 3);
    let answer = [
        ("action", "fail"),
        ("error", "Payment.Refused"),
        ("cause", "too dear"),
        ("note", "asked Ada"),
    ];
    let done = answered(&browser, &page, &path, &answer).await;
    assert_eq!(done.leads, "/inbox?done=resolve", "{}", done.text);
    assert!(browser.get(&done.leads).await.text.contains("The decision is taken."));
    assert_eq!(ended(&server, "g", "b").await["error"], "Payment.Refused");
}

/// Sends the form of the schedule `nightly` with one field changed; without a field that is not given.
async fn sent(browser: &Browser, forgery: &str, (field, value): (&str, Option<&str>)) -> Shown {
    let fields = [
        ("flow", "nap"),
        ("cron", "0 3 * * *"),
        ("payload", "{\"all\": true}"),
        ("overlap", "skip"),
        ("catchUp", "none"),
        ("priority", "3"),
        ("startDeadlineSeconds", ""),
    ];
    let changed = fields.into_iter().filter_map(|(name, kept)| match name == field {
        true => Some((name, value?)),
        false => Some((name, kept)),
    });
    let form: Vec<_> = std::iter::once(("forgery", forgery)).chain(changed).collect();
    browser.send("/schedules/nightly/change", &form).await
}

/// A server with a schedule, and what its page's form sends back.
async fn with_schedule() -> (Running, Browser, String) {
    let server = serving(Access::default()).await;
    server.flow("nap", asleep()).await;
    let nightly = json!({"flow": "nap", "cron": "0 3 * * *", "payload": {"all": true}, "priority": 3});
    assert_eq!(server.put("/v1/schedules/nightly", nightly).await.status, 200);
    let browser = Browser::at(&server.base);
    let page = browser.get("/schedules/nightly").await;
    assert!(page.text.contains("value=\"0 3 * * *\""), "{}", page.text);
    assert!(page.text.contains("&quot;all&quot;: true"), "{}", page.text);
    (server, browser, page.forgery())
}

#[tokio::test]
async fn mistake_in_the_form_of_a_schedule_is_told_where_it_stands() {
    let (server, browser, forgery) = with_schedule().await;
    assert_eq!(browser.get("/schedules/none").await.status, 404);
    assert!(
        browser
            .get("/schedules")
            .await
            .text
            .contains("href=\"/schedules/nightly\"")
    );
    for (field, value, status) in [
        ("flow", "none", 422),
        ("cron", "<never>", 422),
        ("payload", "{", 400),
        ("overlap", "sometimes", 422),
        ("priority", "12", 422),
        ("priority", "high", 400),
        ("startDeadlineSeconds", "0", 422),
    ] {
        let refused = sent(&browser, &forgery, (field, Some(value))).await;
        let stands = format!("id=\"wrong-{field}\"");
        assert!(
            refused.status == status && refused.text.contains(&stands),
            "{field}: {}",
            refused.text
        );
        assert_eq!(refused.text.matches("role=\"alert\"").count(), 1, "{field}");
        assert!(!refused.text.contains("<never>"));
    }
    let kept = server.get("/v1/schedules/nightly").await.body;
    assert_eq!((&kept["cron"], &kept["priority"]), (&json!("0 3 * * *"), &json!(3)));
}

#[tokio::test]
async fn schedule_is_changed_by_its_form_in_what_differs() {
    let (server, browser, forgery) = with_schedule().await;
    let done = sent(&browser, &forgery, ("cron", Some("0 4 * * *"))).await;
    assert_eq!(done.leads, "/schedules/nightly?done=set", "{}", done.text);
    let audit = server.get("/v1/audit?action=change").await.body;
    assert_eq!(audit["items"][0]["detail"], json!({"cron": "0 4 * * *"}), "{audit}");
    assert!(browser.get(&done.leads).await.text.contains("It is set."));
    // What is not sent stays, and what is emptied is unset.
    assert_eq!(sent(&browser, &forgery, ("cron", None)).await.status, 303);
    let kept = server.get("/v1/schedules/nightly").await.body;
    assert_eq!((&kept["cron"], &kept["priority"]), (&json!("0 4 * * *"), &json!(3)));
    assert_eq!(sent(&browser, &forgery, ("priority", Some(""))).await.status, 303);
    let kept = server.get("/v1/schedules/nightly").await.body;
    assert_eq!(kept.get("priority"), None, "{kept}");
}

#[tokio::test]
async fn field_of_the_bar_leads_to_what_is_called_so() {
    let server = serving(Access::default()).await;
    server.flow("nap", asleep()).await;
    let work = json!([{"type": "task", "name": "work", "resourceArn": "queue:jobs"}]);
    server.flow("f", work).await;
    server.post("/v1/flows/f/executions", json!({"name": "a"})).await;
    let begun = server
        .post("/v1/flows/nap/executions", json!({"name": "order-7"}))
        .await;
    let id = begun.body["id"].as_str().unwrap();
    let browser = Browser::at(&server.base);
    assert!(browser.get("/").await.text.contains("action=\"/find\""));
    let queued = || async {
        let queues = server.get("/v1/queues").await.body;
        (queues["items"][0]["name"] == "jobs").then_some(())
    };
    eventually("a queue", queued).await;
    for (wanted, to) in [
        ("", "/executions".to_owned()),
        (id, format!("/executions/{id}")),
        (" nap/order-7 ", format!("/executions/{id}")),
        ("nap", "/flows/nap".to_owned()),
        ("jobs", "/queues/jobs".to_owned()),
        ("inbox", "/inbox".to_owned()),
        ("待办", "/inbox".to_owned()),
        ("order-", "/executions?name=order-".to_owned()),
        ("//evil.example", "/executions?name=%2F%2Fevil.example".to_owned()),
        ("nap/none", "/executions?name=nap%2Fnone".to_owned()),
    ] {
        let found = browser
            .get(&format!("/find?q={}", starbridge_console::path_part(wanted)))
            .await;
        assert_eq!(
            (found.status, found.leads.as_str()),
            (303, to.as_str()),
            "{wanted}: {}",
            found.text
        );
    }
}

#[tokio::test]
async fn raw_tab_has_the_events_as_they_are() {
    let server = serving(Access::default()).await;
    let each = json!([{"type": "foreach", "name": "each", "iterationMapping": {"collection": "$.items", "item": "item"},
        "steps": [{"type": "pass", "name": "one"}]}]);
    server.flow("f", each).await;
    let items: Vec<u32> = (0..80).collect();
    let begun = server
        .post(
            "/v1/flows/f/executions?wait=30",
            json!({"input": {"items": items}, "name": "a"}),
        )
        .await;
    let at = format!("/executions/{}", begun.body["id"].as_str().unwrap());
    let browser = Browser::at(&server.base);
    let first = browser.get(&format!("{at}?tab=raw&events=1")).await.text;
    assert!(
        first.contains("&quot;type&quot;: &quot;ExecutionStarted&quot;"),
        "{first}"
    );
    assert!(first.contains(&format!("href=\"{at}/history.jsonl\"")), "{first}");
    // A window of rows, with the way to the next.
    assert_eq!(first.matches("&quot;causedBy&quot;").count(), 100);
    assert!(first.contains(&format!("{at}?tab=raw&amp;events=101")), "{first}");
    let last = browser.get(&format!("{at}?tab=raw")).await.text;
    assert!(last.contains("&quot;type&quot;: &quot;ExecutionSucceeded&quot;") && !last.contains("ExecutionStarted"));
}

#[tokio::test]
async fn list_gets_the_steps_of_each_execution_after_its_page() {
    let server = serving(Access::default()).await;
    let steps =
        json!([{"type": "pass", "name": "first"}, {"type": "fail", "name": "pay<", "error": "E.One", "cause": "so"}]);
    server.flow("f", steps).await;
    let each = json!([{"type": "foreach", "name": "each", "iterationMapping": {"collection": "$.items", "item": "item"},
        "steps": [{"type": "pass", "name": "one"}]}]);
    server.flow("long", each).await;
    let id = async |flow: &str, input: Value| {
        let path = format!("/v1/flows/{flow}/executions?wait=30");
        let begun = server.post(&path, json!({"input": input})).await;
        begun.body["id"].as_str().unwrap().to_owned()
    };
    let short = id("f", json!({})).await;
    let long = id("long", json!({"items": (0..300).collect::<Vec<u32>>()})).await;
    let browser = Browser::at(&server.base);
    let list = browser.get("/executions").await.text;
    assert!(list.contains(&format!("data-strip=\"{short}\" hidden")), "{list}");
    let strips = browser.get(&format!("/strips?id={short}&id={long}&id=gone")).await;
    let strips: Value = serde_json::from_str(&strips.text).unwrap();
    assert_eq!(strips["items"].as_array().unwrap().len(), 2);
    assert_eq!(strips["items"][0]["says"], "first: Succeeded; pay<: Failed, E.One");
    let bars = strips["items"][0]["bars"].as_array().unwrap();
    assert_eq!((&bars[0][0], &bars[1][0]), (&json!("b-ok"), &json!("b-fail")));
    // What failed is taller.
    assert!(bars[0][4].as_u64() < bars[1][4].as_u64());
    // Of a long history the last events are looked at.
    assert_eq!(strips["items"][1]["bars"].as_array().unwrap().len(), 24, "{strips}");
    let many = vec![format!("id={short}"); 51].join("&");
    assert_eq!(browser.get(&format!("/strips?{many}")).await.status, 400);

    let counted = || async {
        let flows = browser.get("/flows").await.text;
        flows
            .contains(
                "class=\"fail\" href=\"/executions?flow=f&amp;status=Failed,TimedOut,RollbackFailed&amp;endedFrom=",
            )
            .then_some(flows)
    };
    eventually("a failure in the list of flows", counted).await;
}
