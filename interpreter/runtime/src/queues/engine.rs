//! Drives queues in real time, with a store, and answers workers.

use super::command::{HeldTask, PollOptions, QueueCommand, QueueView};
use super::handle::{Holders, QueueHandle};
use super::poll::{PollRequest, TaskExpiry, TaskGrant};
use super::scheduler::Queues;
use super::{TaskKey, Ticks};
use crate::engine::writer::{Writer, Writing};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_ports::{Append, Clock, Queueing, ShardSet, StoreError, TaskLeaseChange};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// How far ahead the ends of tasks' waiting times are known, and how often the store is asked again.
const LOOK_AHEAD: Millis = Millis(60_000);
const LOOK_AGAIN: Millis = Millis(30_000);
/// How many ends of waiting times are known at once.
const MAX_KNOWN: usize = 100_000;
/// How many commands are taken before tasks are given out. Tasks that arrive together are given out
/// together.
const BATCH: usize = 4096;
/// When to notify an owner that had no room again.
const NOTIFY_RETRY: Millis = Millis(20);
/// How often in a row the store is asked for more tasks before other work has its turn.
const MAX_REFILLS: usize = 4;

/// What the queues need from outside.
pub struct QueueEngineDeps {
    /// The store of the tasks.
    pub store: Arc<dyn Queueing>,
    /// The shards whose queues belong to this engine.
    pub shards: ShardSet,
    /// The time of enqueued tasks and of leases.
    pub clock: Arc<dyn Clock>,
    /// Notifies the owner of an execution. Returns false if the owner has no room now.
    pub notify_owner: Box<dyn Fn(&TaskExpiry) -> bool + Send>,
}

/// Drives queues in real time.
///
/// Call [`QueueEngine::new`], which loads what the store has, then [`QueueEngine::serve`] until it returns. Meanwhile
/// use its [`QueueHandle`]: [`QueueHandle::hold`] to poll, [`QueueHandle::send`] for everything else.
pub struct QueueEngine {
    queues: Queues,
    deps: QueueEngineDeps,
    inbox: mpsc::UnboundedReceiver<QueueCommand>,
    holders: Holders,
    writing: Writing,
    /// The next batch to write.
    decided: Decided,
    /// The batches that are being written, the oldest first.
    under_way: VecDeque<Decided>,
    workers: BTreeMap<u64, oneshot::Sender<Vec<HeldTask>>>,
    /// Expiries to notify owners of, for the first time or again.
    unsent_expiries: VecDeque<TaskExpiry>,
    began: Timestamp,
    look_again: Ticks,
    draining: bool,
    stopped: bool,
}

/// Leases that begin or end with one append.
#[derive(Default)]
struct Decided {
    grants: Vec<TaskGrant>,
    returned: Vec<TaskKey>,
}

impl Decided {
    fn is_empty(&self) -> bool {
        self.grants.is_empty() && self.returned.is_empty()
    }

    fn changes(&self) -> Vec<TaskLeaseChange> {
        let granted = self.grants.iter().flat_map(|grant| &grant.tasks);
        let granted = granted.map(|(task, lease)| TaskLeaseChange {
            execution: task.execution.clone(),
            call: task.call,
            lease: Some(lease.clone()),
        });
        let returned = self.returned.iter().map(|(execution, call)| TaskLeaseChange {
            execution: execution.clone(),
            call: *call,
            lease: None,
        });
        granted.chain(returned).collect()
    }
}

impl QueueEngine {
    /// An engine for queues that go on from what the store has. `queue_handle` is the handle whose commands arrive on
    /// `inbox`.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store can't be read.
    pub fn new(
        mut queues: Queues,
        deps: QueueEngineDeps,
        queue_handle: &QueueHandle,
        inbox: mpsc::UnboundedReceiver<QueueCommand>,
        writer: &Writer,
    ) -> Result<Self, StoreError> {
        let leased = deps.store.leased_tasks(&deps.shards)?;
        let mut holders = queue_handle.holders.lock().unwrap_or_else(PoisonError::into_inner);
        for (task, lease) in &leased {
            let key = (task.execution.clone(), task.call);
            holders.insert(key, (lease.worker.clone(), lease.held));
        }
        drop(holders);
        queues.resume(&deps.store.depths(&deps.shards)?, leased, Millis::ZERO);
        let began = deps.clock.now();
        Ok(Self {
            queues,
            deps,
            inbox,
            holders: queue_handle.holders.clone(),
            writing: Writing::through(writer),
            decided: Decided::default(),
            under_way: VecDeque::new(),
            workers: BTreeMap::new(),
            unsent_expiries: VecDeque::new(),
            began,
            look_again: Millis::ZERO,
            draining: false,
            stopped: false,
        })
    }

