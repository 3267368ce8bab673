//! The attempts of a visit, each with its input and result.

use crate::client::Client;
use crate::exit::Exit;
use crate::output::finish;
use crate::table::{NOTHING, table, time, took};
use crate::views::{failure, id_of, plain, text};
use starbridge_flow::value::{Object, Value};
use starbridge_node::escaping::escaped;

const HEADS: [&str; 6] = ["ATTEMPT", "STATUS", "BEGAN", "TOOK", "BY", "WHY"];

/// Prints the attempts of the visit that entered with this event.
pub(super) fn show(client: &Client, meant: &str, event: u64) -> Result<(), Exit> {
    let output = client.output();
    let id = id_of(client, meant)?;
    let answer = client.get(&["executions", &id, "steps", &event.to_string()], &[])?;
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    let visit = answer.object();
    let tries = visit.get("tries").and_then(Value::as_array);
    let tries: Vec<&Object> = tries
        .into_iter()
        .flat_map(|tries| tries.values())
        .filter_map(Value::as_object)
        .collect();
    let rows: Vec<Vec<String>> = tries.iter().map(|tried| row(tried)).collect();
    output.print(&table(&HEADS, &rows))?;
    for tried in tries {
        for (key, word) in [
            ("input", "in"),
            ("sent", "sent"),
            ("received", "back"),
            ("output", "out"),
        ] {
            if let Some(datum) = tried.get(key) {
                let line = format!("{} {word}: {}\n", number(tried), escaped(&datum.to_json()));
                output.print(&line)?;
            }
        }
    }
    Ok(())
}

/// The number of an attempt, of the step or of its undo.
fn number(tried: &Object) -> String {
    let undo = matches!(tried.get("rollback"), Some(Value::Bool(true)));
    format!("{}{}", plain(tried, "attempt"), if undo { " (undo)" } else { "" })
}

fn row(tried: &Object) -> Vec<String> {
    let began = text(tried, "startedTime");
    vec![
        number(tried),
        plain(tried, "status"),
        time(began),
        took(began, text(tried, "endedTime")).unwrap_or_else(|| NOTHING.to_owned()),
        text(tried, "worker")
            .or(text(tried, "resource"))
            .unwrap_or(NOTHING)
            .to_owned(),
        text(tried, "error").map_or_else(String::new, |error| failure(error, text(tried, "cause"))),
    ]
}
