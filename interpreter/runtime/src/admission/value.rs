//! Who may run: the value that decides. It does no I/O but for reading what its own earlier decisions left in the store.

use super::backlog::{Backlog, Line, Unfinished};
use super::choose::Choice;
use super::dependencies::Appeared;
use super::overlay::{Overlay, flow_key, unbound_names};
use super::settings::AdmissionSettings;
use super::undecided::Undecided;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{
    Admissions, Append, Ask, AuditEntry, EndedHolders, FLOW_POOL, KeyPause, Message, MessageBody, MessageId,
    OpenDependency, PoolKey, Query, StoreError, WATCH_EVENT, Waiter, Waiters,
};
use std::collections::{BTreeMap, VecDeque};

/// How many running executions are read at once, when their flow gets a limit.
const RUNNING: usize = 1_000;
/// How many holders of slots are looked at before what was decided is made durable.
const HOLDERS: usize = 256;

/// What an operator changes of a key. What is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyChange {
    /// The limit; `Some(None)`: the definition's, or none.
    pub limit: Option<Option<u64>>,
    /// The pause; `Some(None)`: none.
    pub paused: Option<Option<KeyPause>>,
    /// The name of the operator.
    pub by: Text,
    /// What the audit list says of it.
    pub audit: Option<AuditEntry>,
}

#[derive(Debug)]
enum Input {
    Message(Message),
    Change(PoolKey, Box<KeyChange>),
}

/// What was decided.
#[derive(Debug)]
pub struct Decided {
    /// All of it, as one append. Nothing more may be decided until it is durable.
    pub append: Append,
    /// How many of the changes that were asked for are in it.
    pub changes: usize,
}

/// Decides who may run, and when (section "operating executions").
///
/// Hand it messages with [`Admission::deliver`] and what operators ask for with [`Admission::change`]. [`Admission::poll`] then
/// decides and gives what is to be appended; once that is durable, call [`Admission::settle`] and send on the append's messages.
///
/// INVARIANT: after each append, each waiter has an open dependency, a claim with a key that has no slot for it, or stands in
/// the line of a key of its own that has no free slot which is not reserved; or that key is stale, or a message is there that
/// will have it looked at. No waiter holds a slot.
#[derive(Debug, Default)]
pub struct Admission {
    overlay: Overlay,
    settings: AdmissionSettings,
    inputs: VecDeque<Input>,
    /// Whether the store may have messages that were not delivered, or were not kept here.
    unread: bool,
    /// Questions of those that wait for others which were read from the store, since the last time they were asked for.
    read: Vec<Message>,
    /// After which holder of slots those are still to be looked for that have ended; `None`: nowhere.
    unlooked: Option<Text>,
    /// What is still to be done for those who wait for others, among them those who ask and whose names are looked up once they
    /// are durable.
    backlog: Backlog,
    /// Questions of those that wait for others which are decided, since the last time they were asked for.
    decided: Vec<MessageId>,
    /// Names that somebody waits for since the last time they were asked for.
    awaited: Vec<(Text, Text)>,
}

impl Admission {
    /// Goes on from what the store has, and reads from it the messages that are not handled.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store can't be read.
    pub fn resume(settings: AdmissionSettings, rows: &dyn Admissions) -> Result<Self, StoreError> {
        let mut admission = Self {
            overlay: Overlay::of(rows)?,
            settings,
            // An earlier version did not tell of each end. There may be a million of holders: nobody waits until all are looked at.
            unlooked: Some(Text::default()),
            unread: settings.inbox < usize::MAX,
            ..Self::default()
        };
        for waiter in admission.overlay.all(Waiters::Unbound, |_| false, rows)? {
            for name in unbound_names(&waiter) {
                admission.awaited.push(name.clone());
                // A start before the last end of the process may have taken it.
                admission.backlog.add(Unfinished::Name(name.0, name.1));
            }
        }
        Ok(admission)
    }

    /// Takes a message that is durable. If there are many, it is not kept: the store has it.
    pub fn deliver(&mut self, message: Message) {
        // The store does not have this one, which says only that names may be found now.
        let is_stored = !matches!(message.body, MessageBody::Appeared { .. });
        if is_stored && (self.unread || self.kept() >= self.settings.inbox) {
            self.unread = true;
            return;
        }
        self.inputs.push_back(Input::Message(message));
    }

    /// How many messages are in memory, or are still to be gone on with.
    fn kept(&self) -> usize {
        self.inputs.len().saturating_add(self.backlog.total())
    }

