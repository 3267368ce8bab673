//! All queues together: which worker waits for tasks, and which gets them.

use super::command::QueueWorker;
use super::fair_queue::FairQueue;
use super::leased_tasks::{End, LeasePhase, LeasedTasks};
use super::lower_heads::LowerHeads;
use super::poll::{PollOutcome, PollRequest, TaskExpiry, TaskFetch, TaskGrant};
use super::queue::Queue;
use super::settings::QueueSettings;
use super::waiting_tasks::PAGE;
use super::{TaskKey, Ticks};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_ports::{Depth, QueuedTask, TaskLease};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

/// The longest time between two heartbeats if neither task nor worker sets one.
const DEFAULT_LEASE: Millis = Millis(30_000);
/// How many bytes of messages one answer to a worker may have. A single task may have more.
const MAX_POLL_BYTES: usize = 4 << 20;

/// The worker queues of a node. They do no I/O.
///
/// Call it in this order:
///
/// 1. [`Queues::new`], [`Queues::resume`] with what the store has, and [`Queues::configure`] for each queue that has
///    settings.
/// 2. For each change: [`Queues::add_poll`] and [`Queues::cancel_poll`] for workers that poll,
///    [`Queues::enqueue`] and [`Queues::remove`] for tasks, [`Queues::heartbeat`] for heartbeats.
/// 3. [`Queues::poll`] after that, and when [`Queues::next`] or [`Queues::next_overdue`] is due.
///    Its result says what to do: see [`PollOutcome`].
/// 4. Once leases are durable, [`Queues::confirm`] each grant whose worker is still there, and answer it. If the worker has
///    gone, make durable that the tasks are given back, then [`Queues::give_back`]. If the worker had gone after its answer,
///    call [`Queues::unconfirm`] before that.
///
/// The other methods only read: [`Queues::standing`], [`Queues::holder`], [`Queues::settings`] and others.
#[derive(Debug, Default)]
pub struct Queues {
    fair_queue: Arc<FairQueue>,
    fair_share: u32,
    queues: BTreeMap<Text, Queue>,
    /// The queues that have a rate.
    rated: BTreeSet<Text>,
    leased: LeasedTasks,
    /// The polls that wait, the oldest first.
    polls: BTreeMap<u64, PollRequest>,
    /// The end of each poll's waiting time.
    deadlines: BTreeSet<(Ticks, u64)>,
    /// The polls that wait, by queue.
    waiting_for: BTreeMap<Text, BTreeSet<u64>>,
    /// Queues that have changed for waiting polls.
    dirty: BTreeSet<Text>,
    /// The ends of tasks' waiting times, as far ahead as they are known.
    overdue: BTreeSet<(Timestamp, TaskKey)>,
    overdue_of: HashMap<TaskKey, (Timestamp, Text)>,
    horizon: Timestamp,
}

impl Queues {
    /// Queues without tasks. `fair_queue` is shared with the engines that put tasks in. After `fair_share` tasks of a queue comes the
    /// one that has waited longest among the first of each priority; 0: never.
    pub fn new(fair_queue: Arc<FairQueue>, fair_share: u32) -> Self {
        Self {
            fair_queue,
            fair_share,
            ..Self::default()
        }
    }

    /// Goes on from what a store has. A worker keeps a held task for a full lease and timeout from now: its last heartbeat is
    /// not known, and the wall clock may have jumped.
    pub fn resume(&mut self, depths: &[Depth], leased: Vec<(QueuedTask, TaskLease)>, now: Ticks) {
        self.fair_queue.resume(depths);
        for depth in depths {
            self.queue(&depth.queue).waiting.resume(depth.waiting);
        }
        for (task, lease) in leased {
            let key = (task.execution.clone(), task.call);
            self.queue(&task.queue).held += 1;
            self.leased.grant(task, lease.worker, lease.heartbeat, lease.held);
            self.leased.begin(&key, now);
        }
    }

    fn queue(&mut self, name: &Text) -> &mut Queue {
        self.queues.entry(name.clone()).or_default()
    }

