//! Operators: the sender of a request, and its entry in the audit list.

use super::queries::QueryResult;
use super::{Node, NotTaken};
use starbridge_flow::value::Text;
use starbridge_ports::{AuditEntry, AuditKind, LOCAL_OPERATOR};
use starbridge_runtime::{Command, Reply};
use tokio::sync::oneshot;

/// The sender of an operator's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// The name of the token, or [`LOCAL_OPERATOR`].
    pub by: Text,
    /// The id that the sender gave the request.
    pub request: Option<Text>,
}

impl Default for Operator {
    fn default() -> Self {
        Self {
            by: LOCAL_OPERATOR.into(),
            request: None,
        }
    }
}

impl Node {
    /// The audit entry for the current act of an operator.
    pub fn audit_entry(&self, operator: &Operator, action: &str, kind: AuditKind, name: &str) -> AuditEntry {
        AuditEntry {
            time: self.now(),
            by: operator.by.clone(),
            action: action.into(),
            kind,
            name: name.into(),
            detail: starbridge_flow::value::Object::default(),
            request: operator.request.clone(),
            bulk: None,
        }
    }

    /// Deletes an execution that has ended, and waits until that is durable or refused.
    ///
    /// # Errors
    ///
    /// [`NotTaken`] if the node is busy or stopping.
    pub async fn delete_execution(&self, execution: &Text, operator: &Operator) -> Result<Reply, NotTaken> {
        let audit = self.audit_entry(operator, "delete", AuditKind::Execution, execution);
        self.delete_audited(execution, audit).await
    }

    /// Whether the parent execution has not ended: it may have to undo this one.
    ///
    /// # Errors
    ///
    /// [`QueryError::Store`] if the store fails.
    pub fn is_needed(&self, execution: &str) -> QueryResult<bool> {
        let parent = self.store.record(execution)?.and_then(|record| record.parent);
        let parent = parent.map(|parent| self.store.record(&parent.execution)).transpose()?;
        Ok(parent.flatten().is_some_and(|parent| parent.ended.is_none()))
    }

    /// Deletes an execution that has ended, with this entry of the audit list.
    ///
    /// # Errors
    ///
    /// [`NotTaken`] if the node is busy or stopping.
    pub(super) async fn delete_audited(&self, execution: &Text, audit: AuditEntry) -> Result<Reply, NotTaken> {
        let (reply, answer) = oneshot::channel();
        let command = Command::Delete {
            execution: execution.clone(),
            audit: Some(Box::new(audit)),
            reply,
        };
        self.owners.owner_of(execution, command).await?;
        answer.await.map_err(|_| NotTaken::Stopping)
    }
}
