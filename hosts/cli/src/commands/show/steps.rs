//! The steps of an execution: the progress of each foreach, and a row for each visit.

use crate::client::Client;
use crate::commands::history::definition;
use crate::exit::Exit;
use crate::output::finish;
use crate::table::{NOTHING, table, time, took};
use crate::views::{self, failure, place, plain, text};
use starbridge_flow::graph::{Budget, Root, StepKind};
use starbridge_flow::value::{Object, Value};
use starbridge_node::escaping::escaped;
use std::collections::BTreeMap;

/// The largest number of steps on a page of the server.
const PAGE_STEPS: &str = "10000";
const HEADS: [&str; 6] = ["STEP", "STATUS", "ATTEMPTS", "ENTERED", "TOOK", "WHY"];
/// The column of the execution that a step started is inserted before this one, if any step started
/// one.
const CHILD_COLUMN: usize = 5;

/// The requested steps; all if there is no filter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) failed: bool,
    pub(super) running: bool,
    /// Of the step of this name.
    pub(super) step: Option<&'a str>,
    /// The steps as they were after this event.
    pub(super) at: Option<u64>,
}

impl Wanted<'_> {
    fn all(self) -> bool {
        !self.failed && !self.running
    }

    fn has(self, step: &Object) -> bool {
        let status = text(step, "status").unwrap_or_default();
        self.all() || self.failed && has_failed(status) || self.running && is_open(status)
    }
}

fn has_failed(status: &str) -> bool {
    matches!(status, "failed" | "rollbackFailed")
}

fn is_open(status: &str) -> bool {
    matches!(
        status,
        "entered" | "running" | "waiting" | "retrying" | "polling" | "manual"
    )
}

/// Prints a page of the steps that were visited.
pub(super) fn show(client: &Client, meant: &str, wanted: Wanted<'_>) -> Result<(), Exit> {
    let output = client.output();
    let execution = views::execution(client, meant)?.object();
    let id = plain(&execution, "id");
    let mut steps: Vec<Object> = Vec::new();
    let mut asked = vec![("limit", PAGE_STEPS.to_owned())];
    asked.extend(wanted.step.map(|step| ("step", step.to_owned())));
    asked.extend(wanted.at.map(|at| ("at", at.to_string())));
    let mut query = asked.clone();
    loop {
        let answer = client.get(&["executions", &id, "steps"], &query)?;
        let (rows, next) = answer.page();
        if output.json() && wanted.all() {
            finish(output, &answer.text, Ok(()))?;
        }
        steps.extend(rows);
        match next {
            Some(next) => {
                query.clone_from(&asked);
                query.push(("cursor", next));
            }
            None => break,
        }
    }
    let shown = steps.iter().filter(|step| wanted.has(step));
    if output.json() {
        if wanted.all() {
            return Ok(());
        }
        let items: Vec<Value> = shown.map(|step| step.clone().into()).collect();
        let page: Object = [("items".into(), items.into()), ("next".into(), Value::Null)]
            .into_iter()
            .collect();
        return finish(output, &Value::from(page).to_json(), Ok(()));
    }
    let shown: Vec<&Object> = shown.collect();
    let children = shown.iter().any(|step| step.contains_key("child"));
    let rows: Vec<Vec<String>> = shown.into_iter().flat_map(|step| rows(step, children)).collect();
    let mut heads = HEADS.to_vec();
    if children {
        heads.insert(CHILD_COLUMN, "CHILD");
    }
    let summaries = summaries(client, &execution, &steps);
    output.print(&(summaries + &table(&heads, &rows)))
}

/// The row of a visit, and one more where it was undone. `children`: with the execution that it started.
fn rows(step: &Object, children: bool) -> Vec<Vec<String>> {
    let name = format!("{}{}", plain(step, "step"), place(step.get("path")));
    let run = plain(step, "run");
    let run = (run != "1" && run != NOTHING).then(|| format!(" (run {run})"));
    let mut rows = vec![row(
        &format!("{name}{}", run.unwrap_or_default()),
        step,
        text(step, "enteredTime"),
    )];
    if let Some(undo) = step.get("rollback").and_then(Value::as_object) {
        rows.push(row(&format!("{name}: undo"), undo, text(undo, "startedTime")));
    }
    if children {
        for (place, row) in rows.iter_mut().enumerate() {
            let child = if place == 0 {
                plain(step, "child")
            } else {
                String::new()
            };
            row.insert(CHILD_COLUMN, child);
        }
    }
    rows
}

fn row(name: &str, shown: &Object, began: Option<&str>) -> Vec<String> {
    let error = text(shown, "error").map(|error| failure(error, text(shown, "cause")));
    let waiting = shown.get("waitingFor").and_then(Value::as_object);
    let waiting = waiting.filter(|waiting| text(waiting, "reason") != Some("time"));
    let waiting = waiting.map(|waiting| format!("waits for {}", plain(waiting, "text")));
    let why: Vec<String> = waiting.into_iter().chain(error).collect();
    vec![
        name.to_owned(),
        match text(shown, "waitsUntil") {
            Some(until) => format!("{} until {}", plain(shown, "status"), time(Some(until))),
            None => plain(shown, "status"),
        },
        plain(shown, "attempts"),
        time(began),
        took(began, text(shown, "endedTime")).unwrap_or_else(|| NOTHING.to_owned()),
        why.join("; after "),
    ]
}

