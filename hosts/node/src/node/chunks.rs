//! Parts of histories in their streamed form, kept while several followers may need them.

use axum::body::Bytes;
use starbridge_flow::value::Text;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How many bytes of all histories together are kept.
const MAX_BYTES: usize = 16 << 20;

/// Consecutive events as `text/event-stream`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    first: u64,
    bytes: Bytes,
    /// The end of each event in the text.
    ends: Vec<usize>,
}

impl Chunk {
    pub(super) fn new(first: u64, bytes: Vec<u8>, ends: Vec<usize>) -> Self {
        Self {
            first,
            bytes: bytes.into(),
            ends,
        }
    }

    /// The number after the last event.
    pub(super) fn next(&self) -> u64 {
        self.first + self.ends.len() as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The part from this event on. It shares the memory.
    pub(super) fn from(&self, event: u64) -> Bytes {
        let skipped = usize::try_from(event.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let start = match skipped.checked_sub(1) {
            None => 0,
            Some(last) => self.ends.get(last).copied().unwrap_or(self.bytes.len()),
        };
        self.bytes.slice(start..)
    }
}

/// The chunks that are kept. The oldest is dropped first.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    kept: BTreeMap<(Text, u64), Arc<Chunk>>,
    order: VecDeque<(Text, u64)>,
    bytes: usize,
}

impl Chunks {
    /// A chunk that has this event.
    pub(super) fn find(&self, execution: &Text, event: u64) -> Option<Arc<Chunk>> {
        let places = (execution.clone(), 0)..=(execution.clone(), event);
        let (_, chunk) = self.kept.range(places).next_back()?;
        (event < chunk.next()).then(|| chunk.clone())
    }

    pub(super) fn keep(&mut self, execution: &Text, chunk: &Arc<Chunk>) {
        let place = (execution.clone(), chunk.first);
        self.bytes += chunk.bytes.len();
        match self.kept.insert(place.clone(), chunk.clone()) {
            Some(before) => self.bytes -= before.bytes.len(),
            None => self.order.push_back(place),
        }
        while self.bytes > MAX_BYTES
            && let Some(oldest) = self.order.pop_front()
        {
            self.drop_one(&oldest);
        }
    }

    /// Drops the chunks of an execution without followers.
    pub(super) fn forget(&mut self, execution: &Text) {
        let places = (execution.clone(), 0)..=(execution.clone(), u64::MAX);
        let places: Vec<(Text, u64)> = self.kept.range(places).map(|(place, _)| place.clone()).collect();
        if places.is_empty() {
            return;
        }
        for place in places {
            self.drop_one(&place);
        }
        self.order.retain(|(of, _)| of != execution);
    }

    fn drop_one(&mut self, place: &(Text, u64)) {
        if let Some(chunk) = self.kept.remove(place) {
            self.bytes -= chunk.bytes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(first: u64, events: &[&str]) -> Arc<Chunk> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for event in events {
            bytes.extend_from_slice(event.as_bytes());
            ends.push(bytes.len());
        }
        Arc::new(Chunk::new(first, bytes, ends))
    }

    #[test]
    fn chunk_cache_gives_the_rest_from_the_middle() {
        let (one, two) = (Text::from("one"), Text::from("two"));
        let mut chunks = Chunks::default();
        chunks.keep(&one, &chunk(1, &["a", "bb", "ccc"]));
        chunks.keep(&one, &chunk(4, &["d"]));
        let from = |event| chunks.find(&one, event).map(|chunk| chunk.from(event));
        assert_eq!(from(1).unwrap(), "abbccc");
        assert_eq!(from(3).unwrap(), "ccc");
        assert_eq!(from(4).unwrap(), "d");
        assert_eq!((from(0), from(5)), (None, None));
        assert_eq!(chunks.find(&two, 1), None);
    }

    #[test]
    fn chunk_cache_is_bounded() {
        let mut chunks = Chunks::default();
        let large = "x".repeat(1 << 20);
        for first in 1..=100 {
            chunks.keep(&Text::from(format!("e{}", first % 7)), &chunk(first, &[&large]));
            assert!(chunks.bytes <= MAX_BYTES && chunks.order.len() == chunks.kept.len());
        }
        assert!(chunks.find(&Text::from("e2"), 100).is_some());
        for execution in 0..7 {
            chunks.forget(&Text::from(format!("e{execution}")));
        }
        assert_eq!((chunks.bytes, chunks.kept.len(), chunks.order.len()), (0, 0, 0));
    }
}
