//! Executions that ask, run, start children, end and are stopped; operators; and a process that ends at any point.

use super::Bug;
use super::chance::Chance;
use super::check::View;
use super::rows::Rows;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_memory::MemoryStore;
use starbridge_ports::{
    ADMISSION, AdmissionChange, Admissions, Append, Ask, DeclineReason, Dependency, ExecutionRecord, FLOW_POOL,
    History, KeyPause, Listing, Message, MessageBody, MessageId, NeededKey, PoolKey, RequestChange, Waiter,
};
use starbridge_runtime::{Admission, AdmissionSettings, KeyChange};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waits,
    Runs,
    Ended(Status),
}

struct Job {
    id: Text,
    flow: Text,
    state: State,
    /// The number of its next message.
    event: u64,
    /// The chain of those who wait for it.
    ancestors: Vec<Text>,
}

/// The flows, and the keys of each.
const FLOWS: [&str; 3] = ["build", "deploy", "test"];
const KEYS: [&str; 4] = ["a", "b", "c", "d"];

pub struct World {
    chance: Chance,
    bug: Option<Bug>,
    store: MemoryStore,
    admission: Admission,
    settings: AdmissionSettings,
    jobs: BTreeMap<Text, Job>,
    names: u64,
    now: i64,
    awaited: BTreeSet<(Text, Text)>,
    missed: BTreeSet<Text>,
    restarted: bool,
    pub problems: Vec<String>,
    pub admissions: u64,
    pub deadlocks: u64,
    pub cycles: u64,
    pub claims: u64,
    pub declined: u64,
    pub restarts: u64,
}

impl World {
    pub fn new(seed: u64, bug: Option<Bug>) -> Self {
        let mut chance = Chance::new(seed);
        let settings = AdmissionSettings {
            fair_share: if chance.of(20) { 0 } else { 4 },
            moves: 3,
            examined: 1 + usize::try_from(chance.below(6)).unwrap(),
            messages: 1 + usize::try_from(chance.below(4)).unwrap(),
            page: 1 + usize::try_from(chance.below(3)).unwrap(),
        };
        let store = MemoryStore::new();
        let admission = Admission::resume(settings, &store).unwrap();
        Self {
            chance,
            bug,
            store,
            admission,
            settings,
            jobs: BTreeMap::new(),
            names: 0,
            now: 0,
            awaited: BTreeSet::new(),
            missed: BTreeSet::new(),
            restarted: false,
            problems: Vec::new(),
            admissions: 0,
            deadlocks: 0,
            cycles: 0,
            claims: 0,
            declined: 0,
            restarts: 0,
        }
    }

