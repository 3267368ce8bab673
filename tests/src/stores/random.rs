//! Random runs: two stores answer each request the same.

mod claims;

use super::{Tried, message, more, record, start_as};
use super::{notices, operating, queueing};
use crate::chance::Chance;
use claims::Claims;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::{EventId, Parent, Status};
use starbridge_ports::{
    Append, AuditEntry, AuditQuery, DeadTasksCleared, ExecutionRecord, FailedUndo, Message, Query, Receivers,
    RecordedFailure, RecordedPause, RecordedWait, RequestChange, ShardSet, Store, WaitingReason,
};
use std::collections::BTreeMap;

/// Executions there are. Names are taken from among their ids too.
const IDS: u32 = 14;

/// Asks both the same, so many times. The first answer that differs is a panic that names the seed.
pub fn agree(seed: u64, steps: u32, model: &dyn Store, tried: &mut Tried<'_>) {
    // Opening a store anew ends its owners, and the model is not opened anew.
    let owned = tried.open.is_none() && model.owning().is_some() && tried.store().owning().is_some();
    let mut run = Run {
        claims: owned.then(Claims::default),
        chance: Chance::new(seed),
        told: 0,
        audited: 0,
        seed,
        step: 0,
    };
    for step in 0..steps {
        run.step = step;
        run.change(model, tried.store());
        run.look(model, tried.store());
        if step % 20 == 19 {
            run.look_at_all(model, tried.store());
        }
    }
    run.look_at_all(model, tried.store());
}

struct Run {
    /// Who has which shard, if both stores keep that.
    claims: Option<Claims>,
    chance: Chance,
    /// The latest event that has a notice.
    told: u64,
    /// When an operator did something last.
    audited: i64,
    seed: u64,
    step: u32,
}

impl Run {
    fn same<T: PartialEq + std::fmt::Debug>(&self, what: &str, model: &T, tried: &T) {
        let at = format!("seed {}, step {}: {what}", self.seed, self.step);
        assert_eq!(tried, model, "{at} (left: the store under test, right: the model)");
    }

    fn id(&mut self) -> String {
        format!("e{}", self.chance.below(IDS))
    }

    fn flow(&mut self) -> Text {
        Text::from(format!("f{}", self.chance.below(3)))
    }

    fn name(&mut self) -> Text {
        if self.chance.of(50) {
            self.id().into()
        } else {
            Text::from(format!("name {}", self.chance.below(4)))
        }
    }

    fn time(&mut self) -> Timestamp {
        Timestamp(i64::from(self.chance.below(200)))
    }

    fn labels(&mut self) -> Vec<(Text, Text)> {
        let count = if self.chance.of(70) { 0 } else { self.chance.from(1, 2) };
        let label = |run: &mut Self| -> (Text, Text) {
            let label = run.chance.pick(&["region", "size"]);
            (label.into(), run.chance.pick(&["eu", "us", ""]).into())
        };
        (0..count).map(|_| label(self)).collect()
    }

    fn change(&mut self, model: &dyn Store, tried: &dyn Store) {
        if let Some(claims) = &mut self.claims
            && self.chance.of(8)
        {
            let shards = ShardSet::part(self.chance.below(3) as usize, 3);
            let claimed = claims.change(model, tried, &shards);
            self.same("claim", &claimed.0, &claimed.1);
        }
        match self.chance.weighted(&[80, 8, 6, 6, 12]) {
            0 => {
                let batch = self.batch(model);
                let batches = match &self.claims {
                    Some(claims) => claims.batches(&batch, self.chance.of(10)),
                    None => (batch.clone(), batch),
                };
                let answers = (model.append(&batches.0), tried.append(&batches.1));
                self.same("append", &answers.0, &answers.1);
            }
            1 => {
                let (before, limit) = (self.time(), self.chance.below(4) as usize);
                self.same("clear", &model.clear(before, limit), &tried.clear(before, limit));
            }
            2 => {
                let (name, hash, now) = (self.flow(), self.chance.pick(&["1", "2"]), self.time());
                let put = |store: &dyn Store| store.put_flow(&name, "{}", hash, now, None);
                self.same("put_flow", &put(model), &put(tried));
                if self.chance.of(30) {
                    self.same(
                        "hide_flow",
                        &model.hide_flow(&name, None),
                        &tried.hide_flow(&name, None),
                    );
                }
            }
            4 => self.settle(model, tried),
            _ => {
                let (kind, name, text) = (self.flow(), self.id(), self.id());
                if self.chance.of(60) {
                    self.same(
                        "keep",
                        &model.put_value(&kind, &name, &text, None),
                        &tried.put_value(&kind, &name, &text, None),
                    );
                } else {
                    self.same(
                        "discard",
                        &model.delete_value(&kind, &name, None),
                        &tried.delete_value(&kind, &name, None),
                    );
                }
                self.same("all", &model.list_values(&kind), &tried.list_values(&kind));
                self.same("fetch", &model.get_value(&kind, &name), &tried.get_value(&kind, &name));
            }
        }
    }