    fn now(&self) -> Ticks {
        self.deps.clock.now().since(self.began)
    }

    /// Serves until [`QueueCommand::Stop`].
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn serve(mut self) -> Result<(), StoreError> {
        loop {
            self.run_until_idle()?;
            if self.stopped && self.under_way.is_empty() {
                return Ok(());
            }
            let clock = self.deps.clock.clone();
            let set = clock.set();
            let pause = self.pause();
            tokio::select! {
                biased;
                written = self.writing.written() => { self.take_written(written?); }
                command = self.inbox.recv() => match command {
                    Some(command) => self.take(command),
                    None => self.stopped = true,
                },
                () = tokio::time::sleep(pause) => {}
                () = set => {}
            }
            for _ in 0..BATCH {
                match self.inbox.try_recv() {
                    Ok(command) => self.take(command),
                    Err(_) => break,
                }
            }
        }
    }

    fn pause(&self) -> Duration {
        let now = self.now();
        let until = |at: Ticks| at.saturating_sub(now);
        let overdue = self.queues.next_overdue();
        let waits = [
            self.queues.next().map(until),
            Some(until(self.look_again)),
            overdue.map(|at| at.since(self.deps.clock.now())),
            (!self.unsent_expiries.is_empty() || self.queues.is_dirty()).then_some(NOTIFY_RETRY),
        ];
        waits.into_iter().flatten().min().unwrap_or(LOOK_AGAIN).into()
    }

    /// Decides what can be decided now, writes it, and notifies owners.
    fn run_until_idle(&mut self) -> Result<(), StoreError> {
        let time = self.deps.clock.now();
        let now = time.since(self.began);
        self.look_ahead(time, now)?;
        for _ in 0..MAX_REFILLS {
            let there = |id| self.workers.get(&id).is_some_and(|reply| !reply.is_closed());
            let polled = self.queues.poll(now, time, &there);
            self.unsent_expiries.extend(polled.expiries);
            for id in polled.empty {
                // The worker may have gone.
                self.workers.remove(&id).map(|reply| reply.send(Vec::new()));
            }
            self.decided.grants.extend(polled.grants);
            if polled.short.is_empty() {
                break;
            }
            for (name, asked) in polled.short {
                let tasks = asked.run(self.deps.store.as_ref(), &name)?;
                self.queues.refill(&name, tasks, asked);
            }
        }
        self.tell_owners();
        self.write()
    }

    /// Ends a poll whose worker has gone. Its tasks wait again at once if they are not being
    /// written yet, otherwise when they are durable.
    fn leave(&mut self, id: u64) {
        if self.workers.remove(&id).is_none() {
            return;
        }
        self.queues.cancel_poll(id);
        let given = self.decided.grants.iter().position(|grant| grant.poll == id);
        let given = given.map(|place| self.decided.grants.remove(place));
        for (task, _) in given.iter().flat_map(|grant| &grant.tasks) {
            self.queues.give_back(&(task.execution.clone(), task.call));
        }
    }

    /// Takes back tasks whose answer never reached the worker. They wait again once that is
    /// durable.
    fn take_back(&mut self, tasks: Vec<HeldTask>) {
        for HeldTask { task, lease } in tasks {
            if self.queues.unconfirm(&task, &lease) {
                let key = (task.execution, task.call);
                self.holders().remove(&key);
                self.decided.returned.push(key);
            }
        }
    }

