//! Sessions of the console, and what their forms send back.

use crate::access::access;
use crate::console::{Browser, serving};

#[tokio::test]
async fn forged_sessions_are_wrong_tokens() {
    let server = serving(access()).await;
    let forged = format!("9999999999999.{}", "0".repeat(64));
    let mut browser = Browser::at(&server.base);
    browser.cookie = Some(format!("starbridge={forged}"));
    let shown = browser.get("/executions").await;
    assert_eq!(shown.status, 303);
    // The browser forgets it.
    assert!(
        shown
            .cookies
            .iter()
            .any(|set| set.starts_with("starbridge=;") && set.contains("Max-Age=0"))
    );
    let mut last = 0;
    for _ in 0..80 {
        last = browser.get("/executions").await.status;
        if last == 429 {
            break;
        }
    }
    assert_eq!(last, 429);
    // What is over was ours perhaps.
    browser.cookie = Some(format!("starbridge=1.{}", "0".repeat(64)));
    assert_eq!(browser.get("/executions").await.status, 303);
}

#[tokio::test]
async fn forms_of_two_pages_have_different_tokens() {
    let server = serving(access()).await;
    let mut browser = Browser::at(&server.base);
    browser.sign_in("token-admin").await;
    let tokens = [browser.get("/flows").await, browser.get("/flows").await].map(|page| page.forgery());
    let half = tokens[0].len() / 2;
    assert_ne!(tokens[0][..32], tokens[1][..32]);
    assert_ne!(tokens[0][half..], tokens[1][half..]);
    for token in &tokens {
        let fields = [("forgery", token.as_str()), ("language", "zh"), ("to", "/flows")];
        assert_eq!(browser.send("/settings", &fields).await.status, 303);
    }
    let mixed = format!("{}{}", &tokens[0][..32], &tokens[1][32..]);
    assert_eq!(browser.send("/settings", &[("forgery", &mixed)]).await.status, 403);
}
