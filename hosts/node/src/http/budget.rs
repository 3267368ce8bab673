//! A limit for bytes that are held at once, and the shares of those who hold them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One part in this many of a budget is reserved for small shares.
pub const RESERVED_PART: usize = 8;

/// A number of bytes that may be held.
#[derive(Debug)]
pub struct BodyBudget {
    most: usize,
    held: AtomicUsize,
}

/// Bytes that are held until this is dropped.
#[derive(Debug)]
pub struct Share {
    budget: Arc<BodyBudget>,
    bytes: usize,
}

/// How much of a budget a share may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Everything, and more if no other share holds any. So every allowed request succeeds at some
    /// time.
    Whole,
    /// Everything that is not reserved. A single share may take more.
    Common,
    /// Never more than there is, even if it is the only share.
    Strict,
}

impl BodyBudget {
    /// A budget of this many bytes, of which none is held.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            held: AtomicUsize::new(0),
        })
    }

    /// A share of nothing yet.
    pub fn share(self: &Arc<Self>) -> Share {
        Share {
            budget: self.clone(),
            bytes: 0,
        }
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

impl Share {
    /// Sets how many bytes the share holds in total. Returns false, and changes nothing, if there is no room.
    pub fn set(&mut self, bytes: usize, due: Due) -> bool {
        let Some(more) = bytes.checked_sub(self.bytes) else {
            self.force(bytes);
            return true;
        };
        if more == 0 {
            // Whoever wants nothing needs no room, also where others hold too much.
            return true;
        }
        let BodyBudget { most, held } = &*self.budget;
        let alone = due != Due::Strict && held.load(Ordering::Relaxed) == self.bytes;
        let most = match due {
            _ if alone => usize::MAX,
            Due::Common => most - most / RESERVED_PART,
            Due::Whole | Due::Strict => *most,
        };
        let grown = |held: usize| held.checked_add(more).filter(|held| *held <= most);
        let taken = held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_ok();
        if taken {
            self.bytes = bytes;
        }
        taken
    }

    /// Sets how many bytes the share holds in total, even if there is no room.
    pub fn force(&mut self, bytes: usize) {
        // A sum that overflows would count bytes that can't exist.
        self.budget
            .held
            .fetch_add(bytes.wrapping_sub(self.bytes), Ordering::Relaxed);
        self.bytes = bytes;
    }

    /// How many bytes are held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.force(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_kept_and_who_is_alone_has_all() {
        let budget = BodyBudget::new(800);
        let mut one = budget.share();
        assert!(one.set(5_000, Due::Common));
        let mut two = budget.share();
        assert!(!two.set(1, Due::Common) && !two.set(1, Due::Whole));
        assert!(two.set(0, Due::Common) && two.set(0, Due::Whole) && two.set(0, Due::Strict));
        assert!(one.set(600, Due::Common));
        assert!(two.set(100, Due::Common) && !two.set(101, Due::Common));
        assert!(two.set(200, Due::Whole) && !two.set(201, Due::Whole));
        assert_eq!((two.bytes(), budget.held()), (200, 800));
        drop(one);
        assert!(!two.set(801, Due::Strict) && two.set(801, Due::Whole));
        two.force(5_000);
        assert_eq!(budget.held(), 5_000);
        drop(two);
        assert_eq!(budget.held(), 0);
    }
}
