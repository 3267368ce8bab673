//! The thread of admission: its initial state, and its messages to owners.

use starbridge_ports::{Admissions, History, Message, Store, StoreError, owner_index};
use starbridge_runtime::{
    AdmissionCommand, AdmissionEngine, AdmissionHandle, AdmissionSettings, Command, Deliver, Writer,
};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// The state that owners and admission of a node share.
pub(super) struct SharedAdmission {
    pub(super) handle: AdmissionHandle,
    inbox: mpsc::UnboundedReceiver<AdmissionCommand>,
}

impl SharedAdmission {
    pub(super) fn new() -> Self {
        let (handle, inbox) = AdmissionHandle::new();
        Self { handle, inbox }
    }

    /// The engine of admission, which goes on from what the store has.
    pub(super) fn engine(
        self,
        settings: AdmissionSettings,
        store: &Arc<dyn Store>,
        writer: &Writer,
        owners: Vec<mpsc::Sender<Command>>,
    ) -> Result<AdmissionEngine, StoreError> {
        let deliver: Deliver = Box::new(move |message| deliver(&owners, message));
        let rows: Arc<dyn Admissions> = store.clone();
        let history: &dyn History = store.as_ref();
        AdmissionEngine::new(settings, (rows, history), deliver, &self.handle, self.inbox, writer)
    }
}

/// Sends a message to the owner of an execution. Gives the message back if the owner has no room
/// now.
fn deliver(owners: &[mpsc::Sender<Command>], message: Message) -> Option<Message> {
    let owner = owners.get(owner_index(&message.id.to, owners.len()))?;
    match owner.try_send(Command::Deliver(Box::new(message))) {
        Err(TrySendError::Full(Command::Deliver(message))) => Some(*message),
        // An owner that has ended finds it in the store.
        _ => None,
    }
}
