//! The thread of admission: its initial state, and its messages to owners.

use super::owner_inboxes::OwnerInboxes;
use starbridge_ports::{Admissions, Message, Store, StoreError};
use starbridge_runtime::{
    AdmissionCommand, AdmissionEngine, AdmissionHandle, AdmissionSettings, Command, Deliver, Reply, Writer,
};
use std::sync::Arc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

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
        owners: &OwnerInboxes,
    ) -> Result<AdmissionEngine, StoreError> {
        let inboxes = owners.clone();
        let mut owners: Vec<OwnerBacklog> = owners.all().iter().cloned().map(OwnerBacklog::new).collect();
        let deliver: Deliver = Box::new(move |message| {
            let table = inboxes.table();
            match table.owner_of(&message.id.to) {
                Some(which) => owners.get_mut(which)?.deliver(message),
                None => Some(message),
            }
        });
        let rows: Arc<dyn Admissions> = store.clone();
        AdmissionEngine::new(settings, rows, deliver, &self.handle, self.inbox, writer)
    }
}

/// How many messages an owner is sent before it is asked whether what it decided is durable. What others send it comes in
/// between, however many executions are admitted at once.
const WAVE: usize = 256;

/// An owner, and the messages that it was sent and may not have made durable yet.
struct OwnerBacklog {
    owner: mpsc::Sender<Command>,
    /// Messages since it was last asked.
    sent: usize,
    /// Its answer to that.
    taken: Option<oneshot::Receiver<Reply>>,
}

impl OwnerBacklog {
    fn new(owner: mpsc::Sender<Command>) -> Self {
        Self {
            owner,
            sent: 0,
            taken: None,
        }
    }

    /// Sends a message. Gives it back if the owner has no room now, or still has to take others.
    fn deliver(&mut self, message: Message) -> Option<Message> {
        if !self.has_taken() {
            return Some(message);
        }
        match self.owner.try_send(Command::Deliver(Box::new(message))) {
            Err(TrySendError::Full(Command::Deliver(message))) => Some(*message),
            // An owner that has ended finds it in the store.
            _ => {
                self.sent += 1;
                None
            }
        }
    }

    /// Whether it may be sent more.
    fn has_taken(&mut self) -> bool {
        if self.sent >= WAVE && self.taken.is_none() {
            let (reply, taken) = oneshot::channel();
            if let Err(TrySendError::Full(_)) = self.owner.try_send(Command::AwaitDurable { kept: false, reply }) {
                return false;
            }
            self.taken = Some(taken);
        }
        if let Some(taken) = &mut self.taken {
            if matches!(taken.try_recv(), Err(oneshot::error::TryRecvError::Empty)) {
                return false;
            }
            (self.sent, self.taken) = (0, None);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starbridge_machine::EventId;
    use starbridge_ports::{MessageBody, MessageId};

    fn message(number: u64) -> Message {
        Message {
            id: MessageId {
                from: "".into(),
                event: EventId(number),
                to: "e".into(),
            },
            body: MessageBody::Admit,
        }
    }

    /// How many of a thousand messages the owner is sent.
    fn sent(told: &mut OwnerBacklog) -> usize {
        (0..1_000)
            .filter(|number| told.deliver(message(*number)).is_none())
            .count()
    }

    #[test]
    fn an_owner_gets_more_once_what_it_took_is_durable() {
        let (owner, mut inbox) = mpsc::channel(4_096);
        let mut told = OwnerBacklog::new(owner);
        assert_eq!(sent(&mut told), WAVE);
        assert_eq!(sent(&mut told), 0);
        for _ in 0..WAVE {
            assert!(matches!(inbox.try_recv(), Ok(Command::Deliver(_))));
        }
        // It has taken them, and has not written anything yet.
        let Ok(Command::AwaitDurable { reply, .. }) = inbox.try_recv() else {
            panic!("it is not asked");
        };
        assert_eq!(sent(&mut told), 0);
        assert!(reply.send(Reply::Taken).is_ok());
        assert_eq!(sent(&mut told), WAVE);
    }

    #[test]
    fn an_owner_that_has_no_room_or_has_ended_blocks_nothing() {
        let (owner, mut inbox) = mpsc::channel(WAVE);
        let mut told = OwnerBacklog::new(owner);
        assert_eq!(sent(&mut told), WAVE);
        assert!(inbox.try_recv().is_ok());
        assert_eq!(sent(&mut told), 0);
        assert!(matches!(inbox.try_recv(), Ok(Command::Deliver(_))));
        drop(inbox);
        assert_eq!(sent(&mut told), 1_000);
    }
}
