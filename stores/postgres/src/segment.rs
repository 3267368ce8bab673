//! The changes of a batch, by table. What comes and goes within it is written once.

use crate::admission;
use crate::audit;
use crate::codec::{Str, big, event};
use crate::parts::by_bytes;
use crate::record::{self, ChangedRow, NewRow};
use crate::session::{Sent, column};
use crate::stages::Stages;
use crate::tasks::{self, Call, DeadChange, TaskChange, TaskRow};
use rustc_hash::FxHashMap;
use starbridge_flow::value::Text;
use starbridge_ports::{
    AdmissionChange, Append, AuditEntry, DeadTask, DeadTasksCleared, ExecutionRecord, KeptNotice, Message, MessageId,
    TaskLeaseChange, Turn,
};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Who gets a message, who sent it, and the event.
type MessageKey<'a> = (&'a str, &'a str, i64);
/// A message, its place, and what it is if it is sent.
type SentMessage<'a> = (MessageKey<'a>, i64, Option<&'a Message>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum MessageChange {
    Send,
    Discard,
}

/// Changes that may be sent together.
#[derive(Default)]
pub(crate) struct Segment<'a> {
    new: Vec<NewRow<'a>>,
    new_at: FxHashMap<i64, usize>,
    changed: Vec<ChangedRow<'a>>,
    changed_at: FxHashMap<i64, usize>,
    pub turns: Vec<(i64, &'a Turn)>,
    pub checkpoints: BTreeMap<i64, (i32, &'a Vec<u8>)>,
    pub requests: BTreeMap<i64, Option<(&'static str, &'a str)>>,
    pub logs: BTreeMap<(i64, i32), &'a String>,
    pub notices: Vec<(&'a Text, &'a KeptNotice)>,
    pub admission: Vec<&'a AdmissionChange>,
    pub audit: Vec<&'a AuditEntry>,
    tasks: Stages<TaskChange, Call, Call, (Call, TaskRow<'a>)>,
    dead: Stages<DeadChange, i64, Call, (Call, Option<&'a DeadTask>)>,
    messages: Stages<MessageChange, MessageKey<'a>, MessageKey<'a>, SentMessage<'a>>,
}

impl<'a> Segment<'a> {
    pub(crate) fn start(&mut self, number: i64, id: &'a Text, record: Cow<'a, ExecutionRecord>) {
        self.new_at.insert(number, self.new.len());
        self.new.push(NewRow { number, id, record });
    }

    pub(crate) fn change(&mut self, number: i64, record: &'a ExecutionRecord, begins: bool) {
        if let Some(new) = self.new_at.get(&number).and_then(|at| self.new.get_mut(*at)) {
            match begins {
                true => new.record.to_mut().take_beginning(record),
                false => new.record.to_mut().take_changes(record),
            }
            return;
        }
        let started = begins.then_some(record.started.0);
        match self.changed_at.get(&number).and_then(|at| self.changed.get_mut(*at)) {
            Some(changed) => {
                changed.record = Cow::Borrowed(record);
                changed.started = started.or(changed.started);
            }
            None => {
                self.changed_at.insert(number, self.changed.len());
                self.changed.push(ChangedRow {
                    number,
                    record: Cow::Borrowed(record),
                    started,
                });
            }
        }
    }

    /// Changes tasks of an execution.
    pub(crate) fn change_tasks(&mut self, number: i64, append: &'a Append) {
        for (calls, kind) in [
            (&append.unqueued, TaskChange::Remove),
            (&append.withdrawn, TaskChange::Withdraw),
        ] {
            for call in calls {
                let key = (number, event(call.0));
                self.tasks.add(kind, key, key, (key, TaskRow::Gone));
            }
        }
        for task in &append.queued {
            let key = (number, event(task.call.0));
            self.tasks.add(TaskChange::Queue, key, key, (key, TaskRow::Task(task)));
        }
        match &append.dead_cleared {
            DeadTasksCleared::None => {}
            DeadTasksCleared::Calls(calls) => {
                for call in calls {
                    let key = (number, event(call.0));
                    self.dead.add(DeadChange::Clear, number, key, (key, None));
                }
            }
            DeadTasksCleared::All => {
                let key = (number, 0);
                self.dead.add(DeadChange::ClearAll, number, key, (key, None));
            }
        }
        for dead in &append.dead {
            let key = (number, event(dead.call.0));
            self.dead.add(DeadChange::Bury, number, key, (key, Some(dead)));
        }
    }

    pub(crate) fn lease(&mut self, number: i64, change: &'a TaskLeaseChange) {
        let key = (number, event(change.call.0));
        self.tasks
            .add(TaskChange::Lease, key, key, (key, TaskRow::Lease(change)));
    }

    pub(crate) fn discard(&mut self, message: &'a MessageId) {
        let key = key_of(message);
        self.messages.add(MessageChange::Discard, key, key, (key, 0, None));
    }

    pub(crate) fn send_message(&mut self, message: &'a Message, place: i64) {
        let key = key_of(&message.id);
        self.messages
            .add(MessageChange::Send, key, key, (key, place, Some(message)));
    }

    /// Makes statements of it.
    pub(crate) fn send<'s>(&'s self, sent: &mut Vec<Sent<'s>>) {
        if !self.new.is_empty() {
            sent.push(record::start(&self.new));
            sent.extend(record::label(&self.new));
        }
        if !self.changed.is_empty() {
            sent.push(record::change(&self.changed));
        }
        self.send_turns(sent);
        self.send_checkpoints(sent);
        self.send_requests(sent);
        self.send_logs(sent);
        for stage in self.tasks.stages() {
            tasks::send(sent, stage.kind, &stage.changes);
        }
        for stage in self.dead.stages() {
            tasks::send_dead(sent, stage.kind, &stage.changes);
        }
        self.send_notices(sent);
        for change in &self.admission {
            admission::send(sent, change);
        }
        audit::send(sent, &self.audit);
        for stage in self.messages.stages() {
            send_messages(sent, stage.kind, &stage.changes);
        }
    }

    fn send_turns<'s>(&'s self, sent: &mut Vec<Sent<'s>>) {
        for turns in by_bytes(&self.turns, |(_, turn)| turn.text.len()) {
            sent.push(Sent::new(
                "insert into turns select * from unnest($1::bigint[], $2::integer[], $3::integer[], $4::bigint[], $5::bytea[])",
                vec![
                    column(turns, |(number, _)| *number),
                    column(turns, |(_, turn)| event(turn.first.0)),
                    column(turns, |(_, turn)| event(u64::from(turn.events))),
                    column(turns, |(_, turn)| turn.time.0),
                    column(turns, |(_, turn)| turn.text.as_bytes()),
                ],
            ));
        }
    }

    fn send_checkpoints<'s>(&'s self, sent: &mut Vec<Sent<'s>>) {
        let all: Vec<(i64, i32, &'s [u8])> = self
            .checkpoints
            .iter()
            .map(|(number, (event, state))| (*number, *event, state.as_slice()))
            .collect();
        for some in by_bytes(&all, |(_, _, state)| state.len()) {
            sent.push(Sent::new(
                "insert into checkpoints select * from unnest($1::bigint[], $2::integer[], $3::bytea[])
                    on conflict (number) do update set event = excluded.event, state = excluded.state",
                vec![
                    column(some, |row| row.0),
                    column(some, |row| row.1),
                    column(some, |row| row.2),
                ],
            ));
        }
    }

    fn send_requests<'s>(&'s self, sent: &mut Vec<Sent<'s>>) {
        let mut gone = Vec::new();
        let mut kept: Vec<(i64, &'static str, &'s [u8])> = Vec::new();
        for (number, request) in &self.requests {
            match request {
                Some((kind, text)) => kept.push((*number, kind, text.as_bytes())),
                None => gone.push(*number),
            }
        }
        if !gone.is_empty() {
            sent.push(Sent::new(
                "delete from requests where number = any($1::bigint[])",
                vec![Box::new(gone)],
            ));
        }
        for some in by_bytes(&kept, |(_, _, text)| text.len()) {
            sent.push(Sent::new(
                "insert into requests select * from unnest($1::bigint[], $2::text[], $3::bytea[])
                    on conflict (number) do update set kind = excluded.kind, text = excluded.text",
                vec![
                    column(some, |row| row.0),
                    column(some, |row| row.1),
                    column(some, |row| row.2),
                ],
            ));
        }
    }

    fn send_logs<'s>(&'s self, sent: &mut Vec<Sent<'s>>) {
        let all: Vec<(i64, i32, &'s [u8])> = self
            .logs
            .iter()
            .map(|((number, event), text)| (*number, *event, text.as_bytes()))
            .collect();
        for some in by_bytes(&all, |(_, _, text)| text.len()) {
            sent.push(Sent::new(
                "insert into logs select number, event, 'stderr', text
                    from unnest($1::bigint[], $2::integer[], $3::bytea[]) as l (number, event, text)
                    on conflict (number, event, stream) do update set text = excluded.text",
                vec![
                    column(some, |row| row.0),
                    column(some, |row| row.1),
                    column(some, |row| row.2),
                ],
            ));
        }
    }

    /// INVARIANT: of the notices for each execution and target, the one with the lowest event is marked as the next, and no
    /// other. Events only grow, so it is the first that comes.
    fn send_notices<'s>(&'s self, sent: &mut Vec<Sent<'s>>) {
        for some in by_bytes(&self.notices, |(_, notice)| notice.text.len()) {
            sent.push(Sent::new(
                "insert into notices (target, execution, event, due, next, failures, text)
                    select n.target, n.execution, n.event, n.due,
                        row_number() over (partition by n.target, n.execution order by n.place) = 1
                            and not exists (select 1 from notices k where k.target = n.target and k.execution = n.execution),
                        0, n.text
                    from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bytea[]) with ordinality
                        as n (target, execution, event, due, text, place)
                    on conflict do nothing",
                vec![
                    column(some, |(_, notice)| Str(notice.target.as_str())),
                    column(some, |(execution, _)| Str(execution.as_str())),
                    column(some, |(_, notice)| big(notice.event.0)),
                    column(some, |(_, notice)| notice.time.0),
                    column(some, |(_, notice)| notice.text.as_bytes()),
                ],
            ));
        }
    }
}

fn key_of(id: &MessageId) -> MessageKey<'_> {
    (&id.to, &id.from, big(id.event.0))
}

fn send_messages<'s>(sent: &mut Vec<Sent<'s>>, kind: MessageChange, changes: &'s [SentMessage<'s>]) {
    let keys = || {
        vec![
            column(changes, |change| Str(change.0.0)),
            column(changes, |change| Str(change.0.1)),
            column(changes, |change| change.0.2),
        ]
    };
    match kind {
        MessageChange::Discard => sent.push(Sent::new(
            "delete from messages m using unnest($1::text[], $2::text[], $3::bigint[]) as d (receiver, sender, event)
                where m.receiver = d.receiver and m.sender = d.sender and m.event = d.event",
            keys(),
        )),
        MessageChange::Send => {
            let mut values = keys();
            values.push(column(changes, |change| change.1));
            values.push(column(changes, |change| {
                change
                    .2
                    .map(|message| serde_json::to_vec(&message.body).unwrap_or_default())
            }));
            sent.push(Sent::new(
                "insert into messages select * from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bytea[])
                    on conflict do nothing",
                values,
            ));
        }
    }
}
