//! What the store has of admission, overlaid with what was decided since the last append.

mod append;
mod dependents;
mod messages;
mod waiters;

pub(super) use append::unbound_names;
pub(super) use dependents::Awaited;

use super::lines::Lines;
use dependents::ChangedDependents;
use starbridge_flow::value::Text;
use starbridge_ports::{
    ADMISSION, ASKED_AT_START, Admissions, AuditEntry, FLOW_POOL, KeptKey, Message, MessageBody, MessageId, NeededKey,
    PoolKey, StoreError, Waiter, WaiterAge, Waiters,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How many keys are known at once.
const MAX_KEYS: usize = 65_536;
/// How many holders of slots are known at once.
const MAX_HOLDERS: usize = 16_384;
/// How many executions that do not wait any more are known at once.
const MAX_GONE: usize = 16_384;
/// How many rows are read at once where all are wanted.
const ROWS: usize = 1_000;
/// How many rows are read at once where nearly always the first is enough: those that changed are passed over.
const OLDEST: usize = 4;
/// How many rows are read at once where some may be enough.
const OLDER: usize = 100;

/// A key, as it is known.
#[derive(Debug)]
pub(super) struct KnownKey {
    pub(super) kept: KeptKey,
    /// As the store has it.
    durable: KeptKey,
    pub(super) held: u64,
    /// How many were admitted through it since it last gave a claim.
    pub(super) passed: u32,
    /// The claim that it gave because many were admitted through it.
    pub(super) fair_claim: Option<u64>,
}

/// A row that was read or changed since the last append.
#[derive(Debug)]
struct Changed<T> {
    before: T,
    now: T,
}

/// What the store has, overlaid with what was decided since the last append.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    keys: BTreeMap<PoolKey, KnownKey>,
    /// The number of known keys at which those that need not be known are dropped.
    sweep_keys_at: usize,
    /// Keys that may have changed since the last append.
    touched: BTreeSet<PoolKey>,
    pub(super) lines: Lines,
    /// Those with claims, with the keys at which a slot is reserved for them.
    claims: BTreeMap<u64, (Text, Vec<PoolKey>)>,
    claims_at: BTreeMap<PoolKey, BTreeSet<u64>>,
    /// Keys whose lines are to be looked at.
    due: VecDeque<PoolKey>,
    is_due: BTreeSet<PoolKey>,
    last_number: u64,
    last_claim: u64,
    /// Whether somebody has waited for whom another one waits.
    pub(super) children: bool,
    waiters: BTreeMap<Text, Changed<Option<Waiter>>>,
    /// Of those that changed since the last append, who is or was below each ancestor.
    changed_below: BTreeMap<Text, BTreeSet<Text>>,
    dependents: ChangedDependents,
    /// What the store says of waiters, as far as it was asked since the last append.
    read: BTreeMap<Text, Option<Waiter>>,
    slots: BTreeMap<Text, Changed<BTreeSet<PoolKey>>>,
    /// What some hold, as the store has it, so that their ends need not read it. Nobody else writes these rows.
    holders: BTreeMap<Text, BTreeSet<PoolKey>>,
    /// Whether these are all holders; `None` until somebody's slots are needed.
    all_holders: Option<bool>,
    /// Executions of which the store has no waiter any more, so that their ends need not read it.
    gone: BTreeSet<Text>,
    /// Whether somebody may wait for the end of another one.
    pub(super) dependencies: bool,
    /// Messages of this poll that are still to be handled, as the store says, and those that it was asked for.
    pending: BTreeSet<MessageId>,
    asked: BTreeSet<MessageId>,
    received: BTreeSet<MessageId>,
    sent: Vec<Message>,
    audit: Vec<AuditEntry>,
    /// How many more wait since this was last asked for.
    pub(super) waiting_change: i64,
    /// Names that a waiter does not wait for any more.
    pub(super) left_names: Vec<(Text, Text)>,
}

