//! What operators do in the console to queues and to many executions.

use crate::console::{Browser, serving};
use crate::harness::{Running, asleep};
use crate::mailbox::eventually;
use serde_json::json;
use starbridge_server::Access;

#[tokio::test]
async fn queue_is_set_paused_and_its_dead_tasks_queued_anew_by_pages() {
    let server = serving(Access::default()).await;
    server
        .flow(
            "f",
            json!([{"type": "task", "name": "work", "resourceArn": "queue:jobs", "retry": [],
                "inputMappings": [{"target": "n", "source": "$input.n"}]}]),
        )
        .await;
    server
        .post("/v1/flows/f/executions", json!({"name": "a", "input": {"n": 7}}))
        .await;
    let browser = Browser::at(&server.base);
    let hold = json!({"worker": "w<1>", "waitSeconds": 20});
    let held = server.post("/v1/queues/jobs/hold", hold).await;
    let token = held.body["tasks"][0]["token"].as_str().unwrap().to_owned();
    let shown = browser.get("/queues/jobs?tab=held").await;
    assert!(
        shown.text.contains("w&lt;1&gt;") && shown.text.contains("&quot;n&quot;: 7"),
        "{}",
        shown.text
    );
    assert!(!shown.text.contains(&token));
    let workers = server.get("/v1/queues/jobs/workers").await.body;
    assert_eq!(
        (&workers["items"][0]["worker"], &workers["items"][0]["held"]),
        (&json!("w<1>"), &json!(1))
    );
    assert_eq!(browser.get("/queues/jobs?tab=workers").await.status, 200);
    assert_eq!(browser.get("/queues/jobs?tab=x").await.status, 400);
    assert_eq!(browser.get("/queues/none").await.status, 404);
    assert_eq!(
        server.get("/v1/queues/jobs/tasks?state=x").await.code(),
        (400, "BadRequest")
    );

    let forgery = shown.forgery();
    settings_are_changed(&server, &browser, &forgery).await;
    dead_task_is_queued_anew(&server, &browser, &forgery, &token).await;
}

async fn settings_are_changed(server: &Running, browser: &Browser, forgery: &str) {
    let set = [("forgery", forgery), ("maxConcurrent", "3"), ("ratePerSecond", "0.5")];
    assert_eq!(browser.send("/queues/jobs/set", &set).await.status, 303);
    assert_eq!(browser.send("/queues/jobs/pause", &set[..1]).await.status, 303);
    let queue = server.get("/v1/queues/jobs").await.body;
    assert_eq!(
        (&queue["maxConcurrent"], &queue["paused"]),
        (&json!(3), &json!(true)),
        "{queue}"
    );
    assert_eq!(browser.send("/queues/jobs/set", &set[..1]).await.status, 303);
    assert_eq!(browser.send("/queues/jobs/resume", &set[..1]).await.status, 303);
    let queue = server.get("/v1/queues/jobs").await.body;
    assert_eq!(
        (&queue["maxConcurrent"], &queue["paused"]),
        (&json!(null), &json!(false)),
        "{queue}"
    );
}

async fn dead_task_is_queued_anew(server: &Running, browser: &Browser, forgery: &str, token: &str) {
    let fail = json!({"error": "No.Way", "cause": "<rain>"});
    assert_eq!(
        server.post(&format!("/v1/callbacks/{token}/fail"), fail).await.status,
        204
    );
    let dead = browser.get("/queues/jobs?tab=dead").await.text;
    assert!(
        dead.contains("No.Way") && dead.contains("&lt;rain&gt;") && dead.contains("&quot;n&quot;: 7"),
        "{dead}"
    );
    let place = dead
        .split_once("name=\"task\" value=\"")
        .unwrap()
        .1
        .split('"')
        .next()
        .unwrap();
    let none = [("forgery", forgery), ("action", "requeue")];
    assert_eq!(browser.send("/queues/jobs/dead", &none).await.status, 400);
    let one = [none[0], none[1], ("task", place)];
    let again = browser.send("/queues/jobs/dead", &one).await;
    assert!(again.leads.ends_with("done=requeue"), "{} {}", again.leads, again.text);
    let waiting = server.get("/v1/queues/jobs/tasks").await.body;
    assert_eq!(
        (&waiting["items"][0]["name"], &waiting["items"][0]["input"]),
        (&json!("a"), &json!({"n": 7}))
    );
    assert!(
        browser
            .get("/queues/jobs")
            .await
            .text
            .contains("starbridge worker --queue jobs")
    );
}