/// The state of the iterations of a foreach.
#[derive(Debug, Default, PartialEq, Eq)]
struct ForeachSummary {
    /// Whether each iteration failed, runs or is done: the worst of its steps.
    iterations: BTreeMap<u64, IterationStatus>,
    total: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum IterationStatus {
    Done,
    Cancelled,
    Failed,
    Open,
}

impl ForeachSummary {
    fn words(&self, name: &str) -> String {
        let count = |stands: IterationStatus| self.iterations.values().filter(|each| **each == stands).count();
        let of = self.total.map(|total| format!(" of {total}")).unwrap_or_default();
        let mut words = format!("{name}  {}{of} done", count(IterationStatus::Done));
        for (stands, word) in [
            (IterationStatus::Failed, "failed"),
            (IterationStatus::Open, "running"),
            (IterationStatus::Cancelled, "cancelled"),
        ] {
            match count(stands) {
                0 => {}
                count => words.push_str(&format!(", {count} {word}")),
            }
        }
        words + "\n"
    }
}

/// A line for each outermost foreach, and an empty one below them.
fn summaries(client: &Client, execution: &Object, steps: &[Object]) -> String {
    let mut summaries = summarize(steps);
    if summaries.is_empty() {
        return String::new();
    }
    let totals = totals(client, execution).unwrap_or_default();
    let ended = execution.contains_key("endedTime");
    let mut text = String::new();
    for (name, sum) in &mut summaries {
        sum.total = totals.get(name).copied().filter(|_| !ended);
        text.push_str(&sum.words(&escaped(name)));
    }
    text + "\n"
}

fn summarize(steps: &[Object]) -> BTreeMap<String, ForeachSummary> {
    let mut summaries: BTreeMap<String, ForeachSummary> = BTreeMap::new();
    for step in steps {
        let path = step.get("path").and_then(Value::as_array);
        let around = path
            .into_iter()
            .flat_map(|path| path.values())
            .filter_map(Value::as_object);
        let iteration = around.filter_map(|item| {
            let number = item.get("iteration")?.as_number()?.as_u64()?;
            Some((plain(item, "step"), number))
        });
        let Some((name, number)) = iteration.take(1).next() else {
            continue;
        };
        let stands = match text(step, "status").unwrap_or_default() {
            status if has_failed(status) => IterationStatus::Failed,
            status if is_open(status) => IterationStatus::Open,
            "cancelled" => IterationStatus::Cancelled,
            _ => IterationStatus::Done,
        };
        let sum = summaries.entry(name).or_default();
        let known = sum.iterations.entry(number).or_insert(stands);
        *known = stands.max(*known);
    }
    summaries
}

/// The number of items of each running foreach.
fn totals(client: &Client, execution: &Object) -> Option<BTreeMap<String, u64>> {
    let id = plain(execution, "id");
    let state = client.look(&["executions", &id, "state"], &[])?;
    let open = state.get("steps").and_then(Value::as_array)?;
    let flow = definition(client, execution).ok()?;
    let mut totals = BTreeMap::new();
    for open in open.values().iter().filter_map(Value::as_object) {
        let name = plain(open, "step");
        let foreach = flow.steps.iter().find_map(|step| match &step.kind {
            StepKind::Foreach(foreach) if step.name.as_str() == name => Some(foreach),
            _ => None,
        });
        let input = open.get("input").and_then(Value::as_object);
        if let Some((foreach, input)) = foreach.zip(input)
            && let Ok(Some(Value::Array(items))) = foreach.collection.find(Root::Object(input), &Budget::unlimited())
        {
            totals.insert(name, items.len() as u64);
        }
    }
    Some(totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_are_summed_by_the_worst_of_their_steps() {
        let rows = [
            r#"{"step": "f", "path": [], "status": "running"}"#,
            r#"{"step": "a", "path": [{"step": "f", "iteration": 0}], "status": "succeeded"}"#,
            r#"{"step": "b", "path": [{"step": "f", "iteration": 0}], "status": "failed"}"#,
            r#"{"step": "a", "path": [{"step": "f", "iteration": 1}], "status": "succeeded"}"#,
            r#"{"step": "a", "path": [{"step": "f", "iteration": 2}], "status": "retrying"}"#,
        ];
        let rows: Vec<Object> = rows.iter().map(|row| serde_json::from_str(row).unwrap()).collect();
        let mut summaries = summarize(&rows);
        assert_eq!(summaries.len(), 1);
        let sum = summaries.get_mut("f").unwrap();
        sum.total = Some(200);
        assert_eq!(sum.words("f"), "f  1 of 200 done, 1 failed, 1 running\n");
    }

    #[test]
    fn only_what_is_asked_for_is_shown() {
        let step: Object = serde_json::from_str(r#"{"status": "retrying"}"#).unwrap();
        for (failed, running, has) in [(false, false, true), (true, false, false), (true, true, true)] {
            let wanted = Wanted {
                failed,
                running,
                step: None,
                at: None,
            };
            assert_eq!(wanted.has(&step), has);
        }
    }
}