    /// Forgets a queue that has neither tasks nor settings.
    fn forget_if_over(&mut self, name: &Text) {
        if self.queues.get(name).is_some_and(Queue::is_over) {
            self.queues.remove(name);
        }
    }

    /// Sets an operator's settings for a queue.
    pub fn configure(&mut self, name: &Text, settings: QueueSettings, now: Ticks) {
        match settings.rate_per_second {
            Some(_) => self.rated.insert(name.clone()),
            None => self.rated.remove(name),
        };
        self.queue(name).configure(settings, now);
        self.forget_if_over(name);
        self.dirty.insert(name.clone());
    }

    /// Takes a task that was put into its queue.
    pub fn enqueue(&mut self, task: QueuedTask) {
        let key = (task.execution.clone(), task.call);
        let anew = self.leased.is_announced_anew(&task);
        if let Some(held) = self.leased.get(&key) {
            // A poll read it from the store before this call. A task that stays held through a
            // pause or a new order is not added again.
            if held.task.since == task.since && !anew {
                self.queue(&task.queue).waiting.count_given_out();
            }
            return self.forget_if_over(&task.queue);
        }
        self.know_overdue(&task);
        self.dirty.insert(task.queue.clone());
        self.queue(&task.queue.clone()).waiting.enqueue(task);
    }

    fn know_overdue(&mut self, task: &QueuedTask) {
        let key = (task.execution.clone(), task.call);
        if let Some(until) = task.wait_until.filter(|until| *until < self.horizon)
            && self.leased.get(&key).is_none()
        {
            self.overdue_of.insert(key.clone(), (until, task.queue.clone()));
            self.overdue.insert((until, key));
        }
    }

    fn forget_overdue(&mut self, key: &TaskKey) -> Option<Text> {
        let (until, queue) = self.overdue_of.remove(key)?;
        self.overdue.remove(&(until, key.clone()));
        Some(queue)
    }

    /// Removes a task whose call is over. `name` is the name of its queue.
    pub fn remove(&mut self, name: &Text, key: &TaskKey) {
        self.forget_overdue(key);
        match self.leased.remove(key) {
            Some(held) if held.counted => {
                let queue = self.queue(name);
                queue.held = queue.held.saturating_sub(1);
            }
            Some(_) => {}
            None => self.queue(name).waiting.leave(key),
        }
        self.forget_if_over(name);
        self.dirty.insert(name.clone());
    }

    /// Takes a task out of its queue, unless somebody holds it.
    pub fn withdraw(&mut self, name: &Text, key: &TaskKey) {
        if !self.leased.withdraw(key) {
            self.remove(name, key);
        }
    }

    /// Takes a worker's poll. The next [`Queues::poll`] answers it if it can.
    pub fn add_poll(&mut self, poll: PollRequest) {
        for queue in &poll.queues {
            self.waiting_for.entry(queue.clone()).or_default().insert(poll.id);
            self.dirty.insert(queue.clone());
        }
        self.deadlines.insert((poll.until, poll.id));
        self.polls.insert(poll.id, poll);
    }

    /// Ends a poll whose worker has gone.
    pub fn cancel_poll(&mut self, id: u64) {
        let Some(poll) = self.polls.remove(&id) else {
            return;
        };
        self.deadlines.remove(&(poll.until, id));
        for queue in &poll.queues {
            if let Some(ids) = self.waiting_for.get_mut(queue) {
                ids.remove(&id);
                if ids.is_empty() {
                    self.waiting_for.remove(queue);
                }
            }
        }
    }

    /// Takes a heartbeat. Returns for how long from now the worker holds the task; `None`: no longer.
    pub fn heartbeat(&mut self, key: &TaskKey, now: Ticks) -> Option<Millis> {
        self.leased.heartbeat(key, now)
    }

    /// Begins the leases of a grant that is durable. Returns those of its tasks that are not over.
    pub fn confirm(&mut self, grant: &TaskGrant, now: Ticks) -> Vec<TaskKey> {
        let keys = grant.tasks.iter().map(|(task, _)| (task.execution.clone(), task.call));
        keys.filter(|key| self.leased.begin(key, now).is_some()).collect()
    }

