//! Executions that wait for admission, with a crash after any append. Admission is a small stand-in
//! here that is always right; only its messages matter.

mod operated;

use super::*;
use crate::admission::AdmissionCommand;
use starbridge_flow::time::Millis;
use starbridge_machine::history::{read_turn, write_event};
use starbridge_ports::{
    ADMISSION, Ask, DeclineReason, Dependency, History, MET_EVENT, Mark, MessageBody, Receivers, RequestChange,
    ShardSet, StoreError, StoredHistory,
};
use std::collections::BTreeMap;
use std::sync::Mutex;
use tokio::sync::mpsc;

const MUTEX: &str = r#""concurrency": [{"key": "{$input.shard}", "limit": 1}], "#;

/// The durable data.
#[derive(Default)]
struct Kept {
    executions: Mutex<BTreeMap<Text, StoredHistory>>,
    messages: Mutex<Vec<Message>>,
}

impl Kept {
    fn record(&self, id: &str) -> ExecutionRecord {
        self.executions.lock().unwrap()[id].record.clone()
    }

    fn send(&self, message: Message) {
        let mut messages = self.messages.lock().unwrap();
        if messages.iter().all(|kept| kept.id != message.id) {
            messages.push(message);
        }
    }

    fn discard(&self, id: &MessageId) -> bool {
        let mut messages = self.messages.lock().unwrap();
        let before = messages.len();
        messages.retain(|message| message.id != *id);
        messages.len() < before
    }
}

impl History for Kept {
    fn append(&self, batch: &[Append]) -> Result<Vec<(usize, Refusal)>, StoreError> {
        for append in batch {
            let mut executions = self.executions.lock().unwrap();
            let known = executions.contains_key(&append.execution);
            assert!(known || append.is_start() || append.turn.is_none(), "{append:?}");
            assert!(!(known && append.is_start()), "started twice: {append:?}");
            if known || append.is_start() {
                let kept = executions.entry(append.execution.clone()).or_default();
                let last = kept.turns.last().map_or(EventId(0), |turn| turn.last());
                assert_eq!(last, append.expected, "{append:?}");
                if let Some(record) = &append.record {
                    kept.record = record.clone();
                }
                kept.turns.extend(append.turn.clone());
                match &append.request {
                    RequestChange::None => {}
                    RequestChange::Keep(text) | RequestChange::Replace(text) => kept.request = Some(text.clone()),
                    RequestChange::Begin | RequestChange::Drop => kept.request = None,
                }
            }
            drop(executions);
            for id in &append.received {
                self.discard(id);
            }
            append.sent.iter().cloned().for_each(|message| self.send(message));
        }
        Ok(Vec::new())
    }

    fn load(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        Ok(self.executions.lock().unwrap().get(execution).cloned())
    }

    fn load_whole(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        self.load(execution)
    }

    fn parent_of(&self, _: &str) -> Result<Option<Text>, StoreError> {
        Ok(None)
    }

    fn awake(&self, _: &ShardSet) -> Result<Vec<Text>, StoreError> {
        let kept = self.executions.lock().unwrap();
        let awake = kept.iter().filter(|(_, kept)| kept.record.awake);
        Ok(awake.map(|(id, _)| id.clone()).collect())
    }

    fn due(&self, _: &ShardSet, before: Timestamp, _: usize) -> Result<Vec<(Timestamp, Text)>, StoreError> {
        let kept = self.executions.lock().unwrap();
        let asleep = kept.iter().filter(|(_, kept)| !kept.record.awake);
        let due = asleep.filter_map(|(id, kept)| Some((kept.record.wake_at?, id.clone())));
        Ok(due.filter(|(at, _)| *at <= before).collect())
    }

    fn mark(&self, _: &[(Text, Mark)], _: Option<&AuditEntry>) -> Result<(), StoreError> {
        Ok(())
    }

    fn messages(&self, _: &Receivers) -> Result<Vec<Message>, StoreError> {
        Ok(self.messages.lock().unwrap().clone())
    }
}

/// Admission with one slot for each key. Its data is durable with the messages that it deletes and
/// sends.
#[derive(Default)]
struct Simple {
    waiters: Vec<(MessageId, Ask)>,
    holders: BTreeMap<Text, Vec<Text>>,
    ended: BTreeMap<Text, Status>,
    admitted: Vec<Text>,
}

