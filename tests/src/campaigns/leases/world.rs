//! The world of one seed: what happens next, and what must not.

use super::bug::Bug;
use super::desk::{Desk, Settled, key_of, leases};
use super::disk::{Disk, Word};
use super::workers::{Belief, Beliefs, Task};
use crate::campaigns::{Chance, Findings};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::QueuedTask;
use starbridge_runtime::{PollRequest, QueueSettings, TaskExpiry, TaskGrant, TaskKey};
use std::collections::{BTreeMap, BTreeSet};

/// When faults stop, in milliseconds; what is open by then must be done soon.
const FAULTS_END: u64 = 300_000;
const END: u64 = FAULTS_END + 600_000;
/// Milliseconds of the shortest and the longest lease.
const LEASES: (u32, u32) = (1, 8);

enum Happening {
    /// An execution brings so many tasks.
    Bring(Text, u32),
    Commit,
    /// A worker asks; it believes to have asked then.
    Ask(u32),
    Asked(PollRequest, u64, u32),
    /// Tasks reach a worker.
    Told(u32, TaskGrant, u64),
    /// A worker sends a sign of life, which arrives, and whose answer does.
    Beat(u32, Task, EventId),
    BeatArrives(u32, Task, EventId, u64),
    BeatAnswered(u32, Task, EventId, u64, Option<u64>),
    Report(u32, Task, EventId),
    ExpiryArrives(TaskExpiry),
    /// The setting of a queue is removed.
    Unset(Text),
    /// Something is to be done by the clock of the queues.
    Tick,
    Fault,
}

pub(super) struct World {
    chance: Chance,
    now: u64,
    /// How far the wall's clock is off, in milliseconds.
    off: i64,
    agenda: BTreeMap<(u64, u64), Happening>,
    order: u64,
    disk: Disk,
    desk: Desk,
    settings: BTreeMap<Text, QueueSettings>,
    queues: Vec<Text>,
    /// The worker behind each order, and when it was sent.
    orders: BTreeMap<u64, (u32, u64)>,
    next_order: u64,
    beliefs: Beliefs,
    /// Workers that are there, and which life of theirs.
    lives: BTreeMap<u32, u32>,
    /// Calls that were told to a worker.
    told: BTreeSet<TaskKey>,
    brought: u64,
    planted: Option<Bug>,
    pub(super) findings: Findings,
}

impl World {
    pub(super) fn new(seed: u64, planted: Option<Bug>) -> Self {
        let mut chance = Chance::new(seed);
        let queues: Vec<Text> = ["a", "b", "c"].map(Text::from)[..chance.from(1, 3) as usize].to_vec();
        let disk = Disk::default();
        let settings = BTreeMap::new();
        let desk = Desk::start(&disk, &settings, 0, planted);
        let mut world = Self {
            now: 0,
            off: 0,
            agenda: BTreeMap::new(),
            order: 0,
            disk,
            desk,
            settings,
            queues,
            orders: BTreeMap::new(),
            next_order: 0,
            beliefs: Beliefs::default(),
            lives: BTreeMap::new(),
            told: BTreeSet::new(),
            brought: 0,
            planted,
            findings: Findings::default(),
            chance,
        };
        world.set_up();
        world
    }

    fn set_up(&mut self) {
        for number in 0..self.chance.from(1, 12) {
            let after = u64::from(self.chance.below(200_000));
            // Now and then more than a queue keeps in memory.
            let tasks = match self.chance.below(40) {
                0 => self.chance.from(4_000, 6_000),
                1..=10 => self.chance.from(50, 300),
                _ => self.chance.from(1, 20),
            };
            self.plan(after, Happening::Bring(Text::from(format!("e{number}")), tasks));
        }
        for worker in 0..self.chance.from(2, 12) {
            self.lives.insert(worker, 0);
            let after = u64::from(self.chance.below(1_000));
            self.plan(after, Happening::Ask(worker));
        }
        for _ in 0..self.chance.from(5, 40) {
            let after = u64::from(self.chance.below(u32::try_from(FAULTS_END).unwrap_or(1)));
            self.plan(after, Happening::Fault);
        }
        self.plan(1, Happening::Tick);
    }

