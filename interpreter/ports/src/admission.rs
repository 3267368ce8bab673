//! The requests to admission, its decisions, and what it keeps. Admission decides when an execution
//! may run if it waits for others to end or for a slot (section "operating executions").

use serde::{Deserialize, Serialize};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};

/// The name under which admission gets and sends messages.
pub const ADMISSION: &str = "@admission";

/// The pool of the keys that stand for flows: `maxRunning` of a flow is the limit of its key, and a paused flow has the limit 0.
pub const FLOW_POOL: &str = "@flow";

/// The pool of the keys that stand for schedules. If triggers of a schedule wait for one another,
/// one of its executions runs at a time.
pub const SCHEDULE_POOL: &str = "@schedule";

/// The number under which a start asks admission. It has no event yet.
pub const ASKED_AT_START: EventId = EventId(1);

/// The number under which admission asks an execution for its end. No event has it, so it never meets the number of an answer.
pub const WATCH_EVENT: EventId = EventId(u32::MAX as u64);

/// The number under which admission tells an execution that all it waited for has ended.
pub const MET_EVENT: EventId = EventId(u32::MAX as u64 - 1);

/// A concurrency key: its limit is the largest number of executions that may hold a slot of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PoolKey {
    /// The pool: the name of the flow, unless the flow names another one.
    pub pool: Text,
    /// The name within the pool.
    pub key: Text,
}

/// A key that an execution needs a slot of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeededKey {
    /// In JSON its members stand beside the limit.
    #[serde(flatten)]
    pub key: PoolKey,
    /// Its limit as the definition gives it. It holds unless an operator has set another one.
    pub limit: u64,
}

/// An execution that another one waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependency {
    /// Its flow, if the execution is given by name; `None` if it is given by id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Text>,
    /// The name of the execution in that flow, or its id.
    pub execution: Text,
    /// Whether any end will do. Otherwise it must succeed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_end: bool,
}

/// A request to admission. Admission answers with `Admit` or `Decline`, under the number of the
/// event under which it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// The flow of the execution.
    pub flow: Text,
    /// The keys it needs slots of: all of them at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<NeededKey>,
    /// The executions it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Dependency>,
    /// From 0 to 9, 9 first.
    pub priority: u8,
    /// Within a priority the smaller goes first.
    pub order: i64,
    /// When the execution was requested.
    pub requested: Timestamp,
    /// The executions that wait for it, one above the other, the nearest first. It shares the slots they hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<Text>,
}

/// Why an execution that waits is not admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum DeclineReason {
    /// An execution that it waits for did not end in the required way.
    Dependency {
        /// The id of that execution.
        execution: Text,
        /// How it ended; `New` if there is no such execution.
        status: Status,
    },
    /// It waits for executions that wait for it.
    Cycle {
        /// The ids of these executions, each waiting for the next and the last for the first. It is the first.
        executions: Vec<Text>,
    },
    /// Too many executions stand behind those it waits for to find out whether one of them waits
    /// for it.
    TooManyDependencies,
    /// Executions above it hold what it waits for.
    Deadlock {
        /// The key whose slots they hold.
        key: PoolKey,
    },
}

/// An execution that waits to be admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// The number of the request. Later ones have larger numbers.
    pub number: u64,
    /// The id of the execution.
    pub execution: Text,
    /// The event under which it asked.
    pub event: EventId,
    /// What it asked for.
    pub ask: Ask,
    /// The dependencies that are open. It is blocked while there are any, and stands in no line.
    pub open: Vec<OpenDependency>,
    /// The key in whose line it stands.
    pub parked: Option<PoolKey>,
    /// How often it went from one line to another.
    pub moves: u32,
    /// The number of its claim, if it has one. Older claims have smaller numbers.
    pub claim: Option<u64>,
}

/// A dependency of a waiter that is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenDependency {
    /// The dependency as the start gave it.
    #[serde(flatten)]
    pub dependency: Dependency,
    /// The id of the execution, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Text>,
}

