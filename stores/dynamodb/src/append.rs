//! Appending: a batch is split by execution, and the turns of each execution become one item.

use crate::DynamoStore;
use crate::head::Attached;
use crate::session::{Entry, following};
use crate::side_writes::{SideWrites, message_key};
use starbridge_flow::value::Text;
use starbridge_ports::{Append, Refusal, RequestChange, StoreError};
use std::collections::HashSet;

/// The appends to one execution that are written together, with their positions in the batch.
struct Group<'a> {
    members: Vec<Entry<'a>>,
}

/// How many appends of a group were stored, and the refusal of the next one.
type KeptAppends = (usize, Option<Refusal>);

impl DynamoStore {
    pub(crate) fn append_all(&self, batch: &[Append]) -> Result<Vec<(usize, Refusal)>, StoreError> {
        let mut refusals = Vec::new();
        let mut refused: HashSet<&Text> = HashSet::new();
        for wave in waves(groups(batch, self.next_orders(batch.len())), self.max_concurrent_writes) {
            let kept = self.append_wave(&wave, &refused);
            for (group, kept) in wave.iter().zip(kept) {
                let (kept, mut refusal) = kept?;
                for entry in group.members.iter().skip(kept) {
                    refused.insert(&entry.append.execution);
                    refusals.push((entry.place, refusal.take().unwrap_or(Refusal::Conflict)));
                }
            }
        }
        refusals.sort_by_key(|(place, _)| *place);
        Ok(refusals)
    }

    /// Appends groups concurrently. No group can observe whether another one was written before it.
    fn append_wave(&self, wave: &[Group<'_>], refused: &HashSet<&Text>) -> Vec<Result<KeptAppends, StoreError>> {
        let one = |group: &Group<'_>| match group.members.first() {
            Some(first) if !refused.contains(&first.execution) => self.append_to(&first.execution, &group.members),
            _ => Ok((0, None)),
        };
        if let [group] = wave {
            return vec![one(group)];
        }
        std::thread::scope(|scope| {
            let writing: Vec<_> = wave.iter().map(|group| scope.spawn(|| one(group))).collect();
            let over = || StoreError::Unavailable("an append was given up".to_owned());
            writing
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(over())))
                .collect()
        })
    }

    /// Appends to an execution. Returns how many of the appends were stored, and the refusal of the
    /// next one.
    fn append_to(&self, execution: &Text, appends: &[Entry<'_>]) -> Result<KeptAppends, StoreError> {
        let Some(first) = appends.first() else {
            return Ok((0, None));
        };
        let waits = |entry: &Entry<'_>| matches!(entry.append.request, RequestChange::Replace(_) | RequestChange::Drop);
        if appends.iter().any(waits) {
            let why = "only starts are kept here until they are carried out";
            return Err(StoreError::Unavailable(why.to_owned()));
        }
        if !first.continues(u64::MAX) {
            return Ok((0, Some(Refusal::Conflict)));
        }
        if first.deleted {
            return self.delete(execution, first);
        }
        let (kept, refusal) = if first.is_start() {
            self.start(execution, appends)?
        } else {
            self.append_more(execution, appends)?
        };
        let leases = appends
            .get(..kept)
            .into_iter()
            .flatten()
            .flat_map(|append| &append.leases);
        for change in leases {
            self.change_leases(std::slice::from_ref(change))?;
        }
        Ok((kept, refusal))
    }

    fn append_more(&self, execution: &Text, appends: &[Entry<'_>]) -> Result<KeptAppends, StoreError> {
        let conflict = Ok((0, Some(Refusal::Conflict)));
        let session = match self.sessions.get(execution) {
            Some(session) => session,
            None => match self.attach(execution)? {
                Attached::Here(session) => *session,
                Attached::Elsewhere => return conflict,
                Attached::Nowhere => return self.append_nowhere(appends),
            },
        };
        let count = following(session.last, appends);
        if count == 0 {
            self.sessions.forget(execution);
            return conflict;
        }
        let fitting = appends.get(..count).unwrap_or_default();
        if !self.append_existing(execution, session, fitting)? {
            return conflict;
        }
        Ok((count, None))
    }

    /// Appends to an execution that does not exist: only messages can be handled.
    fn append_nowhere(&self, appends: &[Entry<'_>]) -> Result<KeptAppends, StoreError> {
        let harmless = |append: &&Entry<'_>| {
            append.expected.0 == 0 && append.turn.is_none() && append.record.is_none() && append.checkpoint.is_none()
        };
        let count = appends.iter().take_while(harmless).count();
        if count == 0 {
            return Ok((0, Some(Refusal::Conflict)));
        }
        let mut side = SideWrites::default();
        let write = self.write_id();
        for append in appends.iter().take(count) {
            self.add_side(&mut side, append, None, &write)?;
        }
        self.write_parts(&side.parts)?;
        self.write_in_pieces(side.ops(self.now()), None)?;
        Ok((count, None))
    }
}

/// The keys that an append writes outside of its execution's history. An append without such keys can be exchanged
/// with appends to other executions.
fn touched(append: &Append) -> HashSet<(String, String)> {
    let messages = append
        .received
        .iter()
        .chain(append.sent.iter().map(|message| &message.id));
    let task = |execution: &str, call: starbridge_machine::EventId| ("Q".to_owned(), format!("{execution}#{}", call.0));
    let leases = append.leases.iter().map(|change| task(&change.execution, change.call));
    let queued = append.queued.iter().map(|queued| task(&append.execution, queued.call));
    let unqueued = append.unqueued.iter().chain(&append.withdrawn);
    let unqueued = unqueued.map(|call| task(&append.execution, *call));
    messages
        .map(message_key)
        .chain(leases)
        .chain(queued)
        .chain(unqueued)
        .collect()
}

/// INVARIANT: an append joins an earlier group of its execution only if no append in between can
/// observe it.
fn groups(batch: &[Append], order: u64) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (place, append) in batch.iter().enumerate() {
        let order = order.saturating_add(place as u64);
        let entry = Entry { append, place, order };
        let last = groups.iter_mut().rev().find(|group| {
            group
                .members
                .first()
                .is_some_and(|first| first.execution == append.execution)
        });
        match last {
            Some(group) if joins(group, batch, place, append) => group.members.push(entry),
            _ => groups.push(Group { members: vec![entry] }),
        }
    }
    groups
}