    fn plan(&mut self, after: u64, happening: Happening) {
        self.order += 1;
        self.agenda.insert((self.now + after, self.order), happening);
    }

    fn time(&self) -> Timestamp {
        Timestamp(i64::try_from(self.now).unwrap_or(0) + self.off + 2 * 3_600_000)
    }

    /// The clock of the queues.
    fn ticks(&self) -> Millis {
        self.desk.ticks(self.now, self.time())
    }

    /// A network's delay, in milliseconds.
    fn delay(&mut self) -> u64 {
        match self.chance.below(50) {
            0 => u64::from(self.chance.from(500, 5_000)),
            _ => u64::from(self.chance.from(1, 20)),
        }
    }

    fn faults(&self) -> bool {
        self.now < FAULTS_END
    }

    pub(super) fn run(&mut self) {
        while let Some(((at, _), happening)) = self.agenda.pop_first() {
            self.now = at;
            let over = self.now > FAULTS_END && self.disk.owner.done == self.brought && self.disk.under_way.is_empty();
            if over || self.now > END || !self.findings.problems.is_empty() {
                break;
            }
            self.happen(happening);
            self.settle();
        }
        self.audit();
    }

    fn audit(&mut self) {
        let open = self.brought - self.disk.owner.done;
        self.findings.count("tasks", self.brought);
        if !self.findings.problems.is_empty() {
            return;
        }
        if open > 0 {
            self.findings
                .problem(format!("{open} of {} tasks are not done", self.brought));
        }
        for queue in &self.queues {
            let (waiting, held, _) = self.desk.queues.standing(queue);
            if (waiting, held) != (0, 0) {
                let problem = format!("the queue {queue} says that {waiting} wait and {held} are held: none is there");
                self.findings.problem(problem);
            }
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Bring(execution, tasks) => self.bring(&execution, tasks),
            Happening::Commit => {
                if let Some(word) = self.disk.commit() {
                    self.hear(word);
                }
            }
            Happening::Ask(worker) => self.ask(worker),
            Happening::Asked(order, sent, life) => {
                let worker = worker_of(&order);
                if self.lives.get(&worker) == Some(&life) {
                    self.orders.insert(order.id, (worker, sent));
                    let until = self.ticks().saturating_add(Millis(20_000));
                    self.desk.queues.add_poll(PollRequest { until, ..order });
                }
            }
            Happening::Told(worker, grant, sent) => self.get_tasks(worker, grant, sent),
            Happening::Beat(worker, task, call) => self.heartbeat(worker, task, call),
            Happening::BeatArrives(worker, task, call, sent) => {
                let key = (task.0.clone(), call);
                let ticks = self.ticks();
                let lease = match self.planted {
                    Some(Bug::HeartbeatsLost) => Some(self.beliefs.of(&task, worker, call).map_or(0, |it| it.lease)),
                    _ => self.desk.queues.heartbeat(&key, ticks).map(|lease| lease.0),
                };
                let after = self.delay();
                self.plan(after, Happening::BeatAnswered(worker, task, call, sent, lease));
            }
            Happening::BeatAnswered(worker, task, call, sent, Some(lease)) => {
                self.beliefs.renew(&task, worker, call, sent + lease);
            }
            Happening::BeatAnswered(worker, task, call, _, None) => {
                self.findings.count("heartbeats refused", 1);
                self.beliefs.drop_call(&task, worker, call);
            }
            Happening::Report(worker, task, call) => self.report(worker, &task, call),
            Happening::ExpiryArrives(expiry) => self.take_expiry(&expiry),
            Happening::Unset(queue) => {
                let ticks = self.ticks();
                self.desk.queues.configure(&queue, QueueSettings::default(), ticks);
                self.settings.remove(&queue);
            }
            Happening::Tick => {}
            Happening::Fault if self.faults() => self.fault(),
            Happening::Fault => {}
        }
    }

    fn bring(&mut self, execution: &Text, tasks: u32) {
        for task in 0..tasks {
            self.brought += 1;
            self.queue_task(execution, task, None);
        }
    }

