//! The audit: histories, fetched over HTTP and replayed, against what the witness saw.

use super::load::{self, FLOWS, Started};
use super::witness::{Book, Reported, Witness};
use crate::campaigns::{Findings, laws};
use crate::client;
use serde_json::json;
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::{Event, EventId, EventKind, copied};
use starbridge_node::export::ExportedHistory;
use starbridge_node::replay::replay;
use starbridge_ports::{History, Notices, Receivers, ShardSet};
use starbridge_sqlite::SqliteStore;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

/// An execution as the API shows it.
pub(super) struct Shown {
    pub(super) id: String,
    flow: String,
    pub(super) status: String,
    error: String,
    /// Why it is set aside, if it is.
    broken: Option<String>,
}

async fn get(url: &str) -> Result<Object, String> {
    let answer = client().get(url).send().await.map_err(|error| error.to_string())?;
    let status = answer.status();
    let body = answer.text().await.map_err(|error| error.to_string())?;
    if !status.is_success() {
        return Err(format!("{url}: {status} {body}"));
    }
    serde_json::from_str(&body).map_err(|error| format!("{url}: {error}"))
}

/// All items of all pages of a list.
pub(in crate::campaigns) async fn all(url: &str, parameter: &str) -> Result<Vec<Object>, String> {
    let mut items = Vec::new();
    let mut page = get(&format!("{url}?limit=1000")).await?;
    loop {
        if let Some(more) = page.get("items").and_then(Value::as_array) {
            items.extend(more.values().iter().filter_map(Value::as_object).cloned());
        }
        let next = match page.get("next") {
            None | Some(Value::Null) => return Ok(items),
            Some(Value::String(next)) => next.to_string(),
            Some(other) => other.to_json(),
        };
        page = get(&format!("{url}?limit=1000&{parameter}={next}")).await?;
    }
}