/// The place of a waiter in a line. The smallest goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinePlace {
    /// 0 for the highest priority.
    pub rank: u8,
    /// Within a priority.
    pub order: i64,
    /// The number of the request.
    pub number: u64,
}

/// The age of a waiter. The smallest has waited longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaiterAge {
    /// When the execution was requested.
    pub requested: Timestamp,
    /// The number of the request.
    pub number: u64,
}

impl Waiter {
    /// Its place in the line of its key.
    pub fn place(&self) -> LinePlace {
        LinePlace {
            rank: 9_u8.saturating_sub(self.ask.priority),
            order: self.ask.order,
            number: self.number,
        }
    }

    /// The order in which waiters of one priority are let in.
    pub fn age(&self) -> WaiterAge {
        WaiterAge {
            requested: self.ask.requested,
            number: self.number,
        }
    }
}

/// What is kept of a key, apart from who holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptKey {
    /// Unique among those that are kept.
    pub key: PoolKey,
    /// The limit that the definition of the flow gave last.
    pub defined: Option<u64>,
    /// The limit that an operator set. It overrides the definition's.
    pub set: Option<u64>,
    /// Who set it.
    pub set_by: Option<Text>,
    /// Set while nobody is admitted through it.
    pub paused: Option<KeyPause>,
    /// Whether its line is still to be looked at.
    pub stale: bool,
}

/// An operator's order to admit nobody through a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyPause {
    /// Who asked for it.
    pub by: Text,
    /// Since when.
    pub since: Timestamp,
}

impl KeptKey {
    /// A key with no settings.
    pub fn of(key: PoolKey) -> Self {
        Self {
            key,
            defined: None,
            set: None,
            set_by: None,
            paused: None,
            stale: false,
        }
    }

    /// How many executions may hold a slot; `None`: any number.
    pub fn limit(&self) -> Option<u64> {
        match self.paused {
            Some(_) => Some(0),
            None => self.set.or(self.defined),
        }
    }

    /// Whether an operator set its limit or paused it.
    pub fn is_set(&self) -> bool {
        self.set.is_some() || self.paused.is_some()
    }
}

/// The state of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyView {
    /// What is kept of it.
    pub kept: KeptKey,
    /// How many executions hold a slot of it.
    pub held: u64,
    /// How many executions stand in its line.
    pub waiting: u64,
}

/// A change of what admission keeps. It becomes durable with the append that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmissionChange {
    /// An execution holds a slot of each of these keys.
    TakeSlots {
        /// The id of the execution.
        execution: Text,
        /// Those that its flow asks for.
        keys: Vec<PoolKey>,
    },
    /// An execution holds no slots any more.
    ReleaseSlots {
        /// The id of the execution.
        execution: Text,
    },
    /// An execution waits. It replaces what was kept of it.
    PutWaiter(Box<Waiter>),
    /// An execution no longer waits.
    RemoveWaiter {
        /// The id of the execution.
        execution: Text,
    },
    /// What is known of a key. It replaces what was kept of it.
    PutKey(KeptKey),
    /// Nothing is kept of a key any more.
    RemoveKey(PoolKey),
}

/// Which waiters to find.
#[derive(Clone, Copy, Debug)]
pub enum Waiters<'a> {
    /// Those in the line of a key after a place, in their order.
    InLine(&'a PoolKey, Option<LinePlace>),
    /// Those in the line of a key that are younger than this, the oldest first.
    ByAge(&'a PoolKey, Option<WaiterAge>),
    /// Those with claims, by the numbers of their requests, after this one.
    Claimed(u64),
    /// Those with an open dependency that is bound to this execution, by the numbers of their requests, after this one.
    BoundTo(&'a str, u64),
    /// Those with an open dependency on this name of this flow that is not bound, by the numbers of their requests, after
    /// this one.
    Named(&'a str, &'a str, u64),
    /// Those with an open dependency that is not bound, by the numbers of their requests, after this one.
    Unbound(u64),
    /// Those that this execution waits for, as an ancestor, by the numbers of their requests, after this one.
    Below(&'a str, u64),
}