    /// Stops a lease whose worker had gone before it could hear of the task. Returns whether the task still has that
    /// lease: then make durable that it is given back, and call [`Queues::give_back`].
    pub fn unconfirm(&mut self, task: &QueuedTask, lease: &TaskLease) -> bool {
        self.leased.unbegin(task, lease)
    }

    /// Puts a task that was given back among those that wait. Call it when that is durable.
    pub fn give_back(&mut self, key: &TaskKey) {
        if let Some(held) = self.leased.remove(key) {
            let queue = self.queue(&held.task.queue.clone());
            queue.held = queue.held.saturating_sub(1);
            self.dirty.insert(held.task.queue.clone());
            self.know_overdue(&held.task);
            self.queue(&held.task.queue.clone()).waiting.enqueue(held.task);
        }
    }

    /// The queue of a task that a worker holds or that has waited too long.
    pub fn queue_of(&self, key: &TaskKey) -> Option<&Text> {
        self.leased.get(key).map(|held| &held.task.queue)
    }

    /// The worker that holds a task, and since when.
    pub fn holder(&self, key: &TaskKey) -> Option<(&Text, Timestamp)> {
        let held = self.leased.get(key).filter(|held| held.phase == LeasePhase::Held)?;
        Some((&held.worker, held.since))
    }

    /// How long the lease of a task still lasts, or its time if that ends earlier.
    pub fn lease_left(&self, key: &TaskKey, now: Ticks) -> Option<Millis> {
        let held = self.leased.get(key).filter(|held| held.phase == LeasePhase::Held)?;
        Some(held.first_end().saturating_sub(now))
    }

    /// Takes the store's answer to what was asked for a queue that ran short.
    pub fn refill(&mut self, name: &Text, tasks: Vec<QueuedTask>, asked: TaskFetch) {
        let count = tasks.len();
        let holding = &self.leased;
        let free = |task: &QueuedTask| holding.get(&(task.execution.clone(), task.call)).is_none();
        match asked {
            TaskFetch::Next(asked) => {
                let tasks = tasks.into_iter().filter(free).collect();
                self.queue(name).waiting.refill(tasks, count < asked);
            }
            TaskFetch::Below(priority, each) => {
                let lower = LowerHeads::new(priority, each, tasks, free);
                self.queue(name).waiting.look_below(lower);
            }
        }
        self.forget_if_over(name);
        self.dirty.insert(name.clone());
    }

    /// Takes the ends of waiting times before `horizon`, as the store has them.
    pub fn look_ahead(&mut self, horizon: Timestamp, tasks: &[QueuedTask]) {
        self.horizon = horizon;
        tasks.iter().for_each(|task| self.know_overdue(task));
    }

    /// Gives tasks to polls that wait, and finds what has expired. `time` is the wall clock's; `there` says whether
    /// the worker of a poll is still there.
    pub fn poll(&mut self, now: Ticks, time: Timestamp, there: &dyn Fn(u64) -> bool) -> PollOutcome {
        let mut done = PollOutcome::default();
        for (key, end) in self.leased.ended(now) {
            let redeliver = self.redeliver_of(&key);
            done.expiries.push(match end {
                End::TaskLease => TaskExpiry::LeaseEnded { key, redeliver },
                End::Timeout => TaskExpiry::TimedOut { key },
            });
        }
        self.end_waits(time, &mut done);
        self.mark_rated_dirty(now);
        while let Some(name) = self.dirty.pop_first() {
            self.serve(&name, (now, time), there, &mut done);
        }
        for (name, _) in &done.short {
            self.dirty.insert(name.clone());
        }
        self.end_polls(now, &mut done);
        done
    }

    /// Ends polls that have waited long enough, unless the store still has to be asked.
    fn end_polls(&mut self, now: Ticks, done: &mut PollOutcome) {
        let late = self.deadlines.iter().take_while(|(until, _)| *until <= now);
        let asked = |id: &u64| {
            let poll = self.polls.get(id);
            let short = |name: &Text| done.short.iter().any(|(short, _)| short == name);
            poll.is_some_and(|poll| poll.queues.iter().any(short))
        };
        let late: Vec<u64> = late.map(|(_, id)| *id).filter(|id| !asked(id)).collect();
        for id in late {
            done.empty.push(id);
            self.cancel_poll(id);
        }
    }