impl Overlay {
    /// The overlay of a store.
    pub(super) fn of(rows: &dyn Admissions) -> Result<Self, StoreError> {
        let (last_number, last_claim) = rows.last_waiter()?;
        let mut overlay = Self {
            last_number,
            last_claim,
            children: last_number > 0,
            dependencies: rows.anyone_depends()?,
            ..Self::default()
        };
        for key in rows.stale_keys()? {
            overlay.look_at(&key, rows)?;
        }
        let mut after = 0;
        loop {
            let claimed = rows.waiters(Waiters::Claimed(after), ROWS)?;
            for waiter in &claimed {
                if let Some(claim) = waiter.claim {
                    let keys = overlay.needs(waiter, rows)?;
                    overlay.reserve(claim, &waiter.execution, keys);
                }
            }
            match claimed.last() {
                Some(last) if claimed.len() >= ROWS => after = last.number,
                _ => return Ok(overlay),
            }
        }
    }

    // Keys.

    pub(super) fn key(&mut self, key: &PoolKey, rows: &dyn Admissions) -> Result<&mut KnownKey, StoreError> {
        if !self.keys.contains_key(key) {
            // INVARIANT: slots of a key are taken and released only while it is known, and it is known until that is durable. So
            // the store has all that was decided of this one.
            let (kept, held) = rows.kept_key(key)?;
            let known = KnownKey {
                durable: kept.clone(),
                kept,
                held,
                passed: 0,
                fair_claim: None,
            };
            self.keys.insert(key.clone(), known);
        }
        if !self.touched.contains(key) {
            self.touched.insert(key.clone());
        }
        self.keys
            .get_mut(key)
            .ok_or_else(|| StoreError::Corrupt("a key is not known".to_owned()))
    }

    /// Notes the limit that a definition gives. Returns whether that may let somebody in.
    pub(super) fn define(
        &mut self,
        needed: &NeededKey,
        replace: bool,
        rows: &dyn Admissions,
    ) -> Result<bool, StoreError> {
        let key = self.key(&needed.key, rows)?;
        let before = key.kept.defined;
        if before.is_none() || replace {
            key.kept.defined = Some(needed.limit);
        }
        Ok(before.is_some_and(|before| replace && before < needed.limit))
    }

    /// The keys that a waiter needs slots of: those it asked for and that of its flow, if an operator limits it, but for
    /// those that it or an ancestor holds.
    pub(super) fn needs(&mut self, waiter: &Waiter, rows: &dyn Admissions) -> Result<Vec<PoolKey>, StoreError> {
        let mut needed = Vec::with_capacity(waiter.ask.keys.len() + 1);
        for key in &waiter.ask.keys {
            self.define(key, false, rows)?;
            needed.push(key.key.clone());
        }
        let flow = flow_key(&waiter.ask.flow);
        if self.key(&flow, rows)?.kept.is_set() && !needed.contains(&flow) {
            needed.push(flow);
        }
        for holder in waiter.ask.ancestors.iter().chain([&waiter.execution]) {
            if needed.is_empty() {
                break;
            }
            let held = self.slots_of(holder, rows)?;
            needed.retain(|key| !held.contains(key));
        }
        Ok(needed)
    }

    /// The line of a key is to be looked at.
    pub(super) fn look_at(&mut self, key: &PoolKey, rows: &dyn Admissions) -> Result<(), StoreError> {
        self.key(key, rows)?;
        if self.is_due.insert(key.clone()) {
            self.due.push_back(key.clone());
        }
        Ok(())
    }

    pub(super) fn is_due(&self, key: &PoolKey) -> bool {
        self.is_due.contains(key)
    }

    pub(super) fn next_due(&mut self, rows: &dyn Admissions) -> Result<Option<PoolKey>, StoreError> {
        let Some(key) = self.due.pop_front() else {
            return Ok(None);
        };
        self.key(&key, rows)?;
        self.is_due.remove(&key);
        Ok(Some(key))
    }

    pub(super) fn anything_due(&self) -> bool {
        !self.due.is_empty()
    }

    // Waiters.

    pub(super) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(super) fn waiter(&mut self, execution: &Text, rows: &dyn Admissions) -> Result<Option<Waiter>, StoreError> {
        Ok(self.known(execution, rows)?.cloned())
    }