fn joins(group: &Group<'_>, batch: &[Append], place: usize, append: &Append) -> bool {
    let Some(before) = group.members.last() else {
        return false;
    };
    // The head holds a kept start, and turns are written after it.
    let kept = before.request != RequestChange::None || append.request != RequestChange::None;
    if append.is_start() || kept || append.deleted || before.deleted || !before.leases.is_empty() {
        return false;
    }
    let between = batch.get(before.place + 1..place).unwrap_or_default();
    let between: Vec<&Append> = between
        .iter()
        .filter(|other| other.execution != append.execution)
        .collect();
    if between.is_empty() {
        return true;
    }
    // If a start in between is refused, the refusal may contain the version that this execution runs.
    let versions = group.members.iter().filter_map(|member| member.record.as_ref());
    let known = versions.map(|record| record.version).next_back();
    let tells = append
        .record
        .as_ref()
        .is_some_and(|record| known != Some(record.version));
    if tells && between.iter().any(|other| other.is_start()) {
        return false;
    }
    let touches = touched(append);
    touches.is_empty() || between.iter().all(|other| touched(other).is_disjoint(&touches))
}

/// Groups that may be written concurrently, at most `max_concurrent_writes` of them: they belong to different executions, none
/// writes to the execution of another, no two touch the same key, and none can refuse the start of another.
fn waves(groups: Vec<Group<'_>>, max_concurrent_writes: usize) -> Vec<Vec<Group<'_>>> {
    let mut waves: Vec<Vec<Group<'_>>> = Vec::new();
    let mut seen = Touched::default();
    for group in groups {
        let this = Touched::of(&group);
        match waves.last_mut() {
            Some(wave) if wave.len() < max_concurrent_writes && seen.bears(&this) => wave.push(group),
            _ => {
                waves.push(vec![group]);
                seen = Touched::default();
            }
        }
        seen.add(this);
    }
    waves
}

/// The keys that the groups of a wave touch.
#[derive(Default)]
struct Touched {
    executions: HashSet<Text>,
    receivers: HashSet<Text>,
    touched: HashSet<(String, String)>,
    /// Whether the group must be written alone.
    alone: bool,
}

impl Touched {
    fn of(group: &Group<'_>) -> Self {
        let appends = || group.members.iter().map(|entry| entry.append);
        let messages = appends().flat_map(|append| &append.sent);
        Self {
            executions: appends().map(|append| append.execution.clone()).collect(),
            receivers: messages.map(|message| message.id.to.clone()).collect(),
            touched: appends().flat_map(touched).collect(),
            alone: appends().any(|append| append.is_start() && may_meet(append)),
        }
    }

    fn bears(&self, other: &Self) -> bool {
        !self.alone
            && !other.alone
            && self.executions.is_disjoint(&other.executions)
            && self.executions.is_disjoint(&other.receivers)
            && self.receivers.is_disjoint(&other.executions)
            && self.touched.is_disjoint(&other.touched)
    }

    fn add(&mut self, other: Self) {
        self.executions.extend(other.executions);
        self.receivers.extend(other.receivers);
        self.touched.extend(other.touched);
        self.alone |= other.alone;
    }
}

/// Whether a start may conflict with another execution: it has a name of its own or a key, or its id may be such
/// a name.
fn may_meet(append: &Append) -> bool {
    let name = append.record.as_ref().map(|record| &record.name);
    let named = name.is_some_and(|name| !name.is_empty() && *name != append.execution);
    let keyed = append.record.as_ref().is_some_and(|record| record.once_key.is_some());
    named || keyed || append.execution.len() != crate::start::UUID_CHARS
}