    /// Reads messages from the store once those in memory are taken: what was decided of them is durable, so the first ones
    /// of the store are the next ones, but for those that are still to be gone on with.
    fn read_messages(&mut self, rows: &dyn Admissions) -> Result<(), StoreError> {
        let limit = self.settings.inbox.max(1);
        if !self.unread || !self.inputs.is_empty() || self.backlog.total() >= limit {
            return Ok(());
        }
        let limit = limit.saturating_add(self.backlog.total());
        let mut messages = rows.first_messages(limit)?;
        // What was durable before the store was read is among them. What comes later is delivered.
        self.unread = messages.len() >= limit;
        messages.retain(|message| !self.backlog.has(&message.id));
        self.read
            .extend(messages.iter().filter(|message| Undecided::is_kept(message)).cloned());
        self.inputs.extend(messages.into_iter().map(Input::Message));
        Ok(())
    }

    /// Whether the store may have messages that are still to be read.
    pub(super) fn has_unread(&self) -> bool {
        self.unread
    }

    /// The questions of those that wait for others which were read from the store since the last call.
    pub(super) fn questions_read(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.read)
    }

    /// Takes an operator's change of a key.
    pub fn change(&mut self, key: PoolKey, change: KeyChange) {
        self.inputs.push_back(Input::Change(key, Box::new(change)));
    }

    /// The flows and names of executions that somebody waits for and that were not there, since the last call. They have to
    /// be known to those who start executions before the next [`Admission::poll`].
    pub fn awaited(&mut self) -> Vec<(Text, Text)> {
        std::mem::take(&mut self.awaited)
    }

    /// The questions of those that wait for others which were decided since the last call. Ask once that is durable.
    pub(super) fn decided(&mut self) -> Vec<MessageId> {
        std::mem::take(&mut self.decided)
    }

    /// Names that a waiter does not wait for any more, since the last call. Others may.
    pub fn left_names(&mut self) -> Vec<(Text, Text)> {
        std::mem::take(&mut self.overlay.left_names)
    }

    /// How many more wait than at the last call, or how many fewer.
    pub fn waiting_change(&mut self) -> i64 {
        std::mem::take(&mut self.overlay.waiting_change)
    }

    /// Whether there is something to decide.
    pub fn is_idle(&self) -> bool {
        self.inputs.is_empty()
            && !self.unread
            && self.unlooked.is_none()
            && self.backlog.is_empty()
            && !self.overlay.anything_due()
    }

    /// Decides what can be decided now.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store can't be read. What was decided until then is unknown: begin anew with
    /// [`Admission::resume`].
    pub fn poll(&mut self, rows: &dyn Admissions) -> Result<Decided, StoreError> {
        let mut changes = 0;
        self.go_on(Line::Messages, rows)?;
        self.go_on(Line::Names, rows)?;
        let mut names = self.settings.names;
        // Whose message is still to come is found to be over with what it holds.
        if let Some(after) = self.unlooked.take() {
            let EndedHolders { ended, looked } = rows.ended_holders(&after, HOLDERS)?;
            self.unlooked = looked;
            for (execution, status) in ended {
                self.take_end(&execution, status, None, &mut names, rows)?;
            }
        }
        self.read_messages(rows)?;
        let inputs = self.inputs.iter().take(self.settings.messages);
        let messages = inputs.filter_map(|input| match input {
            Input::Message(message) => Some(message.id.clone()),
            Input::Change(..) => None,
        });
        let messages = messages.collect();
        self.overlay.look_for(messages, rows)?;
        for _ in 0..self.settings.messages {
            match self.inputs.pop_front() {
                Some(Input::Message(message)) => self.take(message, &mut names, rows)?,
                Some(Input::Change(key, change)) => {
                    changes += 1;
                    self.take_change(&key, *change, rows)?;
                }
                None => break,
            }
        }
        let mut budget = self.settings.examined;
        while budget > 0
            && let Some(key) = self.overlay.next_due(rows)?
        {
            let mut choice = self.choice(rows);
            if !choice.look_at(&key, &mut budget)? {
                self.overlay.look_at(&key, rows)?;
            }
        }
        let append = self.overlay.append();
        Ok(Decided { append, changes })
    }

    /// What was decided last is durable.
    pub fn settle(&mut self) {
        self.overlay.settle(self.settings.page);
    }

    fn choice<'a>(&'a mut self, rows: &'a dyn Admissions) -> Choice<'a> {
        Choice {
            overlay: &mut self.overlay,
            settings: &self.settings,
            rows,
        }
    }

    /// Goes on with what earlier messages left in a line, as far as the budget goes. What is left now has its turn after the next
    /// append.
    fn go_on(&mut self, line: Line, rows: &dyn Admissions) -> Result<(), StoreError> {
        let mut names = self.settings.names;
        let mut running = BTreeMap::new();
        for _ in 0..self.backlog.len(line) {
            if names == 0 {
                break;
            }
            match self.backlog.take(line) {
                None => {}
                Some(Unfinished::Question(message)) => self.take(message, &mut names, rows)?,
                Some(Unfinished::Name(flow, name)) => {
                    let others = &mut Appeared {
                        names: self.backlog.names(),
                        running: &mut running,
                    };
                    let mut choice = Choice {
                        overlay: &mut self.overlay,
                        settings: &self.settings,
                        rows,
                    };
                    let is_done = choice.has_appeared(&flow, &name, others, &mut names)?;
                    let rest = (!is_done).then_some(Unfinished::Name(flow, name));
                    rest.into_iter().for_each(|rest| self.backlog.put_back(rest));
                }
                Some(Unfinished::End {
                    execution,
                    status,
                    message,
                }) => {
                    if !self.choice(rows).has_ended(&execution, status, &mut names)? {
                        self.backlog.put_back(Unfinished::End {
                            execution,
                            status,
                            message,
                        });
                    } else if let Some(message) = message {
                        self.overlay.received(message);
                    }
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, message: Message, names: &mut usize, rows: &dyn Admissions) -> Result<(), StoreError> {
        let Message { id, body } = message;
        let is_pending = self.overlay.is_pending(&id, rows)?;
        // Whoever has it again finds its work done.
        if self.backlog.has(&id) {
            return Ok(());
        }
        let is_question = matches!(&body, MessageBody::Ask(ask) if !ask.after.is_empty());
        if !is_pending && !matches!(body, MessageBody::Appeared { .. }) {
            self.decided.extend(is_question.then_some(id));
            return Ok(());
        }
        match &body {
            MessageBody::Ask(ask) => {
                let waits_for_names = self.take_ask(&id, ask, names, rows)?;
                if waits_for_names {
                    self.backlog.add(Unfinished::Question(Message { id, body }));
                    return Ok(());
                }
            }
            MessageBody::Ended { status } => {
                let from = id.from.clone();
                return self.take_end(&from, *status, Some(id), names, rows);
            }
            MessageBody::Withdrawn => self.take_back(&id.from, rows)?,
            MessageBody::Appeared { flow, name } => {
                // Names that appear together are bound together.
                self.backlog.add(Unfinished::Name(flow.clone(), name.clone()));
            }
            MessageBody::Reorder {
                priority,
                order,
                no_after,
            } => self.reorder(&id.from, (*priority, *order), *no_after, rows)?,
            _ => {}
        }
        self.decided.extend(is_question.then(|| id.clone()));
        if is_pending {
            self.overlay.received(id);
        }
        Ok(())
    }

    /// What an execution asked for in this poll is not looked up.
    fn forget_asked(&mut self, execution: &Text) {
        for message in self.backlog.withdraw(execution) {
            self.decided.push(message.clone());
            self.overlay.received(message);
        }
    }

    /// Returns whether there is more to do once this is durable: names are kept first and looked up then, and a start that
    /// takes one of them in between finds that it is kept.
    fn take_ask(
        &mut self,
        id: &MessageId,
        ask: &Ask,
        names: &mut usize,
        rows: &dyn Admissions,
    ) -> Result<bool, StoreError> {
        let before = self.overlay.waiter(&id.from, rows)?;
        self.forget_asked(&id.from);
        if let Some(waiter) = before {
            if waiter.event == id.event && !waiter.open.is_empty() {
                self.choice(rows).look_up(waiter, names)?;
                return Ok(false);
            }
            self.choice(rows).forget(&waiter)?;
        }
        // Whoever waits holds nothing. It may have got a slot with its flow's limit, before this was heard.
        for key in self.overlay.release(&id.from, rows)? {
            self.overlay.look_at(&key, rows)?;
        }
        for key in &ask.keys {
            if self.overlay.define(key, true, rows)? {
                self.overlay.look_at(&key.key, rows)?;
            }
        }
        let waiter = self.waiter(id.from.clone(), id.event, ask);
        if waiter.open.is_empty() {
            self.choice(rows).examine(waiter)?;
            return Ok(false);
        }
        self.awaited.extend(unbound_names(&waiter));
        self.overlay.put(&id.from, Some(waiter), rows)?;
        Ok(true)
    }

    fn waiter(&mut self, execution: Text, event: EventId, ask: &Ask) -> Waiter {
        let open = ask.after.iter().cloned();
        let open = open.map(|dependency| OpenDependency {
            dependency,
            bound: None,
        });
        Waiter {
            number: self.overlay.next_number(),
            execution,
            event,
            ask: ask.clone(),
            open: open.collect(),
            parked: None,
            moves: 0,
            claim: None,
        }
    }

    /// An execution has ended. `message` told of it: it is handled once all are told who wait for the end.
    fn take_end(
        &mut self,
        execution: &Text,
        status: Status,
        message: Option<MessageId>,
        names: &mut usize,
        rows: &dyn Admissions,
    ) -> Result<(), StoreError> {
        self.take_back(execution, rows)?;
        if self.choice(rows).has_ended(execution, status, names)? {
            message.into_iter().for_each(|message| self.overlay.received(message));
            return Ok(());
        }
        self.backlog.add(Unfinished::End {
            execution: execution.clone(),
            status,
            message,
        });
        Ok(())
    }

    /// An execution waits no longer, and holds nothing.
    fn take_back(&mut self, execution: &Text, rows: &dyn Admissions) -> Result<(), StoreError> {
        self.forget_asked(execution);
        if let Some(waiter) = self.overlay.waiter(execution, rows)? {
            self.choice(rows).forget(&waiter)?;
        }
        for key in self.overlay.release(execution, rows)? {
            self.overlay.look_at(&key, rows)?;
        }
        Ok(())
    }

    fn reorder(
        &mut self,
        execution: &Text,
        (priority, order): (u8, i64),
        no_after: bool,
        rows: &dyn Admissions,
    ) -> Result<(), StoreError> {
        let Some(mut waiter) = self.overlay.waiter(execution, rows)? else {
            return Ok(());
        };
        waiter.ask.priority = priority;
        waiter.ask.order = order;
        if no_after && !waiter.open.is_empty() {
            self.forget_asked(execution);
            waiter.open.clear();
            return self.choice(rows).examine(waiter);
        }
        self.overlay.put(execution, Some(waiter), rows)
    }

    fn take_change(&mut self, key: &PoolKey, change: KeyChange, rows: &dyn Admissions) -> Result<(), StoreError> {
        let kept = &mut self.overlay.key(key, rows)?.kept;
        let was_set = kept.is_set();
        if let Some(limit) = change.limit {
            kept.set = limit;
            kept.set_by = limit.map(|_| change.by.clone());
        }
        if let Some(paused) = change.paused {
            kept.paused = paused;
        }
        let is_set = kept.is_set();
        self.overlay.audit(change.audit);
        self.overlay.look_at(key, rows)?;
        if key.pool.as_str() == FLOW_POOL && was_set != is_set {
            if is_set {
                self.adopt(key, rows)?;
            }
            self.reserve_anew(&key.key, rows)?;
        }
        Ok(())
    }

    /// Gives slots of a flow's key to the executions of the flow that run.
    fn adopt(&mut self, key: &PoolKey, rows: &dyn Admissions) -> Result<(), StoreError> {
        let mut query = Query {
            flow: Some(key.key.clone()),
            statuses: vec![
                Status::Running,
                Status::Manual,
                Status::RollingBack,
                Status::Queued,
                Status::Blocked,
            ],
            limit: RUNNING,
            ..Query::default()
        };
        loop {
            let page = rows.list(&query)?;
            for found in page.items {
                let waits = matches!(found.record.status, Status::Queued | Status::Blocked);
                // One that is admitted and has not begun runs as good as one that has.
                if !waits || self.overlay.is_admitted(&found.id, rows)? {
                    self.overlay.take(&found.id, key, rows)?;
                    self.overlay.send(&found.id, WATCH_EVENT, MessageBody::Watch);
                }
            }
            match page.next {
                Some(next) => query.cursor = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// The claims of a flow's waiters reserve what they need now.
    fn reserve_anew(&mut self, flow: &Text, rows: &dyn Admissions) -> Result<(), StoreError> {
        for (claim, execution) in self.overlay.claimed() {
            let Some(waiter) = self.overlay.waiter(&execution, rows)? else {
                continue;
            };
            if waiter.ask.flow == *flow {
                let mut keys = self.overlay.unreserve(claim);
                let needs = self.overlay.needs(&waiter, rows)?;
                self.overlay.reserve(claim, &execution, needs.clone());
                keys.extend(needs);
                for key in keys {
                    self.overlay.look_at(&key, rows)?;
                }
            }
        }
        Ok(())
    }

    /// Whether an operator limits or pauses a flow.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store can't be read.
    pub fn governs(&mut self, flow: &Text, rows: &dyn Admissions) -> Result<bool, StoreError> {
        Ok(self.overlay.key(&flow_key(flow), rows)?.kept.is_set())
    }
}
