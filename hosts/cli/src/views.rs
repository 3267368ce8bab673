//! Executions and events of a server, in a form for people.

use crate::client::{Answer, Client};
use crate::exit::Exit;
use crate::output::finish;
use crate::table::{NOTHING, listing, time, took};
use starbridge_flow::value::{Object, Value};
use starbridge_machine::Status;
use starbridge_node::escaping::escaped;
use std::io::IsTerminal;

/// How many characters of an event's detail are shown.
const DETAIL: usize = 120;
/// How many characters of inputs and outputs are shown on a terminal.
const DATA_CHARS: usize = 2_000;

/// A member that is a text.
pub fn text<'a>(object: &'a Object, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

/// A member as plain text; a missing one is shown as an empty cell.
pub fn plain(object: &Object, key: &str) -> String {
    match object.get(key) {
        None | Some(Value::Null) => NOTHING.to_owned(),
        Some(value) => value.to_plain_text(),
    }
}

/// The named execution: by its id, or as FLOW/NAME.
pub fn execution(client: &Client, meant: &str) -> Result<Answer, Exit> {
    match meant.split_once('/') {
        Some((flow, name)) => client.get(&["flows", flow, "executions", name], &[]),
        None => client.get(&["executions", meant], &[]),
    }
}

/// The id of the named execution.
pub fn id_of(client: &Client, meant: &str) -> Result<String, Exit> {
    if !meant.contains('/') {
        return Ok(meant.to_owned());
    }
    let found = execution(client, meant)?.object();
    Ok(text(&found, "id").unwrap_or(meant).to_owned())
}

/// Whether an execution has ended, and whether it succeeded.
pub fn outcome(execution: &Object) -> Option<Result<(), Exit>> {
    execution.get("endedTime")?;
    Some(match text(execution, "status") {
        Some("Succeeded") => Ok(()),
        _ => Err(Exit::Found),
    })
}

/// Prints an execution, unchanged or for people.
pub fn show(client: &Client, answer: &Answer) -> Result<(), Exit> {
    show_with(client, answer, |_| None)
}

/// Prints an execution, unchanged or for people, then with what `children` makes of it.
pub fn show_with(
    client: &Client,
    answer: &Answer,
    children: impl FnOnce(&Object) -> Option<String>,
) -> Result<(), Exit> {
    let output = client.output();
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    show_object(client, &answer.object(), children)
}

/// When an execution started; `None` if it has not begun. Until then the server gives the time of the request.
pub fn started(execution: &Object) -> Option<&str> {
    let started = text(execution, "startedTime");
    let is_real = has_begun(execution) || started != text(execution, "requestedTime");
    started.filter(|_| is_real)
}

/// Whether an execution is past the states that come before its start.
fn has_begun(execution: &Object) -> bool {
    let status = text(execution, "status").and_then(Status::parse);
    status.is_some_and(|status| !status.is_before_start())
}

/// Prints an execution that was just started, ordered or continued. What it waits for is changing at this
/// moment, so it is shown to people only if it waits for its time, for other executions or for the end of a pause.
pub fn show_going(client: &Client, answer: &Answer) -> Result<(), Exit> {
    let output = client.output();
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    let execution = answer.object();
    let waiting = execution.get("waitingFor").and_then(Value::as_object);
    let reason = waiting.and_then(|waiting| text(waiting, "reason"));
    let stays = matches!(reason, Some("startTime" | "dependency" | "paused"));
    let told = |key: &str| key != "waitingFor" || stays;
    let members = execution.iter().filter(|(key, _)| told(key));
    let execution: Object = members.map(|(key, value)| (key.clone(), value.clone())).collect();
    show_object(client, &execution, |_| None)
}

fn show_object(
    client: &Client,
    execution: &Object,
    children: impl FnOnce(&Object) -> Option<String>,
) -> Result<(), Exit> {
    let family = [("parent", parent(client, execution)), ("children", children(execution))];
    let family = family.into_iter().filter_map(|(key, told)| Some((key, told?)));
    client.output().print(&summary(execution, family.collect()))
}