    /// A task is queued, in place of a call that ended or for the first time.
    fn queue_task(&mut self, execution: &Text, task: u32, ended: Option<(Text, EventId)>) {
        let queue = match &ended {
            Some((queue, _)) => queue.clone(),
            None => self.chance.pick(&self.queues),
        };
        let priority = if self.chance.of(10) { 9 } else { 5 };
        let virtual_time = self.desk.fair_queue.give(&queue, priority, execution);
        let (now, impatient, slow) = (self.time(), self.chance.of(3) && self.faults(), self.chance.of(5));
        let heartbeat = 1000 * u64::from(self.chance.from(LEASES.0, LEASES.1));
        let make = |call| QueuedTask {
            queue,
            execution: execution.clone(),
            call,
            priority,
            virtual_time,
            order: Timestamp(0),
            since: now,
            wait_until: impatient.then(|| now.plus(Millis(30_000))),
            timeout: slow.then_some(Millis(15_000)),
            heartbeat: Some(Millis(heartbeat)),
            message: "{}".to_owned(),
        };
        self.disk.turn(execution, task, ended, Some(make));
        self.plan_commit();
    }

    fn plan_commit(&mut self) {
        let slow = self.chance.of(5);
        let after = u64::from(self.chance.from(1, if slow { 500 } else { 5 }));
        self.plan(after, Happening::Commit);
    }

    /// A write is durable: whom it concerns is told.
    fn hear(&mut self, word: Word) {
        match word {
            Word::Turn(gone, come) => {
                gone.iter().for_each(|(queue, key)| self.desk.queues.remove(queue, key));
                come.into_iter().for_each(|task| self.desk.queues.enqueue(task));
            }
            Word::ExecutionLeases(grants, returned) => {
                let lost = self.planted == Some(Bug::ReturnsLost);
                let returned = returned.iter().filter(|_| !lost);
                returned.for_each(|key| self.desk.queues.give_back(key));
                for grant in grants {
                    self.answer(grant);
                }
            }
        }
    }

    fn answer(&mut self, mut grant: TaskGrant) {
        let asked = self.orders.remove(&grant.poll);
        let hangs_up = self.faults() && self.chance.of(3);
        // The asking worker has gone, and the server sees that.
        let Some((worker, sent)) = asked.filter(|_| !hangs_up) else {
            self.findings.count("tasks given back", grant.tasks.len() as u64);
            let returned = grant.tasks.iter().map(|(task, _)| key_of(task)).collect();
            self.disk.under_way.push_back(leases(Vec::new(), returned));
            self.plan_commit();
            asked.into_iter().for_each(|(worker, _)| self.ask_again(worker));
            return;
        };
        let ticks = self.ticks();
        let held = self.desk.queues.confirm(&grant, ticks);
        grant.tasks.retain(|(task, _)| held.contains(&key_of(task)));
        if self.faults() && self.chance.of(3) {
            self.findings.count("answers to holds lost", 1);
            return self.ask_again(worker);
        }
        let after = self.delay();
        self.plan(after, Happening::Told(worker, grant, sent));
    }

    fn ask_again(&mut self, worker: u32) {
        let after = u64::from(self.chance.from(10, 2_000));
        self.plan(after, Happening::Ask(worker));
    }

    fn ask(&mut self, worker: u32) {
        let Some(life) = self.lives.get(&worker).copied() else {
            return;
        };
        self.next_order += 1;
        let mut queues = self.queues.clone();
        if self.chance.of(30) {
            queues = vec![self.chance.pick(&queues)];
        }
        let limit = if self.brought > 1_000 {
            200
        } else {
            self.chance.from(1, 10)
        };
        let order = PollRequest {
            id: self.next_order,
            worker: Text::from(worker.to_string()),
            queues,
            limit: limit as usize,
            lease: self.chance.of(20).then_some(Millis(500)),
            until: Millis::ZERO,
        };
        let (sent, after) = (self.now, self.delay());
        self.plan(after, Happening::Asked(order, sent, life));
    }

