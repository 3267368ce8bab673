//! Waiting in a circle: an execution holds slots while its children wait for slots, or for executions that do, so parents and
//! children can wait for each other.

use super::overlay::{Overlay, count};
use starbridge_flow::value::Text;
use starbridge_ports::{Admissions, PoolKey, StoreError, Waiter, Waiters};
use std::collections::BTreeSet;

/// How many waiters and holders are looked at before a waiter counts as not stuck.
const MOST: usize = 1_000;

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

/// Whether a waiter waits for itself.
pub(super) fn stuck(overlay: &mut Overlay, waiter: &Waiter, rows: &dyn Admissions) -> Result<Blocked, StoreError> {
    let mut search = Search {
        overlay,
        rows,
        assumed: Vec::new(),
        can_go_on: BTreeSet::new(),
        claims: Vec::new(),
        stuck_at: None,
        left: MOST,
    };
    let is_stuck = search.is_stuck(waiter)?;
    Ok(match search.stuck_at.filter(|_| is_stuck) {
        Some(key) => Blocked::By {
            key,
            claims: search.claims.into_iter().collect(),
        },
        None => Blocked::No,
    })
}

/// A waiter is stuck if all who hold one of the keys that block it are: those who wait for a stuck child. So is one that waits
/// for the end of an execution that is. So a circle is stuck
/// if nothing that is reached from it can go on. Each of the keys counts: once another one has room, nobody looks at the waiter
/// for that, since it is parked at one only.
struct Search<'a> {
    overlay: &'a mut Overlay,
    rows: &'a dyn Admissions,
    /// Those that are being looked at: stuck, unless something is found that can go on.
    assumed: Vec<Text>,
    can_go_on: BTreeSet<Text>,
    /// Claims that were met on the way to those.
    claims: Vec<u64>,
    /// The key at which the waiter is stuck that was found to be last: in the end, the one that was asked for.
    stuck_at: Option<PoolKey>,
    left: usize,
}

impl Search<'_> {
    fn is_stuck(&mut self, waiter: &Waiter) -> Result<bool, StoreError> {
        if self.assumed.contains(&waiter.execution) {
            return Ok(true);
        }
        if self.left == 0 || self.can_go_on.contains(&waiter.execution) {
            return Ok(false);
        }
        self.left -= 1;
        let (assumed, claims) = (self.assumed.len(), self.claims.len());
        self.assumed.push(waiter.execution.clone());
        let is_stuck = match waiter.open.is_empty() {
            true => self.waits_for_stuck(waiter)?,
            false => self.depends_on_stuck(waiter)?,
        };
        if !is_stuck {
            // What was concluded from the assumption goes with it.
            self.assumed.truncate(assumed);
            self.claims.truncate(claims);
            self.can_go_on.insert(waiter.execution.clone());
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
        let known = self.overlay.key(key, self.rows)?;
        // An operator ends this.
        if known.kept.limit() == Some(0) || known.held > count(self.left) {
            return Ok(false);
        }
        let is_full = known.kept.limit().is_some_and(|limit| known.held >= limit);
        for holder in self.overlay.holders(key, self.left, self.rows)? {
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

    fn is_holder_stuck(&mut self, holder: &Text) -> Result<bool, StoreError> {
        self.left = self.left.saturating_sub(1);
        let rows = self.rows;
        let mut below = rows.waiters(Waiters::Below(holder, 0), MOST)?;
        below.retain(|waiter| !self.overlay.is_changed(&waiter.execution));
        below.extend(
            self.overlay
                .changed_below(holder)
                .filter(|waiter| waiter.ask.ancestors.contains(holder))
                .cloned(),
        );
        for waiter in below {
            if self.is_stuck(&waiter)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
