use super::*;
use crate::expression::sample::{Noise, context, json, scope};
use crate::graph::Root;

fn render(text: &str) -> Option<String> {
    let (input, local) = (
        json(r#"{"a": "x", "n": 1.50, "o": {"k": [1, null]}, "}": "brace", "e": ""}"#),
        json("[7]"),
    );
    let context = context();
    Template::parse(text)
        .unwrap_or_else(|error| panic!("{text}: {error:?}"))
        .render(&scope(Root::from(&input), Root::from(&local), &context))
        .unwrap()
}

#[test]
fn parts_are_filled_in() {
    for (text, expected) in [
        ("", Some("")),
        ("plain", Some("plain")),
        ("{$input.a}", Some("x")),
        ("a {$input.a} b {$local[0]} c", Some("a x b 7 c")),
        ("{$input.a}{$input.a}", Some("xx")),
        ("{$input.n}", Some("1.5")),
        ("{$input.o}", Some(r#"{"k":[1,null]}"#)),
        ("{$input.o.k[1]}", Some("null")),
        ("{$input['a']}", Some("x")),
        ("{$input['}']}!", Some("brace!")),
        ("{$input.e}", Some("")),
        ("{$local}", Some("[7]")),
        ("{$context.flow.name}-{$context.step.visit}", Some("order-2")),
        ("{$input.nothing}", None),
        ("a{$input.a}b{$input.nothing}", None),
        // Everything else is text.
        ("{", Some("{")),
        ("}", Some("}")),
        ("{}", Some("{}")),
        ("{{}}", Some("{{}}")),
        ("{{$input.a}}", Some("{x}")),
        ("{ $input.a }", Some("{ $input.a }")),
        ("$input.a", Some("$input.a")),
        ("{$", Some("{$")),
        ("{$.a}", Some("{$.a}")),
        ("{$name}", Some("{$name}")),
        ("${$input.a}", Some("$x")),
        ("ä{$input.a}😀", Some("äx😀")),
        ("{$x}{$input.a}{$y}", Some("{$x}x{$y}")),
    ] {
        assert_eq!(render(text).as_deref(), expected, "{text}");
    }
}

#[test]
fn errors_point_at_their_place() {
    for (text, part, words) in [
        ("a {$input.a", "{$input.a", "no end"),
        ("{$input", "{$input", "no end"),
        ("{$input.}", "}", "after `.`"),
        ("ä {$input.a b}", " ", "expected"),
        ("{$input.a-b}", "-", "expected"),
        ("{$inputs.a}", "s", "expected"),
        ("x{$input.a[*]}", "$input.a[*]", "several"),
        ("{$input..a}", "$input..a", "several"),
        ("{$input[}", "}", "a name in quotes"),
        ("{$input['a}", "'a}", "no end"),
        ("{$local[?@.a=1]}", "=", "`,` or `]`"),
    ] {
        let error = Template::parse(text)
            .map(|template| panic!("{text} was taken as {template:?}"))
            .unwrap_err();
        let said = format!("{} / {}", error.message, error.help.as_deref().unwrap_or_default());
        assert_eq!(
            text.get(error.offset..error.offset + error.len),
            Some(part),
            "{text}: {error:?}"
        );
        assert!(said.contains(words), "{text}: {said}");
    }
}

#[test]
fn paths_are_told_with_their_places() {
    let text = "ä{$input.a} {$x} {$local[0]}";
    let template = Template::parse(text).unwrap();
    let told: Vec<_> = template
        .paths()
        .map(|(offset, path)| (offset, path.text().as_str()))
        .collect();
    assert_eq!(told, [(3, "$input.a"), (19, "$local[0]")]);
    assert!(told.iter().all(|(offset, path)| text[*offset..].starts_with(path)));
    assert_eq!(template.text(), text);
}

#[test]
fn noise_is_answered() {
    let pieces = [
        "{",
        "}",
        "$",
        "{$input",
        "{$input.a}",
        "{$local[0]}",
        ".a",
        "[0]",
        "['",
        "']",
        "[?@",
        "ä",
        "😀",
        " ",
        "x",
        "{$context",
    ];
    let (input, context) = (json(r#"{"a": 1}"#), context());
    let mut noise = Noise(1);
    for _ in 0..20_000 {
        let text: String = (0..noise.below(8)).map(|_| noise.of(&pieces)).collect();
        match Template::parse(&text) {
            Ok(template) => {
                template
                    .render(&scope(Root::from(&input), Root::from(&input), &context))
                    .unwrap();
            }
            Err(error) => assert!(
                text.get(error.offset..error.offset + error.len).is_some(),
                "{text}: {error:?}"
            ),
        }
    }
}
