//! A cache of folded histories for later readers: a later request reads only the newer events.

use starbridge_flow::graph::Flow;
use starbridge_flow::value::Text;
use starbridge_machine::{Event, EventId};
use starbridge_node::node::Node;
use starbridge_node::problem::{Answer, Problem};
use starbridge_node::visits::Visits;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// The memory of all folds together, in bytes.
const CACHE_BYTES: usize = 64 << 20;
/// The largest number of visits in a fold that is kept. A longer history is folded again for each
/// of its pages.
const MOST_VISITS: usize = 50_000;
/// The number of events after which a copy is kept, from which an earlier event can be reached.
const SNAPSHOT_EVENTS: u64 = 4_096;
/// The memory of a fold's copies together, in bytes. Beyond it every second copy is dropped.
const SNAPSHOT_BYTES: usize = 16 << 20;

/// The state of a history up to an event.
#[derive(Clone)]
pub struct Fold {
    /// The visits of its steps.
    pub visits: Visits,
    /// The status of each step of the flow.
    #[cfg(feature = "console")]
    pub marks: starbridge_diagram::Folding,
    /// The latest event in it.
    pub last: EventId,
}

/// A fold, with its flow and position.
#[derive(Clone)]
pub struct Folded {
    /// The fold.
    pub fold: Arc<Fold>,
    /// The flow.
    pub flow: Arc<Flow>,
    /// The latest event of the history.
    pub end: EventId,
    /// Whether the execution has ended with the fold's last event.
    pub ended: bool,
}

impl Folded {
    /// The visits. Visits that an ended execution leaves open are given up.
    pub fn visits(&self) -> Visits {
        match self.ended {
            true => self.fold.visits.ended(),
            false => self.fold.visits.clone(),
        }
    }
}

impl Fold {
    fn of(flow: &Flow) -> Self {
        #[cfg(not(feature = "console"))]
        let _ = flow;
        Self {
            visits: Visits::new(MOST_VISITS),
            #[cfg(feature = "console")]
            marks: starbridge_diagram::Folding::of(flow),
            last: EventId(0),
        }
    }

    fn see(&mut self, flow: &Flow, event: &Event) {
        self.visits.see(flow, event);
        #[cfg(feature = "console")]
        self.marks.see(flow, event);
        self.last = event.id;
    }

    #[cfg(feature = "console")]
    fn own_bytes(&self) -> usize {
        self.visits.own_bytes() + self.marks.bytes()
    }

    #[cfg(not(feature = "console"))]
    fn own_bytes(&self) -> usize {
        self.visits.own_bytes()
    }
}

/// The fold of one history, and copies of earlier states.
struct Kept {
    flow: Arc<Flow>,
    latest: Arc<Fold>,
    copies: BTreeMap<u64, Arc<Fold>>,
    /// The number of events between copies.
    apart: u64,
    copied_bytes: usize,
}

impl Kept {
    fn of(flow: Arc<Flow>) -> Self {
        Self {
            latest: Arc::new(Fold::of(&flow)),
            flow,
            copies: BTreeMap::new(),
            apart: SNAPSHOT_EVENTS,
            copied_bytes: 0,
        }
    }

    fn see(&mut self, flow: &Flow, event: &Event) {
        Arc::make_mut(&mut self.latest).see(flow, event);
        if event.id.0.is_multiple_of(self.apart) {
            self.copied_bytes += self.latest.own_bytes();
            self.copies.insert(event.id.0, Arc::clone(&self.latest));
        }
        if self.copied_bytes > SNAPSHOT_BYTES {
            self.apart = self.apart.saturating_mul(2);
            let apart = self.apart;
            self.copies.retain(|event, _| event.is_multiple_of(apart));
            self.copied_bytes = self.copies.values().map(|copy| copy.own_bytes()).sum();
        }
    }

    /// The latest copy that is not after an event.
    fn before(&self, event: EventId) -> Option<Arc<Fold>> {
        self.copies
            .range(..=event.0)
            .next_back()
            .map(|(_, copy)| Arc::clone(copy))
    }

