//! Waiting in a circle: an execution holds slots while its children wait for slots, or for executions that do, so parents and
//! children can wait for each other.

use super::overlay::{Overlay, count};
use starbridge_flow::value::Text;
use starbridge_ports::{Admissions, PoolKey, StoreError, Waiter, Waiters};
use std::collections::{BTreeMap, BTreeSet};

/// How many waiters and holders are looked at before a waiter counts as not stuck.
const MOST: usize = 1_000;
/// How many children of a holder are read at once: mostly one is enough.
const CHILDREN: usize = 8;

/// Whether a waiter can ever go on.
#[derive(Debug)]
pub(super) enum Blocked {
    /// It can, as far as is known.
    No,
    /// It waits for itself.
    By {
        /// The key of which it can never get a slot.
        key: PoolKey,
        /// The claims that have part in that.
        claims: BTreeSet<u64>,
    },
}

/// A key that a waiter needs and that has no free slot for it; `None` if it can be admitted.
pub(super) fn blocking(
    overlay: &mut Overlay,
    waiter: &Waiter,
    rows: &dyn Admissions,
) -> Result<Option<PoolKey>, StoreError> {
    for key in overlay.needs(waiter, rows)? {
        if is_blocked_at(overlay, waiter, &key, rows)? {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

/// Whether a key has no free slot for a waiter.
fn is_blocked_at(
    overlay: &mut Overlay,
    waiter: &Waiter,
    key: &PoolKey,
    rows: &dyn Admissions,
) -> Result<bool, StoreError> {
    let claims = overlay.claims_before(key, waiter.claim);
    let known = overlay.key(key, rows)?;
    Ok(known.kept.limit().is_some_and(|limit| known.held + claims >= limit))
}

/// Those of which a search found that they can go on. That stays true until somebody is declined, admitted or parked.
#[derive(Debug, Default)]
pub(super) struct CanGoOn {
    waiters: BTreeSet<Text>,
    holders: BTreeSet<Text>,
    keys: BTreeSet<PoolKey>,
}

/// Whether a waiter waits for itself. What was found out earlier is not looked at again.
pub(super) fn stuck(
    overlay: &mut Overlay,
    waiter: &Waiter,
    known: &mut CanGoOn,
    rows: &dyn Admissions,
) -> Result<Blocked, StoreError> {
    let mut search = Search::of(overlay, known, rows);
    let is_stuck = search.is_stuck(waiter)?;
    search.end();
    Ok(match search.stuck_at.filter(|_| is_stuck) {
        Some(key) => Blocked::By {
            key,
            claims: search.claims.into_iter().collect(),
        },
        None => Blocked::No,
    })
}

/// Whether no slot of a key comes free because all who hold one wait for somebody who needs it. No circle leads through the key
/// otherwise.
pub(super) fn is_stuck_at(
    overlay: &mut Overlay,
    key: &PoolKey,
    known: &mut CanGoOn,
    rows: &dyn Admissions,
) -> Result<bool, StoreError> {
    let mut search = Search::of(overlay, known, rows);
    let is_stuck = search.is_key_stuck(key)?;
    search.end();
    Ok(is_stuck)
}

/// A waiter is stuck if all who hold one of the keys that block it are: those who wait for a stuck child. So is one that waits
/// for the end of an execution that is. So a circle is stuck
/// if nothing that is reached from it can go on. Each of the keys counts: once another one has room, nobody looks at the waiter
/// for that, since it is parked at one only.
struct Search<'a> {
    overlay: &'a mut Overlay,
    rows: &'a dyn Admissions,
    /// Those that are being looked at, with those that wait for them: stuck, unless something is found that can go on.
    assumed: Vec<(Text, Vec<Text>)>,
    /// How many of these wait below an execution.
    assumed_below: BTreeMap<Text, usize>,
    known: &'a mut CanGoOn,
    /// Claims that were met on the way to those.
    claims: Vec<u64>,
    /// The key at which the waiter is stuck that was found to be last: in the end, the one that was asked for.
    stuck_at: Option<PoolKey>,
    left: usize,
    /// Whether something counts as not stuck because it would take too long to find out.
    gave_up: bool,
}

impl<'a> Search<'a> {
    fn of(overlay: &'a mut Overlay, known: &'a mut CanGoOn, rows: &'a dyn Admissions) -> Self {
        Self {
            overlay,
            rows,
            assumed: Vec::new(),
            assumed_below: BTreeMap::new(),
            known,
            claims: Vec::new(),
            stuck_at: None,
            left: MOST,
            gave_up: false,
        }
    }

    /// Where the search gave up, what it found holds for itself only.
    fn end(&mut self) {
        if self.left == 0 || self.gave_up {
            *self.known = CanGoOn::default();
        }
    }

    fn assume(&mut self, waiter: &Waiter) {
        let ancestors = waiter.ask.ancestors.clone();
        for above in &ancestors {
            *self.assumed_below.entry(above.clone()).or_default() += 1;
        }
        self.assumed.push((waiter.execution.clone(), ancestors));
    }

    /// Takes assumptions back, but for the first ones.
    fn keep_assumed(&mut self, first: usize) {
        for (_, ancestors) in self.assumed.drain(first..) {
            for above in &ancestors {
                if let Some(below) = self.assumed_below.get_mut(above) {
                    *below -= 1;
                }
            }
        }
    }

    fn is_stuck(&mut self, waiter: &Waiter) -> Result<bool, StoreError> {
        if self.assumed.iter().any(|(execution, _)| *execution == waiter.execution) {
            return Ok(true);
        }
        if self.left == 0 || self.known.waiters.contains(&waiter.execution) {
            return Ok(false);
        }
        self.left -= 1;
        let (assumed, claims) = (self.assumed.len(), self.claims.len());
        self.assume(waiter);
        let is_stuck = match waiter.open.is_empty() {
            true => self.waits_for_stuck(waiter)?,
            false => self.depends_on_stuck(waiter)?,
        };
        if !is_stuck {
            // What was concluded from the assumption goes with it.
            self.keep_assumed(assumed);
            self.claims.truncate(claims);
            self.known.waiters.insert(waiter.execution.clone());
        }
        Ok(is_stuck)
    }

    /// Whether one of those that must end before a waiter asks for its keys never ends.
    fn depends_on_stuck(&mut self, waiter: &Waiter) -> Result<bool, StoreError> {
        for execution in waiter.open.iter().filter_map(|one| one.bound.as_ref()) {
            let claims = self.claims.len();
            let is_stuck = match self.overlay.waiter(execution, self.rows)? {
                Some(awaited) => self.is_stuck(&awaited)?,
                None => self.is_holder_stuck(execution)?,
            };
            if is_stuck {
                return Ok(true);
            }
            self.claims.truncate(claims);
        }
        Ok(false)
    }

    fn waits_for_stuck(&mut self, waiter: &Waiter) -> Result<bool, StoreError> {
        for key in self.overlay.needs(waiter, self.rows)? {
            if !is_blocked_at(self.overlay, waiter, &key, self.rows)? {
                continue;
            }
            let claims = self.claims.len();
            if self.is_key_stuck(&key)? {
                self.stuck_at = Some(key);
                return Ok(true);
            }
            self.claims.truncate(claims);
        }
        Ok(false)
    }

    /// Whether no slot of a key, which has no free one, comes free.
    fn is_key_stuck(&mut self, key: &PoolKey) -> Result<bool, StoreError> {
        if self.known.keys.contains(key) {
            return Ok(false);
        }
        let is_stuck = self.are_all_stuck(key)?;
        if !is_stuck {
            self.known.keys.insert(key.clone());
        }
        Ok(is_stuck)
    }

    fn are_all_stuck(&mut self, key: &PoolKey) -> Result<bool, StoreError> {
        let known = self.overlay.key(key, self.rows)?;
        let held = known.held;
        // An operator ends this.
        if known.kept.limit() == Some(0) {
            return Ok(false);
        }
        if held > count(self.left) {
            self.gave_up = true;
            return Ok(false);
        }
        let is_full = known.kept.limit().is_some_and(|limit| held >= limit);
        let holders = self.overlay.holders(key, self.left, self.rows)?;
        // Whoever waits for nobody goes on, which is found without a search.
        for holder in &holders {
            if !self.has_children(holder)? {
                return Ok(false);
            }
        }
        for holder in holders {
            if !self.is_holder_stuck(&holder)? {
                return Ok(false);
            }
        }
        if is_full {
            return Ok(true);
        }
        for (claim, execution) in self.overlay.claims_at(key) {
            self.claims.push(claim);
            if let Some(claimed) = self.overlay.waiter(&execution, self.rows)?
                && !self.is_stuck(&claimed)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a holder may wait for one that waits.
    fn has_children(&self, holder: &Text) -> Result<bool, StoreError> {
        if self.is_assumed_below(holder) || self.overlay.changed_below(holder).next().is_some() {
            return Ok(true);
        }
        Ok(!self.rows.waiter_ids(Waiters::Below(holder, 0), 1)?.is_empty())
    }

    fn is_assumed_below(&self, holder: &Text) -> bool {
        self.assumed_below.get(holder).is_some_and(|below| *below > 0)
    }

    fn is_holder_stuck(&mut self, holder: &Text) -> Result<bool, StoreError> {
        self.left = self.left.saturating_sub(1);
        if self.is_assumed_below(holder) {
            return Ok(true);
        }
        if self.known.holders.contains(holder) {
            return Ok(false);
        }
        let changed: Vec<Waiter> = self.overlay.changed_below(holder).cloned().collect();
        for waiter in changed {
            if self.is_stuck(&waiter)? {
                return Ok(true);
            }
        }
        let mut after = 0;
        let mut page = CHILDREN;
        while self.left > 0 {
            let read = self.rows.waiters(Waiters::Below(holder, after), page)?;
            let last = read.last().map(|waiter| waiter.number).filter(|_| read.len() >= page);
            for waiter in read {
                if !self.overlay.is_changed(&waiter.execution) && self.is_stuck(&waiter)? {
                    return Ok(true);
                }
            }
            match last {
                Some(last) => after = last,
                None => break,
            }
            page = MOST.min(page * 4);
        }
        self.known.holders.insert(holder.clone());
        Ok(false)
    }
}
