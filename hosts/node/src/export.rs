//! Exported histories: a first line that describes the history, then one event a line (section "history").

use crate::flow_loading;
use crate::node::NodeError;
use serde::{Deserialize, Serialize};
use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::{Format, Source};
use starbridge_flow::value::{Text, Value};
use starbridge_machine::history::{HISTORY_FORMAT, read_event, write_event};
use starbridge_machine::{Event, EventId};
use starbridge_ports::{Store, StoreError};
use starbridge_runtime::stored_events;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The oldest version of the form.
const OLDEST: u32 = 1;

/// A history with everything that is needed to fold it.
#[derive(Clone, Debug)]
pub struct ExportedHistory {
    /// The id of the execution.
    pub execution: Text,
    /// The flow that it runs.
    pub flow: Arc<Flow>,
    /// The events of the history, in order.
    pub events: Vec<Event>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    history: u32,
    execution: Text,
    definition: Value,
    #[serde(default)]
    flows: BTreeMap<String, Value>,
}

/// Why a text is not an exported history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportError {
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong with the line.
    pub message: String,
}

impl std::fmt::Display for ExportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ExportError {}

/// The lowest version of the machine that reads these events.
pub fn needed_version<'a>(events: impl IntoIterator<Item = &'a Event>) -> u32 {
    let needed = events.into_iter().map(|event| event.detail.needed_version());
    needed.max().unwrap_or(OLDEST)
}

/// The first line of an exported history. `needed` is the lowest version of the machine that reads its events, `flows`
/// are the flows that the definition starts as children.
pub fn export_head(execution: &str, needed: u32, flow: &Flow, flows: &BTreeMap<String, Arc<Flow>>) -> String {
    let head = Head {
        history: needed,
        execution: Text::from(execution),
        definition: flow.definition.clone(),
        flows: flows
            .iter()
            .map(|(name, flow)| (name.clone(), flow.definition.clone()))
            .collect(),
    };
    serde_json::to_string(&head).unwrap_or_default()
}

/// The line of one event.
pub fn export_event(flow: &Flow, event: &Event) -> String {
    serde_json::to_string(&write_event(flow, event)).unwrap_or_default()
}

impl ExportedHistory {
    /// The stored history of an execution that runs this flow.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] if the history does not fit the flow, or the error of the store.
    pub fn of_execution(store: &dyn Store, flow: Arc<Flow>, id: &Text) -> Result<Self, StoreError> {
        Ok(Self {
            execution: id.clone(),
            events: stored_events(store, &flow, id, u64::MAX)?,
            flow,
        })
    }

    /// The stored history of an execution, given by its id or as FLOW/NAME; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`NodeError::Store`] if the store fails or the history does not fit its flow.
    pub fn of_stored(store: &dyn Store, execution: &str) -> Result<Option<Self>, NodeError> {
        let id = match execution.split_once('/') {
            Some((flow, name)) => store.named(flow, name)?,
            None => Some(Text::from(execution)),
        };
        let Some(id) = id else {
            return Ok(None);
        };
        let Some(record) = store.record(&id)? else {
            return Ok(None);
        };
        let flows = flow_loading::load(store, &Limits::default())?;
        let flow = flows.running(&record.flow, record.version).ok_or_else(|| {
            let message = format!("version {} of the flow `{}` is gone", record.version, record.flow);
            StoreError::Corrupt(message)
        })?;
        Ok(Some(Self::of_execution(store, flow, &id)?))
    }

    /// Reads an exported history. If the last line is cut off, that is an error too.
    ///
    /// # Errors
    ///
    /// [`ExportError`] with the line that is wrong.
    pub fn parse(text: &str) -> Result<Self, ExportError> {
        let mut lines = (1usize..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let at = |line: usize, message: String| ExportError { line, message };
        let (line, head) = lines.next().ok_or_else(|| {
            at(
                1,
                "the file is empty: a history begins with `{\"history\": 1, …}`".to_owned(),
            )
        })?;
        let head: Head = serde_json::from_str(head).map_err(|error| {
            at(
                line,
                format!("this is no head of a history (`{{\"history\": 1, …}}`): {error}"),
            )
        })?;
        if !(OLDEST..=HISTORY_FORMAT).contains(&head.history) {
            let message = format!(
                "the history has format {}, this program reads {OLDEST} to {HISTORY_FORMAT}",
                head.history
            );
            return Err(at(line, message));
        }
        let flow = compile(&head.definition).map_err(|message| at(line, message))?;
        let mut events = Vec::new();
        for (line, text) in lines {
            let value: Value =
                serde_json::from_str(text).map_err(|error| at(line, format!("this is no JSON: {error}")))?;
            let event = read_event(&flow, &value).map_err(|error| at(line, error.message))?;
            let expected = EventId(events.len() as u64 + 1);
            if event.id != expected {
                return Err(at(
                    line,
                    format!("event {expected} should stand here, not event {}", event.id),
                ));
            }
            events.push(event);
        }
        Ok(Self {
            execution: head.execution,
            flow,
            events,
        })
    }
}

/// Compiles the definition in a history.
fn compile(definition: &Value) -> Result<Arc<Flow>, String> {
    let source = Source::new("definition", definition.to_json()).with_format(Format::Json);
    let checked = starbridge_fdl::check_stored(&source, &Limits::default());
    checked.flow.ok_or_else(|| {
        let first = checked.diagnostics.first().map(|diagnostic| diagnostic.message.clone());
        format!("the definition has errors: {}", first.unwrap_or_default())
    })
}
