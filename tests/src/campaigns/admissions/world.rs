//! Executions that ask, run, start children, end, are stopped, redriven and forked; schedules; operators; and a process that
//! ends at any point.

mod circles;
mod operators;
mod rest;

use super::bug::{Bug, Law};
use super::laws::{Before, FairTurns, OldestClaim, Problem, View};
use super::rows::Rows;
use super::{ADMISSIONS, Findings};
use crate::chance::Chance;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_memory::MemoryStore;
use starbridge_ports::{
    ADMISSION, AdmissionChange, Admissions, Append, Ask, DeclineReason, Dependency, ExecutionRecord, History, Listing,
    Message, MessageBody, MessageId, NeededKey, PoolKey, Receivers, RequestChange, SCHEDULE_POOL, StoreError, Waiter,
    Waiters,
};
use starbridge_runtime::{Admission, AdmissionSettings};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It waits to begin, or to be redriven after it ended this way.
    Waits(Option<Status>),
    Runs,
    Ended(Status),
}

struct Job {
    flow: Text,
    keys: Vec<NeededKey>,
    state: State,
    /// The number of its last message.
    event: u64,
    /// The number under which it asked last.
    asked: u64,
    /// The chain of those who wait for it.
    ancestors: Vec<Text>,
}

/// The kind of a start.
enum Start {
    /// A flow, for an execution that waits for it, or for none.
    Flow(Option<Text>),
    Fork,
    Trigger,
}

/// The flows, the keys of each, and the schedules.
const FLOWS: [&str; 3] = ["build", "deploy", "test"];
const KEYS: [&str; 4] = ["a", "b", "c", "d"];
const SCHEDULES: [&str; 2] = ["hourly", "nightly"];

pub(super) struct World {
    chance: Chance,
    bug: Option<Bug>,
    store: MemoryStore,
    admission: Admission,
    settings: AdmissionSettings,
    jobs: BTreeMap<Text, Job>,
    names: u64,
    now: i64,
    awaited: BTreeSet<(Text, Text)>,
    /// How many wait, as admission counts them.
    waiting: u64,
    missed: BTreeSet<Text>,
    restarted: bool,
    oldest: OldestClaim,
    turns: FairTurns,
    pub(super) problems: Vec<Problem>,
    pub(super) findings: Findings,
}

impl World {
    pub(super) fn new(seed: u64, bug: Option<Bug>) -> Result<Self, StoreError> {
        let mut chance = Chance::new(seed);
        let fair_share = if chance.of(20) { 0 } else { 4 };
        let mut few = |most: u32| chance.from(1, most) as usize;
        let settings = AdmissionSettings {
            fair_share,
            moves: 3,
            examined: few(6),
            messages: few(4),
            page: few(3),
            names: few(3),
            inbox: usize::try_from(seed % 5).unwrap_or(0) + 1,
            ..AdmissionSettings::default()
        };
        let store = MemoryStore::new();
        let admission = Admission::resume(settings, &store)?;
        Ok(Self {
            chance,
            bug,
            store,
            admission,
            settings,
            turns: FairTurns::of(fair_share),
            ..Self::empty()
        })
    }

    fn empty() -> Self {
        Self {
            chance: Chance::new(0),
            bug: None,
            store: MemoryStore::new(),
            admission: Admission::default(),
            settings: AdmissionSettings::default(),
            jobs: BTreeMap::new(),
            names: 0,
            now: 0,
            awaited: BTreeSet::new(),
            waiting: 0,
            missed: BTreeSet::new(),
            restarted: false,
            oldest: OldestClaim::default(),
            turns: FairTurns::default(),
            problems: Vec::new(),
            findings: Findings::default(),
        }
    }

    /// A world that could not begin.
    pub(super) fn failed(error: &StoreError) -> Self {
        let mut world = Self::empty();
        world.problem(Law::Store, error.to_string());
        world
    }

    fn problem(&mut self, law: Law, what: String) {
        self.problems.push((law, what));
    }

    pub(super) fn run(&mut self, steps: u32) {
        for _ in 0..steps {
            self.step();
            if !self.problems.is_empty() {
                return;
            }
        }
        self.come_to_rest();
    }

    fn step(&mut self) {
        self.now += i64::from(self.chance.below(3));
        match self.chance.below(100) {
            0..26 => self.start(&Start::Flow(None)),
            26..28 => self.start(&Start::Fork),
            28..31 => self.start(&Start::Trigger),
            31..36 => self.start_child(),
            36..64 => self.decide(),
            64..76 => self.hear(),
            76..88 => self.end_one(),
            88..90 => self.redrive_one(),
            90..93 => self.stop_one(),
            93..97 => self.operate(),
            97..98 => self.reorder(),
            _ => self.restart(),
        }
    }