    fn bytes(&self) -> usize {
        self.latest.visits.bytes() + self.latest.own_bytes() + self.copied_bytes
    }
}

/// One history, for all its readers.
#[derive(Default)]
struct Place {
    kept: Mutex<Option<Kept>>,
}

#[derive(Default)]
struct Shelf {
    places: HashMap<Text, (Arc<Place>, Held)>,
    /// Counts the reads, to find the entry that was read last.
    reads: u64,
}

#[derive(Clone, Copy, Default)]
struct Held {
    bytes: usize,
    read: u64,
}

/// The folds that are kept.
#[derive(Default)]
pub struct Folds(Mutex<Shelf>);

impl Folds {
    /// The fold of an execution's history up to the event `at`, or to its end.
    ///
    /// # Errors
    ///
    /// The problem to answer with: there is no such execution or event, or the store fails.
    pub fn get(&self, node: &Node, id: &str, at: Option<EventId>) -> Answer<Folded> {
        let record = node.store().record(id)?;
        let record = record.ok_or_else(|| Problem::missing("NoSuchExecution", "there is no such execution"))?;
        let flow = node.flow_of(id, &record)?;
        let place = self.place(id);
        let mut kept = place.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // A redrive may have replaced the definition.
        let known = kept.take().filter(|kept| kept.flow.hash == flow.hash);
        let mut found = known.unwrap_or_else(|| Kept::of(Arc::clone(&flow)));
        node.each_event_from(id, found.latest.last.next(), |flow, event| {
            found.see(flow, event);
            true
        })?;
        let end = found.latest.last;
        let at = at.unwrap_or(end);
        let fold = if at == end {
            Ok(Arc::clone(&found.latest))
        } else {
            earlier(node, id, &found, at)
        };
        let bytes = found.bytes();
        // A fold that is too large for the cache is made again each time.
        let fits = bytes <= CACHE_BYTES / 2 && !found.latest.visits.is_full();
        *kept = fits.then_some(found);
        drop(kept);
        self.held(id, if fits { bytes } else { 0 });
        Ok(Folded {
            fold: fold?,
            flow,
            end,
            ended: at == end && record.ended.is_some(),
        })
    }

    fn place(&self, id: &str) -> Arc<Place> {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (place, _) = shelf.places.entry(Text::from(id)).or_default();
        Arc::clone(place)
    }

    /// Records the memory of a history, and drops those that were not read for the longest time.
    fn held(&self, id: &str, bytes: usize) {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.reads += 1;
        let read = shelf.reads;
        match bytes {
            0 => drop(shelf.places.remove(id)),
            bytes => {
                if let Some((_, held)) = shelf.places.get_mut(id) {
                    *held = Held { bytes, read };
                }
            }
        }
        while shelf.places.values().map(|(_, held)| held.bytes).sum::<usize>() > CACHE_BYTES {
            let oldest = shelf.places.iter().min_by_key(|(_, (_, held))| held.read);
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else {
                return;
            };
            shelf.places.remove(&oldest);
        }
    }
}

/// The fold up to an event before the end, continued from the nearest copy.
fn earlier(node: &Node, id: &str, kept: &Kept, at: EventId) -> Answer<Arc<Fold>> {
    let end = kept.latest.last;
    if at > end || at == EventId(0) {
        let detail = format!("the history has no event {at}: it has events 1 to {end}");
        return Err(Problem::missing("NoSuchEvent", detail));
    }
    let mut fold = kept.before(at).unwrap_or_else(|| Arc::new(Fold::of(&kept.flow)));
    if fold.last == at {
        return Ok(fold);
    }
    let own = Arc::make_mut(&mut fold);
    node.each_event_from(id, own.last.next(), |flow, event| {
        if event.id <= at {
            own.see(flow, event);
        }
        event.id < at
    })?;
    Ok(fold)
}
