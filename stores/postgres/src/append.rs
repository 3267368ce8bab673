//! Appending: a batch is one transaction. What is not known of it is asked first, all at once; then everything is decided here,
//! and sent in a few statements.

use crate::audit;
use crate::codec::{Str, event};
use crate::fault::Failure;
use crate::head::{self, HEADS, Head, MAX_EVENTS};
use crate::record::{self, ChangedRow, read};
use crate::retention;
use crate::segment::Segment;
use crate::session::{Param, Sent, Session, column};
use crate::write::Work;
use rustc_hash::{FxHashMap, FxHashSet};
use starbridge_flow::value::Text;
use starbridge_ports::{
    Append, AuditEntry, ExecutionRecord, Mark, Refusal, RequestChange, STATUS_CODES, Turn, code_of, is_ended_code,
};
use std::borrow::Cow;

/// The executions that have a name, or a key that a second start may not have.
type Holders<'a> = FxHashMap<(&'a str, &'a str), Holder>;

/// An execution that has something only one may have.
struct Holder {
    id: Text,
    version: u64,
    name: Text,
}

/// A batch while it is decided.
struct Plan<'a, 'w> {
    /// What is known: `None` of one that is not there.
    heads: FxHashMap<&'a Text, Option<Head>>,
    names: Holders<'a>,
    keys: Holders<'a>,
    next: &'w mut i64,
    place: &'w mut i64,
    counts: &'w mut [i64; STATUS_CODES.len()],
    segment: Segment<'a>,
    /// What is to be sent before it.
    before: Vec<Part<'a>>,
}

/// Changes in the order in which they are sent.
enum Part<'a> {
    Together(Box<Segment<'a>>),
    Deletion(i64, &'a Text),
}

pub(crate) async fn append(work: &mut Work<'_>, batch: &[Append]) -> Result<Vec<(usize, Refusal)>, Failure> {
    let mut plan = Plan {
        heads: FxHashMap::default(),
        names: Holders::default(),
        keys: Holders::default(),
        next: &mut *work.next,
        place: &mut *work.place,
        counts: &mut work.counts,
        segment: Segment::default(),
        before: Vec::new(),
    };
    let wanted = Wanted::of(batch, &mut plan, work.heads);
    wanted.ask(work.session, &mut plan).await?;
    let mut refusals = Vec::new();
    let mut refused: FxHashSet<&Text> = FxHashSet::default();
    for (position, append) in batch.iter().enumerate() {
        // Nobody else changes the epochs of a stay that is not over, and that it is not is how the transaction begins.
        let refusal = if !append.is_of_owner(work.epochs) {
            Some(Refusal::Fenced)
        } else if refused.contains(&append.execution) {
            Some(Refusal::Conflict)
        } else {
            plan.one(append)
        };
        if let Some(refusal) = refusal {
            refused.insert(&append.execution);
            refusals.push((position, refusal));
        }
    }
    let Plan {
        heads,
        segment,
        mut before,
        ..
    } = plan;
    before.push(Part::Together(Box::new(segment)));
    let mut sent: Vec<Sent<'_>> = Vec::new();
    for part in &before {
        match part {
            Part::Together(segment) => segment.send(&mut sent),
            Part::Deletion(number, id) => retention::delete_one(&mut sent, *number, id),
        }
    }
    work.session.execute_all(&sent).await?;
    #[expect(clippy::iter_over_hash_type, reason = "their order does not matter")]
    for (id, head) in heads {
        // Those that ended are left out, since they are rarely written again.
        match head.filter(|head| !is_ended_code(head.status)) {
            Some(head) => work.heads.put(id, head),
            None => work.heads.forget(id),
        }
    }
    Ok(refusals)
}

/// What has to be asked before a batch can be decided.
#[derive(Default)]
struct Wanted<'a> {
    heads: Vec<&'a Text>,
    names: Vec<(&'a str, &'a str)>,
    keys: Vec<(&'a str, &'a str)>,
}

