use super::*;
use crate::expression::sample::{budget, json, object};
use crate::graph::Root;
use crate::value::Overlay;

fn resolve(params: &str, input: &str) -> String {
    let input = json(input);
    Params::compile(&json(params))
        .unwrap_or_else(|errors| panic!("{params}: {errors:?}"))
        .resolve(Root::from(&input), &budget())
        .unwrap()
        .to_json()
}

#[test]
fn paths_become_what_they_find() {
    let input = r#"{"a":{"b":1},"list":[1,2],"s":"$.a"}"#;
    for (params, expected) in [
        (r#""$""#, input),
        (r#"{"x":"$"}"#, r#"{"x":{"a":{"b":1},"list":[1,2],"s":"$.a"}}"#),
        (r#"{"x":"$.a.b","y":"$['list'][-1]"}"#, r#"{"x":1,"y":2}"#),
        (r#"{"x":{"y":[["$.a"]]}}"#, r#"{"x":{"y":[[{"b":1}]]}}"#),
        (
            r#"{"x":"$.list[*]","y":"$.nothing[*]","z":"$..b"}"#,
            r#"{"x":[1,2],"y":[],"z":[1]}"#,
        ),
        // Nothing found
        (r#"{"x":"$.nothing","y":1}"#, r#"{"y":1}"#),
        (r#"["$.nothing","$.a.b"]"#, "[null,1]"),
        (r#"{"x":["$.nothing"]}"#, r#"{"x":[null]}"#),
        (r#""$.nothing""#, "null"),
        // The result of a path is not searched for paths.
        (r#"{"x":"$.s"}"#, r#"{"x":"$.a"}"#),
        // Constants
        (
            r#"{"x":"$input.a","y":"$a","z":"$$","w":" $.a","v":"a$.b"}"#,
            r#"{"x":"$input.a","y":"$a","z":"$$","w":" $.a","v":"a$.b"}"#,
        ),
        (
            r#"{"$.a":1,"b":[true,null,1.5,""]}"#,
            r#"{"$.a":1,"b":[true,null,1.5,""]}"#,
        ),
        ("{}", "{}"),
        ("5", "5"),
    ] {
        assert_eq!(resolve(params, input), expected, "{params}");
    }
}

#[test]
fn the_whole_of_nothing_and_of_an_overlay() {
    let params = Params::compile(&json(r#"{"x":"$","y":["$"],"z":"$.a"}"#)).unwrap();
    assert_eq!(
        params.resolve(Root::Nothing, &budget()).unwrap(),
        json(r#"{"y":[null]}"#)
    );
    let mut overlay = Overlay::new(object(r#"{"a":1}"#));
    overlay.merge(&object(r#"{"b":2}"#));
    let resolved = params.resolve(Root::Overlay(&overlay), &budget()).unwrap();
    assert_eq!(resolved, json(r#"{"x":{"a":1,"b":2},"y":[{"a":1,"b":2}],"z":1}"#));
}

#[test]
fn constants_are_shared() {
    let value = json(r#"{"deep":{"x":[1,2]},"path":"$.a"}"#);
    let resolved = Params::compile(&value)
        .unwrap()
        .resolve(Root::Nothing, &budget())
        .unwrap();
    let deep = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .get("deep")
            .unwrap()
            .as_object()
            .unwrap()
            .clone()
    };
    assert!(deep(&resolved).same(&deep(&value)));
    let constant = json(r#"{"a":[{"b":1}]}"#);
    let resolved = Params::compile(&constant)
        .unwrap()
        .resolve(Root::Nothing, &budget())
        .unwrap();
    assert!(resolved.as_object().unwrap().same(constant.as_object().unwrap()));
}

#[test]
fn every_wrong_path_is_told() {
    let errors = Params::compile(&json(
        r#"{"a/b":{"~":["ok","$.x..","$.y"]},"c":"$[","d":"$.a-b","e":"$x"}"#,
    ))
    .unwrap_err();
    let told: Vec<_> = errors
        .iter()
        .map(|error| (error.pointer.as_str(), error.error.offset))
        .collect();
    assert_eq!(told, [("/a~1b/~0/1", 5), ("/c", 2), ("/d", 3)]);
    assert_eq!(Params::compile(&json(r#""$.""#)).unwrap_err()[0].pointer, "");
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| (1..depth).fold(json(r#"["$.a"]"#), |inside, _| Value::from(vec![inside]));
    assert!(Params::compile(&nested(MAX_DEPTH)).is_ok());
    assert!(Params::compile(&nested(MAX_DEPTH + 1)).is_err());
}
