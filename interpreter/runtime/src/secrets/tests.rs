use super::*;

struct Known;

impl Secrets for Known {
    fn get(&self, name: &str) -> Option<Secret> {
        match name {
            "KEY" => Some(Secret::new("canary")),
            "LONG" => Some(Secret::new("canary-and-more")),
            "PIN" => Some(Secret::new("1")),
            "LINES" => Some(Secret::new("first line\nsecond line")),
            "URL" => Some(Secret::new("canary\"x\\y{é")),
            "DIGITS" => Some(Secret::new("12345678")),
            "MANY" => Some(Secret::new("123456789012345678901234")),
            "ONE" => Some(Secret::new("1.00")),
            _ => None,
        }
    }
}

fn rule(flows: &str, secrets: &[&str]) -> (String, Vec<String>) {
    (flows.to_owned(), secrets.iter().map(|&name| name.to_owned()).collect())
}

#[test]
fn secrets_without_rules_withhold_only_the_hosts_own() {
    let uses = SecretUse::new(None, ["OWN".to_owned()]);
    assert!(uses.allows("any", "KEY"));
    assert!(!uses.allows("any", "OWN"));
    let none = SecretUse::new(Some(Vec::new()), ["OWN".to_owned()]);
    assert!(!none.allows("any", "KEY") && !none.allows("any", "OWN"));
}

#[test]
fn secrets_with_rules_are_for_flows_they_name() {
    let rules = vec![
        rule("pay-*", &["STRIPE_*", "OWN"]),
        rule("*", &["*_PUBLIC"]),
        rule("own", &["*"]),
    ];
    let uses = SecretUse::new(Some(rules), ["OWN".to_owned()]);
    for (flow, secret, allowed) in [
        ("pay-now", "STRIPE_KEY", true),
        ("pay-now", "STRIPE", false),
        ("pay", "STRIPE_KEY", false),
        ("pay-now", "KEY_PUBLIC", true),
        ("other", "KEY_PUBLIC", true),
        ("other", "KEY", false),
        ("pay-now", "OWN", true),
        ("own", "OWN", false),
        ("own", "KEY", true),
    ] {
        assert_eq!(uses.allows(flow, secret), allowed, "{flow} {secret}");
    }
}

#[test]
fn secrets_rules_may_have_stars() {
    for (pattern, name, expected) in [
        ("", "", true),
        ("*", "", true),
        ("a*b*c", "a-b-c", true),
        ("a*b*c", "abbc", true),
        ("a*b*c", "acb", false),
        ("a*a", "a", false),
        ("ab", "abc", false),
        ("*b", "ab", true),
    ] {
        assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
    }
}

