//! Errors of a flow: a kind the machine knows, a name the front end gives it, a cause for people.

use crate::value::Text;
use std::borrow::Cow;

/// The kind of an error, independent of its name in a language.
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
    /// More children failed than are allowed.
    Branch,
    /// Polling failed.
    Poll,
    /// Something this execution waited for failed.
    Dependency,
    /// The whole execution took too long.
    ExecutionTimeout,
    /// The execution was stopped.
    Stopped,
    /// A `fail` that gives no name.
    Failed,
    /// An execution of that name is there already.
    Exists,
    /// The execution could not begin in time.
    StartDeadline,
    /// The executions above this one hold what it waits for.
    Deadlock,
    /// A name from the flow, a function or a worker.
    Custom(Text),
    /// A name from outside that only the interpreter may use.
    Outside(Origin, Text),
}

/// The source of an error's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A function, in its answer.
    Function,
    /// A local program, in what it printed.
    Program,
    /// A worker, in its report on a task of a queue.
    Worker,
    /// A callback, in its report on a call by the call's token.
    Callback,
    /// An operator, who stops an execution.
    Operator,
}

impl Origin {
    /// The prefix of a name that may not be used as it is.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Function => "Function",
            Self::Program => "Program",
            Self::Worker => "Worker",
            Self::Callback => "Callback",
            Self::Operator => "Operator",
        }
    }
}

impl From<&str> for FaultKind {
    fn from(name: &str) -> Self {
        Self::Custom(Text::from(name))
    }
}

impl From<String> for FaultKind {
    fn from(name: String) -> Self {
        Self::Custom(Text::from(name))
    }
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

/// A language's names for the kinds of faults.
#[derive(Clone, Copy, Debug)]
pub struct FaultNames {
    /// The prefix of names that only the interpreter may use.
    own: &'static str,
    /// Name of each kind that is not custom, in the order of [`FaultNames::KINDS`].
    names: [&'static str; 18],
}

impl FaultNames {
    /// The kinds which have a name.
    pub const KINDS: [FaultKind; 18] = [
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
        FaultKind::Exists,
        FaultKind::StartDeadline,
        FaultKind::Deadlock,
    ];

    /// Names in the order of [`FaultNames::KINDS`]; names that begin with `own` are reserved for
    /// the interpreter.
    pub const fn new(own: &'static str, names: [&'static str; 18]) -> Self {
        Self { own, names }
    }

    /// The name of a kind.
    pub fn name(&self, kind: &FaultKind) -> Text {
        match kind {
            FaultKind::Custom(name) => return name.clone(),
            FaultKind::Outside(origin, name) => return Text::from(self.outside(*origin, name).as_ref()),
            _ => {}
        }
        Self::KINDS
            .iter()
            .zip(self.names)
            .find(|(known, _)| *known == kind)
            .map_or_else(Text::default, |(_, name)| Text::from(name))
    }

    /// The stored name of an error from outside: the given name without surrounding white space,
    /// but `Function.FnF.LimitExceeded` for one of the interpreter's names (here FDL's), and
    /// `Function.Unnamed` for an empty name.
    pub fn outside<'n>(&self, origin: Origin, name: &'n str) -> Cow<'n, str> {
        let prefix = origin.prefix();
        match name.trim() {
            "" => Cow::Owned(format!("{prefix}.Unnamed")),
            own if own.starts_with(self.own) => Cow::Owned(format!("{prefix}.{own}")),
            other => Cow::Borrowed(other),
        }
    }

    /// The kind that a name stands for.
    pub fn kind(&self, name: &str) -> FaultKind {
        Self::KINDS
            .iter()
            .zip(self.names)
            .find(|(_, known)| *known == name)
            .map_or_else(|| FaultKind::Custom(Text::from(name)), |(kind, _)| kind.clone())
    }
}

/// The errors that a `retry` or `catch` handles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matcher {
    /// Every error.
    Any,
    /// The error of exactly this name.
    Named(Text),
    /// Every error of this kind, regardless of its name.
    Kind(FaultKind),
    /// Every error but those of this kind.
    Not(FaultKind),
}

impl Matcher {
    /// Whether it handles the error `name`, in a language with these names.
    pub fn matches(&self, name: &str, names: &FaultNames) -> bool {
        match self {
            Self::Any => true,
            Self::Named(wanted) => wanted == name,
            Self::Kind(kind) => names.kind(name) == *kind,
            Self::Not(kind) => names.kind(name) != *kind,
        }
    }
}
