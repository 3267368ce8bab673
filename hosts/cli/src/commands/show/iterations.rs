//! The iterations of a foreach, or the branches of a parallel.

use crate::client::Client;
use crate::exit::Exit;
use crate::output::finish;
use crate::table::{NOTHING, table};
use crate::views::{id_of, plain};
use starbridge_flow::value::{Object, Value};
use starbridge_node::escaping::escaped;

/// The largest number of iterations on a page of the server.
const PAGE_ITERATIONS: &str = "1000";
const HEADS: [&str; 3] = ["NUMBER", "STATUS", "EVENT"];

/// Which iterations are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    /// The event of the composite's row.
    pub(super) event: u64,
    pub(super) status: Option<&'a str>,
    pub(super) at: Option<u64>,
}

/// Shows them: how many stand how, then a line for each that is wanted.
pub(super) fn show(client: &Client, meant: &str, wanted: Wanted<'_>) -> Result<(), Exit> {
    let output = client.output();
    let id = id_of(client, meant)?;
    let mut asked = vec![
        ("event", wanted.event.to_string()),
        ("limit", PAGE_ITERATIONS.to_owned()),
    ];
    asked.extend(wanted.status.map(|status| ("status", status.to_owned())));
    asked.extend(wanted.at.map(|at| ("at", at.to_string())));
    let mut query = asked.clone();
    let (mut head, mut rows): (Option<String>, Vec<Vec<String>>) = (None, Vec::new());
    loop {
        let answer = client.get(&["executions", &id, "iterations"], &query)?;
        if output.json() {
            finish(output, &answer.text, Ok(()))?;
        }
        let (items, next) = answer.page();
        head = head.or_else(|| Some(counts(&answer.object())));
        rows.extend(items.iter().map(row));
        let Some(next) = next else { break };
        query.clone_from(&asked);
        query.push(("cursor", next));
    }
    if output.json() {
        return Ok(());
    }
    output.print(&(head.unwrap_or_default() + &table(&HEADS, &rows)))
}

fn row(item: &Object) -> Vec<String> {
    let event = match item.contains_key("event") {
        true => plain(item, "event"),
        false => NOTHING.to_owned(),
    };
    vec![plain(item, "number"), plain(item, "status"), event]
}

/// How many stand how: `each: 100, 97 succeeded, 3 failed`.
fn counts(answer: &Object) -> String {
    let mut words = vec![match answer.get("total").is_some_and(|total| *total != Value::Null) {
        true => plain(answer, "total"),
        false => "not all known".to_owned(),
    }];
    let counts = answer.get("counts").and_then(Value::as_object);
    for (status, count) in counts.into_iter().flat_map(|counts| counts.iter()) {
        let count = count.to_plain_text();
        if count != "0" {
            words.push(format!("{count} {status}"));
        }
    }
    format!("{}: {}\n\n", escaped(&plain(answer, "step")), words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_there_is_is_counted() {
        let answer = r#"{"step":"each","total":4,"counts":{"running":0,"succeeded":3,"failed":1}}"#;
        let answer: Object = serde_json::from_str(answer).unwrap();
        assert_eq!(counts(&answer), "each: 4, 3 succeeded, 1 failed\n\n");
        let answer = r#"{"step":"each","total":null,"counts":{"running":2}}"#;
        let answer: Object = serde_json::from_str(answer).unwrap();
        assert_eq!(counts(&answer), "each: not all known, 2 running\n\n");
    }
}
