use super::*;
use starbridge_fdl::FAULT_NAMES;
use starbridge_flow::graph::Pattern;
use starbridge_ports::{CallIds, ResourceFamily};

fn request(input: &str, params: Option<&str>) -> Request {
    let input: Value = serde_json::from_str(input).unwrap();
    Request {
        target: "sqs:q".to_owned(),
        via: ResourceFamily::Direct,
        pattern: Pattern::RequestResponse,
        input,
        params: params.map(|params| serde_json::from_str(params).unwrap()),
        keys: CallIds {
            idempotency: "e/3".to_owned(),
            step_visit: "e/2".to_owned(),
            execution: "e".to_owned(),
            flow: "f".to_owned(),
            step: "s".to_owned(),
            traceparent: None,
        },
        attempt: 1,
        rollback: false,
        polling: false,
        follow: false,
        timeout_at: None,
        answer_limit: 1000,
    }
}

fn composed(queue: &str, request: &Request) -> Result<Message, (String, String)> {
    let queue = Queue::parse(queue).unwrap();
    compose(request, &queue).map_err(|outcome| match outcome {
        Outcome::NotSent { error, cause } => (FAULT_NAMES.name(&error).to_string(), cause),
        other => panic!("{other:?}"),
    })
}

fn refusal(queue: &str, params: &str) -> (String, String) {
    composed(queue, &request("{}", Some(params))).unwrap_err()
}

fn names(message: &Message) -> Vec<&str> {
    message
        .attributes
        .iter()
        .map(|attribute| attribute.name.as_str())
        .collect()
}