#[tokio::test]
async fn many_executions_are_stopped_by_a_job_that_says_first_what_it_is_for() {
    let server = serving(Access::default()).await;
    server.flow("f", asleep()).await;
    tokio::spawn(server.node.clone().keep_bulk());
    let starts: Vec<_> = (0..101)
        .map(|at| json!({"flow": "f", "name": format!("n-{at}")}))
        .collect();
    server.post("/v1/executions/batch", json!(starts)).await;
    let browser = Browser::at(&server.base);
    let list = browser.get("/executions?flow=f").await;
    let forgery = list.forgery();
    assert_eq!(list.text.matches("name=\"id\"").count(), 50);
    let id = list
        .text
        .split_once("name=\"id\" value=\"")
        .unwrap()
        .1
        .split('"')
        .next()
        .unwrap();

    // One that is ticked.
    assert_eq!(browser.get("/bulk/new?action=stop").await.status, 400);
    assert_eq!(browser.get(&format!("/bulk/new?action=odd&id={id}")).await.status, 400);
    let one = browser.get(&format!("/bulk/new?action=pause&flow=f&id={id}")).await;
    assert!(
        one.text.contains("Pause: 1 execution<") && !one.text.contains("name=\"typed\""),
        "{}",
        one.text
    );
    let ids = format!("[\"{id}\"]");
    let fields = [
        ("forgery", forgery.as_str()),
        ("action", "pause"),
        ("executions", ids.as_str()),
    ];
    let made = browser.send("/bulk/new", &fields).await;
    assert_eq!(made.status, 303, "{}", made.text);
    let job = made.leads.split('?').next().unwrap().to_owned();
    let over = || async {
        let shown = server.get(&format!("/v1{job}")).await.body;
        (shown["state"] == "done").then_some(shown)
    };
    assert_eq!(eventually("an end of the job", over).await["done"], 1);
    let shown = browser.get(&job).await;
    assert!(shown.text.contains(&format!("/executions/{id}")), "{}", shown.text);
    assert_eq!(browser.get(&format!("{job}?result=failed")).await.status, 200);
    assert_eq!(browser.get(&format!("{job}?result=odd")).await.status, 400);
    assert_eq!(browser.send(&format!("{job}/cancel"), &fields[..1]).await.status, 409);
    all_that_match_are_stopped(&server, &browser, &forgery).await;
}

/// Their number is typed.
async fn all_that_match_are_stopped(server: &Running, browser: &Browser, forgery: &str) {
    let all = browser
        .get("/bulk/new?action=stop&match=all&flow=f&status=Running&label=")
        .await;
    assert!(
        all.text.contains("Stop: 101 executions") && all.text.contains("name=\"typed\""),
        "{}",
        all.text
    );
    assert!(
        all.text
            .contains("starbridge bulk stop --flow f --status Running --dry-run"),
        "{}",
        all.text
    );
    let filter = "{\"flow\": \"f\", \"status\": [\"Running\"]}";
    let fields = [
        ("forgery", forgery),
        ("action", "stop"),
        ("filter", filter),
        ("typed", "100"),
        ("cause", "moved"),
    ];
    let wrong = browser.send("/bulk/new", &fields).await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text.contains("101 executions"), "{}", wrong.text);
    let right = [fields[0], fields[1], fields[2], ("typed", "101"), fields[4]];
    let made = browser.send("/bulk/new", &right).await;
    assert_eq!(made.status, 303, "{}", made.text);
    let job = made.leads.split('?').next().unwrap().to_owned();
    let over = || async {
        let shown = server.get(&format!("/v1{job}")).await.body;
        (shown["state"] == "done").then_some(shown)
    };
    assert_eq!(eventually("an end of the second job", over).await["done"], 101);
    let items = browser.get(&format!("{job}?result=done")).await.text;
    assert!(items.contains("rel=\"next\"") && items.matches("href=\"/executions/").count() >= 100);
}