    /// A batch most of which fits what the store has.
    fn batch(&mut self, model: &dyn Store) -> Vec<Append> {
        let mut ends: BTreeMap<String, u64> = BTreeMap::new();
        let waiting = model.messages(&Receivers::All).unwrap();
        let mut batch = Vec::new();
        for _ in 0..self.chance.from(1, 8) {
            let id = self.id();
            let known = || {
                let last = model.last_turn(&id).unwrap();
                last.map_or(0, |turn| turn.last().0)
            };
            let end = *ends.entry(id.clone()).or_insert_with(known);
            let expected = match self.chance.weighted(&[85, 10, 5]) {
                0 => end,
                1 => 0,
                _ => u64::from(self.chance.below(12)),
            };
            if expected > 0 && self.chance.of(6) {
                let mut deletion = operating::deletion(&id, expected);
                deletion.audit.push(self.entry());
                // It is refused if the execution has not ended: then what follows in the batch is, too.
                batch.push(deletion);
                continue;
            }
            let mut append = if expected == 0 {
                start_as(&id, self.record())
            } else {
                more(&id, expected, self.chance.from(1, 5))
            };
            if expected > 0 && self.chance.of(40) {
                append.record = Some(self.record());
            }
            match self.chance.below(20) {
                0 | 1 => append.turn = None,
                2 | 3 if expected == 0 => {
                    append.turn = None;
                    append.request = RequestChange::Keep(self.id());
                }
                4..=6 if expected == 0 => append.request = RequestChange::Begin,
                _ => {}
            }
            if self.chance.of(15) {
                append.checkpoint = Some(expected.to_le_bytes().to_vec());
            }
            self.add_messages(&waiting, &mut append);
            self.add_tasks(&id, expected, &mut append);
            self.add_notices(&mut append);
            if self.chance.of(10) {
                append.audit.push(self.entry());
            }
            if let Some(turn) = &append.turn {
                ends.insert(id, turn.last().0);
            }
            batch.push(append);
        }
        batch
    }

    /// Tasks that come and go, are taken and given back, die and are buried.
    fn add_tasks(&mut self, id: &str, expected: u64, append: &mut Append) {
        let call = |run: &mut Self| expected + u64::from(run.chance.below(4));
        if self.chance.of(30) {
            let queue = self.chance.pick(&["q", "r"]);
            let mut task = queueing::task(queue, id, call(self));
            task.priority = self.chance.pick(&[0, 5, 9]);
            task.virtual_time = u64::from(self.chance.below(4));
            task.order = self.time();
            task.wait_until = self.chance.of(30).then(|| self.time());
            append.queued.push(task);
        }
        if self.chance.of(20) {
            append.unqueued.push(EventId(call(self)));
        }
        if self.chance.of(10) {
            append
                .dead
                .push(queueing::dead(self.chance.pick(&["q", "r"]), id, call(self)));
        }
        match self.chance.below(20) {
            0 => append.dead_cleared = DeadTasksCleared::All,
            1 => append.dead_cleared = DeadTasksCleared::Calls(vec![EventId(call(self))]),
            _ => {}
        }
        if self.chance.of(20) {
            let worker = self.chance.of(70).then_some("w");
            append.leases.push(queueing::lease(&self.id(), call(self), worker));
        }
    }

    fn entry(&mut self) -> AuditEntry {
        self.audited += 1;
        let action = self.chance.pick(&["stop", "redrive"]);
        operating::entry(self.chance.pick(&["ann", "bob"]), action, &self.id(), self.audited)
    }

    fn look_at_audit(&mut self, model: &dyn Store, tried: &dyn Store) {
        if self.chance.of(10) {
            let (before, limit) = (Timestamp(self.audited - 3), self.chance.below(3) as usize);
            let cleared = (model.clear_audit(before, limit), tried.clear_audit(before, limit));
            self.same("clear_audit", &cleared.0, &cleared.1);
        }
        let query = AuditQuery {
            by: self.chance.of(30).then(|| "ann".into()),
            name: self.chance.of(30).then(|| self.id().into()),
            limit: 1_000,
            ..AuditQuery::default()
        };
        let entries = |store: &dyn Store| {
            let page = store.audit(&query).unwrap();
            page.items.into_iter().map(|(_, entry)| entry).collect::<Vec<_>>()
        };
        self.same("audit", &entries(model), &entries(tried));
    }