/// The execution that started this one, as FLOW/NAME, and the step that it belongs to.
fn parent(client: &Client, execution: &Object) -> Option<String> {
    let parent = execution.get("parent")?.as_object()?;
    let id = plain(parent, "execution");
    if parent.contains_key("deleted") {
        return Some(format!("{id} (deleted)"));
    }
    let name = name_of(client, &id).unwrap_or_else(|| id.clone());
    let query = [("from", plain(parent, "event")), ("limit", "1".to_owned())];
    let page = client.look(&["executions", &id, "history"], &query);
    let step = page.and_then(|page| {
        let events = page.get("items")?.as_array()?;
        Some(plain(events.values().first()?.as_object()?, "step"))
    });
    Some(match step {
        Some(step) => format!("{name}, step `{step}`"),
        None => name,
    })
}

/// An execution as FLOW/NAME, if the server gives it.
pub fn name_of(client: &Client, id: &str) -> Option<String> {
    let execution = client.look(&["executions", id], &[])?;
    let flow = text(&execution, "flow")?;
    Some(format!("{flow}/{}", text(&execution, "name")?))
}

fn summary(execution: &Object, family: Vec<(&str, String)>) -> String {
    let mut entries = vec![
        ("id", plain(execution, "id")),
        (
            "flow",
            format!("{}, version {}", plain(execution, "flow"), plain(execution, "version")),
        ),
        ("name", plain(execution, "name")),
        ("status", plain(execution, "status")),
    ];
    entries.extend(how_it_failed(execution));
    if let Some(waiting) = waiting(execution) {
        entries.push(("waits for", waiting));
    }
    let told = execution.get("waitingFor").and_then(Value::as_object);
    entries.extend(told.map(waited_for).unwrap_or_default());
    if let Some(act) = told.and_then(|told| text(told, "act")) {
        entries.push(("act", act.to_owned()));
    }
    let (started, ended) = (started(execution), text(execution, "endedTime"));
    if let Some(requested) = text(execution, "requestedTime") {
        entries.push(("requested", time(Some(requested))));
    }
    let until = execution.get("waitingFor").and_then(Value::as_object);
    let until = until.and_then(|waiting| text(waiting, "until"));
    if let Some(until) = until {
        entries.push(("waits until", time(Some(until))));
    }
    if let Some(started) = started {
        entries.push(("started", time(Some(started))));
    }
    if let Some(took) = took(started, ended) {
        entries.push(("ended", format!("{}, in {took}", time(ended))));
    }
    if let Some(from) = execution.get("forkedFrom").and_then(Value::as_object) {
        let (of, event) = (plain(from, "execution"), plain(from, "event"));
        entries.push(("forked from", format!("{of} at event {event}")));
    }
    entries.extend(family);
    for key in ["labels", "input", "output"] {
        if let Some(value) = execution.get(key) {
            entries.push((key, shown(value)));
        }
    }
    listing(&entries)
}

/// The step that could not be undone, and the reason.
/// The error of an execution, with its step, and what could not be undone.
pub fn how_it_failed(execution: &Object) -> Vec<(&'static str, String)> {
    let mut entries = Vec::new();
    if let Some(error) = text(execution, "error") {
        let error = failure(error, text(execution, "cause"));
        let place = text(execution, "step").map(|step| format!(" (in `{step}`)"));
        entries.push(("error", format!("{error}{}", place.unwrap_or_default())));
    }
    if let Some(undo) = execution.get("rollback").and_then(Value::as_object) {
        entries.push(("not undone", not_undone(undo)));
        let left = undo.get("left").and_then(Value::as_array);
        let left = left.into_iter().flat_map(|left| left.values());
        let left: Vec<&str> = left.filter_map(Value::as_str).collect();
        entries.push(("left to undo", left.join(", ")));
    }
    entries
}

fn not_undone(undo: &Object) -> String {
    let why = failure(&plain(undo, "error"), text(undo, "cause"));
    format!("`{}`: {why}", plain(undo, "step"))
}

/// The error of an execution in a cell, including what could not be undone.
pub fn error_of(execution: &Object) -> Option<String> {
    let error = failure(text(execution, "error")?, text(execution, "cause"));
    match execution.get("rollback").and_then(Value::as_object) {
        None => Some(error),
        Some(undo) => Some(format!("could not undo {} after {error}", not_undone(undo))),
    }
}

