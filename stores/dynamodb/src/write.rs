//! Writing to an existing execution: conditional turns.

use crate::DynamoStore;
use crate::client::Written;
use crate::head::{Head, turn_item};
use crate::item::{Item, Key, key_of, keys, number, text, text_of};
use crate::op::{ABSENT, Op};
use crate::payload::{self, WRITE};
use crate::record::{self, ExecutionLease};
use crate::session::{Entry, Session};
use crate::side_writes::SideWrites;
use crate::table::{self, HEAD};
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{ExecutionRecord, RequestChange, StoreError, Turn};

/// The largest number of operations in a transaction; more are deferred. DynamoDB takes a hundred.
const MAX_OPS: usize = 80;
/// Their size, in bytes. DynamoDB takes four megabytes.
const MAX_BYTES: usize = 2 << 20;

/// The additions of the appends to one execution.
pub(crate) struct Addition {
    pub turns: Vec<Turn>,
    pub last: EventId,
    /// The new record, if it changes.
    pub record: Option<ExecutionRecord>,
    pub checkpoint: Option<(EventId, Vec<u8>)>,
    pub side: SideWrites,
    /// The id of the write.
    pub write: String,
    /// The item with the deferred changes.
    pub rest: Option<Item>,
    pub parts: Vec<Item>,
}

/// The result of a write.
pub(crate) enum WriteOutcome {
    /// It is stored, and its answer was lost.
    Ours,
    /// It is not possible.
    Conflict,
    /// It may be possible in another way.
    Again,
}