    fn add_notices(&mut self, append: &mut Append) {
        for _ in 0..self.chance.below(3) {
            // An execution's events only grow; here some ids are taken a second time.
            self.told += u64::from(self.chance.below(3));
            let event = self.told;
            let target = self.chance.pick(&["ops", "audit"]);
            append.notices.push(notices::notice(target, event, self.time().0));
        }
    }

    /// Some of what is to be told is told or postponed, a target is given up.
    fn settle(&mut self, model: &dyn Store, tried: &dyn Store) {
        let target = self.chance.pick(&["ops", "audit"]);
        if self.chance.of(10) {
            let limit = self.chance.below(6) as usize;
            let forgotten = (model.forget_notices(target, limit), tried.forget_notices(target, limit));
            self.same("forget_notices", &forgotten.0, &forgotten.1);
            return;
        }
        let mut changes = Vec::new();
        for next in model.next_notices(&ShardSet::ALL, target, 6).unwrap() {
            // Sometimes one that is not there, or not the next.
            let event = next.event.0 + u64::from(self.chance.of(10));
            let again = self.chance.of(30).then(|| (self.time().0, next.failures + 1));
            changes.push(notices::change(target, &next.execution, event, again));
        }
        let changed = (model.change_notices(&changes), tried.change_notices(&changes));
        self.same("change_notices", &changed.0, &changed.1);
    }

    fn add_messages(&mut self, waiting: &[Message], append: &mut Append) {
        if self.chance.of(30) {
            let to = self.id();
            let event = u64::from(self.chance.below(6));
            append.sent.push(message(&append.execution, event, &to));
        }
        if self.chance.of(30) && !waiting.is_empty() {
            append.received.push(self.chance.pick(waiting).id);
        }
    }

    fn record(&mut self) -> ExecutionRecord {
        let status = self.chance.pick(&Status::ALL);
        let labels: Object = self
            .labels()
            .into_iter()
            .map(|(label, value)| (label, Value::from(value)))
            .collect();
        let mut record = ExecutionRecord {
            flow: self.flow(),
            version: u64::from(self.chance.below(5)),
            status,
            awake: !status.is_ended() && self.chance.of(50),
            started: self.time(),
            labels: (!labels.is_empty() || self.chance.of(5)).then_some(labels),
            awaited: self.chance.of(20),
            ..record(&self.name())
        };
        if status.is_ended() {
            record.ended = Some(self.time());
        } else if self.chance.of(40) {
            record.wake_at = Some(self.time());
        }
        if self.chance.of(20) {
            record.parent = Some(Parent {
                execution: self.id().into(),
                event: EventId(3),
            });
            record.root = Some(self.id().into());
            record.depth = 1;
        }
        if self.chance.of(20) {
            record.failure = Some(RecordedFailure {
                error: self.name(),
                ..RecordedFailure::default()
            });
        }
        if self.chance.of(20) {
            record.rollback = Some(FailedUndo {
                step: self.name(),
                left: vec![self.name()],
                ..FailedUndo::default()
            });
        }
        if self.chance.of(15) {
            record.paused = Some(RecordedPause {
                since: self.time(),
                by: self.name(),
                cause: self.name(),
            });
        }
        if self.chance.of(30) {
            record.once_key = Some(self.name());
        }
        if self.chance.of(20) {
            record.requested = Some(self.time());
            record.priority = Some(self.chance.pick(&[0, 9]));
            record.order_time = Some(-self.time().0);
        }
        if self.chance.of(20) {
            record.forked = Some(Parent {
                execution: self.id().into(),
                event: EventId(2),
            });
        }
        record.waits = self.waits(&record);
        record
    }

    /// The reason why a sleeping execution waits.
    fn waits(&mut self, record: &ExecutionRecord) -> Option<RecordedWait> {
        let rests = !record.awake && record.paused.is_none() && record.broken.is_none();
        let sleeps = rests && record.status == Status::Running;
        if !sleeps || !self.chance.of(50) {
            return None;
        }
        let reason = self.chance.pick(&[WaitingReason::Queue, WaitingReason::Retry]);
        let of = self.chance.pick(&["a", "b"]).into();
        Some(RecordedWait { reason, of })
    }

    fn query(&mut self) -> Query {
        let chance = |run: &mut Self| run.chance.of(30);
        let known = [
            WaitingReason::Paused,
            WaitingReason::Queue,
            WaitingReason::Retry,
            WaitingReason::Running,
        ];
        let reason = self.chance.of(25).then(|| self.chance.pick(&known));
        Query {
            broken: false,
            reason_of: reason
                .filter(|reason| *reason == WaitingReason::Queue)
                .and_then(|_| chance(self).then(|| "a".into())),
            reasons: reason.into_iter().collect(),
            flow: chance(self).then(|| self.flow()),
            statuses: (0..self.chance.below(3))
                .map(|_| self.chance.pick(&Status::ALL))
                .collect(),
            name: chance(self).then(|| self.chance.pick(&["e", "e1", "name", "name 2", "x"]).into()),
            parent: chance(self).then(|| self.id().into()),
            root: self.chance.of(10).then(|| self.id().into()),
            labels: self.labels(),
            from: chance(self).then(|| self.time()),
            to: chance(self).then(|| self.time()),
            error: self.chance.of(10).then(|| self.name()),
            step: self.chance.of(2).then(|| "s".into()),
            ended_from: self.chance.of(10).then(|| self.time()),
            ended_to: self.chance.of(10).then(|| self.time()),
            cursor: None,
            limit: self.chance.from(1, 6) as usize,
        }
    }