    pub fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            self.step();
            if !self.problems.is_empty() {
                return;
            }
        }
        self.come_to_rest();
    }

    fn step(&mut self) {
        self.now += i64::try_from(self.chance.below(3)).unwrap();
        match self.chance.below(100) {
            0..30 => self.start(None),
            30..36 => self.start_child(),
            36..64 => self.decide(),
            64..76 => self.hear(),
            76..90 => self.end_one(),
            90..93 => self.stop_one(),
            93..97 => self.operate(),
            97..98 => self.reorder(),
            _ => self.restart(),
        }
    }

    fn pool_key(&mut self, flow: &Text) -> PoolKey {
        let own = self.chance.of(50);
        PoolKey {
            pool: if own { flow.clone() } else { "shared".into() },
            key: self.chance.pick(&KEYS).unwrap().into(),
        }
    }

    fn ask(&mut self, flow: &Text, ancestors: Vec<Text>) -> Ask {
        let mut keys: Vec<NeededKey> = Vec::new();
        for _ in 0..self.chance.below(4) {
            let key = self.pool_key(flow);
            let limit = if self.chance.of(90) { 2 } else { 1 };
            if keys.iter().all(|other| other.key != key) {
                keys.push(NeededKey { key, limit });
            }
        }
        let mut after: Vec<Dependency> = Vec::new();
        if self.chance.of(25) {
            for _ in 0..=self.chance.below(2) {
                let number = self.names.saturating_sub(5) + self.chance.below(9);
                let by_id = self.chance.of(20);
                let ids: Vec<Text> = self.jobs.keys().cloned().collect();
                let dependency = match self.chance.pick(&ids).filter(|_| by_id) {
                    Some(id) => Dependency {
                        flow: None,
                        execution: id,
                        any_end: true,
                    },
                    None => Dependency {
                        flow: Some(flow_of(number)),
                        execution: Text::from(format!("n{number}")),
                        any_end: self.chance.of(50),
                    },
                };
                if !after.contains(&dependency) {
                    after.push(dependency);
                }
            }
        }
        Ask {
            flow: flow.clone(),
            keys,
            after,
            priority: u8::try_from(self.chance.below(3)).unwrap(),
            order: i64::try_from(self.chance.below(4)).unwrap(),
            requested: Timestamp(self.now),
            ancestors,
        }
    }

    fn start(&mut self, parent: Option<Text>) {
        let number = self.names;
        self.names += 1;
        let (flow, name) = (flow_of(number), Text::from(format!("n{number}")));
        let id = Text::from(format!("e{number}"));
        let mut ancestors = Vec::new();
        if let Some(parent) = parent {
            ancestors.push(parent.clone());
            ancestors.extend(self.jobs[&parent].ancestors.clone());
        }
        let mut ask = self.ask(&flow, ancestors.clone());
        if !ancestors.is_empty() {
            ask.after.clear();
        }
        for one in &ask.after {
            let flow = one.flow.as_deref().unwrap_or_default();
            if self.store.named(flow, &one.execution).unwrap().is_none() {
                self.missed.insert(one.execution.clone());
            }
        }
        let record = ExecutionRecord {
            flow: flow.clone(),
            name: name.clone(),
            status: Status::Queued,
            ..ExecutionRecord::default()
        };
        let job = Job {
            id: id.clone(),
            flow,
            state: State::Waits,
            event: 0,
            ancestors,
        };
        self.jobs.insert(id.clone(), job);
        let ask = self.message(&id, MessageBody::Ask(Box::new(ask)));
        let append = Append {
            execution: id.clone(),
            record: Some(record),
            request: RequestChange::Keep(String::new()),
            sent: vec![ask.clone()],
            ..Append::default()
        };
        self.write(&append);
        self.admission.deliver(ask);
        // The process may end before admission hears that the name is taken.
        if self.chance.of(5) {
            return self.restart();
        }
        let flow = self.jobs[&id].flow.clone();
        if self.awaited.contains(&(flow.clone(), name.clone())) {
            let appeared = self.message(&id, MessageBody::Appeared { flow, name });
            self.admission.deliver(appeared);
        }
    }

    fn start_child(&mut self) {
        let running = self.free();
        if let Some(parent) = self.chance.pick(&running)
            && self.jobs[&parent].ancestors.len() < 3
        {
            self.start(Some(parent));
        }
    }

    /// Those that run and wait for no child.
    fn free(&self) -> Vec<Text> {
        let waits = |id: &Text| {
            let mut children = self.jobs.values().filter(|job| job.ancestors.first() == Some(id));
            children.any(|job| !matches!(job.state, State::Ended(_)))
        };
        let running = self.jobs.values().filter(|job| job.state == State::Runs);
        let ids = running.map(|job| job.id.clone());
        ids.filter(|id| !waits(id)).collect()
    }

    fn message(&mut self, from: &Text, body: MessageBody) -> Message {
        let job = self.jobs.get_mut(from).unwrap();
        job.event += 1;
        let id = MessageId {
            from: from.clone(),
            event: EventId(job.event),
            to: ADMISSION.into(),
        };
        Message { id, body }
    }

    fn write(&self, append: &Append) {
        assert_eq!(self.store.append(std::slice::from_ref(append)).unwrap(), []);
    }

    /// Admission decides, and what it decided becomes durable, or is lost.
    fn decide(&mut self) {
        let rows = Rows {
            store: &self.store,
            bug: self.bug,
            missed: &self.missed,
            restarted: self.restarted,
        };
        let mut append = self.admission.poll(&rows).unwrap().append;
        if self.chance.of(3) {
            return self.restart();
        }
        self.plant(&mut append);
        let before = self.all();
        self.write(&append);
        self.admission.settle();
        self.awaited.extend(self.admission.awaited());
        self.check(&append, &before);
    }

    fn plant(&mut self, append: &mut Append) {
        match self.bug {
            Some(Bug::SlotLeaked) => append
                .admission
                .retain(|change| !matches!(change, AdmissionChange::ReleaseSlots { .. })),
            Some(Bug::WakeUpLost) => {
                for change in &mut append.admission {
                    if let AdmissionChange::PutKey(key) = change {
                        key.stale = false;
                    }
                }
            }
            _ => {}
        }
    }

    fn all(&self) -> Vec<Waiter> {
        let ids = self.jobs.keys();
        ids.filter_map(|id| self.store.waiter(id).unwrap()).collect()
    }

    /// Executions take what was said to them.
    fn hear(&mut self) {
        for message in self.store.messages().unwrap() {
            if message.id.to.as_str() != ADMISSION && self.chance.of(70) {
                self.hear_one(message);
            }
        }
    }

    fn hear_one(&mut self, message: Message) {
        let id = message.id.to.clone();
        let state = self.jobs[&id].state;
        let mut sent = None;
        let mut status = None;
        match message.body {
            MessageBody::Admit if state == State::Waits => {
                self.admissions += 1;
                status = Some(Status::Running);
                self.jobs.get_mut(&id).unwrap().state = State::Runs;
            }
            MessageBody::Decline { .. } if state == State::Waits => {
                self.declined += 1;
                status = Some(Status::Failed);
                self.jobs.get_mut(&id).unwrap().state = State::Ended(Status::Failed);
                let ended = MessageBody::Ended { status: Status::Failed };
                sent = Some(self.message(&id, ended));
            }
            MessageBody::Watch => {
                if let State::Ended(status) = state {
                    sent = Some(self.message(&id, MessageBody::Ended { status }));
                }
            }
            MessageBody::Met => {}
            MessageBody::Admit | MessageBody::Decline { .. } if matches!(state, State::Ended(_)) => {}
            other => self.problems.push(format!("{id} in {state:?} is told {other:?}")),
        }
        self.turn(&id, status, vec![message.id], sent);
    }

    fn turn(&mut self, id: &Text, status: Option<Status>, received: Vec<MessageId>, sent: Option<Message>) {
        let record = status.map(|status| ExecutionRecord {
            status,
            ended: status.is_ended().then_some(Timestamp(self.now)),
            ..self.store.record(id).unwrap().unwrap()
        });
        let append = Append {
            execution: id.clone(),
            record,
            received,
            sent: sent.iter().cloned().collect(),
            ..Append::default()
        };
        self.write(&append);
        if let Some(message) = sent {
            self.admission.deliver(message);
        }
    }

    fn end(&mut self, id: &Text, status: Status) {
        self.jobs.get_mut(id).unwrap().state = State::Ended(status);
        let message = self.message(id, MessageBody::Ended { status });
        self.turn(id, Some(status), Vec::new(), Some(message));
    }

    fn end_one(&mut self) {
        let free = self.free();
        if let Some(id) = self.chance.pick(&free) {
            let endings = [Status::Succeeded, Status::Succeeded, Status::Failed, Status::TimedOut];
            let status = self.chance.pick(&endings).unwrap();
            self.end(&id, status);
        }
    }

    fn stop_one(&mut self) {
        let waiting = self.jobs.values().filter(|job| job.state == State::Waits);
        let waiting: Vec<Text> = waiting.map(|job| job.id.clone()).collect();
        if let Some(id) = self.chance.pick(&waiting) {
            self.end(&id, Status::Stopped);
        }
    }

    fn operate(&mut self) {
        let change = if self.chance.of(50) {
            let limits = [None, Some(1), Some(2), Some(3)];
            KeyChange {
                limit: self.chance.pick(&limits),
                ..KeyChange::default()
            }
        } else {
            let pause = KeyPause {
                by: "o".into(),
                since: Timestamp(self.now),
            };
            KeyChange {
                paused: Some(self.chance.of(40).then_some(pause)),
                ..KeyChange::default()
            }
        };
        let flow: Text = self.chance.pick(&FLOWS).unwrap().into();
        let key = match self.chance.of(50) {
            true => PoolKey {
                pool: FLOW_POOL.into(),
                key: flow,
            },
            false => self.pool_key(&flow),
        };
        self.admission.change(key, change);
    }

    fn reorder(&mut self) {
        let waiting = self.all();
        if let Some(waiter) = self.chance.pick(&waiting) {
            let body = MessageBody::Reorder {
                priority: u8::try_from(self.chance.below(3)).unwrap(),
                order: 0,
                no_after: self.chance.of(50),
            };
            let message = self.message(&waiter.execution, body);
            self.turn(&waiter.execution, None, Vec::new(), Some(message));
        }
    }

    fn restart(&mut self) {
        self.restarts += 1;
        self.restarted = true;
        let rows = Rows {
            store: &self.store,
            bug: self.bug,
            missed: &self.missed,
            restarted: true,
        };
        self.admission = Admission::resume(self.settings, &rows).unwrap();
        self.awaited = self.admission.awaited().into_iter().collect();
        for message in self.store.messages().unwrap() {
            if message.id.to.as_str() == ADMISSION {
                self.admission.deliver(message);
            }
        }
    }

    /// Nobody comes any more, nothing is limited to nothing: all must be admitted or declined.
    fn come_to_rest(&mut self) {
        for kept in self.store.kept_keys(None, usize::MAX).unwrap() {
            let change = KeyChange {
                paused: Some(None),
                ..KeyChange::default()
            };
            self.admission.change(kept.key, change);
        }
        // Whoever is waited for comes.
        for _ in 0..10 {
            self.start(None);
        }
        for _ in 0..3_000 {
            if !self.problems.is_empty() {
                return;
            }
            if self.jobs.values().all(|job| matches!(job.state, State::Ended(_))) && self.admission.is_idle() {
                break;
            }
            self.decide();
            self.hear();
            self.end_one();
            if self.all().iter().all(|waiter| !waiter.open.is_empty()) && self.admission.is_idle() && self.chance.of(20)
            {
                // It waits for names that never come.
                let waits = self.jobs.values().find(|job| job.state == State::Waits);
                if let Some(id) = waits.map(|job| job.id.clone()) {
                    self.end(&id, Status::Stopped);
                }
            }
        }
        for job in self.jobs.values() {
            if !matches!(job.state, State::Ended(_)) {
                let waiter = self.store.waiter(&job.id).unwrap();
                self.problems
                    .push(format!("{} is forgotten: {:?} {waiter:?}", job.id, job.state));
            } else if !self.store.slots_of(&job.id).unwrap().is_empty() {
                self.problems.push(format!("{} has ended and holds slots", job.id));
            }
        }
        for kept in self.store.kept_keys(None, usize::MAX).unwrap() {
            if !kept.is_set() {
                self.problems.push(format!("nobody needs {:?}", kept.key));
            }
        }
    }

    fn check(&mut self, append: &Append, before: &[Waiter]) {
        let after = self.all();
        self.claims += u64::try_from(after.iter().filter(|waiter| waiter.claim.is_some()).count()).unwrap();
        for sent in &append.sent {
            if let MessageBody::Decline { reason } = &sent.body {
                match reason {
                    DeclineReason::Deadlock { .. } => self.deadlocks += 1,
                    DeclineReason::Cycle { .. } => self.cycles += 1,
                    DeclineReason::Dependency { .. } => {}
                }
            }
        }
        let has_ended = |id: &Text| matches!(self.jobs[id].state, State::Ended(_));
        let view = View {
            store: &self.store,
            waiters: &after,
            has_ended: &has_ended,
            // It may have been told of a start that it has not looked at.
            is_told: self.bug.is_none() && !self.admission.is_idle(),
        };
        let problems = view.problems(append, before);
        self.problems.extend(problems);
    }
}

fn flow_of(number: u64) -> Text {
    FLOWS[usize::try_from(number % 3).unwrap()].into()
}
