//! Loading executions and taking their leases.

use crate::DynamoStore;
use crate::client::{QueryRequest, Written};
use crate::head::{Attached, Head, Ownership, place_of, turn_item};
use crate::item::{Item, number_of, text_of};
use crate::op::{ABSENT, Op};
use crate::payload;
use crate::session::Session;
use crate::table::{self, HEAD, PARTS, SK};
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{Mark, StoreError, StoredHistory, Turn};

/// How often a load starts again because another process writes meanwhile.
const MAX_TRIES: u32 = 20;

/// The items of one execution, without the parts of large ones.
struct Partition {
    head: Head,
    /// Whether the execution's retention is over.
    over: bool,
    items: Vec<Item>,
}

impl Partition {
    /// The head and the items of turns, in order.
    fn turn_items(&self) -> impl Iterator<Item = &Item> {
        let first = self.items.iter().filter(|item| text_of(item, SK) == Some(HEAD));
        let later = self
            .items
            .iter()
            .filter(|item| DynamoStore::is_turn(item, &self.head.run_id));
        first.chain(later)
    }

    fn checkpoint(&self) -> Option<&Item> {
        let place = table::checkpoint(&self.head.run_id);
        self.items.iter().find(|item| text_of(item, SK) == Some(place.as_str()))
    }
}

impl DynamoStore {
    /// Reads an execution. Makes the deferred changes of an earlier write first.
    fn partition(&self, execution: &str, whole: bool) -> Result<Option<Partition>, StoreError> {
        if execution.is_empty() {
            return Ok(None);
        }
        loop {
            let items = self.read_partition(execution, whole)?;
            let Some(head) = items.iter().find(|item| text_of(item, SK) == Some(HEAD)) else {
                return Ok(None);
            };
            let over = self.is_over(head);
            let partition = Partition {
                head: Head::of(head)?,
                over,
                items,
            };
            let rest = |item: &&Item| text_of(item, SK).is_some_and(|sk| sk.starts_with("R#"));
            let rests: Vec<&Item> = partition.items.iter().filter(rest).collect();
            if rests.is_empty() {
                return Ok(Some(partition));
            }
            for rest in rests {
                self.finish(rest)?;
            }
        }
    }

    /// The items of a partition. Unless `whole` is true, turns on later pages that the checkpoint covers are skipped.
    fn read_partition(&self, execution: &str, whole: bool) -> Result<Vec<Item>, StoreError> {
        let ask = QueryRequest::partition(&table::execution(execution), Some(("#sk < :sk", PARTS)));
        let (mut items, mut from): (Vec<Item>, Option<Item>) = (Vec::new(), None);
        loop {
            let (page, mut next) = self.client.page(&ask, from)?;
            items.extend(page);
            let Some(after) = &mut next else {
                return Ok(items);
            };
            if !whole && let Some(covered) = covered(&items) {
                let at = text_of(after, SK).unwrap_or_default();
                if at < covered.as_str() {
                    after.insert(SK.to_owned(), crate::item::text(covered));
                }
            }
            from = next;
        }
    }

    /// The turns after the checkpoint, or all of them.
    fn history(&self, partition: &Partition, whole: bool) -> Result<StoredHistory, StoreError> {
        let kept = partition.checkpoint().filter(|_| !whole);
        let checkpoint = match kept {
            Some(item) => {
                let at = number_of(item, "last").map(EventId);
                let at = at.ok_or_else(|| crate::item::corrupt(item, "has no `last`"))?;
                Some((at, payload::get(item, |pk, prefix| self.client.parts(pk, prefix))?))
            }
            None => None,
        };
        let after = checkpoint.as_ref().map_or(EventId(0), |(at, _)| *at);
        let mut turns: Vec<Turn> = Vec::new();
        for item in partition.turn_items() {
            if number_of::<u64>(item, "last").is_some_and(|last| last > after.0) {
                turns.extend(self.turns_in(item)?.into_iter().filter(|turn| turn.first > after));
            }
        }
        Ok(StoredHistory {
            request: self.request_in(partition)?,
            record: partition.head.record.clone(),
            checkpoint,
            turns,
            messages: self.messages_in(&partition.items)?,
        })
    }

    /// How the execution begins, if it waits to begin: its head holds that instead of turns.
    fn request_in(&self, partition: &Partition) -> Result<Option<String>, StoreError> {
        let head = &partition.head;
        let has_turns = |item: &Item| number_of::<u64>(item, "last").is_some_and(|last| last > 0);
        if partition.turn_items().chain(partition.checkpoint()).any(has_turns) {
            return Ok(None);
        }
        let item = partition.items.iter().find(|item| text_of(item, SK) == Some(HEAD));
        let Some(item) = item.filter(|_| head.record.status.is_before_start()) else {
            return Ok(None);
        };
        let text = payload::get(item, |pk, prefix| self.client.parts(pk, prefix))?;
        let text = String::from_utf8(text).map_err(|_| crate::item::corrupt(item, "has a start that can't be read"))?;
        Ok(Some(text))
    }