#[tokio::test]
async fn many_are_deleted_by_who_may_do_everything_and_types_their_number() {
    let server = serving(crate::access::access()).await;
    tokio::spawn(server.node.clone().keep_bulk());
    let put = server
        .request(reqwest::Method::PUT, "/v1/flows/f")
        .bearer_auth("token-admin")
        .body(crate::harness::definition(json!([{"type": "pass", "name": "a"}])).to_string());
    assert_eq!(put.send().await.unwrap().status(), 201);
    for _ in 0..3 {
        let start = server
            .request(reqwest::Method::POST, "/v1/flows/f/executions?wait=10")
            .bearer_auth("token-admin")
            .body("{}");
        assert_eq!(start.send().await.unwrap().status(), 201);
    }
    let mut operator = Browser::at(&server.base);
    operator.sign_in("token-operate").await;
    let ask = "/bulk/new?action=delete&match=all&flow=f";
    assert_eq!(operator.get(ask).await.status, 403);
    let mut admin = Browser::at(&server.base);
    admin.sign_in("token-admin").await;
    let shown = admin.get(ask).await;
    assert!(shown.text.contains("Delete: 3 executions") && shown.text.contains("name=\"typed\""));
    let forgery = shown.forgery();
    let fields = |typed| {
        [
            ("forgery", forgery.as_str()),
            ("action", "delete"),
            ("filter", "{\"flow\": \"f\"}"),
            ("typed", typed),
        ]
    };
    assert_eq!(admin.send("/bulk/new", &fields("")).await.status, 400);
    assert_eq!(admin.send("/bulk/new", &fields("3")).await.status, 303);
    let gone = || async {
        let list = admin.get("/executions?flow=f").await.text;
        list.contains("No execution matches the filter.").then_some(())
    };
    eventually("an empty list", gone).await;
}