    /// Asks some things, at random.
    fn look(&mut self, model: &dyn Store, tried: &dyn Store) {
        self.look_at_audit(model, tried);
        let id = self.id();
        let event = EventId(u64::from(self.chance.below(14)));
        let of = |store: &dyn Store| store.turn_of(&id, event);
        self.same("turn_of", &of(model), &of(tried));
        let (events, backwards) = (self.chance.below(9), self.chance.of(50));
        let turns = |store: &dyn Store| store.turns(&id, event, events, backwards);
        self.same("turns", &turns(model), &turns(tried));
        let heads = |store: &dyn Store| store.turn_heads(&id, event, events, backwards);
        self.same("turn_heads", &heads(model), &heads(tried));
        let (before, limit) = (self.time(), self.chance.below(6) as usize);
        self.same(
            "due",
            &model.due(&ShardSet::ALL, before, limit),
            &tried.due(&ShardSet::ALL, before, limit),
        );
        // Each continues from its own cursor: cursors of different stores may differ.
        let mut query = self.query();
        let mut cursor = None;
        loop {
            let page = model.list(&query).unwrap();
            let theirs = tried
                .list(&Query {
                    cursor,
                    ..query.clone()
                })
                .unwrap();
            self.same(&format!("list {query:?}"), &page.items, &theirs.items);
            self.same("whether there is more", &page.next.is_some(), &theirs.next.is_some());
            cursor = theirs.next;
            query.cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
    }

    /// Asks everything.
    fn look_at_all(&mut self, model: &dyn Store, tried: &dyn Store) {
        self.same("awake", &model.awake(&ShardSet::ALL), &tried.awake(&ShardSet::ALL));
        self.same(
            "messages",
            &model.messages(&Receivers::All),
            &tried.messages(&Receivers::All),
        );
        self.same("counts", &model.counts(), &tried.counts());
        self.same("flows", &model.flows(), &tried.flows());
        self.same(
            "leased_tasks",
            &model.leased_tasks(&ShardSet::ALL),
            &tried.leased_tasks(&ShardSet::ALL),
        );
        self.same("depths", &model.depths(&ShardSet::ALL), &tried.depths(&ShardSet::ALL));
        self.same("dead_counts", &model.dead_counts(), &tried.dead_counts());
        self.same("notice_counts", &model.notice_counts(), &tried.notice_counts());
        for target in ["ops", "audit"] {
            for limit in [3, 99] {
                let next = |store: &dyn Store| store.next_notices(&ShardSet::ALL, target, limit);
                self.same("next_notices", &next(model), &next(tried));
            }
        }
        for queue in ["q", "r"] {
            self.same("next_tasks", &model.next_tasks(queue, 9), &tried.next_tasks(queue, 9));
            self.same(
                "first_tasks",
                &model.first_tasks(queue, 9, 2),
                &tried.first_tasks(queue, 9, 2),
            );
            self.same(
                "dead_tasks",
                &model.dead_tasks(queue, None, 9),
                &tried.dead_tasks(queue, None, 9),
            );
        }
        let overdue = |store: &dyn Store| store.overdue_tasks(&ShardSet::ALL, Timestamp(150), 9);
        self.same("overdue_tasks", &overdue(model), &overdue(tried));
        let names: Vec<String> = (0..IDS).map(|number| format!("e{number}")).collect();
        for id in &names {
            for whole in [false, true] {
                let parts = |store: &dyn Store| {
                    let loaded = if whole { store.load_whole(id) } else { store.load(id) };
                    loaded.map(|history| history.map(|it| (it.record, it.checkpoint, it.turns, it.request)))
                };
                self.same("load", &parts(model), &parts(tried));
            }
            self.same("last_turn", &model.last_turn(id), &tried.last_turn(id));
            self.same("record", &model.record(id), &tried.record(id));
        }
        let others = (0..4).map(|number| format!("name {number}"));
        for name in names.into_iter().chain(others) {
            for flow in ["f0", "f1", "f2"] {
                self.same("named", &model.named(flow, &name), &tried.named(flow, &name));
                self.same("keyed", &model.keyed(flow, &name), &tried.keyed(flow, &name));
            }
        }
    }
}