impl<'a> Wanted<'a> {
    fn of(batch: &'a [Append], plan: &mut Plan<'a, '_>, heads: &mut head::Heads) -> Self {
        let mut wanted = Self::default();
        let mut want = |id: &'a Text| {
            if id.is_empty() || plan.heads.contains_key(id) {
                return;
            }
            let known = heads.get(id);
            plan.heads.insert(id, known);
            if known.is_none() {
                wanted.heads.push(id);
            }
        };
        for append in batch {
            want(&append.execution);
            for lease in &append.leases {
                want(&lease.execution);
            }
        }
        for append in batch.iter().filter(|append| append.is_start()) {
            let Some(record) = &append.record else {
                continue;
            };
            wanted.names.push((&record.flow, name_of(append, record)));
            if let Some(key) = &record.once_key {
                wanted.keys.push((&record.flow, key));
            }
        }
        wanted
    }

    async fn ask(&self, session: &Session, plan: &mut Plan<'a, '_>) -> Result<(), Failure> {
        const NAMES: &str =
            "select w.place, e.id, e.version, e.name from unnest($1::text[], $2::text[]) with ordinality
                as w (flow, name, place) join executions e on e.flow = w.flow and e.name = w.name
            union all
            select w.place, e.id, e.version, e.id from unnest($1::text[], $2::text[]) with ordinality
                as w (flow, name, place) join executions e on e.id = w.name
            where e.flow = w.flow and e.name is null";
        const KEYS: &str = "select w.place, e.id, e.version, coalesce(e.name, e.id)
                from unnest($1::text[], $2::text[]) with ordinality
                as w (flow, key, place) join executions e on e.flow = w.flow and e.once_key = w.key";
        let ids = column(&self.heads, |id| Str(id));
        let parts =
            |pairs: &[(&'a str, &'a str)]| [column(pairs, |pair| Str(pair.0)), column(pairs, |pair| Str(pair.1))];
        let (names, keys) = (parts(&self.names), parts(&self.keys));
        let ids: [Param<'_>; 1] = [&*ids];
        let names: [Param<'_>; 2] = [&*names[0], &*names[1]];
        let keys: [Param<'_>; 2] = [&*keys[0], &*keys[1]];
        let all: [(bool, &str, &[Param<'_>]); 3] = [
            (self.heads.is_empty(), HEADS, &ids),
            (self.names.is_empty(), NAMES, &names),
            (self.keys.is_empty(), KEYS, &keys),
        ];
        let asked: Vec<(&str, &[Param<'_>])> = all
            .iter()
            .filter(|(nothing, ..)| !nothing)
            .map(|&(_, sql, values)| (sql, values))
            .collect();
        if asked.is_empty() {
            return Ok(());
        }
        let mut answers = session.query_all(&asked).await?.into_iter();
        if !self.heads.is_empty() {
            for row in answers.next().unwrap_or_default() {
                let (id, head) = head::of_row(&row)?;
                if let Some(known) = plan.heads.get_mut(&id) {
                    *known = Some(head);
                }
            }
        }
        for (pairs, holders) in [(&self.names, &mut plan.names), (&self.keys, &mut plan.keys)] {
            if pairs.is_empty() {
                continue;
            }
            for row in answers.next().unwrap_or_default() {
                let place = usize::try_from(row.get::<_, i64>(0)).unwrap_or_default();
                if let Some(pair) = place.checked_sub(1).and_then(|place| pairs.get(place)) {
                    let holder = Holder {
                        id: record::text(&row, 1),
                        version: row.get::<_, i64>(2).unsigned_abs(),
                        name: record::text(&row, 3),
                    };
                    holders.insert(*pair, holder);
                }
            }
        }
        Ok(())
    }
}

fn name_of<'a>(append: &'a Append, record: &'a ExecutionRecord) -> &'a str {
    match record.name.is_empty() {
        true => &append.execution,
        false => &record.name,
    }
}

impl<'a> Plan<'a, '_> {
    fn head(&self, id: &Text) -> Option<Head> {
        self.heads.get(id).copied().flatten()
    }

    /// INVARIANT: every refusal is found before anything is planned, so a refusal leaves nothing behind.
    fn one(&mut self, append: &'a Append) -> Option<Refusal> {
        if append.execution.is_empty() {
            self.beside_executions(append);
            return None;
        }
        if !append.continues(MAX_EVENTS) {
            return Some(Refusal::Conflict);
        }
        let head = self.head(&append.execution);
        if append.deleted {
            let fits = |head: &Head| head.last == append.expected.0 && is_ended_code(head.status);
            let Some(head) = head.filter(fits) else {
                return Some(Refusal::Conflict);
            };
            self.delete(append, head);
            return None;
        }
        let head = match (head, &append.turn) {
            (None, _) if append.is_start() => match self.start(append) {
                Ok(head) => Some(head),
                Err(refusal) => return Some(refusal),
            },
            (Some(head), _) if append.is_start() => {
                return Some(Refusal::Exists {
                    execution: append.execution.clone(),
                    version: head.version,
                    keyed: None,
                });
            }
            (Some(head), _) if head.last == append.expected.0 => Some(self.append_existing(append, head)),
            (None, None) if append.expected.0 == 0 && append.record.is_none() && append.checkpoint.is_none() => None,
            _ => return Some(Refusal::Conflict),
        };
        if let Some(head) = head {
            if let Some(state) = &append.checkpoint {
                self.segment.checkpoints.insert(head.number, (event(head.last), state));
            }
            self.segment.change_tasks(head.number, append);
            for log in &append.logs {
                self.segment.logs.insert((head.number, event(log.event.0)), &log.text);
            }
            for notice in &append.notices {
                self.segment.notices.push((&append.execution, notice));
            }
        }
        self.beside_executions(append);
        None
    }

    /// Plans what belongs to no execution alone.
    fn beside_executions(&mut self, append: &'a Append) {
        for change in &append.leases {
            if let Some(head) = self.head(&change.execution) {
                self.segment.lease(head.number, change);
            }
        }
        self.segment.admission.extend(&append.admission);
        self.segment.audit.extend(&append.audit);
        for message in &append.received {
            self.segment.discard(message);
        }
        for message in &append.sent {
            self.segment.send_message(message, *self.place);
            *self.place += 1;
        }
    }

    fn delete(&mut self, append: &'a Append, head: Head) {
        let before = std::mem::take(&mut self.segment);
        self.before.push(Part::Together(Box::new(before)));
        self.before.push(Part::Deletion(head.number, &append.execution));
        self.counts[head.status] -= 1;
        self.heads.insert(&append.execution, None);
        // Its name and key are free, also if its id is taken anew.
        self.names.retain(|_, holder| holder.id != append.execution);
        self.keys.retain(|_, holder| holder.id != append.execution);
        self.segment.audit.extend(&append.audit);
    }

    /// The execution that has the key of this record, or else its name.
    fn taken(&self, record: &'a ExecutionRecord, name: &'a str) -> Option<Refusal> {
        let key = record
            .once_key
            .as_ref()
            .and_then(|key| self.keys.get(&(record.flow.as_str(), key.as_str())));
        let name = self.names.get(&(record.flow.as_str(), name));
        let Holder {
            id,
            version,
            name: known,
        } = key.or(name)?;
        Some(Refusal::Exists {
            execution: id.clone(),
            version: self.head(id).map_or(*version, |head| head.version),
            keyed: key.is_some().then(|| known.clone()),
        })
    }

    fn start(&mut self, append: &'a Append) -> Result<Head, Refusal> {
        let record = match &append.record {
            Some(record) => Cow::Borrowed(record),
            None => Cow::Owned(ExecutionRecord::default()),
        };
        if let Some(record) = &append.record {
            let name = name_of(append, record);
            if let Some(refusal) = self.taken(record, name) {
                return Err(refusal);
            }
            let holder = || Holder {
                id: append.execution.clone(),
                version: record.version,
                name: name.into(),
            };
            self.names.insert((&record.flow, name), holder());
            if let Some(key) = &record.once_key {
                self.keys.insert((&record.flow, key), holder());
            }
        }
        let number = *self.next;
        *self.next += 1;
        let status = code_of(record.status);
        self.counts[status] += 1;
        let mut head = Head {
            number,
            last: 0,
            status,
            version: record.version,
        };
        self.segment.start(number, &append.execution, record);
        if let Some(turn) = &append.turn {
            self.add_turn(&mut head, turn);
        }
        self.keep_request(number, append);
        self.heads.insert(&append.execution, Some(head));
        Ok(head)
    }

    fn append_existing(&mut self, append: &'a Append, mut head: Head) -> Head {
        if let Some(turn) = &append.turn {
            self.add_turn(&mut head, turn);
        }
        if let Some(record) = &append.record {
            let begins = append.request == RequestChange::Begin;
            self.segment.change(head.number, record, begins);
            let status = code_of(record.status);
            self.counts[head.status] -= 1;
            self.counts[status] += 1;
            head.status = status;
            head.version = record.version;
        }
        self.keep_request(head.number, append);
        self.heads.insert(&append.execution, Some(head));
        head
    }

    fn add_turn(&mut self, head: &mut Head, turn: &'a Turn) {
        self.segment.turns.push((head.number, turn));
        head.last = turn.first.0 + u64::from(turn.events) - 1;
    }

    /// Keeps how an execution begins or goes on that waits to, or deletes that.
    fn keep_request(&mut self, number: i64, append: &'a Append) {
        let kept = match &append.request {
            RequestChange::Keep(text) => Some(("start", text.as_str())),
            RequestChange::Replace(text) if append.expected.0 == 0 => Some(("start", text.as_str())),
            RequestChange::Replace(text) => Some(("redrive", text.as_str())),
            RequestChange::Begin | RequestChange::Drop => None,
            RequestChange::None => return,
        };
        self.segment.requests.insert(number, kept);
    }
}

/// Marks executions that have not ended.
pub(crate) async fn mark(
    work: &mut Work<'_>,
    marks: &[(Text, Mark)],
    entry: Option<&AuditEntry>,
) -> Result<(), Failure> {
    audit::add(work.session, entry).await?;
    for (execution, mark) in marks {
        let Some((number, mut record)) = read(work.session, execution).await? else {
            continue;
        };
        if record.ended.is_none() {
            mark.change(&mut record);
            let row = ChangedRow {
                number,
                record: Cow::Owned(record),
                started: None,
            };
            work.session
                .execute_all(&[record::change(std::slice::from_ref(&row))])
                .await?;
        }
    }
    Ok(())
}