    /// A waiter as it is known, without a copy.
    pub(super) fn known(&mut self, execution: &Text, rows: &dyn Admissions) -> Result<Option<&Waiter>, StoreError> {
        if !self.waiters.contains_key(execution) {
            return self.stored(execution, rows);
        }
        Ok(self.waiters.get(execution).and_then(|changed| changed.now.as_ref()))
    }

    /// A waiter as the store has it.
    fn stored(&mut self, execution: &Text, rows: &dyn Admissions) -> Result<Option<&Waiter>, StoreError> {
        if !self.read.contains_key(execution) {
            let read = match self.lines.stored(execution) {
                Some(known) => Some(known.clone()),
                None if self.gone.contains(execution) => None,
                None => rows.waiter(execution)?,
            };
            self.read.insert(execution.clone(), read);
        }
        Ok(self.read.get(execution).and_then(Option::as_ref))
    }

    /// The change of a waiter's row. It is none until something else is kept of it.
    fn change(&mut self, execution: &Text, rows: &dyn Admissions) -> Result<&mut Changed<Option<Waiter>>, StoreError> {
        if !self.waiters.contains_key(execution) {
            let before = self.stored(execution, rows)?.cloned();
            let now = before.clone();
            self.waiters.insert(execution.clone(), Changed { before, now });
        }
        self.waiters
            .get_mut(execution)
            .ok_or_else(|| StoreError::Corrupt("a waiter is not known".to_owned()))
    }

    /// Keeps a waiter, or nothing of it.
    pub(super) fn put(
        &mut self,
        execution: &Text,
        now: Option<Waiter>,
        rows: &dyn Admissions,
    ) -> Result<(), StoreError> {
        let before = self.change(execution, rows)?.now.take();
        if let Some(waiter) = &before
            && let Some(key) = &waiter.parked
        {
            self.lines.remove(key, waiter.place());
        }
        if let Some(waiter) = &now
            && let Some(key) = &waiter.parked
        {
            self.lines.add(key, waiter.place(), execution);
        }
        for above in now.iter().flat_map(|waiter| &waiter.ask.ancestors) {
            self.children = true;
            let below = self.changed_below.entry(above.clone()).or_default();
            below.insert(execution.clone());
        }
        if let Some(waiter) = &now
            && !waiter.open.is_empty()
        {
            self.dependencies = true;
            self.dependents.note(waiter);
        }
        self.change(execution, rows)?.now = now;
        Ok(())
    }

    pub(super) fn first_in_line(
        &mut self,
        key: &PoolKey,
        page: usize,
        rows: &dyn Admissions,
    ) -> Result<Option<Waiter>, StoreError> {
        let waiters = &self.waiters;
        let first = self
            .lines
            .first(key, page, &|execution| waiters.contains_key(execution), rows)?;
        match first {
            Some(execution) => self.waiter(&execution, rows),
            None => Ok(None),
        }
    }

    /// The waiter in the line of a key that has waited longest.
    pub(super) fn oldest(&mut self, key: &PoolKey, rows: &dyn Admissions) -> Result<Option<Waiter>, StoreError> {
        let changed = self.lines.fresh(key).filter_map(|execution| {
            let changed = self.waiters.get(execution)?;
            changed.now.clone()
        });
        let mut oldest = changed.min_by_key(Waiter::age);
        let mut after: Option<WaiterAge> = None;
        loop {
            let read = rows.waiters(Waiters::ByAge(key, after), OLDEST)?;
            let more = read.last().filter(|_| read.len() >= OLDEST).map(Waiter::age);
            let unchanged = read
                .into_iter()
                .find(|waiter| !self.waiters.contains_key(&waiter.execution));
            if let Some(waiter) = unchanged {
                let first = oldest.as_ref().is_none_or(|oldest| waiter.age() < oldest.age());
                oldest = if first { Some(waiter) } else { oldest };
                return Ok(oldest);
            }
            match more {
                Some(more) => after = Some(more),
                None => return Ok(oldest),
            }
        }
    }

    // Slots.