    pub(crate) fn load_one(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        for _ in 0..MAX_TRIES {
            let Some(partition) = self.partition(execution, false)?.filter(|partition| !partition.over) else {
                self.sessions.forget(execution);
                return Ok(None);
            };
            let mut history = self.history(&partition, false)?;
            if partition.head.record.ended.is_some() {
                return Ok(Some(history));
            }
            let expired = match partition.head.standing(&self.settings.owner, self.now()) {
                Ownership::Held(until) => return Err(StoreError::Held(until)),
                Ownership::Expired => true,
                Ownership::Free | Ownership::Ours => false,
            };
            let mut items = partition.items.iter();
            let last = items.rfind(|item| Self::is_turn(item, &partition.head.run_id));
            let (next, last) = match last {
                Some(item) => place_of(item)?,
                None => (1, partition.head.last),
            };
            let mut session = partition.head.session(next, last, false);
            if expired {
                // Its last holder did not give it back, perhaps because the execution ended that
                // process.
                Mark::Failed.change(&mut session.record);
                history.record.attempts = session.record.attempts;
            }
            if self.take(&Text::from(execution), session, expired)? {
                return Ok(Some(history));
            }
        }
        Err(StoreError::Unavailable(format!(
            "the execution `{execution}` is written all the time by somebody else"
        )))
    }

    /// Takes the lease of an execution as it was read. Returns false if another process wrote meanwhile.
    fn take(&self, execution: &Text, mut session: Session, expired: bool) -> Result<bool, StoreError> {
        let (hold, write) = (self.new_lease(), self.write_id());
        let head = self.head_op(execution, &session, &session.record, Some(&hold), None, &write);
        let head_key = head.key();
        let mut ops = vec![head];
        if expired {
            // The former holder may not know that its lease has ended. The next turn that it writes
            // must find its place occupied.
            let (item, _) = turn_item(execution, &session, &[], session.last, &write);
            ops.push(Op::put(item).when(ABSENT));
        }
        let taken = self.client.write(&ops, &write)? == Written::Done || self.is_ours(&head_key, &write)?;
        if taken {
            session.next += u64::from(expired);
            session.epoch += 1;
            session.held = true;
            self.sessions.put(execution, session);
        }
        Ok(taken)
    }

    /// Marks an execution, unless another process has it.
    pub(crate) fn mark_one(&self, execution: &Text, mark: &Mark, audit: &[Op]) -> Result<(), StoreError> {
        for _ in 0..MAX_TRIES {
            let mut session = match self.sessions.get(execution) {
                Some(session) => session,
                None => match self.attach(execution)? {
                    Attached::Here(session) => *session,
                    Attached::Nowhere | Attached::Elsewhere => return Ok(()),
                },
            };
            if session.record.ended.is_some() {
                return Ok(());
            }
            mark.change(&mut session.record);
            let (hold, write) = (session.held.then(|| self.new_lease()), self.write_id());
            let op = self.head_op(execution, &session, &session.record, hold.as_ref(), None, &write);
            let key = op.key();
            let ops = [&[op], audit].concat();
            if self.client.write(&ops, &write)? == Written::Done || self.is_ours(&key, &write)? {
                if session.held {
                    self.sessions.put(execution, session);
                }
                return Ok(());
            }
            if session.held {
                // Another process has it now; its next turn will show the mark.
                return Ok(());
            }
        }
        Err(StoreError::Unavailable(format!(
            "the execution `{execution}` is written all the time by somebody else"
        )))
    }

    pub(crate) fn load_all(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        let partition = self.partition(execution, true)?.filter(|partition| !partition.over);
        partition.map(|partition| self.history(&partition, true)).transpose()
    }
}

/// The last range key of turns that a checkpoint among these items covers.
fn covered(items: &[Item]) -> Option<String> {
    let head = items.iter().find(|item| text_of(item, SK) == Some(HEAD))?;
    let run_id = text_of(head, "life")?;
    let place = table::checkpoint(run_id);
    let checkpoint = items.iter().find(|item| text_of(item, SK) == Some(place.as_str()))?;
    // The item before the next one may hold turns after the checkpoint. The one before that does not.
    let next: u64 = number_of(checkpoint, "next")?;
    Some(table::turn(run_id, next.checked_sub(2)?))
}