    /// A worker has tasks: it works at them, says so, and reports, unless it forgets one of that.
    fn get_tasks(&mut self, worker: u32, grant: TaskGrant, sent: u64) {
        self.ask_again(worker);
        for (queued, lease) in grant.tasks {
            let key = key_of(&queued);
            self.findings.count(super::HOLDS, 1);
            if !self.told.insert(key.clone()) {
                self.findings
                    .problem(format!("the call {}/{} was given to two workers", key.0, key.1));
            }
            let Some(number) = self.disk.owner.task_of(&key) else {
                continue;
            };
            let task = (key.0.clone(), number);
            // It knows how long it may have the task, too.
            let ends = queued.timeout.map_or(u64::MAX, |longest| sent + longest.0);
            let belief = Belief {
                worker,
                call: key.1,
                valid_until: (sent + lease.heartbeat.0).min(ends),
                ends,
                lease: lease.heartbeat.0,
            };
            if let Some(other) = self.beliefs.take(&task, belief, self.now) {
                let problem = format!(
                    "at {} worker {worker} got task {number} of {} (call {}) while worker {} has it until {} (call {})",
                    self.now, key.0, key.1, other.worker, other.valid_until, other.call
                );
                self.findings.problem(problem);
            }
            self.plan(lease.heartbeat.0 / 3, Happening::Beat(worker, task.clone(), key.1));
            let long = self.faults() && self.chance.of(10);
            let work = self.chance.from(1, if long { 40_000 } else { 2_000 });
            self.plan(u64::from(work), Happening::Report(worker, task, key.1));
        }
    }

    fn heartbeat(&mut self, worker: u32, task: Task, call: EventId) {
        let Some(belief) = self.beliefs.of(&task, worker, call).cloned() else {
            return;
        };
        // Some fall silent.
        if self.faults() && self.chance.of(5) {
            return;
        }
        let (sent, after) = (self.now, self.delay());
        self.plan(after, Happening::BeatArrives(worker, task.clone(), call, sent));
        self.plan(belief.lease / 3 + 1, Happening::Beat(worker, task, call));
    }

    /// A worker reports, where it believes that it still may.
    fn report(&mut self, worker: u32, task: &Task, call: EventId) {
        if self.beliefs.of(task, worker, call).is_none() {
            return;
        }
        self.beliefs.drop_call(task, worker, call);
        let key = (task.0.clone(), call);
        if self.disk.owner.task_of(&key).is_none() {
            return;
        }
        let queue = self.queue_of(&key);
        // Now and then it failed, and is tried again.
        if self.faults() && self.chance.of(5) {
            self.queue_task(&task.0, task.1, Some((queue, call)));
        } else {
            let none: Option<fn(EventId) -> QueuedTask> = None;
            self.disk.turn(&task.0, task.1, Some((queue, call)), none);
            self.plan_commit();
        }
    }

    fn queue_of(&self, key: &TaskKey) -> Text {
        let queue = self.desk.queues.queue_of(key).cloned();
        queue.unwrap_or_else(|| Text::from("a"))
    }

    /// The owner hears that a task's time is over: it is tried again.
    fn take_expiry(&mut self, expiry: &TaskExpiry) {
        let (TaskExpiry::LeaseEnded { key, .. } | TaskExpiry::TimedOut { key }) = expiry;
        if let Some(task) = self.disk.owner.task_of(key) {
            let queue = self.queue_of(key);
            self.queue_task(&key.0, task, Some((queue, key.1)));
        }
    }

