use super::*;
use crate::expression::sample::{DATA, context, json, scope};
use crate::graph::Root;

#[test]
fn paths_start_at_a_root() {
    for (text, is_path) in [
        ("$input", true),
        ("$local", true),
        ("$context", true),
        ("$input.a", true),
        ("$local[0]", true),
        ("$input.", true),
        ("$inputs", false),
        ("$input a", false),
        ("$input-a", false),
        (" $input", false),
        ("$", false),
        ("$.a", false),
        ("$locals.a", false),
        ("input.a", false),
        ("", false),
    ] {
        assert_eq!(Path::is_path(text), is_path, "{text}");
    }
    let (input, local) = (json(DATA), json("[{\"p\": [1, 2]}, {\"p\": [3]}, {}]"));
    let context = context();
    let scope = scope(Root::from(&input), Root::from(&local), &context);
    for (text, expected) in [
        ("$input.a.b.c", "1"),
        ("$input.books[?@.price > $.n].title", r#"["W","L"]"#),
        ("$input.nothing", "-"),
        ("$local[1].p", "[3]"),
        ("$local[*].p[*]", "[1,2,3]"),
        ("$local", r#"[{"p":[1,2]},{"p":[3]},{}]"#),
        ("$local.a", "-"),
        ("$context.flow.name", r#""order""#),
        ("$context['step']['visit']", "2"),
        ("$context.execution.events[-1].id", "2"),
        ("$context.execution.events[*].id", "[1,2]"),
        ("$context.execution.events[?@.id == $.step.visit].id", "[2]"),
        ("$context.nothing", "-"),
        ("$context.nothing.*", "[]"),
        ("$context.error", "-"),
        ("$context..visit", "[2]"),
        (
            "$context",
            r#"{"flow":{"name":"order"},"execution":{"id":"e1","events":[{"id":1},{"id":2}]},"step":{"visit":2}}"#,
        ),
    ] {
        let path = Path::parse(text).unwrap();
        let found = path
            .find(&scope)
            .unwrap()
            .map_or_else(|| "-".to_owned(), |value| value.to_json());
        assert_eq!(found, expected, "{text}");
        assert_eq!(path.text(), text);
    }
    let error = Path::parse("$input.a..").unwrap_err();
    assert_eq!((error.offset, error.len), (10, 0));
    let error = Path::parse("$inputs.a").unwrap_err();
    assert_eq!((error.offset, error.len), (0, 7));
}