    /// Withdraws tasks that have waited too long.
    fn end_waits(&mut self, time: Timestamp, done: &mut PollOutcome) {
        while let Some((_, key)) = self.overdue.first().filter(|(until, _)| *until <= time).cloned() {
            if let Some(queue) = self.forget_overdue(&key) {
                self.queue(&queue).waiting.leave(&key);
                self.forget_if_over(&queue);
                self.leased.overdue(&queue, &key);
                done.expiries.push(TaskExpiry::TimedOut { key });
            }
        }
    }

    fn redeliver_of(&self, key: &TaskKey) -> u32 {
        let held = self.leased.get(key);
        let queue = held.and_then(|held| self.queues.get(&held.task.queue));
        queue.map_or(QueueSettings::default().redeliver, |queue| queue.settings.redeliver)
    }

    /// When the rate allows the next task of a queue that polls wait for.
    fn free_at(&self, name: &Text) -> Option<Ticks> {
        let waited_for = self.waiting_for.contains_key(name);
        self.queues.get(name).filter(|_| waited_for)?.free_at()
    }

    /// Marks queues whose rate allows something again.
    fn mark_rated_dirty(&mut self, now: Ticks) {
        let free = |name: &&Text| self.free_at(name).is_some_and(|at| at <= now);
        let free: Vec<Text> = self.rated.iter().filter(free).cloned().collect();
        self.dirty.extend(free);
    }

    /// Serves the polls of a queue, the oldest first, until the queue has nothing more to give.
    fn serve(
        &mut self,
        name: &Text,
        (now, time): (Ticks, Timestamp),
        there: &dyn Fn(u64) -> bool,
        done: &mut PollOutcome,
    ) {
        let ask = |done: &mut PollOutcome, asked| {
            if !done.short.iter().any(|(short, _)| short == name) {
                done.short.push((name.clone(), asked));
            }
        };
        loop {
            let first = self.waiting_for.get(name).and_then(BTreeSet::first).copied();
            let (Some(first), Some(queue)) = (first, self.queues.get_mut(name)) else {
                return;
            };
            if !there(first) {
                self.cancel_poll(first);
                done.empty.push(first);
                continue;
            }
            if queue.waiting.is_short() {
                let asked = PAGE + usize::try_from(queue.held).unwrap_or(0);
                return ask(done, TaskFetch::Next(asked));
            }
            // Its other queues are looked at when they are served.
            if queue.waiting.has_none() {
                return;
            }
            let Some(poll) = self.polls.get(&first).cloned() else {
                return;
            };
            let most = usize::try_from(queue.free(now)).map_or(poll.limit, |free| poll.limit.min(free));
            if let Some(fetch) = queue.waiting.lacks_below(self.fair_share, most) {
                return ask(done, fetch);
            }
            let tasks = self.take(&poll, now, time);
            if tasks.is_empty() {
                return;
            }
            self.cancel_poll(poll.id);
            done.grants.push(TaskGrant { poll: poll.id, tasks });
        }
    }

    fn take(&mut self, poll: &PollRequest, now: Ticks, time: Timestamp) -> Vec<(QueuedTask, TaskLease)> {
        let mut taken = Vec::new();
        let mut bytes = 0;
        for name in &poll.queues {
            let Some(queue) = self.queues.get_mut(name) else {
                continue;
            };
            let mut free = queue.free(now);
            while free > 0 && taken.len() < poll.limit {
                if !taken.is_empty() && bytes + queue.waiting.next_bytes() > MAX_POLL_BYTES {
                    return taken;
                }
                if queue.waiting.lacks_below(self.fair_share, 1).is_some() {
                    break;
                }
                let Some(task) = queue.waiting.pop(self.fair_share) else {
                    break;
                };
                free -= 1;
                queue.took();
                bytes += task.message.len();
                self.fair_queue.reached(name, task.priority, task.virtual_time);
                let key = (task.execution.clone(), task.call);
                if let Some((until, _)) = self.overdue_of.remove(&key) {
                    self.overdue.remove(&(until, key));
                }
                let asked = task.heartbeat.unwrap_or(DEFAULT_LEASE);
                let lease = TaskLease {
                    worker: poll.worker.clone(),
                    held: time,
                    heartbeat: poll.lease.map_or(asked, |wanted| wanted.min(asked)),
                };
                self.leased
                    .grant(task.clone(), lease.worker.clone(), lease.heartbeat, time);
                taken.push((task, lease));
            }
        }
        taken
    }