#[tokio::test]
async fn list_is_of_those_that_ended_with_an_error_in_a_step() {
    let server = serving(Access::default()).await;
    let fails = |step: &str, error: &str| json!([{"type": "fail", "name": step, "error": error, "cause": "so"}]);
    for (flow, step, error) in [("a", "pay", "E.One"), ("b", "ship", "E.One"), ("c", "pay", "E.Two")] {
        server.flow(flow, fails(step, error)).await;
        let begun = server
            .post(&format!("/v1/flows/{flow}/executions?wait=20"), json!({"name": flow}))
            .await;
        assert_eq!(begun.body["error"], error);
    }
    let names = async |query: &str| {
        let page = server.get(&format!("/v1/executions?{query}")).await.body;
        let items = page["items"].as_array().unwrap().clone();
        items
            .iter()
            .map(|item| item["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("error=E.One").await, ["b", "a"]);
    assert_eq!(names("step=pay").await, ["c", "a"]);
    assert_eq!(names("error=E.One&step=pay&status=Failed").await, ["a"]);
    assert_eq!(
        names("endedFrom=2020-01-01T00:00:00Z&endedTo=2021-01-01T00:00:00Z").await,
        [""; 0]
    );
    assert_eq!(server.get("/v1/executions?endedTo=x").await.code(), (400, "BadRequest"));
    let browser = Browser::at(&server.base);
    let page = browser.get("/executions?error=E.One&step=pay").await.text;
    assert!(
        page.contains("<i>Error</i> E.One") && page.contains("starbridge list --error E.One --step pay"),
        "{page}"
    );
    assert_eq!(page.matches("name=\"id\"").count(), 1);
    for (action, command) in [
        ("redrive", "starbridge bulk redrive --error E.One --step pay --dry-run"),
        (
            "stop",
            "starbridge bulk stop --with-error E.One --in-step pay --dry-run",
        ),
    ] {
        let path = format!("/bulk/new?action={action}&match=all&error=E.One&step=pay");
        let preview = browser.get(&path).await;
        assert_eq!(preview.status, 200, "{}", preview.text);
        assert!(preview.text.contains(command), "{}", preview.text);
    }
}

#[tokio::test]
async fn iterations_of_a_foreach_are_drawn_as_a_map() {
    let server = serving(Access::default()).await;
    let each = json!([{"type": "foreach", "name": "each", "concurrency": 2,
        "iterationMapping": {"collection": "$.items", "item": "item"},
        "steps": [{"type": "wait", "name": "nap", "duration": 3600}]}]);
    server.flow("f", each).await;
    let begun = server
        .post("/v1/flows/f/executions", json!({"input": {"items": [1, 2, 3]}}))
        .await;
    let at = format!("/executions/{}", begun.body["id"].as_str().unwrap());
    let steps = server.get(&format!("/v1{at}/steps")).await.body;
    let (each, nap) = (&steps["items"][0]["event"], &steps["items"][1]["event"]);
    let browser = Browser::at(&server.base);
    let page = browser.get(&format!("{at}?visit={each}")).await.text;
    // The map stands before the data of the visit.
    let map_of = |page: &str| {
        let map = page.split_once("id=\"map\"").unwrap().1;
        map.split_once("id=\"visit\"").unwrap().0.to_owned()
    };
    let map = map_of(&page);
    assert_eq!(
        (
            map.matches("class=\"b-run\"").count(),
            map.matches("class=\"rail\"").count()
        ),
        (2, 1),
        "{map}"
    );
    let some = browser.get(&format!("{at}?visit={each}&items=notBegun")).await.text;
    assert_eq!(map_of(&some).matches("<tr>").count(), 2);
    assert!(
        !browser
            .get(&format!("{at}?visit={nap}"))
            .await
            .text
            .contains("id=\"map\"")
    );
    assert_eq!(browser.get(&format!("{at}?visit={each}&items=odd")).await.status, 400);
}

#[tokio::test]
async fn version_is_checked_compared_and_put_by_pages() {
    let server = serving(Access::default()).await;
    server.flow("f", json!([{"type": "pass", "name": "first"}])).await;
    let browser = Browser::at(&server.base);
    let page = browser.get("/flows/f").await;
    assert!(page.text.contains("action=\"/flows/f/check\""), "{}", page.text);
    let forgery = page.forgery();
    let text = "version: v1\r\ntype: flow\r\nname: f\r\nsteps:\r\n  - type: pass\r\n    name: <second>\r\n";
    let odd = text.replace("type: pass", "type: odd");
    let wrong = [("forgery", forgery.as_str()), ("definition", odd.as_str())];
    let checked = browser.send("/flows/f/check", &wrong).await;
    assert_eq!(checked.status, 200, "{}", checked.text);
    assert!(
        checked.text.contains("<b>FDL") && !checked.text.contains("formaction"),
        "{}",
        checked.text
    );
    assert!(checked.text.contains("name: &lt;second&gt;"), "{}", checked.text);
    let text = text.replace("<second>", "second");
    let right = [("forgery", forgery.as_str()), ("definition", text.as_str())];
    let checked = browser.send("/flows/f/check", &right).await;
    assert!(
        checked.text.contains("formaction=\"/flows/f/put\"") && checked.text.contains("<mark>+ "),
        "{}",
        checked.text
    );
    assert_eq!(server.get("/v1/flows/f").await.body["version"], 1);
    assert_eq!(browser.send("/flows/f/check", &right[..1]).await.status, 400);
    let put = browser.send("/flows/f/put", &right).await;
    assert_eq!(put.leads, "/flows/f?done=put", "{}", put.text);
    assert_eq!(
        server.get("/v1/flows/f?text=true").await.body["text"],
        text.replace("\r\n", "\n")
    );
    let same = browser.send("/flows/f/check", &right).await.text;
    assert!(same.contains("The latest version is the same.") && !same.contains("formaction"));
    let compared = browser.get("/flows/f?version=2&compare=1").await.text;
    assert!(
        compared.contains("id=\"differences\"") && compared.contains("<mark>+   - type: pass</mark>"),
        "{compared}"
    );
    assert_eq!(browser.get("/flows/f?compare=9").await.status, 404);
}

#[tokio::test]
async fn flow_is_paused_limited_and_hidden_by_pages() {
    let server = serving(Access::default()).await;
    server.flow("nap", asleep()).await;
    let browser = Browser::at(&server.base);
    let shown = browser.get("/flows/nap").await;
    let forgery = [("forgery", shown.forgery())];
    let forgery = [(forgery[0].0, forgery[0].1.as_str())];
    assert!(shown.text.contains("action=\"/flows/nap/pause\""), "{}", shown.text);
    let paused = browser.send("/flows/nap/pause", &forgery).await;
    assert_eq!((paused.status, paused.leads.as_str()), (303, "/flows/nap?done=set"));
    assert_eq!(server.get("/v1/flows/nap").await.body["paused"], true);
    let shown = browser.get("/flows/nap").await;
    assert!(shown.text.contains("action=\"/flows/nap/resume\""), "{}", shown.text);
    assert_eq!(browser.send("/flows/nap/resume", &forgery).await.status, 303);
    let limit = |value| [forgery[0], ("maxRunning", value)];
    assert_eq!(browser.send("/flows/nap/limit", &limit("3")).await.status, 303);
    let flow = server.get("/v1/flows/nap").await.body;
    assert_eq!((&flow["paused"], &flow["maxRunning"]), (&json!(false), &json!(3)));
    assert_eq!(browser.send("/flows/nap/limit", &limit("")).await.status, 303);
    assert!(server.get("/v1/flows/nap").await.body["maxRunning"].is_null());
    let refused = browser.send("/flows/nap/limit", &limit("many")).await;
    // The page with the form is one step away.
    assert!(refused.text.contains("href=\"/flows/nap\""), "{}", refused.text);
    assert_eq!(refused.status, 400);
    let hidden = browser.send("/flows/nap/hide", &forgery).await;
    assert_eq!((hidden.status, hidden.leads.as_str()), (303, "/flows?done=hide"));
    assert!(browser.get(&hidden.leads).await.text.contains("It is hidden."));
    assert_eq!(browser.get("/flows/nap").await.status, 404);
}

#[tokio::test]
async fn inbox_leads_to_decisions_and_settings_say_who_one_is() {
    let server = serving(Access::default()).await;
    let approve = json!({"type": "task", "name": "approve", "resourceArn": "http://127.0.0.1:1/", "retry": [],
        "catch": [{"errors": ["FnF.ALL"], "manual": true}]});
    server.flow("ask", json!([approve])).await;
    let begun = server.post("/v1/flows/ask/executions", json!({"name": "ask-1"})).await;
    let id = begun.body["id"].as_str().unwrap();
    let browser = Browser::at(&server.base);
    eventually("a question", || async {
        let inbox = browser.get("/inbox").await.text;
        inbox.contains(&format!("href=\"/inbox?of={id}\"")).then_some(())
    })
    .await;
    let settings = browser.get("/settings").await;
    assert!(
        settings.text.contains("none needed") && settings.text.contains(env!("CARGO_PKG_VERSION")),
        "{}",
        settings.text
    );
}

#[tokio::test]
async fn form_says_which_field_is_no_number_and_events_are_those_of_a_step() {
    let server = serving(Access::default()).await;
    let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}, "price": {"type": "number"}}});
    let steps = json!([{"type": "pass", "name": "first"}, {"type": "pass", "name": "second"}]);
    let flow = json!({"version": "v1", "type": "flow", "inputSchema": schema, "steps": steps});
    assert_eq!(server.put("/v1/flows/order", flow).await.status, 201);
    let browser = Browser::at(&server.base);
    let shown = browser.get("/flows/order").await;
    let forgery = shown.forgery();
    assert!(shown.text.contains("type=\"number\" step=\"1\"") && shown.text.contains("step=\"any\""));
    let form = |field: &'static str, value: &'static str| {
        [
            ("forgery", forgery.as_str()),
            ("form", "fields"),
            ("version", "1"),
            (field, value),
        ]
    };
    for (field, value, said) in [
        ("field.id", "A17", "`id` must be a whole number"),
        ("field.price", "cheap", "`price` must be a number"),
    ] {
        let refused = browser.send("/flows/order/start", &form(field, value)).await;
        assert!(refused.status == 400 && refused.text.contains(said), "{}", refused.text);
    }
    let begun = browser.send("/flows/order/start", &form("field.id", "17")).await;
    assert_eq!(begun.status, 303, "{}", begun.text);
    let (page, _) = begun.leads.split_once('?').unwrap();
    let wait = format!("/v1{page}?wait=10");
    assert_eq!(server.get(&wait).await.body["status"], "Succeeded");
    let events = browser
        .get(&format!("{page}?tab=events&step=second&type=StepEntered"))
        .await;
    assert!(
        events.text.contains("<td>StepEntered</td><td>second</td>"),
        "{}",
        events.text
    );
    assert!(!events.text.contains("<td>first</td>") && !events.text.contains("<td>StepSucceeded</td>"));
}
