//! Views, and how far a list was looked at.

#[cfg(feature = "console")]
use crate::console::{Browser, serving};
use crate::harness::{Running, plain_client};
use reqwest::Method;
use serde_json::json;

#[tokio::test]
pub async fn views_are_saved_shown_and_deleted() {
    let server = Running::start().await;
    let filter = json!({"flow": "order", "status": ["Failed", "TimedOut"], "labels": {"shop": "berlin"}});
    let none = server.get("/v1/views").await;
    assert_eq!(none.body, json!({"items": [], "next": null}));
    let put = |name: &'static str, filter: serde_json::Value| {
        let server = &server;
        async move {
            server
                .put(&format!("/v1/views/{name}"), json!({"filter": filter}))
                .await
        }
    };
    let made = put("failed%20in%20Berlin", filter.clone()).await;
    assert_eq!((made.status, &made.body["name"]), (201, &json!("failed in Berlin")));
    let again = put("failed%20in%20Berlin", filter.clone()).await;
    assert_eq!((again.status, &again.body["filter"]), (200, &filter));
    put("all", json!({})).await;
    let all = server.get("/v1/views").await;
    let names: Vec<_> = all.body["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|view| &view["name"])
        .collect();
    assert_eq!(names, [&json!("all"), &json!("failed in Berlin")]);
    let one = server.get("/v1/views/failed%20in%20Berlin").await;
    assert_eq!((&one.body["filter"], &one.body["by"]), (&filter, &json!("local")));
    let audit = server.get("/v1/audit?kind=view&action=put").await;
    assert_eq!(audit.body["items"].as_array().unwrap().len(), 3);
    assert_eq!(server.ask(Method::DELETE, "/v1/views/all", None).await.status, 204);
    for (answer, code) in [
        (
            server.ask(Method::DELETE, "/v1/views/all", None).await,
            (404, "NoSuchView"),
        ),
        (server.get("/v1/views/all").await, (404, "NoSuchView")),
        (put("bad", json!({"odd": 1})).await, (400, "BadRequest")),
        (put("bad", json!({"status": ["Odd"]})).await, (400, "BadRequest")),
        (put("bad", json!({"flow": ""})).await, (400, "BadRequest")),
        (put("%20bad", json!({})).await, (400, "BadRequest")),
        (put("a%0Ab", json!({})).await, (400, "BadRequest")),
        (
            put("bad", json!({"flow": "x".repeat(20_000)})).await,
            (400, "BadRequest"),
        ),
        (server.put("/v1/views/bad", json!({})).await, (400, "BadRequest")),
    ] {
        assert_eq!(answer.code(), code, "{}", answer.body);
    }
}

#[tokio::test]
pub async fn no_more_views_than_fit_are_saved() {
    let server = Running::start().await;
    for number in 0..100 {
        let put = server.put(&format!("/v1/views/v{number}"), json!({"filter": {}})).await;
        assert_eq!(put.status, 201);
    }
    let one_more = server.put("/v1/views/more", json!({"filter": {}})).await;
    assert_eq!(one_more.code(), (409, "TooManyViews"));
    assert_eq!(server.put("/v1/views/v7", json!({"filter": {}})).await.status, 200);
}

#[tokio::test]
async fn whole_page_says_that_nothing_was_left_out() {
    let server = Running::start().await;
    let page = server.get("/v1/executions?error=None").await;
    assert_eq!(page.body, json!({"items": [], "next": null, "looked": null}));
    let page = server.get("/v1/executions?reason=key&status=Running").await;
    assert_eq!(page.body, json!({"items": [], "next": null, "looked": null}));
}

#[cfg(feature = "console")]
#[tokio::test]
async fn view_is_saved_and_deleted_by_forms() {
    let server = serving(starbridge_server::Access::default()).await;
    let browser = Browser::at(&server.base);
    let forgery = browser.get("/executions?flow=order").await.forgery();
    let fields = [
        ("forgery", forgery.as_str()),
        ("view", "<late> 10 %"),
        ("flow", "order"),
        ("status", "Failed,TimedOut"),
        ("label", "shop:berlin"),
    ];
    let saved = browser.send("/views", &fields).await;
    assert_eq!(saved.status, 303, "{}", saved.text);
    let shown = browser.get(&saved.leads).await;
    assert!(
        shown.text.contains("The view is saved.") && shown.text.contains("&lt;late&gt; 10 %"),
        "{}",
        shown.text
    );
    assert!(shown.text.contains("action=\"/views/delete\""), "{}", shown.text);
    let kept = server.get("/v1/views/%3Clate%3E%2010%20%25").await;
    let filter = json!({"flow": "order", "status": ["Failed", "TimedOut"], "labels": {"shop": "berlin"}});
    assert_eq!(kept.body["filter"], filter);
    let led = browser.get("/executions?view=%3Clate%3E%2010%20%25").await;
    assert_eq!(led.status, 303);
    assert!(
        led.leads.starts_with("/executions?flow=order") && led.leads.contains("label=shop%3Aberlin"),
        "{}",
        led.leads
    );
    assert_eq!(browser.get("/executions?view=none").await.status, 404);
    let deleted = browser.send("/views/delete", &fields[..2]).await;
    assert_eq!(
        (deleted.status, deleted.leads.as_str()),
        (303, "/executions?done=unview")
    );
    for (path, wrong) in [
        ("/views", ("view", " ")),
        ("/views", ("label", "odd")),
        ("/views/delete", ("view", "none")),
    ] {
        let refused = browser.send(path, &[("forgery", forgery.as_str()), wrong]).await;
        assert!(
            refused.status >= 400 && refused.text.contains("This did not work"),
            "{path}: {}",
            refused.status
        );
    }
}

#[cfg(feature = "console")]
#[tokio::test]
async fn people_are_told_by_a_page_that_there_is_none() {
    let server = serving(starbridge_server::Access::default()).await;
    let client = plain_client();
    for (path, accept, is_page) in [
        ("/nothing", "text/html,*/*", true),
        ("/nothing", "*/*", false),
        ("/views", "text/html", true),
        ("/v1/nothing", "text/html", false),
    ] {
        let request = client.get(format!("{}{path}", server.base)).header("accept", accept);
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_client_error(), "{path}");
        assert_eq!(
            answer.headers().contains_key("content-security-policy"),
            is_page,
            "{path} {accept}"
        );
        let text = answer.text().await.unwrap();
        assert_eq!(text.contains("This did not work"), is_page, "{path} {accept}: {text}");
    }
}