    /// The next time to act, on the clock that never goes back.
    pub fn next(&self) -> Option<Ticks> {
        let polls = self.deadlines.first().map(|(until, _)| *until);
        let rated = self.rated.iter().filter_map(|name| self.free_at(name)).min();
        [self.leased.next(), polls, rated].into_iter().flatten().min()
    }

    /// The next time to act, on the wall clock.
    pub fn next_overdue(&self) -> Option<Timestamp> {
        self.overdue.first().map(|(until, _)| *until)
    }

    /// Whether there is something to do at once.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// The known queues after a name, in order: those that have tasks, settings, or polls that wait.
    pub fn names_after(&self, after: &str) -> impl Iterator<Item = &Text> {
        let bounds = (Bound::Excluded(after), Bound::Unbounded);
        let mut known = self.queues.range::<str, _>(bounds).map(|(name, _)| name).peekable();
        let mut waited = self
            .waiting_for
            .range::<str, _>(bounds)
            .map(|(name, _)| name)
            .peekable();
        std::iter::from_fn(move || {
            let next = [known.peek().copied(), waited.peek().copied()];
            let next = next.into_iter().flatten().min()?;
            known.next_if_eq(&next);
            waited.next_if_eq(&next);
            Some(next)
        })
    }

    /// Whether a queue has tasks, settings, or polls that wait.
    pub fn is_known(&self, name: &str) -> bool {
        self.queues.contains_key(name) || self.waiting_for.contains_key(name)
    }

    /// The operator's settings of a queue, or the defaults.
    pub fn settings(&self, name: &str) -> QueueSettings {
        self.queues
            .get(name)
            .map(|queue| queue.settings.clone())
            .unwrap_or_default()
    }

    /// How many tasks of a queue wait, how many are held, and since when the oldest of the next ones has waited.
    pub fn standing(&self, name: &str) -> (u64, u64, Option<Timestamp>) {
        self.queues.get(name).map_or((0, 0, None), |queue| {
            (queue.waiting.count(), queue.held, queue.waiting.oldest())
        })
    }

    /// How many workers have tasks of a queue.
    pub fn busy_workers(&self, name: &str) -> usize {
        self.leased.busy_workers(name)
    }

    /// How many polls wait for a queue.
    pub fn waiting_workers(&self, name: &str) -> usize {
        self.waiting_for.get(name).map_or(0, BTreeSet::len)
    }