    fn holders(&self) -> MutexGuard<'_, HashMap<TaskKey, (Text, Timestamp)>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&mut self) -> Result<(), StoreError> {
        if self.decided.is_empty() || !self.writing.has_room() {
            return Ok(());
        }
        let decided = std::mem::take(&mut self.decided);
        let batch = vec![Append::of_leases(decided.changes())];
        self.under_way.push_back(decided);
        self.writing.write(batch).map(drop)
    }

    /// Leases are durable: answers the workers.
    fn take_written(&mut self, _: Vec<(usize, starbridge_ports::Refusal)>) {
        let Some(written) = self.under_way.pop_front() else {
            return;
        };
        for key in &written.returned {
            self.queues.give_back(key);
        }
        for grant in written.grants {
            self.answer(grant);
        }
    }

    fn answer(&mut self, grant: TaskGrant) {
        let now = self.now();
        let reply = self.workers.remove(&grant.poll).filter(|reply| !reply.is_closed());
        let Some(reply) = reply else {
            let keys = grant.tasks.iter().map(|(task, _)| (task.execution.clone(), task.call));
            self.decided.returned.extend(keys);
            return;
        };
        let held = self.queues.confirm(&grant, now);
        let mut holders = self.holders();
        let mut tasks = Vec::new();
        for (task, lease) in grant.tasks {
            let key = (task.execution.clone(), task.call);
            // A task that was given up meanwhile is left out.
            if held.contains(&key) {
                holders.insert(key, (lease.worker.clone(), lease.held));
                tasks.push(HeldTask { task, lease });
            }
        }
        drop(holders);
        if let Err(tasks) = reply.send(tasks) {
            self.take_back(tasks);
        }
    }

    fn tell_owners(&mut self) {
        for _ in 0..self.unsent_expiries.len() {
            let Some(expiry) = self.unsent_expiries.pop_front() else {
                break;
            };
            if !(self.deps.notify_owner)(&expiry) {
                self.unsent_expiries.push_back(expiry);
            }
        }
    }

    fn look_ahead(&mut self, time: Timestamp, now: Ticks) -> Result<(), StoreError> {
        if now < self.look_again {
            return Ok(());
        }
        let horizon = time.plus(LOOK_AHEAD);
        let tasks = self.deps.store.overdue_tasks(&self.deps.shards, horizon, MAX_KNOWN)?;
        let last = tasks.last().and_then(|task| task.wait_until);
        let horizon = last
            .filter(|_| tasks.len() >= MAX_KNOWN)
            .map_or(horizon, |last| last.plus(Millis(1)));
        self.queues.look_ahead(horizon, &tasks);
        self.look_again = now.saturating_add(LOOK_AGAIN);
        Ok(())
    }

    fn take(&mut self, command: QueueCommand) {
        match command {
            QueueCommand::Enqueue(task) => self.queues.enqueue(*task),
            QueueCommand::Remove(queue, key) => {
                self.queues.remove(&queue, &key);
                self.holders().remove(&key);
            }
            QueueCommand::Withdraw(queue, key) => self.queues.withdraw(&queue, &key),
            // A worker that polls now has to come back later.
            QueueCommand::Poll(_, _, reply) if self.draining => drop(reply),
            QueueCommand::Poll(id, request, reply) => self.take_poll(id, request, reply),
            QueueCommand::CancelPoll(id) => self.leave(id),
            QueueCommand::GiveBack(tasks) => self.take_back(tasks),
            QueueCommand::Heartbeat(key, reply) => {
                let beat = self.queues.heartbeat(&key, self.now());
                let _ = reply.send(beat);
            }
            QueueCommand::Configure(name, settings) => {
                let now = self.now();
                self.queues.configure(&name, settings, now);
            }
            QueueCommand::Describe(name, reply) => {
                let view = self.queues.is_known(&name).then(|| self.view_of(&name));
                let _ = reply.send(view);
            }
            QueueCommand::List { after, limit, reply } => {
                let names = self.queues.names_after(&after).take(limit);
                let _ = reply.send(names.map(|name| self.view_of(name)).collect());
            }
            QueueCommand::Workers(queue, reply) => drop(reply.send(self.queues.workers(&queue))),
            QueueCommand::Holders(keys, reply) => {
                let holder = |key: TaskKey| {
                    let (worker, since) = self.queues.holder(&key)?;
                    let holder = (worker.clone(), since);
                    Some((key, holder))
                };
                let _ = reply.send(keys.into_iter().filter_map(holder).collect());
            }
            QueueCommand::LeaseLeft(key, reply) => drop(reply.send(self.queues.lease_left(&key, self.now()))),
            QueueCommand::Drain => {
                self.draining = true;
                for (id, reply) in std::mem::take(&mut self.workers) {
                    self.queues.cancel_poll(id);
                    // Workers that got something are answered when that is durable.
                    let granted = |decided: &Decided| decided.grants.iter().any(|grant| grant.poll == id);
                    if granted(&self.decided) || self.under_way.iter().any(granted) {
                        self.workers.insert(id, reply);
                    } else {
                        let _ = reply.send(Vec::new());
                    }
                }
            }
            QueueCommand::Stop => self.stopped = true,
        }
    }

    fn take_poll(&mut self, id: u64, request: PollOptions, reply: oneshot::Sender<Vec<HeldTask>>) {
        // A worker that left before its answer gets nothing.
        if reply.is_closed() {
            return;
        }
        self.workers.insert(id, reply);
        self.queues.add_poll(PollRequest {
            id,
            worker: request.worker,
            queues: request.queues,
            limit: request.limit,
            lease: request.lease,
            until: self.now().saturating_add(request.patience.into()),
        });
    }

    fn view_of(&self, name: &Text) -> QueueView {
        let (waiting, held, oldest) = self.queues.standing(name);
        QueueView {
            name: name.clone(),
            settings: self.queues.settings(name),
            waiting,
            held,
            oldest,
            workers: self.queues.waiting_workers(name),
            busy: self.queues.busy_workers(name),
        }
    }
}