pub(super) async fn executions(server: &str) -> Result<Vec<Shown>, String> {
    let items = all(&format!("{server}/v1/executions"), "cursor").await?;
    let text = |item: &Object, member: &str| {
        let text = item.get(member).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let shown = items.iter().map(|item| Shown {
        id: text(item, "id"),
        flow: text(item, "flow"),
        status: text(item, "status"),
        error: text(item, "error"),
        broken: item
            .get("waitingFor")
            .and_then(Value::as_object)
            .filter(|waiting| text(waiting, "reason") == "broken")
            .map(|waiting| text(waiting, "text")),
    });
    Ok(shown.collect())
}

fn has_ended(shown: &Shown) -> bool {
    !matches!(&*shown.status, "Running" | "RollingBack" | "Manual")
}

/// How the reason begins why such an execution is set aside.
pub(super) const SET_ASIDE_AT_KILLS: &str = "the process came to its end";

/// Whether an execution is taken for what ended the process: two kills from outside, each while it ran alone, look
/// like it.
fn ended_the_process(shown: &Shown) -> bool {
    let cause = shown.broken.as_deref().unwrap_or_default();
    cause.starts_with(SET_ASIDE_AT_KILLS)
}

/// What an operator does with an execution that is set aside.
pub(super) async fn redrive(server: &str, execution: &str) -> Result<(), String> {
    let url = format!("{server}/v1/executions/{execution}/redrive");
    let answer = client().post(&url).header("content-type", "application/json");
    let answer = answer.body("{}").send().await;
    let answer = answer.map_err(|error| error.to_string())?;
    match answer.status().is_success() {
        true => Ok(()),
        false => Err(format!("{url}: {}", answer.status())),
    }
}

/// Waits until no execution runs any more. Those that are set aside are redriven.
pub(in crate::campaigns) async fn wait_for_ends(server: &str, patience: Duration, findings: &mut Findings) {
    let begun = Instant::now();
    loop {
        let left: Vec<Shown> = match executions(server).await {
            Ok(shown) => shown.into_iter().filter(|shown| !has_ended(shown)).collect(),
            Err(problem) => return findings.problem(problem),
        };
        if left.is_empty() {
            return;
        }
        for Shown { id, .. } in left.iter().filter(|shown| ended_the_process(shown)) {
            match redrive(server, id).await {
                Ok(()) => findings.count("set aside, because kills came while they ran alone, and redriven", 1),
                Err(problem) => findings.problem(problem),
            }
        }
        if begun.elapsed() > patience {
            for Shown { id, flow, status, .. } in left {
                findings.problem(format!("{flow} {id} does not come to its end: it is {status}"));
            }
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Compares all records with each other.
pub(in crate::campaigns) async fn audit(server: &str, started: &Started, witness: &Witness, findings: &mut Findings) {
    findings.problems.extend(started.problems.clone());
    findings.count("starts acknowledged", started.acknowledged.len() as u64);
    findings.count("tries to start without an answer", started.tries_lost);
    let shown = match executions(server).await {
        Ok(shown) => shown,
        Err(problem) => return findings.problem(problem),
    };
    starts(started, &shown, findings);
    let mut histories = Vec::new();
    for execution in &shown {
        match history(server, execution).await {
            Err(problem) => findings.problem(problem),
            Ok(history) => histories.push(history),
        }
    }
    findings.count("executions ended, children included", shown.len() as u64);
    hold_against(&histories, witness, findings);
    triggered(&histories, findings);
}

/// No instant of the schedule has started two executions.
fn triggered(histories: &[ExportedHistory], findings: &mut Findings) {
    let mut instants = BTreeSet::new();
    for history in histories {
        let Some(EventKind::ExecutionStarted(started)) = history.events.first().map(|event| &event.detail) else {
            continue;
        };
        let Some(instant) = started.input.get("triggerTime").filter(|_| started.parent.is_none()) else {
            continue;
        };
        findings.count("started by the schedule", 1);
        if !instants.insert(instant.to_json()) {
            findings.problem(format!("the schedule started twice at {}", instant.to_json()));
        }
    }
}

/// Compares histories with what a witness saw.
pub(in crate::campaigns) fn hold_against(histories: &[ExportedHistory], witness: &Witness, findings: &mut Findings) {
    let book = witness.book().clone();
    let mut scheduled = BTreeSet::new();
    for history in histories {
        one(history, &book, &mut scheduled, findings);
    }
    witnessed(&book, &scheduled, findings);
}

/// Every start that was acknowledged has ended as its flow must.
fn starts(started: &Started, shown: &[Shown], findings: &mut Findings) {
    let by_id: BTreeMap<&str, &Shown> = shown.iter().map(|shown| (&*shown.id, shown)).collect();
    for ((flow, name), id) in &started.acknowledged {
        let Some(shown) = by_id.get(&**id) else {
            findings.problem(format!("{name} ({id}) was acknowledged and is lost"));
            continue;
        };
        let expected = FLOWS.iter().find(|(known, ..)| known == flow);
        if expected.is_none_or(|(_, status, error)| shown.status != *status || shown.error != *error) {
            findings.problem(format!("{name} ({id}) ended as {} {}", shown.status, shown.error));
        }
    }
}

async fn history(server: &str, shown: &Shown) -> Result<ExportedHistory, String> {
    let id = &shown.id;
    let definition: Value =
        serde_json::from_str(&load::definition(&shown.flow)).map_err(|error| format!("{}: {error}", shown.flow))?;
    let head: Object = [
        ("history".into(), 1u32.into()),
        ("execution".into(), id.as_str().into()),
        ("definition".into(), definition),
    ]
    .into_iter()
    .collect();
    let mut text = Value::from(head).to_json();
    for event in all(&format!("{server}/v1/executions/{id}/history"), "from").await? {
        text += "\n";
        text += &Value::from(event).to_json();
    }
    ExportedHistory::parse(&text).map_err(|error| format!("{id}: {error}"))
}

/// The faults of one history, by itself and against the book.
fn one(history: &ExportedHistory, book: &Book, scheduled: &mut BTreeSet<String>, findings: &mut Findings) {
    let id = &history.execution;
    findings.count("events", history.events.len() as u64);
    findings.problems.extend(laws::broken(id, &history.events));
    let replayed = replay(history, &history.flow, Limits::default());
    if let Some(divergence) = replayed.divergence {
        findings.problem(format!("{id}: replay parts at {divergence:?}"));
    }
    // Calls that were over when a fork was made belong to another execution.
    let before = history.events.get(..copied(&history.events)).unwrap_or_default();
    let before = laws::calls(before);
    for (call, fate) in laws::calls(&history.events) {
        if before.get(&call).is_some_and(|fate| fate.ends > 0) {
            continue;
        }
        let key = format!("{id}/{call}");
        let event = usize::try_from(call.0).ok().and_then(|at| history.events.get(at - 1));
        if event.is_some_and(is_for_child) {
            continue;
        }
        findings.count("calls", 1);
        if fate.answered && !book.calls.contains_key(&key) {
            findings.problem(format!("{key}: the history has an answer of a call nobody saw"));
        }
        scheduled.insert(key);
    }
    for event in &history.events {
        match &event.detail {
            EventKind::TaskSucceeded { result, .. } if scheduled.contains(&format!("{id}/{}", event.caused_by)) => {
                of_its_own(id, event.caused_by, result, findings);
            }
            EventKind::TimerFired { .. } => findings.count("timers fired", 1),
            EventKind::RetryScheduled { .. } => findings.count("retries", 1),
            EventKind::RollbackSucceeded => findings.count("tasks undone", 1),
            EventKind::TaskTimedOut { .. } => findings.count("heartbeats missed", 1),
            _ => {}
        }
    }
    reports(history, book, findings);
    if let Some(pause) = paused(history, book) {
        findings.count("waits measured from outside", 1);
        if pause < 400 {
            findings.problem(format!("{id}: the wait of 400 ms took {pause} ms"));
        }
    }
}

fn is_for_child(event: &Event) -> bool {
    // An undo of a child names the child's flow, too.
    matches!(&event.detail, EventKind::TaskScheduled(scheduled) if scheduled.resource.starts_with("flow:"))
}

/// A result belongs to its own call: the functions answer with the key of their call.
fn of_its_own(id: &Text, call: EventId, result: &Value, findings: &mut Findings) {
    let said = result
        .as_object()
        .and_then(|result| result.get("key").or_else(|| result.get("said")));
    if let Some(said) = said.and_then(Value::as_str)
        && said != format!("{id}/{call}")
    {
        findings.problem(format!("{id}/{call} has the result of {said}"));
    }
}

/// Every acknowledged report is in the history, once; the laws check that there is no second end.
fn reports(history: &ExportedHistory, book: &Book, findings: &mut Findings) {
    let id = &history.execution;
    let from = format!("{id}/");
    for (key, reported) in book
        .reports
        .range(from.clone()..)
        .take_while(|(key, _)| key.starts_with(&from))
    {
        let what = match reported {
            Reported::Acknowledged => "reports acknowledged",
            Reported::HadItAlready => "reports acknowledged at a second try",
            Reported::UnderWay | Reported::Refused(_) => {
                findings.problem(format!("{key}: the report is {reported:?}"));
                continue;
            }
        };
        findings.count(what, 1);
        let stands = |event: &&Event| {
            let of = format!("{id}/{}", event.caused_by);
            let said = match &event.detail {
                EventKind::TaskSucceeded { result, .. } => result.as_object().and_then(|result| result.get("said")),
                _ => None,
            };
            of == *key && said.and_then(Value::as_str) == Some(key)
        };
        if history.events.iter().filter(stands).count() != 1 {
            findings.problem(format!("{key}: a report was acknowledged and is lost"));
        }
    }
}

/// How long the wait of `paced` took, as the functions around it saw it.
fn paused(history: &ExportedHistory, book: &Book) -> Option<u64> {
    let of_step = |step: &str| {
        let called = book
            .calls
            .values()
            .filter(|called| *called.execution == *history.execution);
        called.filter(|called| called.step == step).collect::<Vec<_>>()
    };
    let before = of_step("before")
        .iter()
        .filter_map(|call| call.came.first().copied())
        .min()?;
    let after = of_step("after")
        .iter()
        .filter_map(|call| call.came.first().copied())
        .min()?;
    Some(after.saturating_sub(before))
}

/// The faults of the book alone: nothing left that is not in a history, and nothing changed on the
/// way.
fn witnessed(book: &Book, scheduled: &BTreeSet<String>, findings: &mut Findings) {
    for (key, called) in &book.calls {
        findings.count(
            "calls the functions saw, repeated ones included",
            called.came.len() as u64,
        );
        findings.count("calls sent more than once", u64::from(called.came.len() > 1));
        if !scheduled.contains(key) {
            findings.problem(format!("{key} was called and stands in no history"));
        }
        if called.changed {
            findings.problem(format!("{key} was sent again with another body"));
        }
    }
    findings.count("tries to report without an answer", book.tries_lost);
    findings.count("second reports refused", book.second_refused);
    if book.second_taken > 0 {
        findings.problem(format!("{} second reports were taken", book.second_taken));
    }
}

/// With the server gone, the store has nothing left to do.
pub(super) fn nothing_left_behind(database: &Path, findings: &mut Findings) {
    let store = match SqliteStore::open(database) {
        Ok(store) => store,
        Err(error) => return findings.problem(error.to_string()),
    };
    let left = json!({
        "awake": store.awake(&ShardSet::ALL).map(|awake| awake.len()).ok(),
        "messages": store.messages(&Receivers::All).map(|messages| messages.len()).ok(),
        "sleepers": store.due(&ShardSet::ALL, Timestamp(i64::MAX), 10).map(|due| due.len()).ok(),
        "notices": store.notice_counts().map(|counts| counts.len()).ok(),
    });
    if left != json!({"awake": 0, "messages": 0, "sleepers": 0, "notices": 0}) {
        findings.problem(format!("the store has something left to do: {left}"));
    }
}