impl Simple {
    fn take(&mut self, kept: &Kept, message: Message) -> Vec<Message> {
        if !kept.discard(&message.id) {
            return Vec::new();
        }
        let from = message.id.from.clone();
        let mut out = Vec::new();
        match message.body {
            MessageBody::Ask(ask) => {
                for after in &ask.after {
                    out.push(answer(
                        &after.execution,
                        EventId(u64::from(u32::MAX)),
                        MessageBody::Watch,
                    ));
                }
                self.ended.remove(&from);
                self.waiters.push((message.id, *ask));
            }
            MessageBody::Ended { status } => {
                self.holders.remove(&from);
                self.waiters.retain(|(id, _)| id.from != from);
                self.ended.insert(from, status);
            }
            MessageBody::Withdrawn => drop(self.holders.remove(&from)),
            other => panic!("{other:?}"),
        }
        for (id, ask) in std::mem::take(&mut self.waiters) {
            let ends: Vec<_> = ask.after.iter().map(|after| self.ended.get(&after.execution)).collect();
            let keys: Vec<Text> = ask.keys.iter().map(|needed| needed.key.key.clone()).collect();
            let taken = |key: &Text| self.holders.values().any(|held| held.contains(key));
            let failed = ends
                .iter()
                .position(|end| end.is_some_and(|end| *end != Status::Succeeded));
            if let Some(failed) = failed {
                let reason = DeclineReason::Dependency {
                    execution: ask.after[failed].execution.clone(),
                    status: *ends[failed].unwrap(),
                };
                out.push(answer(&id.from, id.event, MessageBody::Decline { reason }));
            } else if ends.iter().all(Option::is_some) && !keys.iter().any(taken) {
                self.admitted.push(id.from.clone());
                self.holders.insert(id.from.clone(), keys);
                out.push(answer(&id.from, id.event, MessageBody::Admit));
            } else {
                if !ask.after.is_empty() && ends.iter().all(Option::is_some) {
                    out.push(answer(&id.from, MET_EVENT, MessageBody::Met));
                }
                self.waiters.push((id, ask));
            }
        }
        out.iter().cloned().for_each(|message| kept.send(message));
        out
    }
}

fn answer(to: &Text, event: EventId, body: MessageBody) -> Message {
    let id = MessageId {
        from: ADMISSION.into(),
        event,
        to: to.clone(),
    };
    Message { id, body }
}

/// A shard over the durable data. It crashes after the append or the decision with the number
/// `crash`.
struct World {
    steps: &'static str,
    shard: Shard,
    kept: Kept,
    admission: Simple,
    inbox: mpsc::UnboundedReceiver<AdmissionCommand>,
    mail: Vec<Message>,
    calls: Vec<(Text, EventId)>,
    answers: bool,
    writes: usize,
    crash: usize,
    now: Timestamp,
}

