//! Who holds slots: all holders are known where executions may wait for each other, and whoever waits to be admitted is none of
//! them, whatever it was told before. A search for such circles follows holders to their children, not to what they wait for
//! themselves.

use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_memory::MemoryStore;
use starbridge_ports::{
    ADMISSION, Admissions, Append, Ask, ExecutionRecord, FLOW_POOL, History, Message, MessageBody, MessageId,
    NeededKey, PoolKey, RequestChange,
};
use starbridge_runtime::{Admission, AdmissionSettings, KeyChange};

/// Admission over a store.
struct World {
    store: MemoryStore,
    admission: Admission,
}

impl World {
    /// So much of a line or of the holders of a key is read at once.
    fn new(page: usize) -> Self {
        let store = MemoryStore::new();
        let settings = AdmissionSettings {
            page,
            ..AdmissionSettings::default()
        };
        let admission = Admission::resume(settings, &store).unwrap();
        let mut world = Self { store, admission };
        // The store has no messages yet: from now on it is told of those that are delivered.
        world.decide();
        world
    }

    /// An execution keeps what it has to tell admission, with its status at that time.
    fn keeps(&mut self, id: &str, event: u64, status: Status, body: MessageBody) -> Message {
        let id: Text = id.into();
        let request = match (&body, event) {
            (MessageBody::Ask(_), 1) => RequestChange::Keep(String::new()),
            (MessageBody::Ask(_), _) => RequestChange::Replace(String::new()),
            _ => RequestChange::default(),
        };
        let message = Message {
            id: MessageId {
                from: id.clone(),
                event: EventId(event),
                to: ADMISSION.into(),
            },
            body,
        };
        let append = Append {
            execution: id.clone(),
            record: Some(ExecutionRecord {
                flow: "build".into(),
                name: id,
                status,
                ended: status.is_ended().then_some(Timestamp(0)),
                ..ExecutionRecord::default()
            }),
            request,
            sent: vec![message.clone()],
            ..Append::default()
        };
        assert_eq!(self.store.append(&[append]).unwrap(), []);
        message
    }

    /// It asks for a slot of a key, perhaps as the child of another one.
    fn asks(&mut self, id: &str, event: u64, (key, limit): (&str, u64), parent: Option<&str>) -> Message {
        let key = self::key(key);
        let ask = Ask {
            flow: "build".into(),
            keys: vec![NeededKey { key, limit }],
            after: Vec::new(),
            priority: 5,
            order: 0,
            requested: Timestamp(0),
            ancestors: parent.into_iter().map(Text::from).collect(),
        };
        self.keeps(id, event, Status::Queued, MessageBody::Ask(Box::new(ask)))
    }

    fn ends(&mut self, id: &str, event: u64) -> Message {
        let status = Status::Stopped;
        self.keeps(id, event, status, MessageBody::Ended { status })
    }

    fn hears(&mut self, message: Message) {
        self.admission.deliver(message);
        self.decide();
    }

    /// An operator lets one at a time have a slot.
    fn limits(&mut self, key: PoolKey) {
        let change = KeyChange {
            limit: Some(Some(1)),
            ..KeyChange::default()
        };
        self.admission.change(key, change);
        self.decide();
    }

    fn decide(&mut self) {
        let append = self.admission.poll(&self.store).unwrap().append;
        assert_eq!(self.store.append(&[append]).unwrap(), []);
        self.admission.settle();
    }

    fn held_by(&self, id: &str) -> Vec<PoolKey> {
        self.store.slots_of(id).unwrap()
    }
}

fn key(key: &str) -> PoolKey {
    PoolKey {
        pool: "build".into(),
        key: key.into(),
    }
}

/// `again` was admitted and stopped before it heard of that, and `first` took the slot. The answer that `again` has not heard is
/// no sign that it runs.
#[test]
fn one_that_asks_again_gets_no_slot_with_its_flows_limit() {
    for is_heard_first in [true, false] {
        let mut world = World::new(64);
        let flow = PoolKey {
            pool: FLOW_POOL.into(),
            key: "build".into(),
        };
        let asks = world.asks("again", 1, ("a", 1), None);
        world.hears(asks);
        assert_eq!(world.held_by("again"), [key("a")]);
        let ends = world.ends("again", 2);
        world.hears(ends);
        let first = world.asks("first", 1, ("a", 1), None);
        world.hears(first);
        assert_eq!(world.held_by("first"), [key("a")]);
        let asks_again = world.asks("again", 3, ("a", 1), None);
        if is_heard_first {
            world.hears(asks_again);
            world.limits(flow);
        } else {
            world.limits(flow);
            world.hears(asks_again);
        }
        assert!(world.store.waiter("again").unwrap().is_some());
        assert_eq!(world.held_by("again"), [], "heard first: {is_heard_first}");
    }
}

/// `p` and `q` wait for each other through their children as soon as `a`, which held a slot beside `p`, has ended. The store still
/// names `a` as the first holder then. Those behind it are looked at, too, however few are read at once.
#[test]
fn a_circle_is_found_behind_holders_that_have_just_ended() {
    for page in [1, 2, 64] {
        let mut world = World::new(page);
        for id in ["a", "p"] {
            let asks = world.asks(id, 1, ("two", 2), None);
            world.hears(asks);
        }
        let asks = world.asks("q", 1, ("one", 1), None);
        world.hears(asks);
        world.limits(key("two"));
        let below_p = world.asks("below-p", 1, ("one", 1), Some("p"));
        world.hears(below_p);
        let below_q = world.asks("below-q", 1, ("two", 2), Some("q"));
        world.hears(below_q);
        let waits = |world: &World| ["below-p", "below-q"].map(|id| world.store.waiter(id).unwrap().is_some());
        assert_eq!(waits(&world), [true, true]);
        let ends = world.ends("a", 2);
        world.hears(ends);
        assert_eq!(waits(&world), [false, true], "page: {page}");
    }
}