#[test]
fn without_parameters_the_input_is_the_body() {
    let message = composed("q", &request(r#"{"a": "é"}"#, None)).unwrap();
    assert_eq!(message.body, r#"{"a":"é"}"#);
    assert_eq!(
        (message.delay, &message.group, &message.deduplication),
        (None, &None, &None)
    );
    let expected: Vec<Attribute> = [
        ("Idempotency-Key", "String", "e/3"),
        ("Starbridge-Type", "String", "normal"),
        ("Starbridge-Step-Key", "String", "e/2"),
        ("Starbridge-Execution", "String", "e"),
        ("Starbridge-Attempt", "Number", "1"),
        ("Starbridge-Flow", "String", "f"),
        ("Starbridge-Step", "String", "s"),
    ]
    .iter()
    .map(|(name, data_type, text)| Attribute::text(name, data_type, *text))
    .collect();
    assert_eq!(message.attributes, expected);
}

#[test]
fn parameters_are_the_body_or_say_what_it_is() {
    let body = |params: &str| composed("q", &request(r#"{"a": 1}"#, Some(params))).unwrap().body;
    assert_eq!(body(r#"{"x": [1]}"#), r#"{"x":[1]}"#);
    assert_eq!(body(r#"{"MessageBody": "as it is"}"#), "as it is");
    assert_eq!(body(r#"{"MessageBody": {"b": 2}}"#), r#"{"b":2}"#);
    assert_eq!(body(r#"{"DelaySeconds": 1}"#), r#"{"a":1}"#);
    let (error, cause) = refusal("q", r#"{"MessageBody": "x", "Delay": 1}"#);
    assert_eq!(error, "FnF.NoSuchResource");
    assert!(
        cause.starts_with("`serviceParams` has `Delay` beside what a queue knows"),
        "{cause}"
    );
    assert!(
        refusal("q", r#"{"MessageBody": "x", "Priority": 1}"#)
            .1
            .contains("`Priority`")
    );
    let mut mapped = request("{}", Some(r#"{"MessageBody": "x", "Priority": 1}"#));
    mapped.via = ResourceFamily::MessageService;
    assert_eq!(composed("q", &mapped).unwrap().body, "x");
}

#[test]
fn delays_are_checked() {
    let delay = |queue: &str, seconds: &str| {
        let params = format!(r#"{{"DelaySeconds": {seconds}}}"#);
        composed(queue, &request("{}", Some(&params)))
            .map(|message| message.delay)
            .map_err(|(error, _)| error)
    };
    assert_eq!(delay("q", "900"), Ok(Some(900)));
    assert_eq!(delay("q", "\"5\""), Ok(Some(5)));
    assert_eq!(delay("q", "0"), Ok(None));
    assert_eq!(delay("q.fifo", "0"), Ok(None));
    for (queue, seconds) in [("q", "901"), ("q", "-1"), ("q", "1.5"), ("q", "[]"), ("q.fifo", "1")] {
        let expected = Err("SQS.InvalidParameterValue".to_owned());
        assert_eq!(delay(queue, seconds), expected, "{queue} {seconds}");
    }
}

#[test]
fn fifo_queues_get_group_and_deduplication() {
    let ids = |request: &Request| {
        let message = composed("q.fifo", request).unwrap();
        (message.group.unwrap(), message.deduplication.unwrap())
    };
    let of = |group: &str, deduplication: &str| (group.to_owned(), deduplication.to_owned());
    assert_eq!(ids(&request("{}", None)), of("e", "e/3"));
    let params = r#"{"idempotency": "step"}"#;
    assert_eq!(ids(&request("{}", Some(params))), of("e", "e/2"));
    let params = r#"{"MessageGroupId": 7, "MessageDeduplicationId": "d"}"#;
    assert_eq!(ids(&request("{}", Some(params))), of("7", "d"));
    let mut odd = request("{}", None);
    odd.keys.execution = "ex ü".to_owned();
    odd.keys.idempotency = "k".repeat(129);
    let (group, deduplication) = ids(&odd);
    assert!(is_id(&group) && is_id(&deduplication));
    assert_eq!((group.len(), deduplication.len()), (64, 64));
    for bad in [r#"{"MessageGroupId": ""}"#, r#"{"MessageDeduplicationId": "a b"}"#] {
        assert_eq!(refusal("q.fifo", bad).0, "SQS.InvalidParameterValue", "{bad}");
    }
}

#[test]
fn the_flows_attributes_come_first_and_ours_give_way() {
    let with = |count: usize| {
        let attributes: Vec<String> = (0..count).map(|n| format!(r#""a{n}": "x""#)).collect();
        let params = format!(r#"{{"MessageAttributes": {{{}}}}}"#, attributes.join(","));
        composed("q", &request("{}", Some(&params)))
    };
    assert_eq!(names(&with(3).unwrap()).len(), 10);
    let five = with(5).unwrap();
    assert_eq!(
        names(&five)[5..],
        [
            "Idempotency-Key",
            "Starbridge-Type",
            "Starbridge-Step-Key",
            "Starbridge-Execution",
            "Starbridge-Attempt"
        ]
    );
    assert_eq!(names(&with(8).unwrap())[8..], ["Idempotency-Key", "Starbridge-Type"]);
    let (error, cause) = with(9).unwrap_err();
    assert_eq!(error, "FnF.NoSuchResource");
    assert_eq!(
        cause,
        "`MessageAttributes` has 9 attributes; a message has 10, of which 2 are taken"
    );
}

#[test]
fn attributes_are_written_short_or_as_the_service_has_them() {
    let params = r#"{"MessageAttributes": {
        "s": "é", "n": 1.5, "b": true, "none": null, "Idempotency-Key": "mine",
        "t": {"DataType": "String.json", "StringValue": "{}"}, "raw": {"DataType": "Binary", "BinaryValue": "AAE="}}}"#;
    let message = composed("q", &request("{}", Some(params))).unwrap();
    let raw = Attribute {
        name: "raw".to_owned(),
        data_type: "Binary".to_owned(),
        content: Content::Bytes(vec![0, 1]),
    };
    let expected = [
        Attribute::text("s", "String", "é"),
        Attribute::text("n", "Number", "1.5"),
        Attribute::text("b", "String", "true"),
        Attribute::text("Idempotency-Key", "String", "mine"),
        Attribute::text("t", "String.json", "{}"),
        raw,
        Attribute::text("Starbridge-Type", "String", "normal"),
    ];
    assert_eq!(message.attributes[..7], expected);
    for bad in [
        r#"{"AWS.x": 1}"#,
        r#"{"a b": 1}"#,
        r#"{"a": []}"#,
        r#"{"a": {"StringValue": "x"}}"#,
        r#"{"a": {"DataType": "Binary", "BinaryValue": "?"}}"#,
        r#"{"a": {"DataType": "Map", "StringValue": "x"}}"#,
        r#"{"Starbridge-Type": "x"}"#,
    ] {
        let params = format!(r#"{{"MessageAttributes": {bad}}}"#);
        assert_eq!(refusal("q", &params).0, "FnF.NoSuchResource", "{bad}");
    }
}

#[test]
fn what_no_message_can_have_is_refused() {
    for (params, error) in [
        (r#"{"MessageBody": ""}"#, "SQS.InvalidMessageContents"),
        (r#"{"MessageBody": "a\u0001"}"#, "SQS.InvalidMessageContents"),
        (r#"{"MessageBody": "\uFFFE"}"#, "SQS.InvalidMessageContents"),
        (r#"{"MessageAttributes": {"a": ""}}"#, "SQS.InvalidMessageContents"),
    ] {
        assert_eq!(refusal("q", params).0, error, "{params}");
    }
    // In JSON they are escaped.
    assert!(composed("q", &request(r#"{"a": "\u0001"}"#, None)).is_ok());
    let mut strange = request("{}", None);
    strange.keys.step = "a\u{1}b".to_owned();
    let message = composed("q", &strange).unwrap();
    assert_eq!(
        message.attributes.last(),
        Some(&Attribute::text("Starbridge-Step", "String", "a\u{FFFD}b"))
    );
}

#[test]
fn a_message_may_have_a_mebibyte_with_its_attributes() {
    let of = |bytes: usize| {
        let params = format!(r#"{{"MessageBody": "{}"}}"#, "x".repeat(bytes));
        composed("q", &request("{}", Some(&params)))
    };
    let rest = of(1).unwrap().bytes() - 1;
    assert_eq!(of(MESSAGE_BYTES - rest).unwrap().bytes(), MESSAGE_BYTES);
    let (error, cause) = of(MESSAGE_BYTES - rest + 1).unwrap_err();
    assert_eq!(error, "SQS.MessageTooLarge");
    assert_eq!(
        cause,
        "queue `q`: the message has 1048577 bytes with its attributes, more than the 1048576 it may have"
    );
}
