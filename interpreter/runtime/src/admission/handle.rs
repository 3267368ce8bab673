//! The handle to admission.

use super::command::AdmissionCommand;
use super::governed::{FlowChange, GovernedFlows};
use super::undecided::Undecided;
use starbridge_flow::value::Text;
use starbridge_ports::{Admissions, Dependency, Message, MessageBody, MessageId, StoreError};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::mpsc;

/// Sends commands to the thread of admission.
#[derive(Clone, Debug)]
pub struct AdmissionHandle {
    commands: mpsc::UnboundedSender<AdmissionCommand>,
    governed: Arc<RwLock<GovernedFlows>>,
    /// Flows and names of executions that somebody waits for and that were not there.
    awaited: Arc<RwLock<BTreeSet<(Text, Text)>>>,
    /// The questions of those that wait for others, until they are decided.
    undecided: Arc<RwLock<Undecided>>,
    /// How many wait, and how many may.
    waiting: Arc<AtomicU64>,
    max_waiting: Arc<AtomicU64>,
    /// Whether it decides for one run only, so that nobody else can come who is waited for.
    one_run: bool,
}

impl AdmissionHandle {
    /// A handle, and the channel on which its commands arrive.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<AdmissionCommand>) {
        let (commands, inbox) = mpsc::unbounded_channel();
        let handle = Self {
            commands,
            governed: Arc::default(),
            awaited: Arc::default(),
            undecided: Arc::default(),
            waiting: Arc::default(),
            max_waiting: Arc::new(AtomicU64::new(u64::MAX)),
            one_run: false,
        };
        (handle, inbox)
    }

    /// A handle and its inbox for a run that is alone in its process.
    pub(crate) fn of_one_run() -> (Self, mpsc::UnboundedReceiver<AdmissionCommand>) {
        let (handle, inbox) = Self::new();
        (
            Self {
                one_run: true,
                ..handle
            },
            inbox,
        )
    }

    /// Whether an execution may wait for others by their names and ids.
    pub(crate) fn knows_others(&self) -> bool {
        !self.one_run
    }

    /// Sends a command. It is dropped if admission has stopped.
    pub fn send(&self, command: AdmissionCommand) {
        if let AdmissionCommand::Deliver(message) = &command {
            self.note_undecided(message);
        }
        let _ = self.commands.send(command);
    }

    /// Whether starts of a flow have to be admitted whatever their keys, because an operator limits or pauses the flow.
    pub fn governs(&self, flow: &str) -> bool {
        let flows = self.governed.read().unwrap_or_else(PoisonError::into_inner);
        flows.set.contains(flow) || flows.changing.contains_key(flow)
    }

    /// Begins a change of a flow's limit or pause: starts of the flow ask from now on.
    pub fn begin_change(&self, flow: Text) -> FlowChange {
        let mut flows = self.governed.write().unwrap_or_else(PoisonError::into_inner);
        *flows.changing.entry(flow.clone()).or_default() += 1;
        FlowChange {
            governed: self.governed.clone(),
            flow,
        }
    }

    /// How many may wait, if so many do. What is not decided yet is not counted.
    pub(crate) fn full_at(&self) -> Option<u64> {
        let most = self.max_waiting.load(Ordering::Relaxed);
        (self.waiting.load(Ordering::Relaxed) >= most).then_some(most)
    }

    /// Sets how many wait, and how many may.
    pub(super) fn bound_waiting(&self, waiting: u64, most: u64) {
        self.waiting.store(waiting, Ordering::Relaxed);
        self.max_waiting.store(most, Ordering::Relaxed);
    }

    /// So many more wait than before, or fewer.
    pub(super) fn count_waiting(&self, change: i64) {
        let before = self.waiting.load(Ordering::Relaxed);
        self.waiting
            .store(before.saturating_add_signed(change), Ordering::Relaxed);
    }

    /// Whether somebody waits for an execution of this flow with this name.
    pub fn awaits(&self, flow: &Text, name: &Text) -> bool {
        let awaited = self.awaited.read().unwrap_or_else(PoisonError::into_inner);
        !awaited.is_empty() && awaited.contains(&(flow.clone(), name.clone()))
    }

    /// Notes a durable question whose sender waits for others.
    pub(super) fn note_undecided(&self, message: &Message) {
        if Undecided::is_kept(message) {
            let mut undecided = self.undecided.write().unwrap_or_else(PoisonError::into_inner);
            undecided.add(message);
        }
    }

    /// Says whether the store may have questions from before this process that were not noted.
    pub(super) fn set_incomplete(&self, incomplete: bool) {
        let mut undecided = self.undecided.write().unwrap_or_else(PoisonError::into_inner);
        undecided.incomplete = incomplete;
    }

    /// What was decided of these questions is durable.
    pub(super) fn forget_decided(&self, questions: &[MessageId]) {
        if !questions.is_empty() {
            let mut undecided = self.undecided.write().unwrap_or_else(PoisonError::into_inner);
            questions.iter().for_each(|question| undecided.remove(question));
        }
    }

    /// Whether somebody whose question is not decided yet may wait for an execution of this flow with this name.
    pub(crate) fn awaits_undecided(&self, flow: &Text, name: &Text) -> bool {
        let undecided = self.undecided.read().unwrap_or_else(PoisonError::into_inner);
        undecided.awaits(flow, name)
    }

    /// What an execution waits for whose question is not decided yet.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store can't be read.
    pub(crate) fn undecided_of(&self, execution: &Text, rows: &dyn Admissions) -> Result<Vec<Dependency>, StoreError> {
        let undecided = self.undecided.read().unwrap_or_else(PoisonError::into_inner);
        let known = undecided.of(execution);
        let is_complete = !undecided.incomplete || !known.is_empty();
        drop(undecided);
        if is_complete {
            return Ok(known);
        }
        let asked = rows.messages_of(execution)?.into_iter();
        let after = asked.flat_map(|message| match message.body {
            MessageBody::Ask(ask) => ask.after,
            _ => Vec::new(),
        });
        Ok(after.collect())
    }

    /// Notes that somebody waits for an execution of this flow with this name, or no longer does. After noting that somebody
    /// does, look for it: a start that is durable later finds this note.
    pub fn await_name(&self, flow: Text, name: Text, awaited: bool) {
        let mut names = self.awaited.write().unwrap_or_else(PoisonError::into_inner);
        match awaited {
            true => names.insert((flow, name)),
            false => names.remove(&(flow, name)),
        };
    }

    /// Notes that an operator limits or pauses a flow, or no longer does.
    pub fn govern(&self, flow: Text, governed: bool) {
        let mut flows = self.governed.write().unwrap_or_else(PoisonError::into_inner);
        match governed {
            true => flows.set.insert(flow),
            false => flows.set.remove(&flow),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_governed_as_long_as_a_change_is_under_way() {
        let (handle, _inbox) = AdmissionHandle::new();
        let flow = Text::from("migrate");
        let first = handle.begin_change(flow.clone());
        let second = handle.begin_change(flow.clone());
        drop(first);
        // What an earlier change left does not end what a later one asks for.
        handle.govern(flow.clone(), false);
        assert!(handle.governs("migrate"));
        drop(second);
        assert!(!handle.governs("migrate"));
        handle.govern(flow, true);
        assert!(handle.governs("migrate") && !handle.governs("upgrade"));
    }
}