    fn slots(
        &mut self,
        execution: &Text,
        rows: &dyn Admissions,
    ) -> Result<&mut Changed<BTreeSet<PoolKey>>, StoreError> {
        if !self.slots.contains_key(execution) {
            let all = self.knows_all_holders(rows)?;
            let before = match self.holders.get(execution) {
                Some(known) => known.clone(),
                None if all => BTreeSet::new(),
                None => rows.slots_of(execution)?.into_iter().collect(),
            };
            let now = before.clone();
            self.slots.insert(execution.clone(), Changed { before, now });
        }
        self.slots
            .get_mut(execution)
            .ok_or_else(|| StoreError::Corrupt("slots are not known".to_owned()))
    }

    /// Reads all holders if they are few, once: not at the start, so that a server is not ready later for them.
    fn knows_all_holders(&mut self, rows: &dyn Admissions) -> Result<bool, StoreError> {
        if let Some(all) = self.all_holders {
            return Ok(all);
        }
        let slots = rows.all_slots(MAX_HOLDERS)?;
        let all = *self.all_holders.insert(slots.is_some());
        for (execution, key) in slots.into_iter().flatten() {
            self.holders.entry(execution).or_default().insert(key);
        }
        Ok(all)
    }

    pub(super) fn slots_of(
        &mut self,
        execution: &Text,
        rows: &dyn Admissions,
    ) -> Result<&BTreeSet<PoolKey>, StoreError> {
        Ok(&self.slots(execution, rows)?.now)
    }

    /// Whether an execution is admitted that has not begun: with slots, or because it needed none. Whoever waits is not: an
    /// answer to it that is still there is from before it asked again.
    pub(super) fn is_admitted(&mut self, execution: &Text, rows: &dyn Admissions) -> Result<bool, StoreError> {
        if self.waiter(execution, rows)?.is_some() {
            return Ok(false);
        }
        let told = |sent: &Message| sent.id.to == *execution && matches!(sent.body, MessageBody::Admit);
        if !self.slots_of(execution, rows)?.is_empty() || self.sent.iter().any(told) {
            return Ok(true);
        }
        rows.is_pending(&MessageId {
            from: ADMISSION.into(),
            event: ASKED_AT_START,
            to: execution.clone(),
        })
    }

    pub(super) fn take(&mut self, execution: &Text, key: &PoolKey, rows: &dyn Admissions) -> Result<(), StoreError> {
        self.key(key, rows)?;
        if self.slots(execution, rows)?.now.insert(key.clone()) {
            self.key(key, rows)?.held += 1;
        }
        Ok(())
    }

    /// An execution holds nothing any more. Returns what it held.
    pub(super) fn release(&mut self, execution: &Text, rows: &dyn Admissions) -> Result<BTreeSet<PoolKey>, StoreError> {
        let held = self.slots(execution, rows)?.now.clone();
        for key in &held {
            let key = self.key(key, rows)?;
            key.held = key.held.saturating_sub(1);
        }
        self.slots(execution, rows)?.now.clear();
        Ok(held)
    }

    /// At most `limit` executions that hold a slot of a key.
    pub(super) fn holders(
        &mut self,
        key: &PoolKey,
        limit: usize,
        rows: &dyn Admissions,
    ) -> Result<Vec<Text>, StoreError> {
        // The store still has those that were released just now. They must not take the places of others.
        let released = self.slots.values().filter(|slots| slots.before.contains(key)).count();
        let mut holders = rows.holders(key, limit.saturating_add(released))?;
        holders.retain(|execution| !self.slots.contains_key(execution));
        let changed = self.slots.iter().filter(|(_, slots)| slots.now.contains(key));
        holders.extend(changed.map(|(execution, _)| execution.clone()));
        holders.truncate(limit);
        Ok(holders)
    }

    // Claims.

    pub(super) fn next_claim(&mut self) -> u64 {
        self.last_claim += 1;
        self.last_claim
    }

    /// Reserves a slot of each of these keys.
    pub(super) fn reserve(&mut self, claim: u64, execution: &Text, keys: Vec<PoolKey>) {
        for key in &keys {
            self.claims_at.entry(key.clone()).or_default().insert(claim);
        }
        self.claims.insert(claim, (execution.clone(), keys));
    }

