//! The short names that stored turns use for types and members of the language reference.

macro_rules! short {
    ($(#[$doc:meta])* $table:ident, $(#[$to_doc:meta])* $to:ident, $($long:literal $short:literal)*) => {
        $(#[$doc])*
        pub const $table: &[(&str, &str)] = &[$(($long, $short)),*];

        $(#[$to_doc])*
        pub(super) fn $to(long: &str) -> &str {
            match long {
                $($long => $short,)*
                other => other,
            }
        }
    };
}

short! {
    /// The types of events and their short names.
    SHORT_TYPES,
    /// The short name of a type.
    short_type,
    "ExecutionStarted" "xs"
    "StepEntered" "se"
    "StepStarted" "ss"
    "StepSucceeded" "sd"
    "StepFailed" "sf"
    "StepExited" "sx"
    "BranchEntered" "be"
    "BranchExited" "bx"
    "IterationEntered" "ie"
    "IterationExited" "ix"
    "ChoiceTaken" "ct"
    "TaskScheduled" "ts"
    "TaskSubmitted" "tb"
    "TaskSubmitFailed" "tu"
    "TaskSucceeded" "td"
    "TaskFailed" "tf"
    "TaskTimedOut" "tt"
    "RetryScheduled" "rs"
    "PollScheduled" "ps"
    "WaitStarted" "ws"
    "TimerFired" "tm"
    "TaskCancelled" "tc"
    "LateResultIgnored" "li"
    "RollbackStarted" "us"
    "RollbackSucceeded" "ud"
    "RollbackFailed" "uf"
    "ManualRequested" "mr"
    "ManualResolved" "md"
    "ExecutionStopped" "xp"
    "ExecutionTimedOut" "xt"
    "ExecutionSucceeded" "xd"
    "ExecutionFailed" "xf"
    "ExecutionRedriven" "xr"
    "RollbackSkipped" "uk"
    "ExecutionPaused" "xo"
    "ExecutionResumed" "xg"
    "ExecutionReordered" "xq"
    "ExecutionForked" "xk"
    "TurnContinued" "cc"
}

short! {
    /// The members of details and their short names. A member that is not listed keeps its name.
    SHORT_KEYS,
    /// The short name of a member.
    short_key,
    "attempt" "n"
    "input" "i"
    "output" "o"
    "result" "v"
    "error" "e"
    "cause" "c"
    "missing" "m"
    "goto" "g"
    "caught" "k"
    "branch" "b"
    "deps" "d"
    "index" "x"
    "item" "t"
    "cancelled" "z"
    "arm" "a"
    "resource" "r"
    "pattern" "p"
    "call" "l"
    "params" "q"
    "timeoutAt" "ta"
    "timeoutMs" "tq"
    "redeliver" "rv"
    "receipt" "rc"
    "executionId" "xi"
    "version" "vn"
    "worker" "w"
    "heldTime" "ht"
    "retryAfter" "ra"
    "notSent" "ns"
    "policy" "pl"
    "delayMs" "dm"
    "due" "du"
    "value" "va"
    "until" "u"
    "of" "f"
    "reason" "rn"
    "code" "cd"
}

/// The type with this short name. A type that is not listed keeps its name.
pub(super) fn long_type(short: &str) -> Option<&'static str> {
    let found = SHORT_TYPES.iter().find(|(_, name)| *name == short);
    found.map(|(long, _)| *long)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn history_short_names_are_unique() {
        for table in [SHORT_TYPES, SHORT_KEYS] {
            let short: BTreeSet<&str> = table.iter().map(|(_, short)| *short).collect();
            assert_eq!(short.len(), table.len());
        }
    }

    #[test]
    fn history_types_are_found_by_their_names() {
        for (long, short) in SHORT_TYPES {
            assert_eq!((short_type(long), long_type(short)), (*short, Some(*long)));
        }
    }
}
