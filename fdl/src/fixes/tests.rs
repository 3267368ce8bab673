use super::*;

fn fixed(name: &str, text: &str) -> FixedText {
    apply_fixes(Source::new(name, text), &Limits::default())
}

/// Texts that must stay as they are, because only people know what they mean.
const LEFT: &[(&str, &str)] = &[
    // A quote is missing.
    (
        "a.json",
        r#"{"version": "v1", "type": "flow", "steps": [{"type": "pass, "name": "a"}]}"#,
    ),
    (
        "a.json",
        r#"{"version":"v1","type":"flow","steps":[{"type":"pass","name":"a,"description":"b"}],}"#,
    ),
    (
        "a.json",
        r#"{"version":"v1","type":"flow","steps":[{"type":pass","name":"a"}],}"#,
    ),
    // A bracket is missing, and may belong elsewhere.
    (
        "a.json",
        r#"{"version":"v1","type":"flow","steps":[{"type":"pass","name":"a"}"#,
    ),
    // Two commas, or a number with a blank in it.
    (
        "a.json",
        r#"{"version":"v1","type":"flow","steps":[{"type":"pass","name":"a","inputMappings":[{"target":"t","source":[1 0]}]}]}"#,
    ),
    // Another name is as near.
    (
        "a.json",
        r#"{"version":"v1","type":"flow","steps":[{"type":"choice","name":"step1","choices":[{"condition":"$.a","goto":"step3"}]},{"type":"pass","name":"step2"}]}"#,
    ),
    // A file of another program.
    ("package.json", r#"{"name": "shop", "version": "1.0.0"}"#),
    // One of the values would be gone, or the comment.
    (
        "a.json",
        r#"{"version":"v1","type":"flow","steps":[{"type":"pass","name":"a","outputMappings":{"a":1,"a":2}}]}"#,
    ),
    (
        "a.json",
        r#"{"version":"v1","type":"flow","steps":[{"type":"pass","name":"a","outputMappings":{/* why */"a":1}}]}"#,
    ),
    // What another language means by these words and versions may be something else.
    (
        "a.json",
        r#"{"version":"v1","type":"flow","steps":[{"type":"terminate","name":"a"}]}"#,
    ),
    (
        "a.json",
        r#"{"version":"v2","type":"flow","steps":[{"type":"pass","name":"a"}]}"#,
    ),
    // `c` has no `next`, so it may be an end.
    (
        "a.json",
        r#"{"version":"v1","type":"flow","steps":[{"type":"pass","name":"a","next":"b"},{"type":"pass","name":"b"},{"type":"pass","name":"c"}]}"#,
    ),
    // The tab may be as wide as the blanks.
    ("a.yaml", "version: v1\ntype: flow\nsteps:\n  - type: pass\n\tname: a\n"),
];

#[test]
fn what_is_not_sure_is_left_as_it_is() {
    for (name, text) in LEFT {
        let fixed = fixed(name, text);
        assert_eq!(fixed.source.text(), *text);
        assert!(errors(&fixed.checked) > 0, "{text}");
    }
}

#[test]
fn comments_stay_and_the_rest_is_fixed_around_them() {
    let text = "{\n  // why\n  \"version\": \"v1\", \"type\": \"flow\",\n  \"steps\": [{\"type\": \"pass\", \"nmae\": \"a\",}]\n}";
    let fixed = fixed("a.json", text);
    assert_eq!(
        fixed.source.text(),
        "{\n  // why\n  \"version\": \"v1\", \"type\": \"flow\",\n  \"steps\": [{\"type\": \"pass\", \"name\": \"a\"}]\n}"
    );
    let codes: Vec<Code> = fixed.checked.diagnostics.iter().map(|found| found.code).collect();
    assert_eq!(codes, [Code::Comment]);
}

#[test]
fn fixes_uncover_further_ones_until_nothing_is_left() {
    let text = r#"{"version": "v1", "type": "flow", "steps": [{"type": "pass", "nmae": "a",},],}"#;
    let fixed = fixed("flow.json", text);
    assert_eq!(
        fixed.source.text(),
        r#"{"version": "v1", "type": "flow", "steps": [{"type": "pass", "name": "a"}]}"#
    );
    assert!(fixed.checked.flow.is_some());
    assert_eq!(fixed.changes.len(), 4);
}

#[test]
fn a_sound_text_stays_as_it_is() {
    let text = "version: v1\ntype: flow\nsteps: [{type: pass, name: a}]\n";
    let fixed = fixed("flow.yaml", text);
    assert_eq!(fixed.source.text(), text);
    assert!(fixed.changes.is_empty());
}

#[test]
fn a_change_that_reaches_further_than_its_place_is_seen() {
    let before = parse_within(&Source::new("a.json", r#"{"a": [1, 2], "b": 3}"#), 1000)
        .root
        .unwrap();
    let place = Span { start: 7, end: 8 };
    for (text, same) in [
        (r#"{"a": [9, 2], "b": 3}"#, true),
        (r#"{"a": [9, 7], "b": 3}"#, false),
        (r#"{"a": [9, 2, 3], "b": 3}"#, false),
        (r#"{"a": [9, 2], "c": 3}"#, false),
        (r#"{"a": [9, 2, {"b": 3}]}"#, false),
    ] {
        let after = parse_within(&Source::new("a.json", text), 1000).root.unwrap();
        assert_eq!(words(&before, &[place]) == words(&after, &[place]), same, "{text}");
    }
}
