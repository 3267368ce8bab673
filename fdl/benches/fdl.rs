//! The language: reading texts and checking definitions.

#[allow(dead_code, reason = "the machine's benchmarks use all of it")]
#[path = "figures/mod.rs"]
mod figures;

use figures::{Figures, Unit};
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::{Source, parse_within};
use std::fmt::Write;

/// A definition with this many steps of mixed types, each with data mappings.
fn definition(steps: usize) -> String {
    let mut text = String::from(r#"{"version":"v1","type":"flow","steps":["#);
    for n in 0..steps {
        let comma = if n == 0 { "" } else { "," };
        let rest = match n % 4 {
            0 => r#""type":"task","resourceArn":"http://localhost/f","retry":[{"errors":["E"],"maxAttempts":2}]"#,
            1 => r#""type":"pass","outputMappings":[{"target":"a","source":"$input.b[0].c"}]"#,
            2 => r#""type":"wait","duration":"$.seconds""#,
            _ => r#""type":"choice","choices":[{"condition":"$.a > 1 && $.b == \"x\"","steps":[]}]"#,
        };
        let rest = rest.replace(r#","steps":[]"#, &format!(r#","goto":"step{}""#, n.saturating_sub(1)));
        let _ = write!(text, "{comma}{{\"name\":\"step{n}\",{rest}}}");
    }
    text.push_str("]}");
    text
}

/// A definition with this many steps that each need many checks: mappings, templates, retries,
/// catches, conditions.
fn dense(steps: usize) -> String {
    let mut text = String::from(r#"{"version":"v1","type":"flow","steps":["#);
    for n in 0..steps - 1 {
        let rest = match n % 3 {
            0 => format!(
                r#""type":"task","resourceArn":"http://localhost/f","timeoutSeconds":30,"inputMappings":[{{"target":"order","source":"$input.order"}},{{"target":"price","source":"$input.order.lines[0].price"}},{{"target":"note","template":"order {{$input.order.id}} of {{$context.execution.name}}"}}],"outputMappings":[{{"target":"result{n}","source":"$local.result"}}],"retry":[{{"errors":["HTTP.500","HTTP.503"],"maxAttempts":5}}],"catch":[{{"errors":["Payment.Refused"],"goto":"step{}"}}]"#,
                n.saturating_sub(3)
            ),
            1 => r#""type":"pass","outputMappings":[{"target":"a","source":"$input.b[0].c"},{"target":"b","source":"$input.x['y z'][1:3]"},{"target":"c","source":{"k":[1,2,3],"l":"text"}}]"#.to_owned(),
            _ => format!(
                r#""type":"choice","choices":[{{"condition":"$.a > 1 && $.b == \"x\" || !($.c in $.list)","goto":"step{}"}},{{"condition":"$.total >= 1000","goto":"step{}"}}],"default":{{"goto":"step{}"}}"#,
                n - 1,
                n - 2,
                n + 1
            ),
        };
        let _ = write!(text, "{{\"name\":\"step{n}\",{rest}}},");
    }
    let _ = write!(text, r#"{{"type":"pass","name":"step{}"}}]}}"#, steps - 1);
    text
}

/// The definition of [`definition`] with a schema of its input, so that its paths and conditions
/// are checked against it.
fn known(steps: usize) -> String {
    let schema = r#""inputSchema":{"type":"object","properties":{"a":{"type":"number"},"seconds":{"type":"number"},"b":{}}},"steps""#;
    definition(steps).replacen(r#""steps""#, schema, 1)
}

/// JSON of about this many bytes: records like those in an execution's data.
fn records(bytes: usize) -> String {
    let mut text = String::from("[");
    while text.len() < bytes {
        let n = text.len();
        let comma = if n == 1 { "" } else { "," };
        let _ = write!(
            text,
            r#"{comma}{{"id":{n},"name":"record \"{n}\"","price":{n}.25,"tags":["a","bc","déf"],"open":true,"of":{{"kind":null}}}}"#
        );
    }
    text.push(']');
    text
}

fn main() {
    let mut figures = Figures::from_arguments();
    let limits = Limits {
        definition_bytes: 8 * 1024 * 1024,
        ..Limits::default()
    };
    for (make, steps, goal) in [
        (definition as fn(usize) -> String, 100, None),
        (definition, 1_000, None),
        (definition, 10_000, Some(50.0)),
        (known, 10_000, Some(50.0)),
        (dense, 3_000, Some(50.0)),
    ] {
        let text = make(steps);
        let checked = starbridge_fdl::check(&Source::new("flow.json", text.clone()), &limits);
        assert!(checked.flow.is_some(), "{:?}", checked.diagnostics.first());
        figures.measure(
            &format!("check, {steps} steps ({} KB)", text.len() / 1000),
            Unit::Millis,
            goal,
            || Source::new("flow.json", text.clone()),
            |source| starbridge_fdl::check(&source, &limits),
        );
    }
    let text = records(1_600_000);
    let parse = |source: &Source| parse_within(source, limits.definition_bytes);
    assert_eq!(parse(&Source::new("data.json", text.clone())).diagnostics, []);
    figures.measure(
        "parse JSON of 1.6 MB",
        Unit::Millis,
        None,
        || Source::new("data.json", text.clone()),
        |source| parse(&source),
    );
    figures.measure(
        "the same by serde_json, to compare",
        Unit::Millis,
        None,
        || (),
        |()| serde_json::from_str::<starbridge_flow::value::Value>(&text),
    );
    figures.print();
}
