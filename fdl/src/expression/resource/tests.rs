use super::*;

fn filled(resource: &str, input: &str) -> Result<String, String> {
    let name = ResourceName::compile(resource).unwrap().unwrap();
    let input: Value = serde_json::from_str(input).unwrap();
    let made = name.fill(Root::from(&input), &Budget::unlimited());
    made.map(|text| text.to_string()).map_err(|fault| {
        assert_eq!(fault.kind, FaultKind::Input);
        fault.cause
    })
}

fn escaped(id: &str) -> Result<String, String> {
    let input = serde_json::json!({ "id": id }).to_string();
    filled("http://host:1/orders/{$input.id}/lines?all=1", &input)
}

#[test]
fn names_are_filled_in() {
    assert_eq!(
        filled("queue:agent-{$input.unit}", r#"{"unit":7}"#).unwrap(),
        "queue:agent-7"
    );
    assert_eq!(
        filled("queue:{$input.a.b}", r#"{"a":{"b":"x_Y"}}"#).unwrap(),
        "queue:x_Y"
    );
    assert_eq!(filled("sqs:{$input.q}", r#"{"q":"a.fifo"}"#).unwrap(), "sqs:a.fifo");
    assert_eq!(
        filled("redis:app:{$input.q}", r#"{"q":"a.b"}"#).unwrap(),
        "redis:app:a.b"
    );
    assert_eq!(
        filled("flow:{$input.f}@{$input.v}", r#"{"f":"a","v":3}"#).unwrap(),
        "flow:a@3"
    );
}

#[test]
fn what_is_no_name_of_its_family_is_refused() {
    for (resource, input) in [
        ("queue:{$input.q}", r#"{"q":"7"}"#),
        ("queue:a{$input.q}", r#"{"q":"a b"}"#),
        ("queue:a{$input.q}", r#"{"q":"."}"#),
        ("queue:a{$input.q}", r#"{"q":""}"#),
        ("queue:a{$input.q}", r#"{"q":null}"#),
        ("queue:a{$input.q}", r#"{"q":{"a":1}}"#),
        ("queue:a{$input.q}", r#"{"q":[1]}"#),
        ("queue:a{$input.q}", r#"{}"#),
        ("sqs:{$input.q}", r#"{"q":"https://sqs.x/1/q"}"#),
        ("sqs:{$input.q}", r#"{"q":"arn:aws:sqs:eu:1:q"}"#),
        ("sqs:{$input.q}", r#"{"q":".fifo"}"#),
        ("redis:a-{$input.q}", r#"{"q":"x:dead"}"#),
        ("flow:{$input.q}", r#"{"q":"a@1"}"#),
        ("flow:{$input.q}", r#"{"q":"$self"}"#),
        ("flow:a@{$input.q}", r#"{"q":"0"}"#),
    ] {
        assert!(filled(resource, input).is_err(), "{resource} {input}");
    }
    let long = format!(r#"{{"q":"{}"}}"#, "a".repeat(200));
    assert!(filled("queue:{$input.q}", &long).unwrap_err().len() < 150);
}

#[test]
fn data_stays_in_its_segment_of_a_path() {
    assert_eq!(escaped("7").unwrap(), "http://host:1/orders/7/lines?all=1");
    assert_eq!(escaped("a/b").unwrap(), "http://host:1/orders/a%2Fb/lines?all=1");
    assert_eq!(escaped("a?b#c").unwrap(), "http://host:1/orders/a%3Fb%23c/lines?all=1");
    assert_eq!(
        escaped("%2e%2e").unwrap(),
        "http://host:1/orders/%252e%252e/lines?all=1"
    );
    assert_eq!(
        escaped("ü @:").unwrap(),
        "http://host:1/orders/%C3%BC%20%40%3A/lines?all=1"
    );
    assert_eq!(
        escaped("a\\b\r\n").unwrap(),
        "http://host:1/orders/a%5Cb%0D%0A/lines?all=1"
    );
    for id in ["", ".", "..", "../admin", "a/../b", "a\\..", "./", "/.."] {
        assert!(escaped(id).is_err(), "{id}");
    }
    let two = r#"{"a":".","b":"."}"#;
    assert!(filled("http://h/{$input.a}{$input.b}/x", two).is_err());
    assert!(filled("http://h/%2e{$input.a}/x", two).is_err());
    assert_eq!(filled("http://h/a.{$input.a}", two).unwrap(), "http://h/a..");
}

#[test]
fn parts_stand_in_names_and_paths_only() {
    let within = |resource: &str| match ResourceName::compile(resource).unwrap_err() {
        NotInResource::Place { offset, len, within } => {
            assert!(resource[offset..offset + len].starts_with("{$") && resource[offset..offset + len].ends_with('}'));
            within
        }
        other => panic!("{other:?}"),
    };
    for host in [
        "http://{$input.h}/x",
        "http://a.{$input.h}:1/x",
        "http://a{$input.h}",
        "https://{$input.h}@b/x",
        "http://a:{$input.p}/x",
        "http://a?{$input.p}/x",
        "http:{$input.p}",
    ] {
        assert_eq!(within(host), "the host", "{host}");
    }
    assert_eq!(within("http://a/b?c={$input.c}"), "the query");
    assert_eq!(within("http://a/b#{$input.c}"), "the query");
    assert_eq!(within("{$input.s}://a/b"), "the scheme");
    assert_eq!(within("{$input.s}"), "the scheme");
    assert_eq!(within("cmd:{$input.c}"), "this resource");
    assert_eq!(within("lambda:{$input.c}"), "this resource");
    assert_eq!(within("acs:mns:{$input.c}"), "this resource");
    for other in ["queue:{$local.a}", "queue:{$context.execution.id}"] {
        assert!(matches!(ResourceName::compile(other), Err(NotInResource::Root { .. })));
    }
    assert!(matches!(
        ResourceName::compile("queue:{$input[*]}"),
        Err(NotInResource::Template(_))
    ));
    assert!(matches!(
        ResourceName::compile("queue:{$input.a"),
        Err(NotInResource::Template(_))
    ));
    assert!(ResourceName::compile("queue:a").unwrap().is_none());
}