#[test]
fn redaction_of_secrets_given_out() {
    let vault = Vault::new(Arc::new(Known), SecretUse::default(), TokenKeys::new(vec![[9; 32]]));
    let value: Value = serde_json::from_str(r#"{"a":["x canary y",1],"canary":"1"}"#).unwrap();
    assert_eq!(vault.redacted(&value), None, "nothing was given out");
    for name in ["KEY", "LONG", "PIN"] {
        vault.give("flow", name).unwrap();
    }
    let redacted = vault.redacted(&value).unwrap().to_json();
    assert_eq!(redacted, r#"{"a":["x secret://KEY y",1],"secret://KEY":"1"}"#);
    assert_eq!(
        vault.redacted_text("canary-and-more canary").as_deref(),
        Some("secret://LONG secret://KEY")
    );
    assert_eq!(
        vault.give("flow", "NOBODY"),
        Err("there is no secret `NOBODY`".to_owned())
    );
}

#[test]
fn redaction_of_secrets_cut_or_escaped() {
    let vault = Vault::new(Arc::new(Known), SecretUse::default(), TokenKeys::new(vec![[9; 32]]));
    for name in ["LONG", "LINES", "URL"] {
        vault.give("flow", name).unwrap();
    }
    for (text, expected) in [
        ("begins with `xx canary-and-m…`", "begins with `xx secret://LONG…`"),
        ("it was canary-and", "it was secret://LONG"),
        ("it was canar", "it was canar"),
        ("a first line second line b", "a secret://LINES b"),
        ("a first line\\nsecond line b", "a secret://LINES b"),
        ("at http://a/canary%22x/y%7B%C3%A9", "at http://a/secret://URL"),
        ("at http://a/?q=canary%22x\\y{%C3%A9", "at http://a/?q=secret://URL"),
    ] {
        assert_eq!(vault.redacted_text(text).as_deref().unwrap_or(text), expected);
    }
}

#[test]
fn redaction_of_logs_cut_in_a_secret() {
    let vault = Vault::new(Arc::new(Known), SecretUse::default(), TokenKeys::new(vec![[9; 32]]));
    let text = |log: String| vault.redacted_log(log);
    let padding = "x".repeat(LOG_BYTES);
    assert_eq!(
        text(format!("nary{padding}")),
        format!("nary{padding}"),
        "nothing was given out"
    );
    vault.give("f", "KEY").unwrap();
    vault.give("f", "LONG").unwrap();
    // The rest of a secret is removed, also if a whole one is in it or directly follows it.
    for head in ["nary-and-more", "ore", "canary-and-mor", "ndmorecanary"] {
        let log = text(format!("{head}{padding}"));
        assert!(!log.contains("more") && !log.contains("nary-"), "{head}");
        assert!(log.len() >= padding.len() - "canary-and-more".len());
    }
    let many = "canary-and-more".repeat(LOG_BYTES / 10);
    for cut in 1..16 {
        let log = text(many[cut..].to_owned());
        assert_eq!(log.replace("secret://LONG", ""), "", "{cut}");
    }
    // A text that was not cut stays complete.
    let short = "nary".to_owned();
    assert_eq!(text(short.clone()), short);
}

#[test]
fn redaction_of_numbers() {
    let vault = Vault::new(Arc::new(Known), SecretUse::default(), TokenKeys::new(vec![[9; 32]]));
    for name in ["DIGITS", "MANY", "ONE", "PIN"] {
        vault.give("flow", name).unwrap();
    }
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let value = read(r#"{"x":12345678,"y":[12345678.0,{"z":123456789012345678901234}],"n":[1,1.0,123456789]}"#);
    let redacted = vault.redacted(&value).unwrap().to_json();
    let expected = r#"{"x":"secret://DIGITS","y":["secret://DIGITS",{"z":"secret://MANY"}],"n":[1,1.0,123456789]}"#;
    assert_eq!(redacted, expected);
}

#[test]
fn redaction_of_tokens() {
    let keys = TokenKeys::new(vec![[9; 32]]);
    let vault = Vault::new(Arc::new(Known), SecretUse::default(), keys.clone());
    let token = keys.sign("e", starbridge_machine::EventId(4));
    let other = TokenKeys::new(vec![[8; 32]]).sign("e", starbridge_machine::EventId(4));
    let value: Value = serde_json::from_str(&format!(r#"{{"a":["x{token}"],"b":" {token}.","c":"{other}"}}"#)).unwrap();
    let redacted = vault.redacted(&value).unwrap().to_json();
    let expected = format!(r#"{{"a":["xtask-token:e/4"],"b":" task-token:e/4.","c":"{other}"}}"#);
    assert_eq!(redacted, expected);
    assert_eq!(vault.redacted(&other.into()), None);
}

#[test]
fn redaction_of_tokens_cut_at_either_end() {
    let keys = TokenKeys::new(vec![[9; 32]]);
    let vault = Vault::new(Arc::new(Known), SecretUse::default(), keys.clone());
    let token = keys.sign("execution", starbridge_machine::EventId(4));
    let mac = token.split_once('.').unwrap().1;
    // What is missing of the body is known, and few digits of the signature can be guessed.
    for cut in 0..=token.len() - 52 {
        let rest = format!("{}\" was the token", &token[cut..]);
        let long = format!("{}\n{}", &token[cut..], "x".repeat(LOG_BYTES));
        for shown in [
            vault.redacted_log(rest.clone()),
            vault.redacted_cause(rest),
            vault.redacted_log(long),
        ] {
            assert!(!shown.contains(&mac[12..]), "{cut}: {shown}");
        }
    }
    for cut in 1..=12 {
        let text = format!("token {}", &token[..token.len() - cut]);
        let shown = vault.redacted_text(&text);
        assert_eq!(shown.as_deref(), Some("token task-token:execution/4"), "{cut}");
    }
    // Whoever has less of the signature has nothing. Other hashes stay.
    for text in [
        &token[..token.len() - 13],
        &format!("sha256 {mac}"),
        &format!("{} a commit", &mac[..40]),
    ] {
        assert_eq!(vault.redacted_log(text.to_owned()), text);
        assert_eq!(vault.redacted_cause(text.to_owned()), text);
    }
}
