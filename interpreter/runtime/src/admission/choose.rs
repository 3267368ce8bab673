//! Who is admitted: waiters are examined, parked and admitted, and some get claims so that nobody starves.

use super::deadlock::{self, Blocked, CanGoOn};
use super::overlay::Overlay;
use super::settings::AdmissionSettings;
use starbridge_ports::{
    ADMISSION, Admissions, DeclineReason, MessageBody, MessageId, PoolKey, StoreError, Waiter, Waiters,
};

/// How many of those that may be examined before the next append an end of a deadlock counts as.
const DEADLOCK: usize = 16;

/// What admission decides with.
pub(super) struct Choice<'a> {
    pub(super) overlay: &'a mut Overlay,
    pub(super) settings: &'a AdmissionSettings,
    pub(super) rows: &'a dyn Admissions,
}

impl Choice<'_> {
    /// Examines a waiter that stands in no line and has no claim: it is admitted, or parked.
    pub(super) fn examine(&mut self, waiter: Waiter) -> Result<(), StoreError> {
        let needs = self.overlay.needs(&waiter, self.rows)?;
        // Who stands in a line that is still to be looked at goes first.
        let waits = needs.iter().find(|key| self.overlay.is_due(key)).cloned();
        let blocked = match waits {
            Some(key) => Some(key),
            None => deadlock::blocking(self.overlay, &waiter, self.rows)?,
        };
        match blocked {
            None => self.admit(&waiter, &needs),
            Some(key) => self.park(waiter, key),
        }
    }

    /// Looks at the line of a key that may have room, until it has none. `budget` is how many waiters may be examined.
    /// Returns false if there was more to do.
    pub(super) fn look_at(&mut self, key: &PoolKey, budget: &mut usize) -> Result<bool, StoreError> {
        for (_, execution) in self.overlay.claims_at(key) {
            let Some(waiter) = self.overlay.waiter(&execution, self.rows)? else {
                continue;
            };
            if deadlock::blocking(self.overlay, &waiter, self.rows)?.is_none() {
                let needs = self.overlay.needs(&waiter, self.rows)?;
                self.admit(&waiter, &needs)?;
            }
        }
        loop {
            if *budget == 0 {
                return Ok(false);
            }
            if !self.has_room(key)? {
                self.free_blocked_claims(key)?;
                return self.end_deadlocks(key, budget);
            }
            let Some(waiter) = self.overlay.first_in_line(key, self.settings.page, self.rows)? else {
                self.overlay.forget_unused(key, self.settings.page, self.rows)?;
                return Ok(true);
            };
            *budget -= 1;
            match deadlock::blocking(self.overlay, &waiter, self.rows)? {
                None => {
                    let needs = self.overlay.needs(&waiter, self.rows)?;
                    self.admit(&waiter, &needs)?;
                }
                Some(other) => {
                    let moves = waiter.moves + 1;
                    let execution = waiter.execution.clone();
                    self.park(Waiter { moves, ..waiter }, other)?;
                    if moves >= self.settings.moves
                        && let Some(waiter) = self.overlay.waiter(&execution, self.rows)?
                    {
                        self.claim(waiter)?;
                    }
                }
            }
        }
    }

    /// Whether a key has a free slot that is not reserved.
    fn has_room(&mut self, key: &PoolKey) -> Result<bool, StoreError> {
        let claims = self.overlay.claims_before(key, None);
        let known = self.overlay.key(key, self.rows)?;
        let limit = known.kept.limit();
        Ok(limit.is_none_or(|limit| known.held + claims < limit))
    }

    fn admit(&mut self, waiter: &Waiter, needs: &[PoolKey]) -> Result<(), StoreError> {
        if let Some(claim) = waiter.claim {
            self.overlay.unreserve(claim);
        }
        for key in needs {
            self.overlay.take(&waiter.execution, key, self.rows)?;
        }
        self.overlay.put(&waiter.execution, None, self.rows)?;
        self.overlay.send(&waiter.execution, waiter.event, MessageBody::Admit);
        for key in needs {
            self.count_admission(key)?;
        }
        Ok(())
    }

    /// After so many admissions through a key, its oldest waiter gets a claim; at most one at a time.
    fn count_admission(&mut self, key: &PoolKey) -> Result<(), StoreError> {
        let known = self.overlay.key(key, self.rows)?;
        known.passed = known.passed.saturating_add(1);
        let (passed, claim) = (known.passed, known.fair_claim);
        if self.settings.fair_share == 0
            || passed < self.settings.fair_share
            || claim.is_some_and(|claim| self.overlay.has_claim(claim))
        {
            return Ok(());
        }
        let Some(oldest) = self.overlay.oldest(key, self.rows)? else {
            return Ok(());
        };
        let claim = self.claim(oldest)?;
        let known = self.overlay.key(key, self.rows)?;
        known.passed = 0;
        known.fair_claim = claim;
        Ok(())
    }

    fn park(&mut self, mut waiter: Waiter, key: PoolKey) -> Result<(), StoreError> {
        waiter.parked = Some(key);
        let execution = waiter.execution.clone();
        let is_child = !waiter.ask.ancestors.is_empty();
        self.overlay.put(&execution, Some(waiter.clone()), self.rows)?;
        if is_child {
            self.end_deadlock(&waiter, &mut CanGoOn::default())?;
        } else if self.overlay.dependencies
            && let Some(key) = &waiter.parked
        {
            // A child of one that holds the key may wait for this one to end. If there are many, the line is looked at again.
            let mut budget = self.settings.examined;
            if !self.end_deadlocks(key, &mut budget)? {
                self.overlay.look_at(key, self.rows)?;
            }
        }
        Ok(())
    }

    /// Keeps a waiter that waits for executions to end.
    pub(super) fn keep_dependent(&mut self, waiter: &Waiter) -> Result<(), StoreError> {
        let execution = waiter.execution.clone();
        let is_child = !waiter.ask.ancestors.is_empty();
        self.overlay.put(&execution, Some(waiter.clone()), self.rows)?;
        if is_child {
            self.end_deadlock(waiter, &mut CanGoOn::default())?;
        }
        Ok(())
    }

    /// If a child can't go on because executions above it wait for it, that is ended: claims that have part in it are given
    /// up, or else the child is declined. Returns whether there was one.
    pub(super) fn end_deadlock(&mut self, waiter: &Waiter, known: &mut CanGoOn) -> Result<bool, StoreError> {
        match deadlock::stuck(self.overlay, waiter, known, self.rows)? {
            Blocked::No => return Ok(false),
            Blocked::By { key, claims } if claims.is_empty() => {
                self.decline(waiter, DeclineReason::Deadlock { key })?
            }
            Blocked::By { claims, .. } => claims.into_iter().try_for_each(|claim| self.give_up(claim))?,
        }
        *known = CanGoOn::default();
        Ok(true)
    }

    /// Ends the deadlocks in which holders of a key have part. One may arise without a child being parked: the last holder that
    /// could go on has ended, or an operator changed the limit. Returns false if there was more to do.
    fn end_deadlocks(&mut self, key: &PoolKey, budget: &mut usize) -> Result<bool, StoreError> {
        let mut known = CanGoOn::default();
        if !self.overlay.children || !deadlock::is_stuck_at(self.overlay, key, &mut known, self.rows)? {
            return Ok(true);
        }
        for holder in self.overlay.holders(key, self.settings.page, self.rows)? {
            let below = self.overlay.all(
                |after| Waiters::Below(&holder, after),
                |waiter| waiter.ask.ancestors.contains(&holder),
                self.rows,
            )?;
            for waiter in below {
                if *budget == 0 {
                    return Ok(false);
                }
                // One before may have ended it.
                if let Some(waiter) = self.overlay.waiter(&waiter.execution, self.rows)?
                    && self.end_deadlock(&waiter, &mut known)?
                {
                    *budget = budget.saturating_sub(DEADLOCK);
                }
            }
        }
        Ok(true)
    }

    /// Gives up the claims at a key that wait for executions that wait for them.
    fn free_blocked_claims(&mut self, key: &PoolKey) -> Result<(), StoreError> {
        if !self.overlay.children {
            return Ok(());
        }
        let mut known = CanGoOn::default();
        for (claim, execution) in self.overlay.claims_at(key) {
            if let Some(waiter) = self.overlay.waiter(&execution, self.rows)?
                && matches!(
                    deadlock::stuck(self.overlay, &waiter, &mut known, self.rows)?,
                    Blocked::By { .. }
                )
            {
                self.give_up(claim)?;
                known = CanGoOn::default();
            }
        }
        Ok(())
    }

    /// Reserves a slot of each of its keys for a waiter. Returns the claim, unless it would wait for itself.
    fn claim(&mut self, mut waiter: Waiter) -> Result<Option<u64>, StoreError> {
        let claim = self.overlay.next_claim();
        let keys = self.overlay.needs(&waiter, self.rows)?;
        waiter.parked = None;
        waiter.claim = Some(claim);
        self.overlay.put(&waiter.execution, Some(waiter.clone()), self.rows)?;
        let first = keys.first().cloned();
        self.overlay.reserve(claim, &waiter.execution, keys);
        // The line in which it stood may just be admitting: a claim is not in it any more.
        if let Some(first) = first
            && deadlock::blocking(self.overlay, &waiter, self.rows)?.is_none()
        {
            self.overlay.look_at(&first, self.rows)?;
        }
        let mut known = CanGoOn::default();
        if self.overlay.children
            && matches!(
                deadlock::stuck(self.overlay, &waiter, &mut known, self.rows)?,
                Blocked::By { .. }
            )
        {
            self.give_up(claim)?;
            return Ok(None);
        }
        Ok(Some(claim))
    }

    /// A claim ends without its waiter being admitted.
    fn give_up(&mut self, claim: u64) -> Result<(), StoreError> {
        let claimed = self.overlay.claimed();
        let execution = claimed.into_iter().find(|(other, _)| *other == claim);
        for key in self.overlay.unreserve(claim) {
            self.overlay.look_at(&key, self.rows)?;
        }
        let Some((_, execution)) = execution else {
            return Ok(());
        };
        let Some(mut waiter) = self.overlay.waiter(&execution, self.rows)? else {
            return Ok(());
        };
        waiter.claim = None;
        waiter.moves = 0;
        // Its keys are due, so it is parked at one of them and looked at with it.
        waiter.parked = self.overlay.needs(&waiter, self.rows)?.first().cloned();
        if waiter.parked.is_none() {
            return self.admit(&waiter, &[]);
        }
        self.overlay.put(&execution, Some(waiter), self.rows)
    }

    /// A waiter is told that it does not begin.
    pub(super) fn decline(&mut self, waiter: &Waiter, reason: DeclineReason) -> Result<(), StoreError> {
        let body = MessageBody::Decline { reason };
        self.overlay.send(&waiter.execution, waiter.event, body);
        self.has_asked(waiter)?;
        self.forget(waiter)
    }

    /// What a waiter asked for needs no second look: if the process ended between the two looks at it, the message comes again,
    /// after another one may have let the waiter in.
    pub(super) fn has_asked(&mut self, waiter: &Waiter) -> Result<(), StoreError> {
        let ask = MessageId {
            from: waiter.execution.clone(),
            event: waiter.event,
            to: ADMISSION.into(),
        };
        if self.overlay.is_pending(&ask, self.rows)? {
            self.overlay.received(ask);
        }
        Ok(())
    }

    /// A waiter waits no longer.
    pub(super) fn forget(&mut self, waiter: &Waiter) -> Result<(), StoreError> {
        let reserved = waiter.claim.map(|claim| self.overlay.unreserve(claim));
        // Those of its keys that nobody needs any more are forgotten.
        let asked = waiter.ask.keys.iter().map(|needed| needed.key.clone());
        for key in reserved.into_iter().flatten().chain(waiter.parked.clone()).chain(asked) {
            self.overlay.look_at(&key, self.rows)?;
        }
        self.overlay.put(&waiter.execution, None, self.rows)
    }
}