/// A shard with a flow of these steps, and as its second version one that a pass step ends.
fn admitted_shard(steps: &str) -> (Shard, mpsc::UnboundedReceiver<AdmissionCommand>) {
    let (handle, inbox) = AdmissionHandle::new();
    let mut shard = shard_of_flow(MUTEX, steps);
    let longer =
        format!(r#"{{"version": "v1", "type": "flow", {MUTEX}"steps": [{steps}, {{"type": "pass", "name": "end"}}]}}"#);
    let checked = starbridge_fdl::check(&Source::new("flow.json", longer), &Limits::default());
    shard.flows.put("f", checked.flow.unwrap());
    shard.admit_through(handle);
    (shard, inbox)
}

impl World {
    fn new(crash: usize) -> Self {
        Self::of(crash, CALL)
    }

    fn of(crash: usize, steps: &'static str) -> Self {
        let (shard, inbox) = admitted_shard(steps);
        Self {
            steps,
            shard,
            kept: Kept::default(),
            admission: Simple::default(),
            inbox,
            mail: Vec::new(),
            calls: Vec::new(),
            answers: true,
            writes: 0,
            crash,
            now: Timestamp(0),
        }
    }

    /// Counts durable writes, and crashes at the given one.
    fn wrote(&mut self) -> bool {
        self.writes += 1;
        if self.writes != self.crash {
            return false;
        }
        (self.shard, self.inbox) = admitted_shard(self.steps);
        self.calls.clear();
        for id in self.kept.awake(&ShardSet::ALL).unwrap() {
            self.fetch(&id);
        }
        let (mail, others) = self
            .kept
            .messages(&Receivers::All)
            .unwrap()
            .into_iter()
            .partition(|message| message.id.to == ADMISSION);
        self.mail = mail;
        self.shard.redeliver(others);
        true
    }

    fn fetch(&mut self, id: &Text) {
        match self.kept.load(id).unwrap() {
            None => self.shard.absent(id.clone()),
            Some(stored) if stored.has_not_begun() => {
                let fork = kept_fork(&self.kept, self.shard.flows(), &stored).unwrap();
                self.shard.take_up_waiting(id, stored, fork, self.now).unwrap();
            }
            Some(stored) => {
                let flows = self.shard.flows().clone();
                let loaded = fold_up(&self.kept, &flows, &Arc::default(), id, stored).unwrap();
                self.shard.recover(loaded);
            }
        }
    }

    /// Goes on until nothing more happens.
    fn settle(&mut self) {
        loop {
            let step = self.shard.pump(self.now);
            match &step {
                PumpResult::Missing(id) => self.fetch(&id.clone()),
                PumpResult::Decided => {
                    let batch = self.shard.take_batch();
                    self.kept.append(&batch).unwrap();
                    if self.wrote() {
                        continue;
                    }
                    self.shard.committed(&[]);
                }
                PumpResult::Idle => {}
            }
            for outgoing in self.shard.take_outgoing() {
                if let Outgoing::Send { execution, call } = outgoing {
                    self.calls.push((execution, call.call));
                }
            }
            while let Ok(AdmissionCommand::Deliver(message)) = self.inbox.try_recv() {
                self.mail.push(message);
            }
            if step != PumpResult::Idle {
                continue;
            }
            if !self.mail.is_empty() {
                let message = self.mail.remove(0);
                let out = self.admission.take(&self.kept, message);
                if !self.wrote() {
                    out.into_iter().for_each(|message| self.shard.deliver(message));
                }
            } else if self.answers && !self.calls.is_empty() {
                let (execution, call) = self.calls.remove(0);
                let _ = self.shard.signal(&execution, succeeded(call), self.now);
            } else {
                return;
            }
        }
    }

    fn start(&mut self, shard: &str, change: impl FnOnce(&mut StartRequest)) -> Text {
        let mut request = StartRequest {
            flow: "f".into(),
            version: Some(1),
            input: [("shard".into(), shard.into())].into_iter().collect(),
            name: Some(format!("n{}", self.kept.executions.lock().unwrap().len()).into()),
            ..StartRequest::default()
        };
        change(&mut request);
        let id = self.shard.start(request, self.now).unwrap();
        self.settle();
        id
    }

    fn stop(&mut self, id: &Text) {
        let stop = Signal::Stop {
            error: None,
            cause: "no longer wanted".to_owned(),
            by: None,
            rollback: false,
            with_parent: false,
        };
        self.ask_until_durable(id, &stop);
    }

    /// Gives a signal like an operator who asks again after a crash.
    fn ask_until_durable(&mut self, id: &Text, signal: &Signal) {
        if self.shard.state(id).is_none() && !self.shard.waits_to_begin(id) {
            self.fetch(id);
        }
        let _ = self.shard.signal(id, signal.clone(), self.now);
        self.settle();
    }

    /// The events of an execution.
    fn events(&self, id: &str) -> String {
        let version = self.kept.record(id).version;
        let flow = self.shard.flows().running("f", version).unwrap();
        let kept = self.kept.load(id).unwrap().unwrap();
        let turns = kept.turns.iter();
        let events = turns.flat_map(|turn| read_turn(&flow, turn.first, turn.time, &turn.text).unwrap());
        events
            .map(|event| Value::from(write_event(&flow, &event)).to_json())
            .collect()
    }

    fn status(&self, id: &str) -> Status {
        self.kept.record(id).status
    }
}

fn redrive() -> Signal {
    Signal::Redrive {
        by: None,
        inputs: Vec::new(),
        definition: None,
    }
}

#[test]
fn one_waits_until_the_other_has_ended() {
    let mut world = World::new(0);
    world.answers = false;
    let first = world.start("a", |_| {});
    let second = world.start("a", |_| {});
    let other = world.start("b", |_| {});
    assert_eq!(world.status(&first), Status::Running);
    assert_eq!(
        (world.status(&second), world.status(&other)),
        (Status::Queued, Status::Running)
    );
    assert_eq!(world.events(&second), "", "no history before it is admitted");
    world.answers = true;
    world.settle();
    assert_eq!(world.status(&second), Status::Succeeded);
    let events = world.events(&second);
    assert!(events.contains(r#""keys":[{"pool":"f","key":"a"}]"#), "{events}");
    assert!(world.kept.messages(&Receivers::All).unwrap().is_empty());
    assert!(world.admission.holders.is_empty());
}

#[test]
fn keys_that_are_not_possible_start_nothing() {
    let mut world = World::new(0);
    let long = "x".repeat(257);
    for (input, says) in [
        (r#"{}"#, "finds nothing"),
        (r#"{"shard": ""}"#, "0 bytes"),
        (format!(r#"{{"shard": "{long}"}}"#).as_str(), "257 bytes"),
    ] {
        let request = StartRequest {
            flow: "f".into(),
            input: serde_json::from_str(input).unwrap(),
            ..StartRequest::default()
        };
        let error = world.shard.start(request, Timestamp(0)).unwrap_err();
        assert!(
            matches!(&error, StartError::InvalidKey(why) if why.contains(says)),
            "{error:?}"
        );
        assert_eq!(world.shard.pump(Timestamp(0)), PumpResult::Idle);
    }
}

#[test]
fn waiter_that_is_too_late_fails_and_is_forgotten() {
    let mut world = World::new(0);
    world.answers = false;
    world.start("a", |_| {});
    let late = world.start("a", |request| request.deadline = Some(Millis(100)));
    let kept = world.kept.record(&late);
    assert_eq!(
        (kept.status, kept.awake, kept.wake_at),
        (Status::Queued, false, Some(Timestamp(101)))
    );
    world.shard.leave_waiting();
    world.now = Timestamp(101);
    world.fetch(&late);
    world.settle();
    assert_eq!(world.status(&late), Status::Failed);
    assert!(world.events(&late).contains("FnF.StartDeadlineExceeded"));
    assert!(world.admission.waiters.is_empty());
}

#[test]
fn delayed_start_asks_when_its_time_has_come() {
    let mut world = World::new(0);
    let id = world.start("a", |request| request.time = StartTime::At(Timestamp(50)));
    assert_eq!(
        (world.status(&id), world.admission.admitted.len()),
        (Status::Delayed, 0)
    );
    world.shard.leave_waiting();
    world.now = Timestamp(50);
    world.fetch(&id);
    world.settle();
    assert_eq!(
        (world.status(&id), world.admission.admitted.len()),
        (Status::Succeeded, 1)
    );
}

#[test]
fn redrive_waits_and_can_be_withdrawn() {
    let mut world = World::new(0);
    world.answers = false;
    let first = world.start("a", |_| {});
    world.stop(&first);
    assert_eq!(world.status(&first), Status::Stopped);
    let holder = world.start("a", |_| {});
    assert_eq!(world.status(&holder), Status::Running);
    let before = world.events(&first);
    for _ in 0..2 {
        world.ask_until_durable(&first, &redrive());
        assert_eq!(
            (world.status(&first), world.events(&first)),
            (Status::Queued, before.clone())
        );
        assert_eq!(
            world.shard.signal(&first, redrive(), world.now),
            Err(Rejection::NotRedrivable)
        );
        world.stop(&first);
        let record = world.kept.record(&first);
        assert_eq!((record.status, record.ended.is_some()), (Status::Stopped, true));
        assert!(world.admission.waiters.is_empty());
        world.now = world.now.plus(Millis(1));
    }
    world.ask_until_durable(&first, &redrive());
    world.answers = true;
    world.settle();
    assert_eq!(
        (world.status(&first), world.status(&holder)),
        (Status::Succeeded, Status::Succeeded)
    );
    assert!(world.kept.messages(&Receivers::All).unwrap().is_empty());
}

/// Starts, waits, stops and redrives. Returns how often something became durable.
fn story(crash: usize) -> usize {
    let mut world = World::new(crash);
    world.answers = false;
    let first = world.start("a", |_| {});
    let second = world.start("a", |_| {});
    let stopped = world.start("a", |_| {});
    let dependency = Dependency {
        flow: None,
        execution: second.clone(),
        any_end: false,
    };
    let after = world.start("b", |request| request.after = vec![dependency.clone()]);
    let hopeless = Dependency {
        execution: stopped.clone(),
        ..dependency
    };
    let declined = world.start("b", |request| request.after = vec![hopeless]);
    if world.kept.executions.lock().unwrap().contains_key(&stopped) {
        world.stop(&stopped);
    }
    world.stop(&first);
    world.ask_until_durable(&first, &redrive());
    world.answers = true;
    world.settle();
    for (id, expected) in [
        (&first, Status::Succeeded),
        (&second, Status::Succeeded),
        (&stopped, Status::Stopped),
        (&after, Status::Succeeded),
        (&declined, Status::Failed),
    ] {
        assert_eq!(world.status(id), expected, "{id} after a crash at {crash}");
        let events = world.events(id);
        let begun = events.matches("ExecutionStarted").count();
        assert_eq!(begun, 1, "{id} after a crash at {crash}: {events}");
        assert!(world.kept.load(id).unwrap().unwrap().request.is_none(), "{id}");
    }
    assert!(world.events(&declined).contains("FnF.DependencyFailed"));
    assert!(
        world.kept.messages(&Receivers::All).unwrap().is_empty(),
        "after a crash at {crash}"
    );
    assert!(
        world.admission.holders.is_empty() && world.admission.waiters.is_empty(),
        "{crash}"
    );
    let mut admitted = world.admission.admitted;
    admitted.sort();
    let mut once = vec![first.clone(), first, second, after];
    once.sort();
    assert_eq!(admitted, once, "after a crash at {crash}");
    world.writes
}

#[test]
fn crash_after_any_append_forgets_nobody_and_admits_nobody_twice() {
    let writes = story(0);
    assert!(writes > 20, "{writes}");
    for crash in 1..=writes {
        story(crash);
    }
}
