//! The worker queues of a node: requests of workers, and settings and views of operators.

use super::queue_thread::KIND;
use super::task_message::task_message;
use super::{Node, NotTaken, Operator};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{EventId, Signal};
use starbridge_ports::{AuditEntry, AuditKind, DeadTask, StoreError};
use starbridge_runtime::{Command, PollOptions, QueueCommand, QueueSettings, QueueView, QueueWorker, Reply, TaskKey};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;

/// The view of a queue: its state, and how many dead tasks it has.
#[derive(Clone, Debug)]
pub struct ShownQueue {
    /// The state of the queue.
    pub view: QueueView,
    /// How many of its tasks are dead.
    pub dead: u64,
}

impl From<QueueView> for ShownQueue {
    fn from(view: QueueView) -> Self {
        Self { view, dead: 0 }
    }
}

/// The result of re-queueing or discarding dead tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BulkOutcome {
    /// For how many tasks it was done.
    pub done: u64,
    /// For how many tasks it was not done: their executions already go on, or do not exist any
    /// more.
    pub not_done: u64,
}

impl Node {
    /// Polls for tasks for a worker. Returns each as JSON; empty if none came in time. The worker
    /// holds them durably until their leases end.
    ///
    /// # Errors
    ///
    /// [`NotTaken::Stopping`] if the node is stopping.
    pub async fn hold(&self, mut request: PollOptions) -> Result<Vec<String>, NotTaken> {
        // A lease is stored with the name.
        request.worker = self.shown_worker(request.worker);
        let poll = self.queues.hold(request);
        let held = poll.tasks().await.ok_or(NotTaken::Stopping)?;
        self.counters.held.fetch_add(held.len() as u64, Ordering::Relaxed);
        Ok(held
            .iter()
            .map(|held| task_message(held, &self.tokens, &self.vault))
            .collect())
    }

    /// Takes a heartbeat. Returns false if no worker holds the task under a valid lease.
    pub(super) async fn heartbeat(&self, key: TaskKey) -> bool {
        let (reply, answer) = oneshot::channel();
        self.queues.send(QueueCommand::Heartbeat(key, reply));
        matches!(answer.await, Ok(Some(_)))
    }

