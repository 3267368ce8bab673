//! What comes from elsewhere: a page of another port, another name for this machine, and texts that would like to be more than texts.

use crate::browser::Browser;
use crate::server::{Function, Server, flow};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

/// Another server of this machine, whose one page is this. Answers its port.
fn other_page(page: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(&stream);
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                line.clear();
            }
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close",
                page.len()
            );
            let _ = write!(&stream, "{head}\r\n\r\n{page}");
        }
    });
    port
}

/// All that changes something: each route of the API, and each form of the console.
fn routes(id: &str) -> Vec<(String, String)> {
    let document: Value = serde_json::from_str(include_str!("../../../../schemas/openapi.json")).unwrap();
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let methods = methods.as_object().unwrap().keys();
        let methods = methods.filter(|method| ["post", "put", "patch", "delete"].contains(&method.as_str()));
        all.extend(methods.map(|method| (method.to_uppercase(), path.clone())));
    }
    let forms = starbridge_server::page_scopes().into_iter();
    all.extend(
        forms
            .filter(|(method, ..)| *method == "POST")
            .map(|(method, path, _)| (method.to_owned(), path.to_owned())),
    );
    let filled = |path: &str| {
        let parts = path.split('/').map(|part| match part {
            "{id}" if path.contains("/executions/") => id,
            "{name}" if path.contains("/schedules/") => "nightly",
            "{name}" if path.contains("/flows/") => "nap",
            "{queue}" => "packing",
            "{event}" => "2",
            part if part.starts_with('{') => "x",
            part => part,
        });
        parts.collect::<Vec<_>>().join("/")
    };
    all.into_iter().map(|(method, path)| (method, filled(&path))).collect()
}

/// What somebody could have changed.
async fn standing(server: &Server) -> BTreeMap<&'static str, Value> {
    let mut all = BTreeMap::new();
    for path in [
        "/v1/executions?limit=100",
        "/v1/flows",
        "/v1/schedules",
        "/v1/views",
        "/v1/bulk",
        "/v1/audit",
        "/v1/keys",
    ] {
        all.insert(path, server.ask(Method::GET, path, Value::Null).await);
    }
    let queue = server.ask(Method::GET, "/v1/queues/packing", Value::Null).await;
    all.insert("paused", queue["paused"].clone());
    all
}

#[tokio::test]
async fn page_of_another_port_and_a_rebound_name_change_nothing() {
    let (server, browser) = (Server::start(), Browser::start().await);
    let nap = json!([{"type": "wait", "name": "sleep", "duration": 3600}]);
    server.put("nap", flow("nap", nap)).await;
    let pack = json!([{"type": "task", "name": "pack", "resourceArn": "queue:packing"}]);
    server.put("pack", flow("pack", pack)).await;
    server.begin("pack", json!({})).await;
    let nightly = json!({"flow": "nap", "cron": "0 3 1 1 *"});
    server.ask(Method::PUT, "/v1/schedules/nightly", nightly).await;
    let id = server.begin("nap", json!({"name": "n-1"})).await;
    let routes = routes(&id);
    assert!(routes.len() > 60, "{}", routes.len());
    let before = standing(&server).await;
    // It tries each by a form, by fetch as text and as JSON, and by an image, and puts the console into a frame.
    let page = format!(
        "<!doctype html><title>elsewhere</title><body><iframe name=into></iframe><iframe id=frame src='{base}/'></iframe><script>
        const [base, routes] = ['{base}', {routes}];
        const tries = [];
        for (const [method, path] of routes) {{
          const form = document.createElement('form');
          [form.method, form.target, form.action] = ['post', 'into', base + path];
          form.innerHTML = '<input name=action value=stop><input name=match value=all><input name=paused value=true>';
          document.body.append(form);
          form.submit();
          for (const [mode, type] of [['no-cors', 'text/plain'], ['cors', 'application/json']]) {{
            const body = '{{}}';
            tries.push(fetch(base + path, {{ method: mode === 'no-cors' ? 'POST' : method, mode, body, credentials: 'include', headers: {{ 'content-type': type }} }}).then((answer) => answer.type, () => 'failed'));
          }}
          tries.push(new Promise((done) => {{ const image = new Image(); image.onload = () => done('loaded'); image.onerror = () => done('failed'); image.src = base + path; }}));
        }}
        Promise.all(tries).then((all) => {{ document.title = 'tried ' + JSON.stringify([...new Set(all)]); }});
        </script>",
        base = server.base,
        routes = json!(routes),
    );
    let port = other_page(page);
    browser.go(&format!("http://127.0.0.1:{port}/")).await;
    browser
        .until("end of the tries", || async {
            browser.run("return document.title.startsWith('tried')").await == true
        })
        .await;
    // Not one of them could be read, and none was done.
    let tried = browser.run("return document.title").await;
    assert!(
        !tried.as_str().unwrap().contains("loaded") && !tried.as_str().unwrap().contains("cors\""),
        "{tried}"
    );
    assert_eq!(standing(&server).await, before);
    let framed = browser
        .run("try { return document.querySelector('#frame').contentDocument.body.innerText } catch { return 'not ours' }")
        .await;
    assert_eq!(framed, "not ours");
    // Another name that leads to this machine is not this server's.
    let address = server.base.replace("127.0.0.1", "rebound.example");
    browser.go(&address).await;
    let shown = browser.text().await;
    assert!(!shown.contains("n-1") && shown.contains("rebound.example"), "{shown}");
}

