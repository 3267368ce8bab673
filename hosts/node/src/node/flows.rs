//! The flows of a node: stored as text, compiled in memory.

use super::pool_limits::{PoolLimits, conflict};
use super::{Node, Operator};
use crate::flow_loading::format_of;
use starbridge_fdl::diagnostics::{Diagnostic, Severity};
use starbridge_flow::graph::Flow;
use starbridge_flow::limits::is_name;
use starbridge_flow::syntax::{Format, Source};
use starbridge_ports::{AuditKind, StoreError};
use std::sync::{Arc, PoisonError};

/// A definition that was stored.
#[derive(Debug)]
pub struct PutFlow {
    /// Counted from 1 for each name; an equal definition keeps its version.
    pub version: u64,
    /// Whether the version is new.
    pub new: bool,
    /// The compiled flow.
    pub flow: Arc<Flow>,
    /// The text, to show the diagnostics in.
    pub source: Source,
    /// The diagnostics, which are only warnings.
    pub diagnostics: Vec<Diagnostic>,
}

/// A definition that could be stored.
#[derive(Debug)]
pub struct CheckedFlow {
    /// The compiled flow.
    pub flow: Arc<Flow>,
    /// The text, to show the diagnostics in.
    pub source: Source,
    /// The diagnostics, which are only warnings.
    pub diagnostics: Vec<Diagnostic>,
}

/// Why a definition was not stored.
#[derive(Debug)]
pub enum PutError {
    /// The text is not a name for a flow.
    Name,
    /// The definition has errors.
    Bad {
        /// The text of the definition.
        source: Box<Source>,
        /// At least one of them is an error.
        diagnostics: Vec<Diagnostic>,
    },
    /// The definition needs something that this node does not have.
    NotSupported(&'static str),
    /// Another flow gives the same pool of concurrency keys another limit.
    Limits(PoolLimits),
    /// The store failed.
    Store(StoreError),
}

impl Node {
    /// Stores a definition as a flow's latest version. Executions that run go on with their version.
    ///
    /// # Errors
    ///
    /// [`PutError`] if the name is not allowed, the definition has errors or needs something that this node does not have,
    /// or the store fails.
    pub fn put_flow(&self, name: &str, definition: String, format: Option<Format>) -> Result<PutFlow, PutError> {
        let checked = self.check_definition(name, definition, format)?;
        self.put_if(name, checked, None, false)
    }

    /// Stores a definition as [`Node::put_flow`] does, for an operator. With `new_limits` it may give a pool of
    /// concurrency keys another limit than other flows do, which have to follow: that is how the limit of a pool changes.
    ///
    /// # Errors
    ///
    /// As [`Node::put_flow`].
    pub fn put_flow_audited(
        &self,
        name: &str,
        definition: String,
        format: Option<Format>,
        operator: &Operator,
        new_limits: bool,
    ) -> Result<PutFlow, PutError> {
        let checked = self.check_definition(name, definition, format)?;
        self.put_if(name, checked, Some(operator), new_limits)
    }

    /// Stores a definition that was checked.
    pub(super) fn put_checked(
        &self,
        name: &str,
        checked: CheckedFlow,
        operator: Option<&Operator>,
    ) -> Result<PutFlow, PutError> {
        self.put_if(name, checked, operator, false)
    }

    /// Stores a definition unless it contradicts others. One at a time: two that give a pool different limits would each not see the
    /// other.
    fn put_if(
        &self,
        name: &str,
        checked: CheckedFlow,
        operator: Option<&Operator>,
        new_limits: bool,
    ) -> Result<PutFlow, PutError> {
        let CheckedFlow {
            flow,
            source,
            diagnostics,
        } = checked;
        let _one_at_a_time = self.flow_puts.lock().unwrap_or_else(PoisonError::into_inner);
        if !new_limits {
            self.check_limits(name, &flow)?;
        }
        let audit = operator.map(|operator| self.audit_entry(operator, "put", AuditKind::Flow, name));
        let (version, new) = self
            .store
            .put_flow(name, source.text(), &flow.hash, self.now(), audit.as_ref())
            .map_err(PutError::Store)?;
        self.flows.set(name, version, flow.clone());
        self.vault.know(name, &flow);
        Ok(PutFlow {
            version,
            new,
            flow,
            source,
            diagnostics,
        })
    }

    /// Checks a definition as [`Node::put_flow`] does, and keeps nothing.
    ///
    /// # Errors
    ///
    /// As [`Node::put_flow`].
    pub fn check_flow(&self, name: &str, definition: String, format: Option<Format>) -> Result<CheckedFlow, PutError> {
        let checked = self.check_definition(name, definition, format)?;
        self.check_limits(name, &checked.flow)?;
        Ok(checked)
    }

    /// Whether no other flow gives a pool of concurrency keys another limit.
    fn check_limits(&self, name: &str, flow: &Flow) -> Result<(), PutError> {
        match conflict(name, flow, &self.flows.latest()) {
            Some(conflict) => Err(PutError::Limits(conflict)),
            None => Ok(()),
        }
    }

    /// Checks a definition alone, not against other flows.
    fn check_definition(
        &self,
        name: &str,
        definition: String,
        format: Option<Format>,
    ) -> Result<CheckedFlow, PutError> {
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
        if !flow.concurrency.is_empty() && self.admission.is_none() {
            return Err(PutError::NotSupported("`concurrency`"));
        }
        let mut diagnostics = checked.diagnostics;
        diagnostics.retain(|diagnostic| diagnostic.severity != Severity::Error);
        Ok(CheckedFlow {
            flow,
            source,
            diagnostics,
        })
    }

    /// Hides a flow from starts and lists. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub fn hide_flow(&self, name: &str, operator: &Operator) -> Result<bool, StoreError> {
        let audit = self.audit_entry(operator, "hide", AuditKind::Flow, name);
        let known = self.store.hide_flow(name, Some(&audit))?;
        self.flows.hide(name);
        Ok(known)
    }
}