    /// Sets an operator's settings of a queue. They stay in force after a restart.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub fn set_queue(&self, name: &str, settings: &QueueSettings, operator: &Operator) -> Result<(), StoreError> {
        let text = (*settings != QueueSettings::default()).then(|| Value::Object(settings.write()).to_json());
        if self.store.get_value(KIND, name)? == text {
            return Ok(());
        }
        let entry = AuditEntry {
            detail: settings.write(),
            ..self.audit_entry(operator, "set", AuditKind::Queue, name)
        };
        match text {
            // Default settings need not be stored.
            None => drop(self.store.delete_value(KIND, name, Some(&entry))?),
            Some(text) => self.store.put_value(KIND, name, &text, Some(&entry))?,
        }
        self.queues.send(QueueCommand::Configure(name.into(), settings.clone()));
        Ok(())
    }

    /// The views of at most `most` queues after this name: those that have tasks of any kind, polls that wait, or
    /// settings.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub async fn shown_queues(&self, after: &str, most: usize) -> Result<Vec<ShownQueue>, StoreError> {
        let views = self.listed_queues(after.into(), most).await;
        let dead = self
            .store
            .dead_counts()?
            .into_iter()
            .filter(|(name, _)| name.as_str() > after);
        let mut shown: BTreeMap<Text, ShownQueue> =
            views.into_iter().map(|view| (view.name.clone(), view.into())).collect();
        for (name, dead) in dead {
            let queue = shown.entry(name.clone());
            queue.or_insert_with(|| QueueView::of_nothing(name).into()).dead = dead;
        }
        Ok(shown.into_values().take(most).collect())
    }

    /// The state of the first queues, at most this many, that have tasks, settings or workers;
    /// without their dead tasks.
    pub async fn queue_views(&self, most: usize) -> Vec<QueueView> {
        self.listed_queues(Text::default(), most).await
    }

    /// The view of a queue, if it is known.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub async fn shown_queue(&self, name: &Text) -> Result<Option<ShownQueue>, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.queues.send(QueueCommand::Describe(name.clone(), reply));
        let view = answer.await.ok().flatten();
        let dead = self.store.dead_counts()?.into_iter().find(|(other, _)| other == name);
        let dead = dead.map_or(0, |(_, dead)| dead);
        let known = view.or_else(|| (dead > 0).then(|| QueueView::of_nothing(name.clone())));
        Ok(known.map(|view| ShownQueue { view, dead }))
    }

    /// The workers that have tasks of a queue or wait for some, in the order of their names.
    pub async fn queue_workers(&self, name: &Text) -> Vec<QueueWorker> {
        let (reply, answer) = oneshot::channel();
        self.queues.send(QueueCommand::Workers(name.clone(), reply));
        let mut workers: Vec<QueueWorker> = answer.await.unwrap_or_default();
        for worker in &mut workers {
            worker.name = self.shown_worker(std::mem::take(&mut worker.name));
        }
        workers
    }

    /// The name of a worker with secrets redacted: it may be made of one, which was not known yet when the worker took a task.
    pub fn shown_worker(&self, name: Text) -> Text {
        self.vault.redacted_text(&name).map_or(name, Text::from)
    }

    /// Which workers hold these tasks, and since when. It blocks, so it is for threads that may.
    pub fn holders(&self, tasks: Vec<TaskKey>) -> HashMap<TaskKey, (Text, Timestamp)> {
        if tasks.is_empty() {
            return HashMap::new();
        }
        let (reply, answer) = oneshot::channel();
        self.queues.send(QueueCommand::Holders(tasks, reply));
        let holders: HashMap<TaskKey, (Text, Timestamp)> = answer.blocking_recv().unwrap_or_default();
        holders
            .into_iter()
            .map(|(task, (worker, since))| (task, (self.shown_worker(worker), since)))
            .collect()
    }

    /// The state of a queue, without its dead tasks. It blocks, so call it only on threads that may
    /// block.
    pub fn queue_now(&self, name: &Text) -> QueueView {
        let (reply, answer) = oneshot::channel();
        self.queues.send(QueueCommand::Describe(name.clone(), reply));
        let view = answer.blocking_recv().ok().flatten();
        view.unwrap_or_else(|| QueueView::of_nothing(name.clone()))
    }

    /// When the lease of a task ends, or its time if that is earlier; `None` if no worker holds it.
    /// It blocks, so call it only on threads that may block.
    pub fn lease_until(&self, task: TaskKey) -> Option<Timestamp> {
        let (reply, answer) = oneshot::channel();
        self.queues.send(QueueCommand::LeaseLeft(task, reply));
        let left = answer.blocking_recv().ok().flatten()?;
        Some(self.now().plus(left))
    }

    async fn listed_queues(&self, after: Text, limit: usize) -> Vec<QueueView> {
        let (reply, answer) = oneshot::channel();
        self.queues.send(QueueCommand::List { after, limit, reply });
        answer.await.unwrap_or_default()
    }

    /// Redrives the executions of dead tasks, so that the tasks are queued again.
    ///
    /// # Errors
    ///
    /// [`NotTaken`] if the node is busy or stopping.
    pub async fn requeue(
        &self,
        tasks: &[DeadTask],
        by: Option<&str>,
        operator: &Operator,
    ) -> Result<BulkOutcome, NotTaken> {
        let mut outcome = BulkOutcome::default();
        let mut again: Vec<(Text, bool)> = Vec::new();
        for task in tasks {
            let known = again.iter().find(|(execution, _)| *execution == task.execution);
            let goes_on = match known {
                Some((_, goes_on)) => *goes_on,
                None => {
                    let redrive = Signal::Redrive {
                        by: Some(by.unwrap_or(&operator.by).to_owned()),
                        inputs: Vec::new(),
                        definition: None,
                    };
                    let audit = self.dead_entry(operator, "requeue", std::slice::from_ref(task));
                    let given = self.signal_audited(&task.execution, redrive, audit).await?;
                    let goes_on = given == Reply::Taken;
                    again.push((task.execution.clone(), goes_on));
                    goes_on
                }
            };
            outcome.count(goes_on);
        }
        Ok(outcome)
    }

    /// Removes these tasks from the list of dead tasks. Their executions do not change.
    ///
    /// # Errors
    ///
    /// [`NotTaken`] if the node is busy or stopping.
    pub async fn drop_dead(&self, tasks: &[DeadTask], operator: &Operator) -> Result<BulkOutcome, NotTaken> {
        let mut outcome = BulkOutcome::default();
        let mut rest = tasks;
        while let Some(first) = rest.first() {
            let own = rest.iter().take_while(|task| task.execution == first.execution).count();
            let (own, others) = rest.split_at(own);
            let (reply, answer) = oneshot::channel();
            let calls: Vec<EventId> = own.iter().map(|task| task.call).collect();
            let command = Command::DiscardDead {
                execution: first.execution.clone(),
                calls,
                audit: self.dead_entry(operator, "drop", own).map(Box::new),
                reply,
            };
            self.owners.owner_of(&first.execution, command).await?;
            let done = answer.await.map_err(|_| NotTaken::Stopping)? == Reply::Taken;
            own.iter().for_each(|_| outcome.count(done));
            rest = others;
        }
        Ok(outcome)
    }

    /// The entry of the audit list about dead tasks of one execution.
    fn dead_entry(&self, operator: &Operator, action: &str, tasks: &[DeadTask]) -> Option<AuditEntry> {
        let first = tasks.first()?;
        let calls: Vec<Value> = tasks.iter().map(|task| task.call.0.into()).collect();
        let entry = self.audit_entry(operator, action, AuditKind::Execution, &first.execution);
        Some(entry.with("queue", first.queue.clone()).with("calls", calls))
    }
}

impl BulkOutcome {
    fn count(&mut self, done: bool) {
        match done {
            true => self.done += 1,
            false => self.not_done += 1,
        }
    }
}