    /// The workers that have tasks of a queue or wait for some, in the order of their names.
    pub fn workers(&self, name: &str) -> Vec<QueueWorker> {
        let mut workers: BTreeMap<&Text, QueueWorker> = BTreeMap::new();
        for (worker, since) in self.leased.holders_of(name) {
            let known = workers.entry(worker).or_default();
            known.held += 1;
            known.since = known.since.map_or(Some(since), |earlier| Some(earlier.min(since)));
        }
        let polls = self.waiting_for.get(name).into_iter().flatten();
        for poll in polls.filter_map(|poll| self.polls.get(poll)) {
            workers.entry(&poll.worker).or_default().polls += 1;
        }
        let named = workers.into_iter().map(|(name, worker)| QueueWorker {
            name: name.clone(),
            ..worker
        });
        named.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starbridge_machine::EventId;

    fn task(queue: &str, call: u64) -> QueuedTask {
        QueuedTask {
            queue: queue.into(),
            execution: Text::from("e"),
            call: EventId(call),
            message: format!("{{\"call\":{call}}}"),
            ..QueuedTask::default()
        }
    }

    fn poll_of(id: u64, queues: &[&str]) -> PollRequest {
        PollRequest {
            id,
            worker: Text::from(format!("w{id}")),
            queues: queues.iter().map(|name| Text::from(*name)).collect(),
            limit: 10,
            lease: None,
            until: Millis(1_000),
        }
    }

    fn pump(queues: &mut Queues, there: &dyn Fn(u64) -> bool) -> PollOutcome {
        queues.poll(Millis::ZERO, Timestamp::default(), there)
    }

    fn names(queues: &Queues) -> Vec<&str> {
        queues.names_after("").map(Text::as_str).collect()
    }

    #[test]
    fn poll_of_a_worker_that_has_gone_is_passed_over() {
        let mut queues = Queues::default();
        (0..200).for_each(|id| queues.add_poll(poll_of(id, &["q"])));
        queues.enqueue(task("q", 1));
        let polled = pump(&mut queues, &|id| id == 199);
        let given: Vec<u64> = polled.grants.iter().map(|grant| grant.poll).collect();
        assert_eq!((given, polled.empty.len()), (vec![199], 199));
        assert_eq!(queues.waiting_workers("q"), 0);
    }

    #[test]
    fn lease_that_was_not_confirmed_goes_to_the_next_poll() {
        let mut queues = Queues::default();
        queues.enqueue(task("q", 1));
        queues.add_poll(poll_of(1, &["q"]));
        let grant = pump(&mut queues, &|_| true).grants.remove(0);
        assert_eq!(queues.confirm(&grant, Millis::ZERO).len(), 1);
        let (given, lease) = &grant.tasks[0];
        assert!(queues.unconfirm(given, lease));
        assert!(!queues.unconfirm(given, lease), "once");
        // Until that is durable no worker has it, and no lease can end.
        let later = queues.poll(Millis(1_000_000), Timestamp::default(), &|_| true);
        assert_eq!((later.expiries.len(), queues.standing("q").1), (0, 1));
        queues.add_poll(poll_of(2, &["q"]));
        queues.give_back(&(given.execution.clone(), given.call));
        let again = pump(&mut queues, &|_| true).grants.remove(0);
        assert_eq!((again.poll, &again.tasks[0].0), (2, given));
        queues.confirm(&again, Millis::ZERO);
        assert!(!queues.unconfirm(given, lease), "it is under another lease");
    }

    #[test]
    fn queue_that_is_empty_is_forgotten() {
        let mut queues = Queues::default();
        for id in 0..100 {
            let own: Vec<String> = (0..100).map(|number| format!("q{id}-{number}")).collect();
            let own: Vec<&str> = own.iter().map(String::as_str).collect();
            queues.add_poll(poll_of(id, &own));
        }
        pump(&mut queues, &|_| true);
        assert_eq!(names(&queues).len(), 10_000);
        (0..100).for_each(|id| queues.cancel_poll(id));
        assert_eq!(names(&queues).len(), 0);
        for (name, call) in [("a", 1), ("b", 2), ("c", 3)] {
            queues.enqueue(task(name, call));
        }
        queues.add_poll(poll_of(200, &["b", "x"]));
        assert_eq!(names(&queues), ["a", "b", "c", "x"]);
        assert_eq!(queues.names_after("b").next().map(Text::as_str), Some("c"));
        let grant = pump(&mut queues, &|_| true).grants.remove(0);
        queues.confirm(&grant, Millis::ZERO);
        for (name, call) in [("b", 2), ("c", 3)] {
            queues.remove(&Text::from(name), &(Text::from("e"), EventId(call)));
        }
        assert_eq!(names(&queues), ["a"]);
        let rated = QueueSettings {
            rate_per_second: Some(1.0),
            ..QueueSettings::default()
        };
        queues.configure(&Text::from("set"), rated, Millis::ZERO);
        assert_eq!(names(&queues), ["a", "set"]);
        queues.configure(&Text::from("set"), QueueSettings::default(), Millis::ZERO);
        assert_eq!((names(&queues), queues.rated.len()), (vec!["a"], 0));
    }
}
