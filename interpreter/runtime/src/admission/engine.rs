//! Drives admission in real time, with a store, and tells executions what was decided.

use super::command::AdmissionCommand;
use super::governed::FlowChange;
use super::handle::AdmissionHandle;
use super::overlay::flow_key;
use super::settings::AdmissionSettings;
use super::value::{Admission, Decided};
use crate::engine::writer::{Writer, Writing};
use starbridge_flow::value::Text;
use starbridge_ports::{Admissions, FLOW_POOL, Message, PoolKey, StoreError, Waiters};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// When to tell an owner again that had no room.
const RETRY: Duration = Duration::from_millis(20);
/// How many commands are taken before something is decided.
const BATCH: usize = 4_096;
/// How many keys are read at once.
const KEYS: usize = 1_000;

/// Tells the owner of an execution. Gives the message back if the owner has no room now.
pub type Deliver = Box<dyn FnMut(Message) -> Option<Message> + Send>;

/// A change that an operator waits for.
struct AskedChange {
    key: PoolKey,
    reply: oneshot::Sender<()>,
    /// Starts of the flow ask until the change is durable, whatever an earlier change left.
    _flow: Option<FlowChange>,
}

/// Drives admission in real time.
///
/// Call [`AdmissionEngine::new`], which loads what the store has, then [`AdmissionEngine::serve`] until it returns. Meanwhile
/// use its [`AdmissionHandle`].
pub struct AdmissionEngine {
    admission: Admission,
    rows: Arc<dyn Admissions>,
    handle: AdmissionHandle,
    inbox: mpsc::UnboundedReceiver<AdmissionCommand>,
    deliver: Deliver,
    writing: Writing,
    /// Messages to owners that are still to be told, because what says so is new or because they had no room.
    unsent: VecDeque<Message>,
    /// Operators that wait for an answer, in the order of their changes; of the first ones, the changes are being written.
    asked: VecDeque<AskedChange>,
    answered: usize,
    /// Names that may not be waited for any more, once what was decided is durable.
    left_names: BTreeSet<(Text, Text)>,
    /// Whether the questions of the store that are from before this process may not be noted yet.
    incomplete: bool,
    stopped: bool,
}

impl AdmissionEngine {
    /// An engine that goes on from what the store has. `handle` is the handle whose commands arrive on `inbox`.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store can't be read.
    pub fn new(
        settings: AdmissionSettings,
        rows: Arc<dyn Admissions>,
        deliver: Deliver,
        handle: &AdmissionHandle,
        inbox: mpsc::UnboundedReceiver<AdmissionCommand>,
        writer: &Writer,
    ) -> Result<Self, StoreError> {
        let admission = Admission::resume(settings, rows.as_ref())?;
        handle.set_incomplete(true);
        handle.bound_waiting(rows.count_waiters()?, settings.max_waiting);
        // Keys are in the order of their pools: there may be a million of others.
        let mut after = flow_key(&Text::default());
        loop {
            let keys = rows.kept_keys(Some(&after), KEYS)?;
            let of_flows = keys.iter().take_while(|kept| kept.key.pool.as_str() == FLOW_POOL);
            for kept in of_flows.filter(|kept| kept.is_set()) {
                handle.govern(kept.key.key.clone(), true);
            }
            match keys.last() {
                Some(last) if keys.len() >= KEYS && last.key.pool.as_str() == FLOW_POOL => after = last.key.clone(),
                _ => break,
            }
        }
        Ok(Self {
            admission,
            rows,
            handle: handle.clone(),
            inbox,
            deliver,
            writing: Writing::through(writer),
            unsent: VecDeque::new(),
            asked: VecDeque::new(),
            answered: 0,
            left_names: BTreeSet::new(),
            incomplete: true,
            stopped: false,
        })
    }

