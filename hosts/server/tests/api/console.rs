//! The console's pages, as browsers meet them.

use crate::access::access;
use crate::harness::{Running, asleep};
use crate::mailbox::Mailbox;
use reqwest::header::{CONTENT_TYPE, COOKIE, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::json;
use starbridge_server::{Access, Scope, Server, ServerSettings, page_scopes};
use tokio::sync::oneshot;

/// A browser without script: it follows nothing by itself.
pub struct Browser {
    pub base: String,
    client: Client,
    pub cookie: Option<String>,
}

/// What a page answered.
pub struct Shown {
    pub status: u16,
    pub leads: String,
    pub cookies: Vec<String>,
    pub text: String,
}

impl Shown {
    async fn of(response: Response) -> Self {
        let text = |name| {
            let values = response.headers().get_all(name).iter();
            values
                .map(|value| value.to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        Self {
            status: response.status().as_u16(),
            leads: text(LOCATION).join(""),
            cookies: text(SET_COOKIE),
            text: response.text().await.unwrap(),
        }
    }

    /// What the page's forms send back.
    pub fn forgery(&self) -> String {
        let rest = self.text.split_once("name=\"forgery\" value=\"");
        let rest = rest.unwrap_or_else(|| panic!("no form: {}", self.text)).1;
        rest.split('"').next().unwrap().to_owned()
    }
}

impl Browser {
    pub fn at(base: &str) -> Self {
        Self {
            base: base.to_owned(),
            client: Client::builder()
                .tls_certs_only([])
                .redirect(Policy::none())
                .build()
                .unwrap(),
            cookie: None,
        }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        match &self.cookie {
            Some(cookie) => request.header(COOKIE, cookie),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Shown {
        Shown::of(self.request(Method::GET, path).send().await.unwrap()).await
    }

    pub async fn send(&self, path: &str, fields: &[(&str, &str)]) -> Shown {
        let request = self.request(Method::POST, path);
        Shown::of(request.form_of(fields).send().await.unwrap()).await
    }

    /// Signs in with a token.
    pub async fn sign_in(&mut self, token: &str) -> Shown {
        let forgery = self.get("/signin").await.forgery();
        let fields = [("forgery", forgery.as_str()), ("token", token), ("to", "/executions")];
        let shown = self.send("/signin", &fields).await;
        let set = shown.cookies.first().and_then(|cookie| cookie.split(';').next());
        self.cookie = set.map(str::to_owned);
        shown
    }
}

trait FormOf {
    fn form_of(self, fields: &[(&str, &str)]) -> Self;
}

impl FormOf for RequestBuilder {
    fn form_of(self, fields: &[(&str, &str)]) -> Self {
        let pairs = fields
            .iter()
            .map(|(key, value)| format!("{key}={}", starbridge_console::path_part(value)));
        let body = pairs.collect::<Vec<_>>().join("&");
        self.header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body)
    }
}

pub async fn serving(access: Access) -> Running {
    let settings = ServerSettings {
        access,
        console: true,
        ..ServerSettings::default()
    };
    Running::serving(settings, |_| {}).await
}

fn filled(path: &str) -> String {
    let parts = path
        .split('/')
        .map(|part| if part.starts_with('{') { "x" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn each_page_needs_its_scope_and_each_form_its_own_origin() {
    let server = serving(access()).await;
    for token in ["read", "start", "worker", "operate", "admin"] {
        let mut browser = Browser::at(&server.base);
        let stranger = Browser::at(&server.base);
        assert_eq!(browser.sign_in(&format!("token-{token}")).await.status, 303);
        for (method, path, scope) in page_scopes() {
            let method: Method = method.parse().unwrap();
            let is_get = method == Method::GET;
            let at = filled(path);
            let request = browser.request(method.clone(), &at).form_of(&[]);
            let shown = Shown::of(request.send().await.unwrap()).await;
            let Some(scope) = scope else { continue };
            let may = token == scope.as_str() || token == "admin";
            let lacks = shown.text.contains("this needs a token with the scope");
            assert_eq!(
                shown.status == 403 && lacks,
                !may,
                "{token} {method} {path}: {}",
                shown.status
            );
            // A visitor who is not signed in is redirected to the form.
            let request = stranger.request(method.clone(), &at).form_of(&[]);
            let unknown = Shown::of(request.send().await.unwrap()).await;
            assert!(
                unknown.status == 303 && unknown.leads.starts_with("/signin"),
                "{method} {path}"
            );
            if !is_get && may {
                // Without the hidden field, or from a page elsewhere, nothing is done.
                assert_eq!(shown.status, 403, "{path}");
                let foreign = browser.request(method, &at).header("origin", "https://evil.example");
                let foreign = Shown::of(foreign.form_of(&[]).send().await.unwrap()).await;
                assert!(foreign.status == 403 && foreign.text.contains("CrossSite"), "{path}");
            }
        }
    }
}

#[tokio::test]
async fn every_answer_of_a_page_is_guarded() {
    let server = serving(Access::default()).await;
    let browser = Browser::at(&server.base);
    for (method, path, _) in page_scopes() {
        let request = browser.request(method.parse().unwrap(), &filled(path)).form_of(&[]);
        let answer = request.send().await.unwrap();
        let header = |name: &str| {
            answer
                .headers()
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        let policy = header("content-security-policy").unwrap_or_default();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "trusted-types starbridge",
        ] {
            assert!(policy.contains(part), "{method} {path}: {policy}");
        }
        assert_eq!(header("x-content-type-options").as_deref(), Some("nosniff"), "{path}");
        assert_eq!(header("referrer-policy").as_deref(), Some("same-origin"), "{path}");
        assert_eq!(
            header("cross-origin-opener-policy").as_deref(),
            Some("same-origin"),
            "{path}"
        );
        assert_eq!(
            header("cross-origin-resource-policy").as_deref(),
            Some("same-origin"),
            "{path}"
        );
        assert_eq!(header("cache-control").as_deref(), Some("no-store"), "{path}");
    }
    let named = browser.request(Method::GET, "/").header("host", "evil.example");
    assert_eq!(named.send().await.unwrap().status(), 403);
}

#[tokio::test]
async fn session_opens_pages_only_and_ends_with_its_token() {
    let server = serving(access()).await;
    let mut browser = Browser::at(&server.base);
    let wrong = browser.sign_in("guess").await;
    assert!(wrong.status == 401 && wrong.cookies.is_empty());
    assert!(!wrong.text.contains("guess"));

    let begun = browser.sign_in("token-read").await;
    assert_eq!((begun.status, begun.leads.as_str()), (303, "/executions"));
    let cookie = begun.cookies.join("");
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert_eq!(browser.get("/executions").await.status, 200);
    // The API reads no cookie.
    assert_eq!(browser.get("/v1/executions").await.status, 401);

    let good = browser.cookie.clone().unwrap();
    let (name, value) = good.split_once('=').unwrap();
    let (until, mac) = value.split_once('.').unwrap();
    let later = until.parse::<u64>().unwrap() + 1;
    for altered in [
        format!("{later}.{mac}"),
        format!("0.{mac}"),
        until.to_owned(),
        String::new(),
    ] {
        browser.cookie = Some(format!("{name}={altered}"));
        assert_eq!(browser.get("/executions").await.status, 303, "{altered}");
    }

    // The same node behind a server whose configuration no longer has the token.
    let mut others = Access::default();
    others.grant("other", starbridge_server::TokenHash::of("other"), vec![Scope::Admin]);
    let settings = ServerSettings {
        access: others,
        console: true,
        ..ServerSettings::default()
    };
    let second = Server::bind("127.0.0.1:0".parse().unwrap(), settings).await.unwrap();
    let mut elsewhere = Browser::at(&format!("http://{}", second.address().unwrap()));
    let (_end, ended) = oneshot::channel();
    tokio::spawn(second.run(server.node.clone(), ended));
    elsewhere.cookie = Some(good);
    assert_eq!(elsewhere.get("/executions").await.status, 303);
}

#[tokio::test]
async fn cookie_is_for_hosts_with_tls_where_the_browser_came_with_it() {
    let server = serving(access()).await;
    let browser = Browser::at(&server.base);
    let forgery = browser.get("/signin").await.forgery();
    let fields = [
        ("forgery", forgery.as_str()),
        ("token", "token-read"),
        ("to", "//evil.example"),
    ];
    let host = server.base.strip_prefix("http://").unwrap();
    let request = browser
        .request(Method::POST, "/signin")
        .header("origin", format!("https://{host}"));
    let shown = Shown::of(request.form_of(&fields).send().await.unwrap()).await;
    let cookie = shown.cookies.join("");
    assert!(
        cookie.starts_with("__Host-starbridge=") && cookie.contains("; Secure"),
        "{cookie}"
    );
    // It does not redirect to another host.
    assert_eq!(shown.leads, "/");
}

#[tokio::test]
async fn link_from_elsewhere_loads_itself_again() {
    let server = serving(access()).await;
    let request = Browser::at(&server.base).request(Method::GET, "/executions/x?at=3");
    let shown = request.header("sec-fetch-site", "cross-site").send().await.unwrap();
    let shown = Shown::of(shown).await;
    assert_eq!(shown.status, 200);
    assert!(
        shown.text.contains("content=\"0;url=/executions/x?at=3\""),
        "{}",
        shown.text
    );
}

#[tokio::test]
async fn too_many_wrong_tokens_are_turned_away() {
    let server = serving(access()).await;
    let browser = Browser::at(&server.base);
    let forgery = browser.get("/signin").await.forgery();
    let fields = [("forgery", forgery.as_str()), ("token", "guess")];
    let mut last = 0;
    for _ in 0..80 {
        last = browser.send("/signin", &fields).await.status;
        if last != 401 {
            break;
        }
    }
    assert_eq!(last, 429);
}

/// A flow with a form.
async fn put_order(server: &Running) {
    let input_schema = json!({"type": "object", "required": ["id"], "properties": {
        "id": {"type": "integer"}, "note": {"type": "string"}, "express": {"type": "boolean"}}});
    let mut definition = crate::harness::definition(asleep());
    definition["inputSchema"] = input_schema;
    let put = server
        .request(Method::PUT, "/v1/flows/order")
        .bearer_auth("token-admin");
    assert_eq!(put.body(definition.to_string()).send().await.unwrap().status(), 201);
}

#[tokio::test]
async fn execution_is_started_paused_and_stopped_by_forms() {
    let server = serving(access()).await;
    put_order(&server).await;

    let mut browser = Browser::at(&server.base);
    browser.sign_in("token-admin").await;
    let flow = browser.get("/flows/order").await;
    assert!(flow.text.contains("name=\"field.id\"") && flow.text.contains("name=\"field.express\""));
    let forgery = flow.forgery();
    let hostile = "<script>alert(1)</script>\u{202e}";
    let fields = [
        ("forgery", forgery.as_str()),
        ("form", "fields"),
        ("version", "1"),
        ("field.id", "7"),
        ("field.note", hostile),
        ("field.express", "true"),
        ("name", "o-7"),
    ];
    let wrong = browser
        .send("/flows/order/start", &[&fields[..3], &[("field.id", "x")]].concat())
        .await;
    assert_eq!(wrong.status, 400, "{}", wrong.text);
    let begun = browser.send("/flows/order/start", &fields).await;
    assert_eq!(begun.status, 303, "{}", begun.text);
    let at = begun.leads.split('?').next().unwrap().to_owned();

    let shown = browser.get(&begun.leads).await;
    assert_eq!(shown.status, 200, "{}", shown.text);
    assert!(!shown.text.contains("<script>alert") && !shown.text.contains('\u{202e}'));
    let data = browser.get(&format!("{at}?tab=data")).await.text;
    assert!(!data.contains("<script>alert") && !data.contains('\u{202e}'));
    assert!(data.contains("&lt;script&gt;alert(1)&lt;/script&gt;⟨U+202E⟩"), "{data}");
    assert!(shown.text.contains("<svg") && shown.text.contains("class=\"flow\"") && !shown.text.contains("<style"));
    assert_eq!(browser.get(&format!("{at}?at=2")).await.status, 200);
    assert_eq!(browser.get(&format!("{at}?at=99")).await.status, 404);
    assert_eq!(browser.get(&format!("{at}?tab=x")).await.status, 400);

    let cause = [("forgery", forgery.as_str()), ("cause", "wrong price")];
    assert_eq!(browser.send(&format!("{at}/pause"), &cause).await.status, 303);
    let paused = browser.get(&at).await;
    assert!(paused.text.contains("wrong price") && paused.text.contains(&format!("{at}/resume")));
    assert_eq!(browser.send(&format!("{at}/resume"), &cause[..1]).await.status, 303);
    assert_eq!(browser.send(&format!("{at}/stop"), &cause).await.status, 303);
    assert_eq!(browser.send(&format!("{at}/stop"), &cause).await.status, 409);
    let list = browser.get("/executions?status=Stopped&flow=order").await;
    assert!(
        list.text.contains("o-7") && list.text.contains("Stopped"),
        "{}",
        list.text
    );
    assert!(browser.get("/audit").await.text.contains("admin"));

    // A reader sees why a button is disabled.
    let mut reader = Browser::at(&server.base);
    reader.sign_in("token-read").await;
    let seen = reader.get(&at).await;
    assert!(seen.text.contains("aria-disabled=\"true\"") && seen.text.contains("with the scope operate"));
    assert!(!seen.text.contains(&format!("{at}/stop")));
    // A form of one session is not valid in another.
    let forged = [("forgery", forgery.as_str())];
    let mut other = Browser::at(&server.base);
    other.sign_in("token-operate").await;
    assert_eq!(other.send(&format!("{at}/redrive"), &forged).await.status, 403);
}

#[tokio::test]
async fn callback_is_reported_and_a_history_forked_and_saved_by_pages() {
    let server = serving(Access::default()).await;
    let mailbox = Mailbox::open().await;
    server.flow("f", json!([mailbox.ask("ask")])).await;
    let begun = server.post("/v1/flows/f/executions", json!({"name": "a"})).await;
    mailbox.token("a").await;
    let at = format!("/executions/{}", begun.body["id"].as_str().unwrap());
    let browser = Browser::at(&server.base);
    let page = browser.get(&at).await;
    let (_, form) = page.text.split_once(&format!("action=\"{at}/report\"")).unwrap();
    let event = form
        .split_once("name=\"event\" value=\"")
        .unwrap()
        .1
        .split('"')
        .next()
        .unwrap();
    let forgery = page.forgery();
    let fields = [
        ("forgery", forgery.as_str()),
        ("event", event),
        ("action", "succeed"),
        ("output", "{\"approved\": true}"),
    ];
    assert_eq!(browser.send(&format!("{at}/report"), &fields[..2]).await.status, 400);
    let reported = browser.send(&format!("{at}/report"), &fields).await;
    assert_eq!(reported.status, 303, "{}", reported.text);
    let shown = server.get(&format!("/v1{at}?wait=20")).await.body;
    assert_eq!(shown["output"]["approved"], true, "{shown}");
    let second = browser.send(&format!("{at}/report"), &fields).await;
    assert_eq!(second.status, 409, "{}", second.text);
    let audit = server.get("/v1/audit?action=report").await.body;
    assert_eq!(audit["items"][0]["by"], "local");
    assert!(audit["items"][0]["detail"].get("output").is_none());

    let fork = [("forgery", forgery.as_str()), ("event", "1"), ("name", "again")];
    let forked = browser.send(&format!("{at}/fork"), &fork).await;
    assert_eq!(forked.status, 303, "{}", forked.text);
    assert!(forked.leads.ends_with("?done=fork") && !forked.leads.starts_with(&at));
    assert!(browser.get(&forked.leads).await.text.contains("This is the fork."));

    let file = browser.get(&format!("{at}/history.jsonl")).await;
    let lines: Vec<serde_json::Value> = file
        .text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["execution"], begun.body["id"]);
    assert_eq!(lines.last().unwrap()["type"], "ExecutionSucceeded");
    let numbers: Vec<_> = lines[1..].iter().filter_map(|line| line["id"].as_u64()).collect();
    assert_eq!(numbers, (1..=lines.len() as u64 - 1).collect::<Vec<_>>());
    assert_eq!(browser.get("/executions/none/history.jsonl").await.status, 404);
}

#[tokio::test]
async fn page_of_an_execution_opens_what_its_address_names() {
    let server = serving(Access::default()).await;
    server.flow("f", asleep()).await;
    let begun = server.post("/v1/flows/f/executions", json!({})).await;
    let id = begun.body["id"].as_str().unwrap();
    let browser = Browser::at(&server.base);
    let at = format!("/executions/{id}");
    for tab in starbridge_console::TABS {
        let shown = browser.get(&format!("{at}?tab={tab}&at=2&visit=3")).await;
        assert!(matches!(shown.status, 200 | 404), "{tab}: {}", shown.text);
    }
    let steps = server.get(&format!("/v1{at}/steps")).await.body;
    let visit = &steps["items"][0]["event"];
    let line = browser.get(&at).await.text;
    assert!(line.contains(&format!("href=\"{at}?visit={visit}\"")), "{line}");
    assert!(line.contains(&format!("data-topics=\"execution:{id}\"")), "{line}");
    let seen = browser.get(&format!("{at}?visit={visit}")).await.text;
    assert!(seen.contains("id=\"visit\""), "{seen}");
    assert!(line.contains("data-part=\"earlier\" hidden"), "{line}");
    // What is shown at an event does not change any more.
    let earlier = browser.get(&format!("{at}?at=1")).await.text;
    assert!(!earlier.contains("data-topics=\"") && !earlier.contains("data-part=\"earlier\" hidden"));
    for (query, status) in [
        ("?visit=x", 400),
        ("?attempt=-1", 400),
        ("?at=0", 400),
        ("?visit=1", 404),
        ("?odd=1", 400),
    ] {
        assert_eq!(browser.get(&format!("{at}{query}")).await.status, status, "{query}");
    }
}

#[tokio::test]
async fn page_hears_that_there_is_something_new_and_not_what() {
    let server = serving(access()).await;
    let put = server
        .request(Method::PUT, "/v1/flows/f")
        .bearer_auth("token-admin")
        .body(crate::harness::definition(asleep()).to_string());
    assert_eq!(put.send().await.unwrap().status(), 201);
    let start = server
        .request(Method::POST, "/v1/flows/f/executions")
        .bearer_auth("token-admin")
        .body(json!({"input": {"note": "secret-note"}}).to_string());
    let begun: serde_json::Value = serde_json::from_str(&start.send().await.unwrap().text().await.unwrap()).unwrap();
    let at = format!("/executions/{}", begun["id"].as_str().unwrap());
    let stream = format!("/stream?topics=executions,execution:{}", begun["id"].as_str().unwrap());
    let stranger = Browser::at(&server.base).get(&stream).await;
    assert_eq!(stranger.status, 303);
    let mut browser = Browser::at(&server.base);
    browser.sign_in("token-admin").await;
    assert_eq!(browser.get("/stream?topics=odd").await.status, 400);
    let mut heard = browser.request(Method::GET, &stream).send().await.unwrap();
    assert_eq!(heard.status(), 200);
    let mut said = String::new();
    while !said.contains("event: begun") {
        said.push_str(std::str::from_utf8(&heard.chunk().await.unwrap().unwrap()).unwrap());
    }
    let forgery = browser.get("/flows/f").await.forgery();
    assert_eq!(
        browser
            .send(&format!("{at}/stop"), &[("forgery", forgery.as_str())])
            .await
            .status,
        303
    );
    while !said.contains("event: changed") {
        said.push_str(std::str::from_utf8(&heard.chunk().await.unwrap().unwrap()).unwrap());
    }
    assert!(!said.contains("secret-note") && !said.contains("Stopped"), "{said}");
}

#[tokio::test]
async fn pages_and_files_are_compressed_for_who_takes_it() {
    let server = serving(Access::default()).await;
    let browser = Browser::at(&server.base);
    let plain = browser.get("/").await.text;
    let script = plain
        .split('"')
        .find(|part| part.starts_with("/console/live."))
        .unwrap();
    for path in ["/executions", script] {
        let sent = browser
            .request(Method::GET, path)
            .header("accept-encoding", "gzip")
            .send();
        let sent = sent.await.unwrap();
        assert_eq!(sent.headers()["content-encoding"], "gzip", "{path}");
        assert!(sent.headers()["vary"].to_str().unwrap().contains("accept-encoding"));
        let packed = sent.bytes().await.unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(packed.as_ref()), &mut text).unwrap();
        let whole = browser.get(path).await.text;
        // The tokens and numbers of forms are others each time.
        let same = |text: &str| text.replace(|letter: char| letter.is_ascii_hexdigit(), "");
        assert_eq!(same(&text), same(&whole), "{path}");
        assert!(
            packed.len() * 2 < whole.len(),
            "{path}: {} of {}",
            packed.len(),
            whole.len()
        );
    }
    let json = browser
        .request(Method::GET, "/v1/flows")
        .header("accept-encoding", "gzip");
    assert!(!json.send().await.unwrap().headers().contains_key("content-encoding"));
}

#[tokio::test]
async fn pages_are_in_the_language_that_is_chosen() {
    let server = serving(Access::default()).await;
    let mut browser = Browser::at(&server.base);
    let english = browser.get("/executions").await;
    assert!(english.text.contains("lang=\"en\"") && english.text.contains("Nothing has run yet."));
    let accepted = browser
        .request(Method::GET, "/executions")
        .header("accept-language", "zh-CN,zh");
    assert!(
        Shown::of(accepted.send().await.unwrap())
            .await
            .text
            .contains("还没有任何执行")
    );
    let forgery = english.forgery();
    let fields = [("forgery", forgery.as_str()), ("language", "zh"), ("to", "/executions")];
    let set = browser.send("/settings", &fields).await;
    assert_eq!((set.status, set.leads.as_str()), (303, "/executions"));
    browser.cookie = set.cookies[0].split(';').next().map(str::to_owned);
    assert!(browser.get("/executions").await.text.contains("lang=\"zh-Hans\""));
}

#[tokio::test]
async fn without_the_setting_there_are_no_pages() {
    let server = Running::start().await;
    assert_eq!(Browser::at(&server.base).get("/executions").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_forms_are_refused_before_they_are_read() {
    let running = serving(access()).await;
    let stranger = Browser::at(&running.base);
    for path in ["/settings", "/signout", "/signin"] {
        let shown = stranger.send(path, &[("a", &"x".repeat(20 * 1024))]).await;
        assert_eq!(shown.status, 413, "{path}: {}", shown.text);
    }
    let many: Vec<(&str, &str)> = vec![("a", ""); 257];
    assert_eq!(stranger.send("/settings", &many).await.status, 400);
}
