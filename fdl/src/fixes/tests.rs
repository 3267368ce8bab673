use super::*;

fn fixed(name: &str, text: &str) -> FixedText {
    apply_fixes(Source::new(name, text), &Limits::default())
}

/// Texts that must stay unchanged, because only people know their meaning.
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
    // Another name is equally near.
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
    // These words and versions may mean something else in another language.
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

/// Texts with one mistake, each with its fixed form.
const FIXED: &[(&str, &str, &str)] = &[
    // Whole seconds are required, so fractions are not cut off.
    (
        "a.json",
        r#"{"version":"v1","type":"flow","steps":[{"type":"task","name":"a","resourceArn":"queue:q","timeoutSeconds":"1500ms"}]}"#,
        r#"{"version":"v1","type":"flow","steps":[{"type":"task","name":"a","resourceArn":"queue:q","timeoutSeconds":2}]}"#,
    ),
    (
        "a.json",
        r#"{"version":"v1","type":"flow","steps":[{"type":"wait","name":"a","duration":"500ms"}]}"#,
        r#"{"version":"v1","type":"flow","steps":[{"type":"wait","name":"a","duration":0.5}]}"#,
    ),
    // Branches and choices by name.
    (
        "a.json",
        r#"{"version":"v1","type":"flow","steps":[{"type":"parallel","name":"p","branches":{"l": {"steps":[{"type":"pass","name":"a"}]}, "r": [{"type":"pass","name":"b"}]}}]}"#,
        r#"{"version":"v1","type":"flow","steps":[{"type":"parallel","name":"p","branches":[{"name": "l", "steps":[{"type":"pass","name":"a"}]}, {"name": "r", "steps": [{"type":"pass","name":"b"}]}]}]}"#,
    ),
    (
        "a.json",
        r#"{"version":"v1","type":"flow","steps":[{"type":"choice","name":"c","choices":{"$.a > 1": "z", "$.a": {"goto": "z"}}},{"type":"pass","name":"y"},{"type":"pass","name":"z"}]}"#,
        r#"{"version":"v1","type":"flow","steps":[{"type":"choice","name":"c","choices":[{"condition": "$.a > 1", "goto": "z"}, {"condition": "$.a", "goto": "z"}]},{"type":"pass","name":"y"},{"type":"pass","name":"z"}]}"#,
    ),
    // `type` comes after `version`, in lines that end as the others do.
    (
        "a.json",
        "{\n  \"version\": \"v1\",\n  \"steps\": [{\"type\": \"pass\", \"name\": \"a\"}]\n}\n",
        "{\n  \"version\": \"v1\",\n  \"type\": \"flow\",\n  \"steps\": [{\"type\": \"pass\", \"name\": \"a\"}]\n}\n",
    ),
    (
        "a.yaml",
        "version: v1 # ours\r\nsteps:\r\n  - type: pass\r\n    name: a\r\n",
        "version: v1 # ours\r\ntype: flow\r\nsteps:\r\n  - type: pass\r\n    name: a\r\n",
    ),
    (
        "a.yaml",
        "steps: [{type: pass, name: a}]\nversion: v1",
        "steps: [{type: pass, name: a}]\nversion: v1\ntype: flow",
    ),
    (
        "a.yaml",
        "type: flow\r\nsteps: [{type: pass, name: a}]\r\n",
        "version: v1\r\ntype: flow\r\nsteps: [{type: pass, name: a}]\r\n",
    ),
];

#[test]
fn what_is_meant_is_written_as_it_should_be() {
    for (name, before, after) in FIXED {
        let fixed = fixed(name, before);
        assert_eq!(fixed.source.text(), *after);
        assert_eq!(errors(&fixed.checked), 0, "{after}");
    }
}
