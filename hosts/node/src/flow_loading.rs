//! Loads flows from a store, which has them as text, and compiles them.

use starbridge_flow::graph::Flow;
use starbridge_flow::limits::{Limits, is_name};
use starbridge_flow::syntax::{Format, Source};
use starbridge_ports::{KeptFlow, Store, StoreError};
use starbridge_runtime::FlowTable;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The flows of a store, compiled.
pub(crate) fn load(store: &dyn Store, limits: &Limits) -> Result<FlowTable, StoreError> {
    let flows = FlowTable::default().with_messages(of_messages);
    set(&flows, store.flows()?, limits)?;
    Ok(flows)
}

/// The flow that a message of a queue runs: the message is its input, and what the worker reports its output.
fn of_messages(queue: &str) -> Option<Arc<Flow>> {
    if !is_name(queue) {
        return None;
    }
    let text = format!(
        r#"{{"version": "v1", "type": "flow", "steps": [{{"type": "task", "name": "message", "resourceArn": "queue:{queue}"}}]}}"#
    );
    let source = Source::new(queue, text).with_format(Format::Json);
    starbridge_fdl::check_stored(&source, &Limits::default()).flow
}

/// Adds the versions of one flow in a store to the table. Known versions are not read again.
pub(crate) fn refresh(store: &dyn Store, flows: &FlowTable, limits: &Limits, name: &str) -> Result<(), StoreError> {
    let Some(latest) = store.latest_flow(name)? else {
        return Ok(());
    };
    if flows.knows(name, latest.version) {
        flows.set_hidden(name, latest.hidden);
        return Ok(());
    }
    let mut versions = store.versions(name)?;
    versions.retain(|kept| !flows.knows(name, kept.version));
    set(flows, versions, limits)
}

/// Adds the versions of all flows in a store to the table.
pub(crate) fn refresh_all(store: &dyn Store, flows: &FlowTable, limits: &Limits) -> Result<(), StoreError> {
    let mut kept = store.flows()?;
    let mut latest = BTreeMap::new();
    for flow in &kept {
        let last: &mut u64 = latest.entry(flow.name.clone()).or_default();
        *last = flow.version.max(*last);
    }
    kept.retain(|kept| latest.get(&kept.name) == Some(&kept.version) || !flows.knows(&kept.name, kept.version));
    set(flows, kept, limits)
}

/// This table, which reads a flow from the store when it does not have it.
pub(crate) fn shared(flows: FlowTable, store: Arc<dyn Store>, limits: Arc<Limits>) -> FlowTable {
    flows.asking(move |flows, name| {
        if let Err(error) = refresh(store.as_ref(), flows, &limits, name) {
            tracing::warn!(flow = name, %error, "its versions can't be read");
        }
    })
}

fn set(flows: &FlowTable, kept: Vec<KeptFlow>, limits: &Limits) -> Result<(), StoreError> {
    let mut hidden = Vec::new();
    for kept in kept {
        let format = format_of(&kept.definition);
        let source = Source::new(kept.name.as_str(), kept.definition).with_format(format);
        // A limit that was lowered meanwhile must not stop running executions.
        let checked = starbridge_fdl::check_stored(&source, &widest(limits, source.text().len()));
        let Some(flow) = checked.flow else {
            return Err(StoreError::Corrupt(format!(
                "version {} of the flow `{}` is no longer readable",
                kept.version, kept.name
            )));
        };
        flows.set(&kept.name, kept.version, flow);
        if kept.hidden {
            hidden.push(kept.name);
        }
    }
    for name in hidden {
        flows.hide(&name);
    }
    Ok(())
}

fn widest(limits: &Limits, bytes: usize) -> Limits {
    let usual = Limits::default();
    Limits {
        definition_bytes: limits.definition_bytes.max(bytes),
        steps: limits.steps.max(usual.steps),
        nesting: limits.nesting.max(usual.nesting),
        branches: limits.branches.max(usual.branches),
        ..limits.clone()
    }
}

/// The format of a text: one that begins with a brace is JSON.
pub(crate) fn format_of(text: &str) -> Format {
    if text.trim_start().starts_with('{') {
        Format::Json
    } else {
        Format::Yaml
    }
}
