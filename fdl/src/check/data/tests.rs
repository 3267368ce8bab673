use super::*;
use crate::check::check;
use crate::diagnostics::Code;
use crate::graph::StepId;
use crate::limits::Limits;
use crate::syntax::{Source, parse_within};
use std::fmt::Write;

/// The amount of work for a definition.
fn work(text: &str) -> usize {
    let (source, limits) = (Source::new("flow.json", text), Limits::default());
    let parsed = parse_within(&source, usize::MAX);
    let checker = Checker::new(&source, &limits, parsed.root.as_ref().unwrap());
    let steps: Vec<Step> = (0..checker.outline.steps.len() as u32)
        .map(|id| checker.step(StepId(id)).unwrap())
        .collect();
    checker.check_data_fits(&steps)
}

const SCHEMA: &str = r#"{"type": "object", "properties": {"order": {"type": "object", "properties": {"id": {"type": "string"}}},
    "total": {"type": "number"}, "items": {"type": "array"}, "email": {"type": "string"}}}"#;

/// This many steps that set, read and compare, catch into one handler, and lead forward and back.
fn many(steps: usize) -> String {
    let mut text = format!(r#"{{"version":"v1","type":"flow","inputSchema":{SCHEMA},"steps":["#);
    for n in 0..steps {
        let rest = match n % 4 {
            0 => format!(
                r#""type":"task","resourceArn":"http://localhost/f","outputMappings":[{{"target":"r{n}","source":"$local.a"}}],"catch":[{{"errors":["E"],"goto":"last"}}]"#
            ),
            1 => format!(r#""type":"pass","outputMappings":[{{"target":"s{n}","source":"$input.order"}}]"#),
            2 => format!(
                r#""type":"choice","choices":[{{"condition":"$.total > 1","goto":"step{}"}}]"#,
                n + 2
            ),
            _ if n % 40 == 3 => format!(
                r#""type":"choice","choices":[{{"condition":"$.total > 1","goto":"step{}"}}]"#,
                n - 1
            ),
            _ => r#""type":"pass","outputMappings":[{"target":"all","source":"$input"}]"#.to_owned(),
        };
        let _ = write!(text, r#"{{"name":"step{n}",{rest}}},"#);
    }
    let _ = write!(
        text,
        r#"{{"type":"pass","name":"step{steps}","end":true}},{{"type":"pass","name":"last"}}]}}"#
    );
    text
}

#[test]
fn the_work_grows_with_the_steps_and_has_an_end() {
    let (small, large) = (work(&many(500)), work(&many(4_000)));
    assert!(small > 500, "{small}");
    assert!(large < small * 8 * 2, "{small} for 500 steps, {large} for 4,000");
    assert!(work(&many(9_990)) <= MAX_WORK);
}

/// A schema of this many members, and steps that each misspell one of them.
fn misspelt(steps: usize, members: usize) -> String {
    let members: Vec<String> = (0..members)
        .map(|n| format!(r#""member{n}":{{"type":"number"}}"#))
        .collect();
    let steps: Vec<String> = (0..steps)
        .map(|n| {
            let source = format!("$input.membr{}", n % 100);
            format!(r#"{{"type":"pass","name":"s{n}","outputMappings":[{{"target":"a","source":"{source}"}}]}}"#)
        })
        .collect();
    format!(
        r#"{{"version":"v1","type":"flow","inputSchema":{{"properties":{{{}}}}},"steps":[{}]}}"#,
        members.join(","),
        steps.join(",")
    )
}

#[test]
fn nothing_is_looked_for_that_is_not_shown() {
    // As many warnings as are shown, and three times that number.
    let (shown, more) = (work(&misspelt(1_000, 120)), work(&misspelt(3_000, 120)));
    assert!(shown > 1_000 * 120, "{shown}");
    assert!(more < shown + 2_000 * 10, "{shown} for 1,000 slips, {more} for 3,000");
}

#[test]
fn a_schema_of_many_members_is_known_as_a_whole() {
    for members in [120, 200, 3_000] {
        let found = check(&Source::new("flow.json", misspelt(2, members)), &Limits::default()).diagnostics;
        let codes: Vec<Code> = found.into_iter().map(|found| found.code).collect();
        assert_eq!(codes, [Code::FindsNothing, Code::FindsNothing], "{members} members");
    }
    // Merged with what a step sets, and used as a whole.
    let names: Vec<String> = (0..300)
        .map(|n| format!(r#""member{n}":{{"type":"number"}}"#))
        .collect();
    let schema = format!(r#"{{"properties":{{{}}}}}"#, names.join(","));
    let steps = r#"[{"type":"pass","name":"set","outputMappings":[{"target":"more","source":1}]},
        {"type":"pass","name":"whole","outputMappings":[{"target":"all","source":"$input"}]},
        {"type":"pass","name":"read","outputMappings":[{"target":"a","source":"$input.all.membr7"}]}]"#;
    assert_eq!(codes(&schema, steps), [Code::FindsNothing]);
}

/// The codes found in these steps, with a schema of the input.
fn codes(schema: &str, steps: &str) -> Vec<Code> {
    let text = format!(r#"{{"version":"v1","type":"flow","inputSchema":{schema},"steps":{steps}}}"#);
    let found = check(&Source::new("flow.json", text), &Limits::default()).diagnostics;
    found.into_iter().map(|found| found.code).collect()
}

fn of_condition(schema: &str, condition: &str) -> Vec<Code> {
    let steps = format!(
        r#"[{{"type":"choice","name":"c","choices":[{{"condition":"{condition}","goto":"d"}}]}},{{"type":"pass","name":"d"}}]"#
    );
    codes(schema, &steps)
}

#[test]
fn a_length_that_is_a_member_is_no_length_of_a_list() {
    let parcel = r#"{"properties":{"parcel":{"properties":{"length":{"type":"number"}}},"list":{"type":"array"}}}"#;
    assert_eq!(of_condition(parcel, "$.parcel.length > 0"), []);
    assert_eq!(of_condition(parcel, "$.list.length > 0"), [Code::NoLength]);
    assert_eq!(of_condition(parcel, "$.list.length > 5"), [Code::FindsNothing]);
    assert_eq!(of_condition("true", "$.parcel.length > 0"), [Code::NoLength]);
    assert_eq!(
        of_condition(
            r#"{"properties":{"parcel":{"properties":{"length":{}}}}}"#,
            "$.parcel.length > 1"
        ),
        []
    );
}

#[test]
fn what_is_only_perhaps_there_is_not_warned_of() {
    for (schema, condition) in [
        ("true", "$.anything > 1"),
        (r#"{"properties":{"a":{}}}"#, "$.customer == 1"),
        (r#"{"properties":{"a":{"type":["string","number"]}}}"#, "$.a > 1"),
        (r#"{"properties":{"a":{"type":"string"}}}"#, "$.a != null"),
        (
            r#"{"properties":{"a":{"enum":["x"]}},"anyOf":[{"properties":{"b":{}}},{}]}"#,
            "$.b == 1",
        ),
        (
            r#"{"properties":{"a":{"type":"object","additionalProperties":{"type":"number"}}}}"#,
            "$.a.x > 1",
        ),
        (
            r#"{"patternProperties":{"^x":{}},"additionalProperties":false}"#,
            "$.x1 == 1",
        ),
        (
            r##"{"properties":{"a":{"$ref":"#/$defs/none"}},"$defs":{"none":true}}"##,
            "$.a.b == 1",
        ),
        (
            r##"{"$defs":{"t":{"properties":{"left":{"$ref":"#/$defs/t"},"value":{"type":"number"}}}},"$ref":"#/$defs/t"}"##,
            "$.left.left.value > 1",
        ),
    ] {
        assert_eq!(of_condition(schema, condition), [], "{schema} {condition}");
    }
}

#[test]
fn what_a_later_step_may_bring_back_is_doubted() {
    let steps = |target: &str| {
        format!(
            r#"[{{"type":"choice","name":"look","choices":[{{"condition":"$.state == 'done'","goto":"end"}}]}},
                {{"type":"pass","name":"set","outputMappings":[{{"target":"{target}","source":"done"}}]}},
                {{"type":"choice","name":"again","choices":[{{"condition":"true","goto":"look"}}]}},
                {{"type":"pass","name":"end"}}]"#
        )
    };
    let closed = r#"{"additionalProperties":false,"properties":{"id":{}}}"#;
    assert_eq!(codes(closed, &steps("state")), []);
    assert_eq!(codes(closed, &steps("stat")), [Code::FindsNothing]);
}

#[test]
fn what_nothing_is_known_of_hides_what_was_known() {
    let after = |condition: &str| {
        format!(
            r#"[{{"type":"task","name":"ask","resourceArn":"http://localhost/ask"}},
                {{"type":"choice","name":"c","choices":[{{"condition":"{condition}","goto":"d"}}]}},{{"type":"pass","name":"d"}}]"#
        )
    };
    let schema = r#"{"properties":{"customer":{"type":"string"},"items":{"type":"array"}}}"#;
    assert_eq!(codes(schema, &after("$.customer > 5")), [], "the task may have set it");
    assert_eq!(codes(schema, &after("$.item == 5")), [], "the task may have an item");
    assert_eq!(codes(schema, &after("$.custmoer == 5")), [Code::FindsNothing]);
    let deep = r#"{"properties":{"customer":{"properties":{"name":{"type":"string"}}}}}"#;
    assert_eq!(codes(deep, &after("$.custoner.name == 'x'")), [Code::FindsNothing]);
    assert_eq!(
        codes(deep, &after("$.custoner.age == 'x'")),
        [],
        "the task may have one"
    );
    assert_eq!(codes(deep, &after("$.name == 'x'")), [], "the task may have a name");
}

#[test]
fn a_level_too_few_or_too_many_is_a_slip_where_the_members_are_named() {
    let address = r#"{"properties":{"city":{"type":"string"}}}"#;
    let schema = format!(r#"{{"properties":{{"customer":{{"properties":{{"address":{address}}}}}}}}}"#);
    for (condition, found) in [
        ("$.customer.address.city == 'x'", vec![]),
        ("$.customer.city == 'x'", vec![Code::FindsNothing]),
        ("$.order.customer.address.city == 'x'", vec![Code::FindsNothing]),
        ("$.customer.home.city == 'x'", vec![]),
        ("$.order.total == 1", vec![]),
    ] {
        assert_eq!(of_condition(&schema, condition), found, "{condition}");
    }
}
