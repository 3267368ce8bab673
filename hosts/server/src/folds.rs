//! A cache of folded histories for later readers: a later request reads only the newer events.

use crate::incidents::Incidents;
use starbridge_flow::graph::Flow;
use starbridge_flow::value::Text;
use starbridge_machine::{Event, EventId};
use starbridge_node::node::Node;
use starbridge_node::problem::{Answer, Problem};
use starbridge_node::visits::{VisitSet, Visits};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// The memory of all folds together, in bytes.
const CACHE_BYTES: usize = 64 << 20;
/// The memory of a fold that is kept, with its copies, in bytes. A larger one is made again for each page.
const FOLD_BYTES: usize = CACHE_BYTES / 2;
/// The largest number of visits of a fold. Later visits are read from the store.
const MOST_VISITS: usize = 2_000_000;
/// The number of events after which a copy is kept, from which an earlier event can be reached.
const SNAPSHOT_EVENTS: u64 = 4_096;
/// The memory of what a fold's copies do not share with it, in bytes. Beyond it every second copy is dropped.
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
    /// What the history comes to, up to the event `fold.last`.
    pub fold: Arc<Fold>,
    /// The version that the execution runs.
    pub flow: Arc<Flow>,
    /// Where something failed, was tried again or stood still in all of the history.
    pub incidents: Incidents,
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

    /// The memory of what was not counted before, in bytes.
    fn bytes(&self, counted: &mut VisitSet) -> usize {
        let visits = self.visits.bytes(counted);
        #[cfg(feature = "console")]
        let visits = visits + self.marks.bytes(counted);
        visits + size_of::<Self>()
    }
}

/// The fold of one history, and copies of earlier states.
struct Kept {
    flow: Arc<Flow>,
    latest: Arc<Fold>,
    incidents: Incidents,
    copies: BTreeMap<u64, Arc<Fold>>,
    /// The earlier state that was asked for last: a page asks several times, and a slider goes on from there.
    asked: Option<Arc<Fold>>,
    /// The number of events between copies.
    apart: u64,
    /// What the copies do not share with the latest state, in bytes, when there were so many of them.
    copied_bytes: usize,
    counted: usize,
    /// The memory of all of it, in bytes.
    bytes: usize,
}

impl Kept {
    fn of(flow: Arc<Flow>) -> Self {
        Self {
            latest: Arc::new(Fold::of(&flow)),
            flow,
            incidents: Incidents::default(),
            copies: BTreeMap::new(),
            asked: None,
            apart: SNAPSHOT_EVENTS,
            copied_bytes: 0,
            counted: 0,
            bytes: 0,
        }
    }

    fn see(&mut self, flow: &Flow, event: &Event) {
        let latest = Arc::make_mut(&mut self.latest);
        latest.see(flow, event);
        self.incidents.see(event);
        if event.id.0.is_multiple_of(SNAPSHOT_EVENTS) {
            latest.visits.settle();
        }
        if event.id.0.is_multiple_of(self.apart) {
            self.copies.insert(event.id.0, Arc::clone(&self.latest));
            // Counting takes longer than copying.
            if self.copies.len().is_power_of_two() {
                self.thin_out();
            }
        }
    }

    /// Drops every second copy until they have little memory for themselves.
    fn thin_out(&mut self) {
        loop {
            let mut counted = VisitSet::default();
            let latest = self.latest.bytes(&mut counted);
            let copies = self.copies.values().map(|copy| copy.bytes(&mut counted));
            self.copied_bytes = copies.sum();
            self.counted = self.copies.len();
            let fits = self.copied_bytes <= SNAPSHOT_BYTES && latest + self.copied_bytes <= FOLD_BYTES;
            if fits || self.copies.is_empty() {
                return;
            }
            self.apart = self.apart.saturating_mul(2);
            let apart = self.apart;
            self.copies.retain(|event, _| event.is_multiple_of(apart));
        }
    }

    /// Counts its memory after new events.
    fn weigh(&mut self) {
        Arc::make_mut(&mut self.latest).visits.settle();
        if self.copies.len() != self.counted {
            self.thin_out();
        }
        self.sum();
    }

    /// Counts its memory. The state that was asked for is dropped where there is no room for it; what it shares with copies alone
    /// counts twice.
    fn sum(&mut self) {
        let mut counted = VisitSet::default();
        let without = self.latest.bytes(&mut counted) + self.copied_bytes;
        let asked = self.asked.as_ref().map_or(0, |asked| asked.bytes(&mut counted));
        self.bytes = without + asked;
        if self.bytes > FOLD_BYTES {
            self.asked = None;
            self.bytes = without;
        }
    }

    fn keep_asked(&mut self, asked: &Arc<Fold>) {
        self.asked = Some(Arc::clone(asked));
        self.sum();
    }

    /// The latest kept state that is not after an event.
    fn before(&self, event: EventId) -> Option<Arc<Fold>> {
        let copy = self.copies.range(..=event.0).next_back().map(|(_, copy)| copy);
        let asked = self.asked.iter().filter(|asked| asked.last <= event);
        asked.chain(copy).max_by_key(|kept| kept.last).map(Arc::clone)
    }
}

/// One history, for all its readers.
#[derive(Default)]
struct Place {
    kept: Mutex<Option<Kept>>,
}

#[derive(Default)]
struct Cache {
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
pub struct Folds(Mutex<Cache>);

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
        let before = found.latest.last;
        node.each_event_between(id, (before.next(), EventId(u64::MAX)), |flow, event| {
            found.see(flow, event);
            true
        })?;
        let end = found.latest.last;
        if end != before {
            found.weigh();
        }
        let at = at.unwrap_or(end);
        let fold = if at == end {
            Ok(Arc::clone(&found.latest))
        } else {
            earlier(node, id, &found, at).inspect(|earlier| found.keep_asked(earlier))
        };
        let incidents = found.incidents.clone();
        let bytes = found.bytes;
        let fits = bytes <= FOLD_BYTES && !found.latest.visits.is_full();
        *kept = fits.then_some(found);
        drop(kept);
        self.held(id, if fits { bytes } else { 0 });
        Ok(Folded {
            fold: fold?,
            flow,
            incidents,
            end,
            ended: at == end && record.ended.is_some(),
        })
    }

    fn place(&self, id: &str) -> Arc<Place> {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (place, _) = cache.places.entry(Text::from(id)).or_default();
        Arc::clone(place)
    }

    /// Records the memory of a history, and drops those that were not read for the longest time.
    fn held(&self, id: &str, bytes: usize) {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cache.reads += 1;
        let read = cache.reads;
        match bytes {
            0 => drop(cache.places.remove(id)),
            bytes => {
                if let Some((_, held)) = cache.places.get_mut(id) {
                    *held = Held { bytes, read };
                }
            }
        }
        while cache.places.values().map(|(_, held)| held.bytes).sum::<usize>() > CACHE_BYTES {
            let oldest = cache.places.iter().min_by_key(|(_, (_, held))| held.read);
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else {
                return;
            };
            cache.places.remove(&oldest);
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
    node.each_event_between(id, (own.last.next(), at), |flow, event| {
        own.see(flow, event);
        true
    })?;
    Ok(fold)
}
