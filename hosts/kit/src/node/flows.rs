//! The flows of a node: kept in its store, compiled in memory.

use super::{Node, NodeError};
use starbridge_fdl::diagnostics::{Diagnostic, Severity};
use starbridge_fdl::graph::Flow;
use starbridge_fdl::limits::{Limits, is_name};
use starbridge_fdl::syntax::{Format, Source};
use starbridge_ports::{KeptFlow, Store, StoreError};
use starbridge_runtime::FlowTable;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A definition that was put.
#[derive(Debug)]
pub struct PutFlow {
    /// The version it has.
    pub version: u64,
    /// Whether that version is new.
    pub new: bool,
    /// The flow.
    pub flow: Arc<Flow>,
    /// The text, for the places of what was found.
    pub source: Source,
    /// What was found: warnings only.
    pub diagnostics: Vec<Diagnostic>,
}

/// Why a definition was not put.
#[derive(Debug)]
pub enum PutError {
    /// This is no name of a flow.
    Name,
    /// It has errors.
    Bad {
        /// The text.
        source: Box<Source>,
        /// What was found.
        diagnostics: Vec<Diagnostic>,
    },
    /// It asks for something that can't be honoured yet.
    NotYet(&'static str),
    /// The store failed.
    Store(StoreError),
}

/// The flows a store keeps, ready to run.
pub(crate) fn load(store: &dyn Store, limits: &Limits) -> Result<FlowTable, NodeError> {
    let flows = FlowTable::default();
    set(&flows, store.flows()?, limits)?;
    Ok(flows)
}

/// What a store keeps of one flow, ready to run; versions that are known already are not read again.
pub(super) fn refresh(store: &dyn Store, flows: &FlowTable, limits: &Limits, name: &str) -> Result<(), StoreError> {
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

/// The same for all flows.
pub(super) fn refresh_all(store: &dyn Store, flows: &FlowTable, limits: &Limits) -> Result<(), StoreError> {
    let mut kept = store.flows()?;
    let mut latest = BTreeMap::new();
    for flow in &kept {
        let last: &mut u64 = latest.entry(flow.name.clone()).or_default();
        *last = flow.version.max(*last);
    }
    kept.retain(|kept| latest.get(&kept.name) == Some(&kept.version) || !flows.knows(&kept.name, kept.version));
    set(flows, kept, limits)
}

/// The same table, which reads flows others have put when they are asked for.
pub(super) fn shared(flows: FlowTable, store: Arc<dyn Store>, limits: Arc<Limits>) -> FlowTable {
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
        // A limit lowered since must not strand what runs.
        let checked = starbridge_fdl::check(&source, &widest(limits, source.text().len()));
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

/// A text that begins with a brace is JSON.
fn format_of(text: &str) -> Format {
    if text.trim_start().starts_with('{') {
        Format::Json
    } else {
        Format::Yaml
    }
}

impl Node {
    /// Keeps a definition as a flow's latest version. What runs goes on with the version it began with.
    pub fn put_flow(&self, name: &str, definition: String, format: Option<Format>) -> Result<PutFlow, PutError> {
        if !is_name(name) {
            return Err(PutError::Name);
        }
        let format = format.unwrap_or_else(|| format_of(&definition));
        let source = Source::new(name, definition).with_format(format);
        let answers = |resource: &str| self.reach.why_not(resource);
        let checked = starbridge_fdl::check_where(&source, &self.limits, Some(&answers));
        let Some(flow) = checked.flow else {
            return Err(PutError::Bad {
                source: Box::new(source),
                diagnostics: checked.diagnostics,
            });
        };
        if let Some(what) = crate::local::needs_server(&flow) {
            return Err(PutError::NotYet(what));
        }
        let (version, new) = self
            .store
            .put_flow(name, source.text(), &flow.hash, self.now())
            .map_err(PutError::Store)?;
        self.flows.set(name, version, flow.clone());
        self.vault.know(name, &flow);
        let mut diagnostics = checked.diagnostics;
        diagnostics.retain(|diagnostic| diagnostic.severity != Severity::Error);
        Ok(PutFlow {
            version,
            new,
            flow,
            source,
            diagnostics,
        })
    }

    /// Hides a flow from starts and lists. Answers whether there was one.
    pub fn hide_flow(&self, name: &str) -> Result<bool, StoreError> {
        let known = self.store.hide_flow(name)?;
        self.flows.hide(name);
        Ok(known)
    }
}
