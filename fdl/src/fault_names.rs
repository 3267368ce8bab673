//! The language's names for the interpreter's errors (section "errors").
//!
//! Only the interpreter can use a name that begins with `FnF.`: retries, rollbacks and operators
//! rely on it.

use crate::graph::FaultNames;

/// The names of the Flow Definition Language.
pub const FAULT_NAMES: FaultNames = FaultNames::new(
    "FnF.",
    [
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
        "fnf.ExecutionAlreadyExists",
        "FnF.StartDeadlineExceeded",
        "FnF.ConcurrencyDeadlock",
    ],
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Origin;

    #[test]
    fn nobody_else_speaks_as_the_interpreter() {
        for (origin, given, kept) in [
            (Origin::Function, "FnF.LimitExceeded", "Function.FnF.LimitExceeded"),
            (Origin::Worker, " \tFnF.Stopped\n", "Worker.FnF.Stopped"),
            (Origin::Program, "FnF.", "Program.FnF."),
            (Origin::Operator, "FnF.ALL", "Operator.FnF.ALL"),
            (Origin::Callback, "", "Callback.Unnamed"),
            (Origin::Callback, "  ", "Callback.Unnamed"),
        ] {
            assert_eq!(FAULT_NAMES.outside(origin, given), kept, "{given:?}");
        }
    }

    #[test]
    fn other_names_stay() {
        for name in [
            "Payment.Refused",
            "HTTP.503",
            "fnf.ExecutionAlreadyExists",
            "FnF",
            "My.FnF.Name",
        ] {
            assert_eq!(FAULT_NAMES.outside(Origin::Function, name), name);
        }
        let once = FAULT_NAMES.outside(Origin::Program, "FnF.X").into_owned();
        assert_eq!(
            FAULT_NAMES.outside(Origin::Worker, &once),
            "Program.FnF.X",
            "said once, by whoever said it first"
        );
    }
}
