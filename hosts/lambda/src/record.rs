//! The metrics of an invocation, in the form that CloudWatch reads from logs, if they are configured.

use crate::environment::Running;
use crate::event::Kind;
use starbridge_flow::value::{Array, Object, Value};
use std::io::Write;

/// The namespace of the metrics.
const NAMESPACE: &str = "Starbridge";

/// Writes the metrics of an invocation as a line of JSON.
pub(crate) fn write(running: &Running, kind: Kind, well: bool) {
    if !running.settings.metrics {
        return;
    }
    let mut figures = running.figures.since_last(running.node.counters());
    figures.push(("Invocations", 1));
    figures.push(("InvocationErrors", u64::from(!well)));
    let line = line(kind, &figures, running.node.now().0);
    // If no one reads the output, only the metrics are lost.
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn line(kind: Kind, figures: &[(&str, u64)], time: i64) -> String {
    let object = |members: Vec<(&str, Value)>| -> Value {
        let members = members.into_iter().map(|(key, value)| (key.into(), value));
        members.collect::<Object>().into()
    };
    let unit = |name: &str| object(vec![("Name", name.into()), ("Unit", "Count".into())]);
    let dimensions: Array = [Value::from(Array::from(vec![Value::from("Event")]))]
        .into_iter()
        .collect();
    let of = object(vec![
        ("Namespace", NAMESPACE.into()),
        ("Dimensions", dimensions.into()),
        (
            "Metrics",
            Value::from(figures.iter().map(|(name, _)| unit(name)).collect::<Array>()),
        ),
    ]);
    let about = object(vec![
        ("Timestamp", time.into()),
        ("CloudWatchMetrics", Value::from(Array::from(vec![of]))),
    ]);
    let mut members = vec![("_aws", about), ("Event", format!("{kind:?}").into())];
    members.extend(figures.iter().map(|(name, value)| (*name, Value::from(*value))));
    object(members).to_json()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_cloudwatch_reads() {
        let line: serde_json::Value =
            serde_json::from_str(&line(Kind::Batch, &[("Started", 2)], 1_700_000_000_000)).unwrap();
        let about = &line["_aws"];
        assert_eq!(about["Timestamp"], 1_700_000_000_000_i64);
        let of = &about["CloudWatchMetrics"][0];
        assert_eq!(of["Namespace"], "Starbridge");
        assert_eq!(of["Dimensions"], serde_json::json!([["Event"]]));
        assert_eq!(of["Metrics"], serde_json::json!([{"Name": "Started", "Unit": "Count"}]));
        assert_eq!((&line["Event"], &line["Started"]), (&"Batch".into(), &2.into()));
    }
}
