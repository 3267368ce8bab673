//! Waiting in a circle: an execution holds slots while its children wait for slots, so parents and children can wait for each
//! other.

use super::book::{Book, count};
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
    /// It waits for itself, and these claims have part in that.
    By(BTreeSet<u64>),
}

/// A key that a waiter needs and that has no free slot for it; `None` if it can be admitted.
pub(super) fn blocking(book: &mut Book, waiter: &Waiter, rows: &dyn Admissions) -> Result<Option<PoolKey>, StoreError> {
    for key in book.needs(waiter, rows)? {
        let claims = book.claims_before(&key, waiter.claim);
        let known = book.key(&key, rows)?;
        if known.kept.limit().is_some_and(|limit| known.held + claims >= limit) {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

/// Whether a waiter waits for itself.
pub(super) fn stuck(book: &mut Book, waiter: &Waiter, rows: &dyn Admissions) -> Result<Blocked, StoreError> {
    let mut search = Search {
        book,
        rows,
        assumed: Vec::new(),
        can_go_on: BTreeSet::new(),
        claims: Vec::new(),
        left: MOST,
    };
    Ok(match search.is_stuck(waiter)? {
        true => Blocked::By(search.claims.into_iter().collect()),
        false => Blocked::No,
    })
}

/// A waiter is stuck if all who hold the key that blocks it are: those who wait for a stuck child. So a circle is stuck if
/// nothing that is reached from it can go on.
struct Search<'a> {
    book: &'a mut Book,
    rows: &'a dyn Admissions,
    /// Those that are being looked at: stuck, unless something is found that can go on.
    assumed: Vec<Text>,
    can_go_on: BTreeSet<Text>,
    /// Claims that were met on the way to those.
    claims: Vec<u64>,
    left: usize,
}

impl Search<'_> {
    fn is_stuck(&mut self, waiter: &Waiter) -> Result<bool, StoreError> {
        if self.assumed.contains(&waiter.execution) {
            return Ok(true);
        }
        if self.left == 0 || !waiter.open.is_empty() || self.can_go_on.contains(&waiter.execution) {
            return Ok(false);
        }
        self.left -= 1;
        let (assumed, claims) = (self.assumed.len(), self.claims.len());
        self.assumed.push(waiter.execution.clone());
        let is_stuck = self.waits_for_stuck(waiter)?;
        if !is_stuck {
            // What was concluded from the assumption goes with it.
            self.assumed.truncate(assumed);
            self.claims.truncate(claims);
            self.can_go_on.insert(waiter.execution.clone());
        }
        Ok(is_stuck)
    }

    fn waits_for_stuck(&mut self, waiter: &Waiter) -> Result<bool, StoreError> {
        let Some(key) = blocking(self.book, waiter, self.rows)? else {
            return Ok(false);
        };
        let known = self.book.key(&key, self.rows)?;
        // An operator ends this.
        if known.kept.limit() == Some(0) || known.held > count(self.left) {
            return Ok(false);
        }
        let is_full = known.kept.limit().is_some_and(|limit| known.held >= limit);
        for holder in self.book.holders(&key, self.left, self.rows)? {
            if !self.is_holder_stuck(&holder)? {
                return Ok(false);
            }
        }
        if is_full {
            return Ok(true);
        }
        for (claim, execution) in self.book.claims_at(&key) {
            self.claims.push(claim);
            if let Some(claimed) = self.book.waiter(&execution, self.rows)?
                && !self.is_stuck(&claimed)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_holder_stuck(&mut self, holder: &Text) -> Result<bool, StoreError> {
        self.left = self.left.saturating_sub(1);
        let is_below = |waiter: &Waiter| waiter.ask.ancestors.contains(holder);
        let rows = self.rows;
        let mut below = rows.waiters(Waiters::Below(holder, 0), MOST)?;
        below.retain(|waiter| !self.book.is_changed(&waiter.execution));
        below.extend(self.book.changed().filter(|waiter| is_below(waiter)).cloned());
        for waiter in below {
            if self.is_stuck(&waiter)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
