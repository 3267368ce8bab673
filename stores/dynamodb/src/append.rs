//! Appending: a batch is taken apart by executions, whose turns become one item each.

use crate::DynamoStore;
use crate::head::Attached;
use crate::session::{following, sound};
use crate::side::{Side, message_key};
use starbridge_fdl::value::Text;
use starbridge_ports::{Append, Refusal, StoreError};
use std::collections::HashSet;

/// Appends to one execution that are written together, with their places in the batch.
struct Group<'a> {
    members: Vec<(usize, &'a Append)>,
}

/// How many appends of a group are kept, and what refuses the next.
type Kept = (usize, Option<Refusal>);

/// Groups that are written side by side at most.
const SIDE_BY_SIDE: usize = 16;

impl DynamoStore {
    pub(crate) fn append_all(&self, batch: &[Append]) -> Result<Vec<(usize, Refusal)>, StoreError> {
        let mut refusals = Vec::new();
        let mut refused: HashSet<&Text> = HashSet::new();
        for wave in waves(groups(batch)) {
            let kept = self.append_wave(&wave, &refused);
            for (group, kept) in wave.iter().zip(kept) {
                let (kept, mut refusal) = kept?;
                for (place, append) in group.members.iter().skip(kept) {
                    refused.insert(&append.execution);
                    refusals.push((*place, refusal.take().unwrap_or(Refusal::Conflict)));
                }
            }
        }
        refusals.sort_by_key(|(place, _)| *place);
        Ok(refusals)
    }

    /// Appends groups of which none can tell whether another was before it, side by side.
    fn append_wave(&self, wave: &[Group<'_>], refused: &HashSet<&Text>) -> Vec<Result<Kept, StoreError>> {
        let one = |group: &Group<'_>| {
            let appends: Vec<&Append> = group.members.iter().map(|(_, append)| *append).collect();
            match appends.first() {
                Some(first) if !refused.contains(&first.execution) => self.append_to(&first.execution, &appends),
                _ => Ok((0, None)),
            }
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

    /// Answers how many of the appends are kept, and what refuses the next.
    fn append_to(&self, execution: &Text, appends: &[&Append]) -> Result<Kept, StoreError> {
        let Some(first) = appends.first() else {
            return Ok((0, None));
        };
        if !sound(first) {
            return Ok((0, Some(Refusal::Conflict)));
        }
        let (kept, refusal) = if is_start(first) {
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

    fn append_more(&self, execution: &Text, appends: &[&Append]) -> Result<Kept, StoreError> {
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
        if !self.go_on(execution, session, fitting)? {
            return conflict;
        }
        Ok((count, None))
    }

    /// To an execution that is not there: only messages can be dealt with.
    fn append_nowhere(&self, appends: &[&Append]) -> Result<Kept, StoreError> {
        let harmless = |append: &&&Append| {
            append.expected.0 == 0 && append.turn.is_none() && append.record.is_none() && append.checkpoint.is_none()
        };
        let count = appends.iter().take_while(harmless).count();
        if count == 0 {
            return Ok((0, Some(Refusal::Conflict)));
        }
        let mut side = Side::default();
        let write = self.write_id();
        for append in appends.iter().take(count) {
            self.add_side(&mut side, append, None, &write)?;
        }
        self.write_parts(&side.parts)?;
        self.write_in_pieces(side.ops())?;
        Ok((count, None))
    }
}

fn is_start(append: &Append) -> bool {
    append.turn.is_some() && append.expected.0 == 0
}

/// What an append touches besides its execution's history. One that touches nothing of that kind can trade places with appends
/// to other executions.
fn touched(append: &Append) -> HashSet<(String, String)> {
    let messages = append
        .received
        .iter()
        .chain(append.sent.iter().map(|message| &message.id));
    let task = |execution: &str, call: starbridge_machine::EventId| ("Q".to_owned(), format!("{execution}#{}", call.0));
    let leases = append.leases.iter().map(|change| task(&change.execution, change.call));
    let queued = append.queued.iter().map(|queued| task(&append.execution, queued.call));
    let unqueued = append.unqueued.iter().map(|call| task(&append.execution, *call));
    messages
        .map(message_key)
        .chain(leases)
        .chain(queued)
        .chain(unqueued)
        .collect()
}

/// INVARIANT: an append joins an earlier group of its execution only where no append in between could tell.
fn groups(batch: &[Append]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (place, append) in batch.iter().enumerate() {
        let last = groups.iter_mut().rev().find(|group| {
            group
                .members
                .first()
                .is_some_and(|(_, first)| first.execution == append.execution)
        });
        match last {
            Some(group) if joins(group, batch, place, append) => group.members.push((place, append)),
            _ => groups.push(Group {
                members: vec![(place, append)],
            }),
        }
    }
    groups
}

fn joins(group: &Group<'_>, batch: &[Append], place: usize, append: &Append) -> bool {
    let Some((last, before)) = group.members.last() else {
        return false;
    };
    if is_start(append) || !before.leases.is_empty() {
        return false;
    }
    let between = batch.get(last + 1..place).unwrap_or_default();
    let between: Vec<&Append> = between
        .iter()
        .filter(|other| other.execution != append.execution)
        .collect();
    if between.is_empty() {
        return true;
    }
    // A start in between may be told the version that this execution runs.
    let versions = group.members.iter().filter_map(|(_, member)| member.record.as_ref());
    let known = versions.map(|record| record.version).next_back();
    let tells = append
        .record
        .as_ref()
        .is_some_and(|record| known != Some(record.version));
    if tells && between.iter().any(|other| is_start(other)) {
        return false;
    }
    let touches = touched(append);
    touches.is_empty() || between.iter().all(|other| touched(other).is_disjoint(&touches))
}

/// Groups that may be written side by side: of different executions, with nothing that two of them touch, and no start that
/// another one could refuse.
fn waves(groups: Vec<Group<'_>>) -> Vec<Vec<Group<'_>>> {
    let mut waves: Vec<Vec<Group<'_>>> = Vec::new();
    let mut seen: HashSet<(String, String)> = HashSet::new();
    for group in groups {
        let appends = || group.members.iter().map(|(_, append)| *append);
        let mut touches: HashSet<(String, String)> = appends().flat_map(touched).collect();
        touches.extend(appends().map(|append| (append.execution.to_string(), String::new())));
        let alone = appends().any(|append| is_start(append) && may_meet(append));
        match waves.last_mut() {
            Some(wave) if !alone && wave.len() < SIDE_BY_SIDE && seen.is_disjoint(&touches) => wave.push(group),
            _ => {
                waves.push(vec![group]);
                seen.clear();
            }
        }
        seen.extend(touches);
        if alone {
            // The next one begins a wave.
            waves.push(Vec::new());
        }
    }
    waves
}

/// Whether a start may meet another execution: one with a name of its own, or with an id that may be such a name.
fn may_meet(append: &Append) -> bool {
    let name = append.record.as_ref().map(|record| &record.name);
    let named = name.is_some_and(|name| !name.is_empty() && *name != append.execution);
    named || append.execution.len() != crate::start::UUID
}
