//! What a server tells of its program and its configuration.

use crate::access::access;
use crate::harness::{Answer, Running, sent};
use reqwest::Method;
use serde_json::json;
use starbridge_server::{Access, Built, ServerSettings};

fn settings(access: Access) -> ServerSettings {
    ServerSettings {
        access,
        built: Built {
            features: vec!["redis"],
            config: Some("[server]\nlisten = \"<here>\"\n".to_owned()),
        },
        console: true,
        ..ServerSettings::default()
    }
}

#[tokio::test]
pub async fn configuration_is_told_to_who_may_do_everything() {
    let server = Running::serving(settings(access()), |_| {}).await;
    for (token, status) in [("token-operate", 403), ("token-admin", 200)] {
        let request = server.request(Method::GET, "/v1/config").bearer_auth(token);
        let answer = Answer::of(sent(request).await).await;
        assert_eq!(answer.status, status, "{answer:?}");
        if status == 200 {
            assert_eq!(answer.body["features"], json!(["redis"]));
            assert_eq!(answer.body["version"], env!("CARGO_PKG_VERSION"));
            assert_eq!(answer.body["config"], "[server]\nlisten = \"<here>\"\n");
        }
    }
    let bare = Running::start().await.get("/v1/config").await.body;
    assert!(bare["config"].is_null() && bare["target"].is_string(), "{bare}");
}

#[cfg(feature = "console")]
#[tokio::test]
async fn settings_show_the_configuration_and_own_scopes() {
    use crate::console::Browser;
    let server = Running::serving(settings(access()), |_| {}).await;
    let mut browser = Browser::at(&server.base);
    browser.sign_in("token-admin").await;
    let page = browser.get("/settings").await.text;
    assert!(
        page.contains("listen = &quot;&lt;here&gt;&quot;") && page.contains(": redis</td>"),
        "{page}"
    );
    let mut browser = Browser::at(&server.base);
    browser.sign_in("token-read").await;
    let page = browser.get("/settings").await.text;
    assert!(
        page.contains("with the scope admin") && page.contains("<td>read</td>"),
        "{page}"
    );
    assert!(!page.contains("&lt;here&gt;"));
}
