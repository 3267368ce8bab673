//! The turns of a history, and pages of them.

use starbridge_flow::time::Timestamp;
use starbridge_machine::EventId;

/// How many bytes of text a page of turns has at most, unless it is a single turn.
pub const TURN_PAGE_BYTES: usize = 16 << 20;

/// The events of one turn, in the form that `history::write_turn` of the machine writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// The number of the first event.
    pub first: EventId,
    /// How many events there are. Their numbers are dense.
    pub events: u32,
    /// The time of all the events.
    pub time: Timestamp,
    /// The events as text.
    pub text: String,
}

impl Turn {
    /// The number of the last event.
    pub fn last(&self) -> EventId {
        self.head().last()
    }

    /// What is known of it without its text.
    pub fn head(&self) -> TurnHead {
        TurnHead {
            first: self.first,
            events: self.events,
            time: self.time,
            bytes: self.text.len(),
        }
    }
}

/// A turn without its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnHead {
    /// The number of the first event.
    pub first: EventId,
    /// How many events there are.
    pub events: u32,
    /// The time of all the events.
    pub time: Timestamp,
    /// How many bytes the text has.
    pub bytes: usize,
}

impl TurnHead {
    /// The number of the last event.
    pub fn last(&self) -> EventId {
        EventId((self.first.0 + u64::from(self.events)).saturating_sub(1))
    }

    /// How many of its events a reader gets who begins at event `from`, which is in this turn or before it; or, backwards, in this
    /// turn or after it.
    fn events_ahead(&self, from: EventId, backwards: bool) -> u64 {
        match backwards {
            true => from.min(self.last()).0 + 1 - self.first.0,
            false => self.last().0 + 1 - from.max(self.first).0,
        }
    }
}

/// Where a page of turns ends. Stores offer it one turn after the other.
#[derive(Clone, Copy, Debug)]
pub struct TurnPage {
    from: EventId,
    backwards: bool,
    events: u64,
    bytes: Option<usize>,
    is_empty: bool,
}

impl TurnPage {
    /// A page from the turn with event `from` on, in order or backwards, of at least so many events.
    pub fn new(from: EventId, events: u32, backwards: bool) -> Self {
        Self {
            from: from.max(EventId(1)),
            backwards,
            events: u64::from(events),
            bytes: None,
            is_empty: true,
        }
    }

    /// Bounds the page to [`TURN_PAGE_BYTES`] of text.
    #[must_use]
    pub fn bounded(self) -> Self {
        Self {
            bytes: Some(TURN_PAGE_BYTES),
            ..self
        }
    }

    /// Whether the page has not all its events yet.
    pub fn wants_more(&self) -> bool {
        self.events > 0
    }

    /// Whether this turn is on the page. After the first one that is not, the page is complete.
    pub fn takes(&mut self, turn: &TurnHead) -> bool {
        let fits = self.is_empty || self.bytes.is_none_or(|left| turn.bytes <= left);
        if !self.wants_more() || !fits {
            return false;
        }
        self.is_empty = false;
        self.events = self.events.saturating_sub(turn.events_ahead(self.from, self.backwards));
        self.bytes = self.bytes.map(|left| left.saturating_sub(turn.bytes));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(first: u64, events: u32, bytes: usize) -> TurnHead {
        let first = EventId(first);
        TurnHead {
            first,
            events,
            bytes,
            ..TurnHead::default()
        }
    }

    #[test]
    fn page_ends_with_its_events() {
        let mut page = TurnPage::new(EventId(2), 3, false);
        assert!(page.takes(&head(1, 2, 1)), "one event of it counts");
        assert!(page.takes(&head(3, 2, 1)));
        assert!(!page.takes(&head(5, 1, 1)));
        assert!(!TurnPage::new(EventId(1), 0, true).takes(&head(1, 1, 1)));
    }

    #[test]
    fn page_with_a_bound_ends_with_its_bytes() {
        let mut page = TurnPage::new(EventId(1), 100, false).bounded();
        assert!(page.takes(&head(1, 1, TURN_PAGE_BYTES - 1)));
        assert!(page.takes(&head(2, 1, 1)));
        assert!(!page.takes(&head(3, 1, 1)));
        let mut page = TurnPage::new(EventId(1), 100, false).bounded();
        assert!(
            page.takes(&head(1, 1, usize::MAX)),
            "a single turn is a page of its own"
        );
        assert!(!page.takes(&head(2, 1, 1)));
        let mut page = TurnPage::new(EventId(1), 100, false);
        assert!(page.takes(&head(1, 1, usize::MAX)) && page.takes(&head(2, 1, usize::MAX)));
    }
}