    fn one<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| self.chance.pick(from))
    }

    fn pool_key(&mut self, flow: &Text) -> PoolKey {
        let own = self.chance.of(50);
        PoolKey {
            pool: if own { flow.clone() } else { "shared".into() },
            key: self.chance.pick(&KEYS).into(),
        }
    }

    fn keys(&mut self, flow: &Text) -> Vec<NeededKey> {
        let mut keys: Vec<NeededKey> = Vec::new();
        for _ in 0..self.chance.below(4) {
            let key = self.pool_key(flow);
            let limit = if self.chance.of(90) { 2 } else { 1 };
            if keys.iter().all(|other| other.key != key) {
                keys.push(NeededKey { key, limit });
            }
        }
        keys
    }

    fn after(&mut self) -> Vec<Dependency> {
        let mut after: Vec<Dependency> = Vec::new();
        for _ in 0..=self.chance.below(2) {
            let number = self.names.saturating_sub(5) + u64::from(self.chance.below(9));
            let by_id = self.chance.of(20);
            let ids: Vec<Text> = self.jobs.keys().cloned().collect();
            let dependency = match self.one(&ids).filter(|_| by_id) {
                Some(execution) => Dependency {
                    flow: None,
                    execution,
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
        after
    }

    fn ask(&mut self, job: &Job) -> Ask {
        Ask {
            flow: job.flow.clone(),
            keys: job.keys.clone(),
            after: Vec::new(),
            priority: u8::try_from(self.chance.below(3)).unwrap_or(0),
            order: i64::from(self.chance.below(4)),
            requested: Timestamp(self.now),
            ancestors: job.ancestors.clone(),
        }
    }

    fn start(&mut self, start: &Start) {
        let number = self.names;
        self.names += 1;
        let (flow, name) = (flow_of(number), Text::from(format!("n{number}")));
        let id = Text::from(format!("e{number}"));
        let parent = match start {
            Start::Flow(parent) => parent.clone(),
            Start::Fork | Start::Trigger => None,
        };
        let above = parent.as_ref().and_then(|parent| self.jobs.get(parent));
        let above = above.map(|above| above.ancestors.clone()).unwrap_or_default();
        let mut job = Job {
            keys: self.keys(&flow),
            flow: flow.clone(),
            state: State::Waits(None),
            event: 0,
            asked: 0,
            ancestors: parent.into_iter().chain(above).collect(),
        };
        let mut order = None;
        if matches!(start, Start::Trigger) {
            order = Some(self.now);
            let key = PoolKey {
                pool: SCHEDULE_POOL.into(),
                key: self.chance.pick(&SCHEDULES).into(),
            };
            job.keys.push(NeededKey { key, limit: 1 });
        }
        let mut ask = self.ask(&job);
        ask.order = order.unwrap_or(ask.order);
        let waits = matches!(start, Start::Flow(_));
        let often = if job.ancestors.is_empty() { 25 } else { 10 };
        if waits && self.chance.of(often) {
            ask.after = self.after();
        }
        self.findings.count("forks", u64::from(matches!(start, Start::Fork)));
        self.findings.count("triggers of schedules", u64::from(order.is_some()));
        for one in &ask.after {
            let flow = one.flow.as_deref().unwrap_or_default();
            if self.store.named(flow, &one.execution).ok().flatten().is_none() {
                self.missed.insert(one.execution.clone());
            }
        }
        let record = ExecutionRecord {
            flow: flow.clone(),
            name: name.clone(),
            status: Status::Queued,
            ..ExecutionRecord::default()
        };
        self.jobs.insert(id.clone(), job);
        self.ask_with(&id, ask, record, RequestChange::Keep(String::new()));
        // The process may end before admission hears that the name is taken.
        if self.chance.of(5) {
            return self.restart();
        }
        if self.awaited.contains(&(flow.clone(), name.clone())) {
            let appeared = self.message(&id, MessageBody::Appeared { flow, name });
            self.admission.deliver(appeared);
        }
    }

    fn ask_with(&mut self, id: &Text, ask: Ask, record: ExecutionRecord, request: RequestChange) {
        let ask = self.message(id, MessageBody::Ask(Box::new(ask)));
        if let Some(job) = self.jobs.get_mut(id) {
            job.asked = job.event;
        }
        let append = Append {
            execution: id.clone(),
            record: Some(record),
            request,
            sent: vec![ask.clone()],
            ..Append::default()
        };
        self.write(&append);
        self.admission.deliver(ask);
    }

    /// An ended execution is redriven.
    fn redrive_one(&mut self) {
        let ended = self.jobs.iter().filter_map(|(id, job)| match job.state {
            State::Ended(status) if status != Status::Succeeded => Some((id.clone(), status)),
            _ => None,
        });
        let ended: Vec<_> = ended.collect();
        let Some((id, former)) = self.one(&ended) else {
            return;
        };
        let Some(mut job) = self.jobs.remove(&id) else {
            return;
        };
        // No execution waits any more for one that had ended.
        job.ancestors.clear();
        job.state = State::Waits(Some(former));
        let ask = self.ask(&job);
        self.jobs.insert(id.clone(), job);
        self.findings.count("redrives", 1);
        let record = ExecutionRecord {
            status: Status::Queued,
            ended: None,
            ..self.record(&id)
        };
        self.ask_with(&id, ask, record, RequestChange::Replace(String::new()));
    }

    fn record(&self, id: &Text) -> ExecutionRecord {
        self.store.record(id).ok().flatten().unwrap_or_default()
    }

    fn start_child(&mut self) {
        let running = self.free();
        if let Some(parent) = self.one(&running)
            && self.jobs.get(&parent).is_some_and(|job| job.ancestors.len() < 3)
        {
            self.start(&Start::Flow(Some(parent)));
        }
    }

    /// Executions that run and wait for no child.
    fn free(&self) -> Vec<Text> {
        let waits = |id: &Text| {
            let mut children = self.jobs.values().filter(|job| job.ancestors.first() == Some(id));
            children.any(|job| !matches!(job.state, State::Ended(_)))
        };
        let running = self.jobs.iter().filter(|(_, job)| job.state == State::Runs);
        let ids = running.map(|(id, _)| id);
        ids.filter(|id| !waits(id)).cloned().collect()
    }

    fn message(&mut self, from: &Text, body: MessageBody) -> Message {
        let event = self.jobs.get_mut(from).map_or(0, |job| {
            job.event += 1;
            job.event
        });
        let id = MessageId {
            from: from.clone(),
            event: EventId(event),
            to: ADMISSION.into(),
        };
        Message { id, body }
    }

    fn write(&mut self, append: &Append) {
        match self.store.append(std::slice::from_ref(append)) {
            Ok(refusals) if refusals.is_empty() => {}
            refused => self.problem(Law::Store, format!("{refused:?}")),
        }
    }

    /// Admission decides, and what it decided becomes durable, or is lost.
    fn decide(&mut self) {
        let rows = Rows::new(&self.store, self.bug, &self.missed, self.restarted);
        let mut append = match self.admission.poll(&rows) {
            Ok(decided) => decided.append,
            Err(error) => return self.problem(Law::Store, error.to_string()),
        };
        if self.chance.of(3) {
            return self.restart();
        }
        self.plant(&mut append);
        let before = Before::of(&append, &self.store, self.all());
        self.write(&append);
        self.admission.settle();
        self.settle_names();
        self.check(&append, &before);
    }

    /// Names that no execution waits for are forgotten, as the engine forgets them.
    fn settle_names(&mut self) {
        let noted = self.admission.awaited();
        self.awaited.extend(noted.iter().cloned());
        let waits = |(flow, name): &(Text, Text), store: &MemoryStore| {
            let waiters = store.waiters(Waiters::Named(flow, name, 0), 1);
            waiters.is_ok_and(|waiters| !waiters.is_empty())
        };
        for name in self.admission.left_names().into_iter().chain(noted) {
            if !waits(&name, &self.store) {
                self.awaited.remove(&name);
            }
        }
        if let Some(name) = self.awaited.iter().find(|name| !waits(name, &self.store)) {
            return self.problem(Law::Rest, format!("nobody waits for {name:?}, and it is still noted"));
        }
        self.waiting = self.waiting.saturating_add_signed(self.admission.waiting_change());
        let kept = self.store.count_waiters().unwrap_or_default();
        if self.waiting != kept {
            self.problem(Law::Rest, format!("{kept} wait, and {} are counted", self.waiting));
        }
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

    /// The waiters, as admission knows them: one that was stopped keeps its place and its claim
    /// until admission learns of it.
    fn all(&self) -> Vec<Waiter> {
        let ids = self.jobs.keys();
        ids.filter_map(|id| self.store.waiter(id).ok().flatten()).collect()
    }

    /// Executions take the messages to them.
    fn hear(&mut self) {
        for message in self.store.messages(&Receivers::All).unwrap_or_default() {
            if message.id.to.as_str() != ADMISSION && self.chance.of(70) {
                self.hear_one(message);
            }
        }
    }

    fn hear_one(&mut self, message: Message) {
        let id = message.id.to.clone();
        let Some(job) = self.jobs.get_mut(&id) else {
            return self.problem(
                Law::Answer,
                format!("{id}, which is not there, is told {:?}", message.body),
            );
        };
        let is_answer = message.id.event == EventId(job.asked);
        let (mut sent, mut status) = (None, None);
        match (&message.body, job.state) {
            (MessageBody::Admit, State::Waits(_)) if is_answer => {
                job.state = State::Runs;
                status = Some(Status::Running);
                self.findings.count(ADMISSIONS, 1);
            }
            (MessageBody::Decline { .. }, State::Waits(former)) if is_answer => {
                let end = former.unwrap_or(Status::Failed);
                job.state = State::Ended(end);
                status = Some(end);
                self.findings.count("declined", 1);
                sent = Some(self.message(&id, MessageBody::Ended { status: end }));
            }
            (MessageBody::Watch, State::Ended(status)) => {
                sent = Some(self.message(&id, MessageBody::Ended { status }));
            }
            (MessageBody::Met | MessageBody::Watch, _)
            | (MessageBody::Admit | MessageBody::Decline { .. }, State::Ended(_)) => {}
            // It was withdrawn, and requested again.
            (MessageBody::Admit | MessageBody::Decline { .. }, _) if !is_answer => {}
            (other, state) => {
                let what = format!("{id} in {state:?} is told {other:?}");
                self.problem(Law::Answer, what);
            }
        }
        self.turn(&id, status, vec![message.id], sent);
    }

    fn turn(&mut self, id: &Text, status: Option<Status>, received: Vec<MessageId>, sent: Option<Message>) {
        let record = status.map(|status| ExecutionRecord {
            status,
            ended: status.is_ended().then_some(Timestamp(self.now)),
            ..self.record(id)
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
        if let Some(job) = self.jobs.get_mut(id) {
            job.state = State::Ended(status);
        }
        let message = self.message(id, MessageBody::Ended { status });
        self.turn(id, Some(status), Vec::new(), Some(message));
    }

    fn end_one(&mut self) {
        let free = self.free();
        if let Some(id) = self.one(&free) {
            let endings = [Status::Succeeded, Status::Succeeded, Status::Failed, Status::TimedOut];
            let status = self.chance.pick(&endings);
            self.end(&id, status);
        }
    }

    fn stop_one(&mut self) {
        let waiting = self.jobs.iter().filter_map(|(id, job)| match job.state {
            State::Waits(former) => Some((id.clone(), former)),
            _ => None,
        });
        let waiting: Vec<_> = waiting.collect();
        if let Some((id, former)) = self.one(&waiting) {
            self.findings.count("redrives taken back", u64::from(former.is_some()));
            self.end(&id, former.unwrap_or(Status::Stopped));
        }
    }

    fn restart(&mut self) {
        self.findings.count("restarts", 1);
        self.restarted = true;
        let rows = Rows::new(&self.store, self.bug, &self.missed, true);
        match Admission::resume(self.settings, &rows) {
            Ok(admission) => self.admission = admission,
            Err(error) => return self.problem(Law::Store, error.to_string()),
        }
        self.awaited = self.admission.awaited().into_iter().collect();
        self.waiting = self.store.count_waiters().unwrap_or_default();
    }

    fn check(&mut self, append: &Append, before: &Before) {
        for sent in &append.sent {
            if let MessageBody::Decline { reason } = &sent.body {
                match reason {
                    DeclineReason::Deadlock { .. } => self.findings.count("deadlocks declined", 1),
                    DeclineReason::Cycle { .. } => self.findings.count("cycles declined", 1),
                    DeclineReason::Dependency { .. } | DeclineReason::TooManyDependencies => {}
                }
            }
        }
        let after = self.all();
        let claimed = |waiter: &&Waiter| {
            let had = before.waiters.iter().any(|before| before.claim == waiter.claim);
            waiter.claim.is_some() && !had
        };
        let claims = after.iter().filter(claimed).count();
        let ended = self.jobs.iter().filter(|(_, job)| matches!(job.state, State::Ended(_)));
        let ended: Vec<Text> = ended.map(|(id, _)| id.clone()).collect();
        let jobs = &self.jobs;
        let has_ended = |id: &Text| jobs.get(id).is_some_and(|job| matches!(job.state, State::Ended(_)));
        let view = View {
            store: &self.store,
            waiters: &after,
            has_ended: &has_ended,
            ended: &ended,
            is_told: !self.admission.is_idle(),
        };
        self.turns.note(append);
        let mut problems = view.problems(append, before, &mut self.turns);
        let followed = view.follow(&mut self.oldest, append, before, &mut problems);
        self.problems.extend(problems);
        if self.admission.is_idle() {
            let mut stuck = self.stuck(&after);
            stuck.extend(self.wait_for_one_another(&after));
            if !stuck.is_empty() {
                self.problem(Law::Deadlock, format!("{stuck:?} wait for each other"));
            }
        }
        self.findings.count("claims", u64::try_from(claims).unwrap_or(0));
        self.findings
            .count("claims that were followed to their end", u64::from(followed));
    }
}

fn flow_of(number: u64) -> Text {
    let which = usize::try_from(number % 3).unwrap_or(0);
    FLOWS.get(which).copied().unwrap_or_default().into()
}
