//! Errors of a flow: a kind the machine knows, a name the front end gives it, a cause for people.

use crate::value::Text;

/// What went wrong, apart from what a language calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A limit in time passed.
    Timeout,
    /// No heartbeat came in time.
    Heartbeat,
    /// A task's result has the wrong form.
    Result,
    /// A step's input can't be made.
    Input,
    /// A step's output can't be made.
    Output,
    /// Data larger than allowed.
    TooLarge,
    /// Any other limit.
    Limit,
    /// Nothing answers to the resource named.
    Resource,
    /// A fault of the engine itself.
    Runtime,
    /// More children failed than may.
    Branch,
    /// Polling came to a bad end.
    Poll,
    /// Something this execution waited for failed.
    Dependency,
    /// The whole execution took too long.
    ExecutionTimeout,
    /// Somebody stopped the execution.
    Stopped,
    /// A `fail` that gives no name.
    Failed,
    /// Named by the flow, a function or a worker.
    Custom(Text),
}

/// An error before it has a name: kind and cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// Why, in words.
    pub cause: String,
}

impl Fault {
    /// A fault of this kind with this cause.
    pub fn new(kind: FaultKind, cause: impl Into<String>) -> Self {
        Self {
            kind,
            cause: cause.into(),
        }
    }
}

/// What a language calls each kind of fault.
#[derive(Clone, Copy, Debug)]
pub struct FaultNames {
    /// Name of each kind that is not custom, in the order of [`FaultNames::KINDS`].
    names: [&'static str; 15],
}

impl FaultNames {
    /// The kinds which have a name.
    pub const KINDS: [FaultKind; 15] = [
        FaultKind::Timeout,
        FaultKind::Heartbeat,
        FaultKind::Result,
        FaultKind::Input,
        FaultKind::Output,
        FaultKind::TooLarge,
        FaultKind::Limit,
        FaultKind::Resource,
        FaultKind::Runtime,
        FaultKind::Branch,
        FaultKind::Poll,
        FaultKind::Dependency,
        FaultKind::ExecutionTimeout,
        FaultKind::Stopped,
        FaultKind::Failed,
    ];

    /// The names of the Flow Definition Language.
    pub const FDL: Self = Self {
        names: [
            "FnF.TaskTimeout",
            "FnF.HeartbeatTimeout",
            "FnF.InvalidLocal",
            "FnF.InvalidInput",
            "FnF.InvalidOutput",
            "FnF.PayloadTooLarge",
            "FnF.LimitExceeded",
            "FnF.NoSuchResource",
            "FnF.RuntimeError",
            "FnF.BranchFailed",
            "FnF.PollFailed",
            "FnF.DependencyFailed",
            "FnF.ExecutionTimeout",
            "FnF.Stopped",
            "FnF.Failed",
        ],
    };

    /// Names in the order of [`FaultNames::KINDS`].
    pub const fn new(names: [&'static str; 15]) -> Self {
        Self { names }
    }

    /// The name of a kind.
    pub fn name(&self, kind: &FaultKind) -> Text {
        if let FaultKind::Custom(name) = kind {
            return name.clone();
        }
        Self::KINDS
            .iter()
            .zip(self.names)
            .find(|(known, _)| *known == kind)
            .map_or_else(Text::default, |(_, name)| Text::from(name))
    }

    /// The kind a name stands for.
    pub fn kind(&self, name: &str) -> FaultKind {
        Self::KINDS
            .iter()
            .zip(self.names)
            .find(|(_, known)| *known == name)
            .map_or_else(|| FaultKind::Custom(Text::from(name)), |(kind, _)| kind.clone())
    }
}

/// Which errors a `retry` or `catch` is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matcher {
    /// Every error.
    Any,
    /// The error of exactly this name.
    Named(Text),
    /// Every error of this kind, whatever its name.
    Kind(FaultKind),
    /// Every error but those of this kind.
    Not(FaultKind),
}

impl Matcher {
    /// Whether it is for the error `name`, in a language with these names.
    pub fn matches(&self, name: &str, names: &FaultNames) -> bool {
        match self {
            Self::Any => true,
            Self::Named(wanted) => wanted == name,
            Self::Kind(kind) => names.kind(name) == *kind,
            Self::Not(kind) => names.kind(name) != *kind,
        }
    }
}
