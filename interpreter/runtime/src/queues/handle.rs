//! The handle to the queues.

use super::TaskKey;
use super::command::{HeldTask, PollOptions, QueueCommand};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// Which worker holds which task since when. The history records it at the end of the task.
pub(super) type Holders = Arc<Mutex<HashMap<TaskKey, (Text, Timestamp)>>>;

/// Sends commands to the thread of the queues.
#[derive(Clone, Debug)]
pub struct QueueHandle {
    commands: mpsc::UnboundedSender<QueueCommand>,
    pub(super) holders: Holders,
    /// How many polls were made.
    polls: Arc<AtomicU64>,
}

impl QueueHandle {
    /// A handle, and the channel on which its commands arrive.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<QueueCommand>) {
        let (commands, inbox) = mpsc::unbounded_channel();
        let queue_handle = Self {
            commands,
            holders: Holders::default(),
            polls: Arc::default(),
        };
        (queue_handle, inbox)
    }

    /// Sends a command to the queues. It is dropped if the queues have stopped.
    pub fn send(&self, command: QueueCommand) {
        let _ = self.commands.send(command);
    }

    /// The worker that holds a task, and since when.
    pub fn holder(&self, execution: &Text, call: EventId) -> Option<(Text, Timestamp)> {
        let holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        holders.get(&(execution.clone(), call)).cloned()
    }

    /// Polls for tasks for a worker.
    pub fn hold(&self, request: PollOptions) -> QueuePoll {
        let poll = self.polls.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        self.send(QueueCommand::Poll(poll, request, reply));
        QueuePoll {
            queue_handle: self.clone(),
            poll,
            answer,
            over: false,
        }
    }
}

/// A poll that waits for tasks. If it is dropped before its answer, it ends at once, and the tasks
/// it was given meanwhile go to other workers.
#[derive(Debug)]
pub struct QueuePoll {
    queue_handle: QueueHandle,
    poll: u64,
    answer: oneshot::Receiver<Vec<HeldTask>>,
    over: bool,
}

impl QueuePoll {
    /// Waits for tasks. Empty if none came in time; `None` if the queues are stopping.
    pub async fn tasks(mut self) -> Option<Vec<HeldTask>> {
        let answer = (&mut self.answer).await;
        self.over = true;
        answer.ok()
    }
}

impl Drop for QueuePoll {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        // From here on this poll gets no more tasks. Tasks that it got before are in the channel.
        self.answer.close();
        self.queue_handle.send(match self.answer.try_recv() {
            Ok(tasks) => QueueCommand::GiveBack(tasks),
            Err(_) => QueueCommand::CancelPoll(self.poll),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starbridge_flow::time::Millis;
    use starbridge_ports::{QueuedTask, TaskLease};
    use std::time::Duration;

    fn request() -> PollOptions {
        PollOptions {
            worker: Text::from("w"),
            queues: vec![Text::from("q")],
            limit: 1,
            lease: None,
            patience: Duration::from_secs(60),
        }
    }

    fn held() -> HeldTask {
        HeldTask {
            task: QueuedTask::default(),
            lease: TaskLease {
                worker: Text::from("w"),
                held: Timestamp::default(),
                heartbeat: Millis(1),
            },
        }
    }

    #[tokio::test]
    async fn poll_that_is_dropped_is_cancelled() {
        let (queue_handle, mut inbox) = QueueHandle::new();
        let mut polls: Vec<QueuePoll> = (0..3).map(|_| queue_handle.hold(request())).collect();
        let mut replies = Vec::new();
        for number in 0..3 {
            let Some(QueueCommand::Poll(poll, _, reply)) = inbox.recv().await else {
                panic!("a poll");
            };
            assert_eq!(poll, number);
            replies.push(reply);
        }
        let [last, given, waits] = [(); 3].map(|()| polls.pop().unwrap());
        drop(waits);
        assert!(matches!(inbox.try_recv(), Ok(QueueCommand::CancelPoll(0))));
        assert!(replies[0].is_closed());
        // Tasks whose answer never reached the worker come back.
        replies.remove(1).send(vec![held()]).unwrap();
        drop(given);
        assert!(matches!(inbox.try_recv(), Ok(QueueCommand::GiveBack(tasks)) if tasks.len() == 1));
        replies.remove(1).send(vec![held()]).unwrap();
        assert_eq!(last.tasks().await.map(|tasks| tasks.len()), Some(1));
        assert!(inbox.try_recv().is_err(), "who was answered says nothing");
    }
}
