//! Durable writes, and writes in flight.

use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_memory::MemoryStore;
use starbridge_ports::{Append, ExecutionRecord, History, QueuedTask, Turn};
use starbridge_runtime::{TaskGrant, TaskKey};
use std::collections::{BTreeMap, VecDeque};

/// Effects that follow once a write is durable.
pub(super) enum Word {
    /// Workers are told, and tasks wait again.
    ExecutionLeases(Vec<TaskGrant>, Vec<TaskKey>),
    /// Tasks have left, and tasks have come.
    Turn(Vec<(Text, TaskKey)>, Vec<QueuedTask>),
}

/// A write on its way.
pub(super) struct Write {
    pub(super) append: Append,
    pub(super) word: Word,
}

/// The store, and the owner's knowledge of it.
#[derive(Default)]
pub(super) struct Disk {
    pub(super) store: MemoryStore,
    /// The durable state: the last event of each execution, and its open calls by their tasks.
    durable: Owner,
    /// The state that the owner has decided.
    pub(super) owner: Owner,
    pub(super) under_way: VecDeque<Write>,
}

/// Executions as their owner knows them.
#[derive(Clone, Default)]
pub(super) struct Owner {
    last: BTreeMap<Text, u64>,
    /// The open call of each task of an execution.
    pub(super) open: BTreeMap<(Text, u32), EventId>,
    /// Tasks by their calls.
    of: BTreeMap<TaskKey, u32>,
    pub(super) done: u64,
}

impl Owner {
    /// The task of its execution that an open call is for.
    pub(super) fn task_of(&self, key: &TaskKey) -> Option<u32> {
        let task = *self.of.get(key)?;
        (self.open.get(&(key.0.clone(), task)) == Some(&key.1)).then_some(task)
    }
}

impl Disk {
    /// A turn: a call ends, and another one for the same task begins, or none. `make` gives the new task its place.
    pub(super) fn turn(
        &mut self,
        execution: &Text,
        task: u32,
        ended: Option<(Text, EventId)>,
        make: Option<impl FnOnce(EventId) -> QueuedTask>,
    ) {
        let last = self.owner.last.entry(execution.clone()).or_default();
        let expected = EventId(*last);
        *last += 1;
        let call = EventId(*last);
        let slot = (execution.clone(), task);
        let gone = ended.map(|(queue, call)| (queue, (execution.clone(), call)));
        let queued: Vec<QueuedTask> = make.map(|make| make(call)).into_iter().collect();
        match queued.is_empty() {
            true => {
                self.owner.open.remove(&slot);
                self.owner.done += 1;
            }
            false => {
                self.owner.open.insert(slot, call);
                self.owner.of.insert((execution.clone(), call), task);
            }
        }
        let record = (expected.0 == 0).then(|| ExecutionRecord {
            flow: "f".into(),
            name: execution.clone(),
            status: Status::Running,
            ..ExecutionRecord::default()
        });
        let append = Append {
            execution: execution.clone(),
            expected,
            turn: Some(Turn {
                first: call,
                events: 1,
                time: Timestamp(0),
                text: "[]".to_owned(),
            }),
            record,
            unqueued: gone.iter().map(|(_, key)| key.1).collect(),
            queued: queued.clone(),
            ..Append::default()
        };
        let word = Word::Turn(gone.into_iter().collect(), queued);
        self.under_way.push_back(Write { append, word });
    }

    /// The oldest write is durable.
    pub(super) fn commit(&mut self) -> Option<Word> {
        let write = self.under_way.pop_front()?;
        let refused = self.store.append(std::slice::from_ref(&write.append));
        assert_eq!(refused, Ok(Vec::new()), "one owner writes in order");
        if let Word::Turn(gone, come) = &write.word {
            self.keep(&write.append, gone, come);
        }
        Some(write.word)
    }

    fn keep(&mut self, append: &Append, gone: &[(Text, TaskKey)], come: &[QueuedTask]) {
        let execution = &append.execution;
        self.durable.last.insert(execution.clone(), append.expected.0 + 1);
        for (_, key) in gone {
            if let Some(task) = self.durable.task_of(key) {
                self.durable.open.remove(&(execution.clone(), task));
                self.durable.done += u64::from(come.is_empty());
            }
        }
        for queued in come {
            let key = (execution.clone(), queued.call);
            if let Some(task) = self.owner.of.get(&key).copied() {
                self.durable.open.insert((execution.clone(), task), queued.call);
                self.durable.of.insert(key, task);
            }
        }
    }

    /// The process dies; of what is under way so many writes are durable all the same.
    pub(super) fn crash(&mut self, kept: usize) -> usize {
        for _ in 0..kept {
            self.commit();
        }
        let lost = self.under_way.len();
        self.under_way.clear();
        self.owner = self.durable.clone();
        lost
    }
}