impl DynamoStore {
    /// The sum of these appends to an execution with the record `base`.
    pub(crate) fn addition(
        &self,
        base: &ExecutionRecord,
        run_id: &str,
        last: EventId,
        appends: &[Entry<'_>],
    ) -> Result<Addition, StoreError> {
        let mut add = Addition {
            turns: Vec::new(),
            last,
            record: None,
            checkpoint: None,
            side: SideWrites::default(),
            write: self.write_id(),
            rest: None,
            parts: Vec::new(),
        };
        for append in appends {
            if let Some(turn) = &append.turn {
                add.last = turn.last();
                add.turns.push(turn.clone());
            }
            if let Some(record) = &append.record {
                let known = add.record.get_or_insert_with(|| base.clone());
                match append.request {
                    RequestChange::Begin => known.take_beginning(record),
                    RequestChange::None | RequestChange::Keep(_) | RequestChange::Replace(_) | RequestChange::Drop => {
                        known.take_changes(record)
                    }
                }
            }
            if let Some(state) = &append.checkpoint {
                add.checkpoint = Some((add.last, state.clone()));
            }
            self.add_side(&mut add.side, append, Some(run_id), &add.write)?;
        }
        add.parts.append(&mut add.side.parts);
        Ok(add)
    }

    /// Moves operations that do not fit into a transaction to an item with deferred changes.
    pub(crate) fn defer_overflow(&self, execution: &str, run_id: &str, number: u64, add: &mut Addition) {
        if add.side.ops(self.now()).len() <= MAX_OPS && add.side.size(self.now()) <= MAX_BYTES {
            return;
        }
        let key = (
            table::execution(execution),
            format!("R#{run_id}#{number:010}#{}", add.write),
        );
        let mut rest = keys(&key);
        rest.insert(WRITE.to_owned(), text(format!("{}-r", add.write)));
        let side = std::mem::take(&mut add.side);
        add.parts
            .extend(payload::put(&mut rest, side.to_json().to_string().as_bytes()));
        add.rest = Some(rest);
    }

    pub(crate) fn checkpoint_op(&self, execution: &str, run_id: &str, next: u64, add: &mut Addition) -> Option<Op> {
        let (at, state) = add.checkpoint.as_ref()?;
        let mut item = keys(&(table::execution(execution), table::checkpoint(run_id)));
        item.insert(WRITE.to_owned(), text(format!("{}-c", add.write)));
        item.insert("last".to_owned(), number(at.0));
        item.insert("next".to_owned(), number(next));
        add.parts.extend(payload::put(&mut item, state));
        Some(Op::put(item))
    }

    /// Appends to an execution. Returns false if another process has appended meanwhile. Unless it returns true, this
    /// process forgets the session, and the head must be read again.
    pub(crate) fn append_existing(
        &self,
        execution: &Text,
        session: Session,
        appends: &[Entry<'_>],
    ) -> Result<bool, StoreError> {
        let added = self.add(execution, session, appends);
        if !matches!(added, Ok(true)) {
            self.sessions.forget(execution);
        }
        added
    }

    fn add(&self, execution: &Text, mut session: Session, appends: &[Entry<'_>]) -> Result<bool, StoreError> {
        let mut add = self.addition(&session.record, &session.run_id, session.last, appends)?;
        if add.turns.is_empty() && add.record.is_none() && add.checkpoint.is_none() && add.side.is_empty() {
            return Ok(true);
        }
        self.defer_overflow(execution, &session.run_id, session.next, &mut add);
        let (item, parts) = turn_item(execution, &session, &add.turns, add.last, &add.write);
        let fence = if add.turns.is_empty() {
            Op::check(key_of(&item)).when(ABSENT)
        } else {
            add.parts.extend(parts);
            Op::put_new(item)
        };
        let next = session.next + u64::from(!add.turns.is_empty());
        let checkpoint = self.checkpoint_op(execution, &session.run_id, next, &mut add);
        self.write_parts(&add.parts)?;
        let written = self.until_written(execution, &session, &mut add, &fence, checkpoint.as_ref())?;
        let Some(hold) = written else {
            return Ok(false);
        };
        session.next = next;
        session.last = add.last;
        if let Some(record) = add.record {
            session.epoch += u64::from(!session.held);
            session.record = record;
            session.held = hold.is_some();
        }
        if session.held {
            self.sessions.put(execution, session);
        } else {
            self.sessions.forget(execution);
        }
        if let Some(rest) = &add.rest {
            self.finish(rest)?;
        }
        Ok(true)
    }

    /// Makes the deferred changes. If that fails, this process forgets the execution: loading it makes them first.
    pub(crate) fn finish_or_forget(&self, execution: &Text, rest: &Item) -> Result<(), StoreError> {
        self.finish(rest).inspect_err(|_| _ = self.sessions.forget(execution))
    }

    /// Tries a write until it is stored or not possible. Returns the lease the execution has then, as far as the
    /// record was written.
    fn until_written(
        &self,
        execution: &Text,
        session: &Session,
        add: &mut Addition,
        fence: &Op,
        checkpoint: Option<&Op>,
    ) -> Result<Option<Option<ExecutionLease>>, StoreError> {
        let sleeps = add.record.as_ref().is_some_and(rests);
        let own_mail = add.side.mail.get(execution.as_str()).copied();
        // It has not seen its own messages yet either.
        let mut keep = !sleeps || (session.held && own_mail.is_some());
        loop {
            let hold = keep.then(|| self.new_lease());
            let mut ops = vec![fence.clone()];
            if let Some(record) = &add.record {
                add.side.mail.remove(execution.as_str());
                ops.push(self.head_op(execution, session, record, hold.as_ref(), own_mail, &add.write));
            }
            ops.extend(checkpoint.cloned());
            ops.extend(add.rest.clone().map(Op::put));
            let core = ops.len();
            ops.extend(add.side.ops(self.now()));
            let Written::Refused(which) = self.client.write(&ops, &self.write_id())? else {
                return Ok(Some(hold));
            };
            match self.seen(session, &ops, &which, core, add)? {
                WriteOutcome::Ours => return Ok(Some(hold)),
                WriteOutcome::Conflict => return Ok(None),
                WriteOutcome::Again => keep = keep || which.get(1).copied().unwrap_or_default() && add.record.is_some(),
            }
        }
    }

    /// The meaning of the failed conditions. INVARIANT: after [`WriteOutcome::Again`] the next try
    /// has fewer operations or keeps the lease.
    fn seen(
        &self,
        session: &Session,
        ops: &[Op],
        which: &[bool],
        core: usize,
        add: &mut Addition,
    ) -> Result<WriteOutcome, StoreError> {
        let refused = |place: usize| which.get(place).copied().unwrap_or_default();
        if let (true, Some(fence)) = (refused(0), ops.first()) {
            return Ok(match self.is_ours(&fence.key(), &add.write)? {
                true if !add.turns.is_empty() => WriteOutcome::Ours,
                _ => WriteOutcome::Conflict,
            });
        }
        if let (true, Some(head), true) = (refused(1), ops.get(1), add.record.is_some()) {
            let head = self.client.get(&head.key())?;
            let head = head.as_ref().map(Head::of).transpose()?;
            return Ok(match head {
                Some(head) if head.write == add.write => WriteOutcome::Ours,
                Some(head) if head.run_id == session.run_id && head.epoch == session.epoch => WriteOutcome::Again,
                _ => WriteOutcome::Conflict,
            });
        }
        for (place, op) in ops.iter().enumerate().skip(core) {
            if refused(place) {
                add.side.drop_refused(op);
            }
        }
        Ok(WriteOutcome::Again)
    }

    /// Whether an item was stored by this write.
    pub(crate) fn is_ours(&self, key: &Key, write: &str) -> Result<bool, StoreError> {
        let item = self.client.get(key)?;
        Ok(item.is_some_and(|item| text_of(&item, WRITE) == Some(write)))
    }

    /// The change of a head to this record and lease. `mail` is how many messages the execution leaves for itself.
    pub(crate) fn head_op(
        &self,
        execution: &Text,
        session: &Session,
        record: &ExecutionRecord,
        hold: Option<&ExecutionLease>,
        mail: Option<u64>,
        write: &str,
    ) -> Op {
        let retention = self.settings.retention;
        let attributes = record::attributes(execution, &session.run_id, record, hold, self.now(), retention);
        let key = (table::execution(execution), HEAD.to_owned());
        let mut op = Op::update(key, "").with(":life", text(&session.run_id));
        op = op.with(":epoch", number(session.epoch)).with(":w", text(write));
        let (mut set, mut remove) = ("SET #w = :w".to_owned(), String::new());
        for (name, value) in attributes {
            match value {
                Some(value) => {
                    let placeholder = placeholder(name);
                    set.push_str(&format!(", #{name} = {placeholder}"));
                    op = op.with(placeholder, value);
                }
                None => {
                    remove.push_str(if remove.is_empty() { " REMOVE " } else { ", " });
                    remove.push_str(&format!("#{name}"));
                }
            }
        }
        let mut condition = "#life = :life AND #epoch = :epoch".to_owned();
        if !session.held {
            set.push_str(", #epoch = :next");
            op = op.with(":next", number(session.epoch + 1));
        } else if hold.is_none() {
            condition.push_str(" AND #mail = :mail");
            op = op.with(":mail", number(session.mail));
        }
        let mut change = set + &remove;
        if let Some(count) = mail {
            change.push_str(" ADD #mail :more");
            op = op.with(":more", number(count));
        }
        op.kind = crate::op::Kind::Update(op.key(), change);
        op.when(condition)
    }
}

/// Whether a holder gives back an execution with this record.
pub(crate) fn rests(record: &ExecutionRecord) -> bool {
    !record.awake || record.ended.is_some()
}

/// The placeholder for an attribute's value in an expression.
fn placeholder(attribute: &str) -> &'static str {
    match attribute {
        "record" => ":record",
        "flow" => ":flow",
        "place" => ":place",
        "named" => ":named",
        "owner" => ":owner",
        "until" => ":until",
        "shard" => ":shard",
        "due" => ":due",
        "awake" => ":awake",
        "wake" => ":wake",
        _ => ":ttl",
    }
}
