//! The flows of a node: kept in its store, compiled in memory.

use super::Node;
use crate::flow_loading::format_of;
use starbridge_flow::diagnostics::{Diagnostic, Severity};
use starbridge_flow::graph::Flow;
use starbridge_flow::limits::is_name;
use starbridge_flow::syntax::{Format, Source};
use starbridge_ports::StoreError;
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

impl Node {
    /// Keeps a definition as a flow's latest version. What runs goes on with the version it began with.
    pub fn put_flow(&self, name: &str, definition: String, format: Option<Format>) -> Result<PutFlow, PutError> {
        if !is_name(name) {
            return Err(PutError::Name);
        }
        let format = format.unwrap_or_else(|| format_of(&definition));
        let source = Source::new(name, definition).with_format(format);
        let answers = |resource: &str| self.reach.unsupported_reason(resource);
        let checked = starbridge_fdl::check_where(&source, &self.limits, Some(&answers));
        let Some(flow) = checked.flow else {
            return Err(PutError::Bad {
                source: Box::new(source),
                diagnostics: checked.diagnostics,
            });
        };
        if let Some(what) = flow.needs_server() {
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