    fn settle(&mut self) {
        let time = self.time();
        let Settled {
            expiries,
            empty,
            grants,
        } = self.desk.settle(&self.disk, self.now, time);
        for expiry in expiries {
            let kind = match &expiry {
                TaskExpiry::LeaseEnded { .. } => "leases that ended",
                TaskExpiry::TimedOut { key } if self.told.contains(key) => "tasks that took too long",
                TaskExpiry::TimedOut { .. } => "tasks that waited too long",
            };
            self.findings.count(kind, 1);
            let after = u64::from(self.chance.from(1, 50));
            self.plan(after, Happening::ExpiryArrives(expiry));
        }
        for order in empty {
            if let Some((worker, _)) = self.orders.remove(&order) {
                self.ask_again(worker);
            }
        }
        self.look_at(&grants);
        if !grants.is_empty() {
            if self.planted == Some(Bug::ToldTooEarly) {
                grants.iter().cloned().for_each(|grant| self.answer(grant));
            }
            self.disk.under_way.push_back(leases(grants, Vec::new()));
            self.plan_commit();
            // The worst moment: the turn is decided, and nobody knows of it.
            if self.faults() && self.chance.below(1_000) == 0 {
                self.crash();
            }
        }
        let next = self.desk.next(time, self.now) - self.now;
        let planned = self.agenda.first_key_value().map(|((at, _), _)| *at);
        if planned.is_none_or(|at| at > self.now + next) {
            self.plan(next, Happening::Tick);
        }
    }

    /// Nothing is given out while that is forbidden, and no more than is allowed.
    fn look_at(&mut self, grants: &[TaskGrant]) {
        for (task, _) in grants.iter().flat_map(|grant| &grant.tasks) {
            let Some(settings) = self.settings.get(&task.queue) else {
                continue;
            };
            let (_, held, _) = self.desk.queues.standing(&task.queue);
            if settings.paused {
                self.findings.problem("a queue that is paused gave out a task");
            }
            if settings.max_concurrent.is_some_and(|most| held > most) {
                self.findings
                    .problem(format!("{held} tasks are held, more than may be"));
            }
        }
    }

    fn fault(&mut self) {
        match self.chance.below(10) {
            0..=3 => self.crash(),
            4 | 5 => {
                self.findings.count("jumps of the wall clock", 1);
                self.off = i64::from(self.chance.below(7_200_000)) - 3_600_000;
            }
            6 => self.set_queue(),
            _ => {
                self.findings.count("workers that died", 1);
                let worker = self.chance.below(u32::try_from(self.lives.len()).unwrap_or(1));
                self.beliefs.forget(worker);
                *self.lives.entry(worker).or_default() += 1;
                self.orders.retain(|_, (of, _)| *of != worker);
                self.ask_again(worker);
            }
        }
    }

    fn set_queue(&mut self) {
        let queue = self.chance.pick(&self.queues);
        let settings = QueueSettings {
            max_concurrent: self.chance.of(30).then_some(1_000),
            paused: self.chance.of(30),
            rate_per_second: self.chance.of(20).then_some(50.0),
            ..QueueSettings::default()
        };
        self.desk.queues.configure(&queue, settings.clone(), self.ticks());
        // It is not so for ever.
        self.plan(20_000, Happening::Unset(queue.clone()));
        self.settings.insert(queue, settings);
    }

    /// The process dies and is started again. Workers with open requests ask again.
    fn crash(&mut self) {
        self.findings.count("crashes", 1);
        let under_way = u32::try_from(self.disk.under_way.len()).unwrap_or(0);
        let kept = self.chance.below(under_way + 1);
        self.findings.count("writes kept whose word was lost", u64::from(kept));
        let lost = self.disk.crash(kept as usize);
        self.findings.count("writes lost in a crash", lost as u64);
        self.restore_brought();
        let asked: Vec<u32> = self.orders.values().map(|(worker, _)| *worker).collect();
        self.orders.clear();
        self.agenda.retain(|_, happening| {
            let inside = matches!(
                happening,
                Happening::Commit | Happening::ExpiryArrives(_) | Happening::Told(..) | Happening::BeatArrives(..)
            );
            !inside
        });
        self.desk = Desk::start(&self.disk, &self.settings, self.now, self.planted);
        let workers: BTreeSet<u32> = self.lives.keys().copied().chain(asked).collect();
        // Some of these ask twice from now on: two processes of one worker.
        for worker in workers {
            self.ask_again(worker);
        }
    }

    /// A task that was brought but is not durable never existed.
    fn restore_brought(&mut self) {
        self.brought = self.disk.owner.done + self.disk.owner.open.len() as u64;
    }
}

fn worker_of(order: &PollRequest) -> u32 {
    order.worker.as_str().parse().unwrap_or(0)
}
