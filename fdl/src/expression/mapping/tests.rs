use super::*;
use crate::expression::sample::{context, json, scope};
use crate::graph::Root;

fn mapping(target: &str, source: MappingSource, required: bool) -> Mapping {
    Mapping {
        target: Text::from(target),
        source,
        required,
    }
}

fn path(text: &str) -> MappingSource {
    MappingSource::Path(Path::parse(text).unwrap())
}

fn template(text: &str) -> MappingSource {
    MappingSource::Template(Template::parse(text).unwrap())
}

fn run(list: Vec<Mapping>, fault: FaultKind) -> Result<Output, Fault> {
    let (input, local) = (json(r#"{"a": {"b": 1}, "list": [1, 2]}"#), json(r#"{"r": "x"}"#));
    let context = context();
    Mappings { list, fault }.run(&scope(Root::from(&input), Root::from(&local), &context))
}

#[test]
fn targets_get_their_values_in_order() {
    let constant = json(r#"{"path": "$input.a", "n": [1, null]}"#);
    let output = run(
        vec![
            mapping("z", path("$input.a"), true),
            mapping("c", MappingSource::Constant(constant), false),
            mapping("t", template("{$local.r}/{$input.a.b}"), true),
            mapping("all", path("$input.list[?@ > 1]"), true),
            mapping("none", path("$input.nothing[*]"), true),
            mapping("visit", path("$context.step.visit"), true),
            mapping("a.b", path("$local"), true),
        ],
        FaultKind::Input,
    );
    let expected =
        r#"{"z":{"b":1},"c":{"path":"$input.a","n":[1,null]},"t":"x/1","all":[2],"none":[],"visit":2,"a.b":{"r":"x"}}"#;
    let output = output.unwrap();
    assert_eq!(output.value.to_json(), expected);
    assert!(output.missing.is_empty());
}

#[test]
fn what_finds_nothing_is_left_out_and_told() {
    let output = run(
        vec![
            mapping("a", path("$input.nothing"), false),
            mapping("b", path("$input.a.b"), false),
            mapping("c", template("{$input.a.b}{$local.nothing}"), false),
        ],
        FaultKind::Input,
    )
    .unwrap();
    assert_eq!(output.value.to_json(), r#"{"b":1}"#);
    assert_eq!(output.missing, [Text::from("a"), Text::from("c")]);
    assert_eq!(run(Vec::new(), FaultKind::Input), Ok(Output::default()));
}

#[test]
fn a_required_target_without_value_is_a_fault() {
    for (source, fault, cause) in [
        (
            path("$input.nothing"),
            FaultKind::Input,
            "the required target `t` has no value: `$input.nothing` finds nothing",
        ),
        (
            template("{$input.a}-{$local.nothing}"),
            FaultKind::Output,
            "the required target `t` has no value: `$local.nothing` in its template finds nothing",
        ),
    ] {
        let found = run(
            vec![mapping("x", path("$input.none"), false), mapping("t", source, true)],
            fault.clone(),
        );
        assert_eq!(found, Err(Fault::new(fault, cause)));
    }
}