/// Data as JSON; on a terminal, shortened to a readable length.
fn shown(value: &Value) -> String {
    let text = value.to_json();
    match text.char_indices().nth(DATA_CHARS) {
        Some((at, _)) if std::io::stdout().is_terminal() => {
            let (beginning, bytes) = (text.get(..at).unwrap_or_default(), text.len());
            format!("{beginning}… ({bytes} bytes, all of them with `--json`)")
        }
        _ => text,
    }
}

/// Why it does not go on, if the server says so.
pub fn waiting(execution: &Object) -> Option<String> {
    let waiting = execution.get("waitingFor")?.as_object()?;
    let reason = text(waiting, "reason")?;
    Some(failure(reason, text(waiting, "text")))
}

/// Whom it waits for, a row each: executions with their states, holders of slots, and its other keys without a free slot.
pub fn waited_for(waiting: &Object) -> Vec<(&'static str, String)> {
    let list = |key: &str| {
        waiting
            .get(key)
            .and_then(Value::as_array)
            .map(|list| list.values().to_vec())
    };
    let mut rows = Vec::new();
    let executions = list("executions").unwrap_or_default();
    for one in executions.iter().filter_map(Value::as_object) {
        let name = match text(one, "flow") {
            Some(flow) => format!("{flow}/{}", plain(one, "name")),
            None => plain(one, "execution"),
        };
        let status = match text(one, "status") {
            Some("notThere") => "not there yet",
            status => status.unwrap_or(NOTHING),
        };
        rows.push(("execution", format!("{name}: {status}")));
    }
    let holders = list("holders").unwrap_or_default();
    rows.extend(holders.iter().map(|holder| ("held by", holder.to_plain_text())));
    let full = list("alsoFull").unwrap_or_default();
    for key in full.iter().filter_map(Value::as_object) {
        let (held, limit) = (plain(key, "held"), plain(key, "limit"));
        let (name, pool) = (plain(key, "key"), plain(key, "pool"));
        rows.push(("also full", format!("`{name}` in `{pool}`: {held} of {limit} are held")));
    }
    rows
}

/// An error with its cause, if it has one.
pub fn failure(error: &str, cause: Option<&str>) -> String {
    match cause {
        None | Some("") => error.to_owned(),
        Some(cause) => format!("{error}: {cause}"),
    }
}

/// An event in a line.
pub fn event_line(event: &Object) -> String {
    let place = place(event.get("path"));
    let step = text(event, "step").unwrap_or_default();
    let undoing = event
        .get("rollback")
        .is_some_and(|rollback| *rollback == Value::from(true));
    let detail = match event.get("detail") {
        None => String::new(),
        Some(detail) if *detail == Value::Object(Object::new()) => String::new(),
        Some(detail) => cut(&foremost(detail).to_json()),
    };
    let line = format!(
        "{:>5}  {}  {:<18}  {step}{place}{}  {detail}",
        plain(event, "id"),
        plain(event, "time"),
        plain(event, "type"),
        if undoing { " (undoing)" } else { "" },
    );
    escaped(line.trim_end()).into_owned()
}

/// The detail with the most important members first.
fn foremost(detail: &Value) -> Value {
    match detail {
        Value::Object(object) if object.contains_key("definitionHash") => {
            let last = |key: &str| matches!(key, "definitionHash" | "machine" | "seed");
            let (back, front): (Vec<_>, Vec<_>) = object.iter().partition(|(key, _)| last(key));
            let members = front.into_iter().chain(back);
            members
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect::<Object>()
                .into()
        }
        other => other.clone(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(DETAIL) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
    }
}

/// The place of something in branches and iterations: ` in each[3]`.
pub fn place(path: Option<&Value>) -> String {
    let items = path.and_then(Value::as_array);
    let items = items.into_iter().flat_map(|items| items.values());
    let parts: Vec<String> = items
        .filter_map(|item| {
            let item = item.as_object()?;
            let child = ["branch", "iteration", "arm"]
                .into_iter()
                .find_map(|key| item.get(key))?;
            Some(format!("{}[{}]", plain(item, "step"), child.to_plain_text()))
        })
        .collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!(" in {}", parts.join("."))
    }
}