const MARKUP: &str = "\"'></script><img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>javascript:window.hacked=1 {{7*7}}";

/// Texts that would like to be markup, a script, or another text, in all fields that take one, are shown as they are.
#[tokio::test]
async fn hostile_texts_are_shown_as_they_are() {
    let (server, browser, function) = (Server::start(), Browser::start().await, Function::broken());
    let odd = format!("{MARKUP}\u{202e}\u{0}\u{7f}");
    let odd = odd.replace('\u{0}', "\u{1}");
    let ship = json!({"type": "task", "name": "ship", "resourceArn": format!("http://{}/odd", function.at), "description": odd,
        "retry": [{"errors": ["FnF.ALL"], "intervalSeconds": 1, "maxAttempts": 1}]});
    let mut order = flow(
        "order",
        json!([{"type": "pass", "name": "check", "description": odd}, ship]),
    );
    order["description"] = json!(odd);
    order["inputSchema"] = json!({"type": "object", "description": odd, "properties": {"item": {"type": "string", "description": odd},
        (odd.as_str()): {"type": "string"}, "size": {"enum": ["s", odd]}}});
    server.put("order", order).await;
    let start = json!({"input": {"item": odd, (odd.as_str()): odd}, "labels": {"shop": MARKUP}});
    let id = server.begin("order", start).await;
    let ended = format!("/v1/executions/{id}?wait=30");
    assert_eq!(server.ask(Method::GET, &ended, Value::Null).await["status"], "Failed");
    let long = format!("{MARKUP}{}", "x".repeat(1 << 17));
    let large = server.begin("order", json!({"input": {"item": long}})).await;
    let view = json!({"filter": {"flow": "order"}});
    server
        .ask(Method::PUT, "/v1/views/%22%27%3E%3Cimg%20src%3Dx%3E", view)
        .await;
    let nightly = json!({"flow": "order", "cron": "0 3 1 1 *", "payload": {"item": odd}});
    server.ask(Method::PUT, "/v1/schedules/nightly", nightly).await;
    let steps = format!("/v1/executions/{id}/steps?step=ship");
    let visit = server.ask(Method::GET, &steps, Value::Null).await["items"][0]["event"].clone();
    let mut pages: Vec<String> = [
        "",
        "?tab=steps",
        "?tab=events",
        "?tab=data",
        "?tab=definition",
        "?tab=raw",
        "?tab=children",
    ]
    .map(|tab| format!("/executions/{id}{tab}"))
    .to_vec();
    pages.extend([
        format!("/executions/{id}?visit={visit}&attempt=2"),
        format!("/flows/order?like={id}"),
        format!("/flows/order?like={large}"),
        format!("/executions/{large}?tab=data"),
        "/".to_owned(),
        "/executions".to_owned(),
        "/schedules/nightly".to_owned(),
        "/audit".to_owned(),
        format!("/find?q={}", "%22%3E%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E"),
        "/executions?flow=%3Cimg%20src%3Dx%3E&label=a%3A%3Cimg%20src%3Dx%3E".to_owned(),
        "/executions/%3Cimg%20src%3Dx%3E".to_owned(),
        "/executions?view=javascript%3Aalert".to_owned(),
    ]);
    let done = "return window.hacked === undefined && document.querySelector('img, main script, [onerror]') === null \
        && ![...document.querySelectorAll('a[href]')].some((link) => new URL(link.getAttribute('href'), location.href).origin !== location.origin) \
        && !/[\\u202a-\\u202e\\u2066-\\u2069\\u0001]/.test(document.body.innerText)";
    for page in &pages {
        browser.go(&format!("{}{page}", server.base)).await;
        assert_eq!(browser.run(done).await, true, "{page}: {}", browser.text().await);
    }
    // They are there, as they were given, with signs for what cannot be seen.
    browser.go(&format!("{}{}", server.base, pages[3])).await;
    let shown = browser.text().await;
    assert!(
        shown.contains("window.hacked=1</script>") && shown.contains("\u{27e8}U+202E\u{27e9}"),
        "{shown}"
    );
    browser.go(&format!("{}{}", server.base, pages[0])).await;
    browser.sees("onerror=\"window.hacked=1\"").await;
}
