//! The messages that admission handles and sends.

use super::Overlay;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{ADMISSION, Admissions, AuditEntry, Message, MessageBody, MessageId, StoreError};

impl Overlay {
    /// Reads together which of these messages are still to be handled.
    pub(in crate::admission) fn look_for(
        &mut self,
        messages: Vec<MessageId>,
        rows: &dyn Admissions,
    ) -> Result<(), StoreError> {
        self.pending = rows.pending_of(&messages)?.into_iter().collect();
        self.asked = messages.into_iter().collect();
        Ok(())
    }

    /// Whether a message is still to be handled.
    pub(in crate::admission) fn is_pending(
        &self,
        message: &MessageId,
        rows: &dyn Admissions,
    ) -> Result<bool, StoreError> {
        if self.received.contains(message) {
            return Ok(false);
        }
        // Nobody else deletes them, and a message that comes while this decides is delivered later.
        match self.asked.contains(message) {
            true => Ok(self.pending.contains(message)),
            false => rows.is_pending(message),
        }
    }

    pub(in crate::admission) fn received(&mut self, message: MessageId) {
        self.received.insert(message);
    }

    pub(in crate::admission) fn send(&mut self, to: &Text, event: EventId, body: MessageBody) {
        let id = MessageId {
            from: ADMISSION.into(),
            event,
            to: to.clone(),
        };
        if self.sent.iter().rev().take(8).all(|sent| sent.id != id) {
            self.sent.push(Message { id, body });
        }
    }

    pub(in crate::admission) fn audit(&mut self, entry: Option<AuditEntry>) {
        self.audit.extend(entry);
    }
}