    /// Serves until [`AdmissionCommand::Stop`].
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn serve(mut self) -> Result<(), StoreError> {
        loop {
            self.decide()?;
            self.tell_owners();
            if self.stopped && !self.writing.is_busy() {
                return Ok(());
            }
            let retry = !self.unsent.is_empty();
            let more = !self.writing.is_busy() && !self.admission.is_idle();
            tokio::select! {
                biased;
                written = self.writing.written() => { written?; self.take_written()?; }
                command = self.inbox.recv() => match command {
                    Some(command) => self.take(command),
                    None => self.stopped = true,
                },
                () = std::future::ready(()), if more => {}
                () = tokio::time::sleep(RETRY), if retry => {}
            }
            for _ in 0..BATCH {
                match self.inbox.try_recv() {
                    Ok(command) => self.take(command),
                    Err(_) => break,
                }
            }
        }
    }

    fn take(&mut self, command: AdmissionCommand) {
        match command {
            AdmissionCommand::Deliver(message) => self.admission.deliver(message),
            AdmissionCommand::Change {
                key,
                change,
                flow,
                reply,
            } => {
                self.admission.change(key.clone(), *change);
                self.asked.push_back(AskedChange {
                    key,
                    reply,
                    _flow: flow,
                });
            }
            AdmissionCommand::Stop => self.stopped = true,
        }
    }

    /// Decides what can be decided. What was decided before must be durable: the store is what is read.
    fn decide(&mut self) -> Result<(), StoreError> {
        if self.writing.is_busy() || self.admission.is_idle() {
            return Ok(());
        }
        // Owners know the names before these are looked for, also those of a process before.
        self.note_awaited();
        let Decided { append, changes } = self.admission.poll(self.rows.as_ref())?;
        self.note_read();
        self.answered = changes;
        // Who is seen to wait is counted.
        self.handle.count_waiting(self.admission.waiting_change());
        self.note_awaited();
        if changes == 0 && append.changes_nothing_of_admission() {
            self.admission.settle();
            self.handle.forget_decided(&self.admission.decided());
            return self.forget_names();
        }
        let told = append.sent.clone();
        let written = self.writing.write(vec![append])?;
        // Owners append through the same writer: what they decide now is durable after this, or not at all.
        self.unsent.extend(told);
        if written.is_some() {
            self.take_written()?;
        }
        Ok(())
    }

    /// Questions that were read from the store are noted before what is decided of them is durable.
    fn note_read(&mut self) {
        for message in self.admission.questions_read() {
            self.handle.note_undecided(&message);
        }
        if self.incomplete && !self.admission.has_unread() {
            self.incomplete = false;
            self.handle.set_incomplete(false);
        }
    }

    fn note_awaited(&mut self) {
        for (flow, name) in self.admission.awaited() {
            // Whoever asked may have gone in the same moment.
            self.left_names.insert((flow.clone(), name.clone()));
            self.handle.await_name(flow, name, true);
        }
    }

    /// Forgets the names that nobody waits for any more. The rows are durable: who asks later is not among them, and is noted then.
    fn forget_names(&mut self) -> Result<(), StoreError> {
        self.left_names.extend(self.admission.left_names());
        for (flow, name) in std::mem::take(&mut self.left_names) {
            if self.rows.waiter_ids(Waiters::Named(&flow, &name, 0), 1)?.is_empty() {
                self.handle.await_name(flow, name, false);
            }
        }
        Ok(())
    }

    /// What was decided is durable: operators hear of it.
    fn take_written(&mut self) -> Result<(), StoreError> {
        self.admission.settle();
        self.handle.forget_decided(&self.admission.decided());
        self.forget_names()?;
        let answered = self.answered.min(self.asked.len());
        self.answered = 0;
        for asked in self.asked.drain(..answered) {
            if asked.key.pool.as_str() == FLOW_POOL {
                let governed = self.admission.governs(&asked.key.key, self.rows.as_ref())?;
                self.handle.govern(asked.key.key.clone(), governed);
            }
            // Whoever asked may have gone.
            let _ = asked.reply.send(());
        }
        Ok(())
    }

    fn tell_owners(&mut self) {
        for _ in 0..self.unsent.len() {
            let Some(message) = self.unsent.pop_front() else {
                break;
            };
            if let Some(message) = (self.deliver)(message) {
                self.unsent.push_back(message);
            }
        }
    }
}