    /// Ends a claim. Returns the keys at which it reserved a slot.
    pub(super) fn unreserve(&mut self, claim: u64) -> Vec<PoolKey> {
        let Some((_, keys)) = self.claims.remove(&claim) else {
            return Vec::new();
        };
        for key in &keys {
            if let Some(claims) = self.claims_at.get_mut(key) {
                claims.remove(&claim);
                if claims.is_empty() {
                    self.claims_at.remove(key);
                }
            }
        }
        keys
    }

    /// The claims at a key, the oldest first, with those who have them.
    pub(super) fn claims_at(&self, key: &PoolKey) -> Vec<(u64, Text)> {
        let claims = self.claims_at.get(key).into_iter().flatten();
        let claimed = claims.filter_map(|claim| {
            let (execution, _) = self.claims.get(claim)?;
            Some((*claim, execution.clone()))
        });
        claimed.collect()
    }

    /// How many claims at a key go before this one; before one that has none, all do.
    pub(super) fn claims_before(&self, key: &PoolKey, claim: Option<u64>) -> u64 {
        let Some(claims) = self.claims_at.get(key) else {
            return 0;
        };
        match claim {
            Some(claim) => count(claims.range(..claim).count()),
            None => count(claims.len()),
        }
    }

    pub(super) fn has_claim(&self, claim: u64) -> bool {
        self.claims.contains_key(&claim)
    }

    /// Those with claims.
    pub(super) fn claimed(&self) -> Vec<(u64, Text)> {
        let claims = self.claims.iter();
        claims
            .map(|(claim, (execution, _))| (*claim, execution.clone()))
            .collect()
    }

    /// Everything that was decided is durable.
    pub(super) fn settle(&mut self, page: usize) {
        self.pending.clear();
        self.asked.clear();
        if self.gone.len() > MAX_GONE {
            self.gone.clear();
        }
        self.changed_below.clear();
        self.dependents.clear();
        for (execution, Changed { now, .. }) in std::mem::take(&mut self.waiters) {
            self.lines.forget(&execution);
            match now {
                Some(_) => drop(self.gone.remove(&execution)),
                None => drop(self.gone.insert(execution)),
            }
        }
        self.read.clear();
        if self.holders.len() > MAX_HOLDERS {
            self.holders.clear();
            self.all_holders = Some(false);
        }
        for (execution, Changed { now, .. }) in std::mem::take(&mut self.slots) {
            match now.is_empty() {
                true => drop(self.holders.remove(&execution)),
                false => drop(self.holders.insert(execution, now)),
            }
        }
        self.lines.settle(page);
        if self.keys.len() > self.sweep_keys_at.max(MAX_KEYS) {
            let (due, claims) = (&self.is_due, &self.claims);
            // Where nobody holds a slot, nobody can have been passed over for long.
            self.keys.retain(|key, known| {
                let counts = known.passed > 0 && known.held > 0;
                counts || due.contains(key) || known.fair_claim.is_some_and(|claim| claims.contains_key(&claim))
            });
            // This goes through all of them, so it waits until their number has doubled.
            self.sweep_keys_at = self.keys.len() * 2;
        }
    }

    /// Forgets the definition's limit of a key that nobody holds and nobody waits for.
    pub(super) fn forget_unused(
        &mut self,
        key: &PoolKey,
        page: usize,
        rows: &dyn Admissions,
    ) -> Result<(), StoreError> {
        let known = self.key(key, rows)?;
        if known.held > 0 || known.kept.is_set() || known.kept.defined.is_none() {
            return Ok(());
        }
        if self.first_in_line(key, page, rows)?.is_none() && !self.claims_at.contains_key(key) {
            self.key(key, rows)?.kept.defined = None;
        }
        Ok(())
    }
}

/// The key that stands for a flow.
pub(super) fn flow_key(flow: &Text) -> PoolKey {
    PoolKey {
        pool: FLOW_POOL.into(),
        key: flow.clone(),
    }
}

pub(super) fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
