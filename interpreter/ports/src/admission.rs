//! What admission is asked, what it decides, and what it keeps. Admission decides when an execution may run that waits for
//! others to end or for a place (section "operating executions").

use serde::{Deserialize, Serialize};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::Status;

/// The name under which admission gets and sends messages.
pub const ADMISSION: &str = "@admission";

/// The pool of the keys that stand for flows: `maxRunning` of a flow is the limit of its key, and a paused flow has the limit 0.
pub const FLOW_POOL: &str = "@flow";

/// A concurrency key: at most so many executions as its limit says hold a slot of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PoolKey {
    /// The pool: the name of the flow, unless the flow names another one.
    pub pool: Text,
    /// The key.
    pub key: Text,
}

/// A key that an execution needs a slot of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeededKey {
    /// The key.
    #[serde(flatten)]
    pub key: PoolKey,
    /// Its limit as the definition says it. It holds where nobody has set another one.
    pub limit: u64,
}

/// An execution that another one waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependency {
    /// The flow of the execution, where it is named; nothing for an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Text>,
    /// The name of the execution in that flow, or its id.
    pub execution: Text,
    /// Whether any end will do. Otherwise it must succeed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_end: bool,
}

/// What an execution asks admission for. Admission answers with `Admit` or `Decline`, under the number of the event under
/// which it was asked.
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
    /// When it was asked for.
    pub requested: Timestamp,
    /// The executions that wait for it, one above the other, the nearest first. It shares the slots they hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<Text>,
}

/// Why an execution that waits is not admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum DeclineReason {
    /// An execution it waits for ended otherwise than it has to.
    Dependency {
        /// The id of that execution.
        execution: Text,
        /// How it ended.
        status: Status,
    },
    /// The executions above it hold what it waits for.
    Deadlock {
        /// The key whose slots they hold.
        key: PoolKey,
    },
}

/// A change of what admission keeps. It is durable with the append that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmissionChange {
    /// An execution holds a slot of each of these keys.
    TakeSlots {
        /// The id of the execution.
        execution: Text,
        /// The keys.
        keys: Vec<PoolKey>,
    },
    /// An execution holds no slots any more.
    ReleaseSlots {
        /// The id of the execution.
        execution: Text,
    },
}
