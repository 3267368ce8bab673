//! The signals by which an operator acts on one execution: a request for it and a bulk job for many make the same ones.

use starbridge_flow::value::{Text, Value};
use starbridge_machine::{Decision, Failure, ResolutionAction, Signal};

/// Ends an execution. `caller` is the name of the token, if one was needed; `error` the name of the error, if it is not
/// the language's own; `rollback` says whether what it did is undone.
pub fn stop(caller: Option<String>, error: Option<String>, cause: String, rollback: bool) -> Signal {
    Signal::Stop {
        error,
        cause,
        by: caller,
        rollback,
        with_parent: false,
    }
}

/// Leaves out the undo that failed.
pub fn skip(by: &Text, cause: String) -> Signal {
    Signal::Skip {
        by: Some(by.to_string()),
        cause,
    }
}

/// Prevents anything new from beginning in an execution.
pub fn pause(by: &Text, cause: String) -> Signal {
    Signal::Pause {
        by: Some(by.to_string()),
        cause,
        with_parent: false,
    }
}

/// Continues an execution after a pause.
pub fn resume(by: &Text) -> Signal {
    Signal::Resume {
        by: Some(by.to_string()),
        with_parent: false,
    }
}

/// A decision for a step that waits for an operator. What does not belong to the action is not looked at.
pub fn decision(action: ResolutionAction, output: Option<Value>, error: Option<Text>, cause: Option<Text>) -> Decision {
    let cause = cause.unwrap_or_default();
    match action {
        ResolutionAction::Retry => Decision::Retry,
        ResolutionAction::Succeed => Decision::Succeed { output },
        ResolutionAction::Fail => Decision::Fail {
            failure: error.map(|error| Failure { error, cause }),
        },
    }
}
