//! What `$local` is in each place that has mappings (section "data").

use super::Checker;
use super::cursor::Cursor;
use super::kind::Kind;
use super::paths::first_name;
use crate::diagnostics::Code;

/// A place where mappings stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MappingContext {
    /// `inputMappings` of the flow: there is no `$local`.
    FlowInput,
    /// `outputMappings` of the flow.
    FlowOutput,
    /// `inputMappings` of a step: its parent's local.
    StepInput,
    /// `outputMappings` of a step: its own local.
    StepOutput(Kind),
    /// `errorMappings`: `error` and `cause`.
    Errors,
    /// `inputMappings` of a rollback: the task's result.
    Rollback,
}

impl MappingContext {
    /// Whether the result is an output.
    pub(super) fn is_output(self) -> bool {
        matches!(self, Self::FlowOutput | Self::StepOutput(_) | Self::Errors)
    }
}

impl Checker<'_> {
    /// Reports a `$local` path that can find nothing. `offset` is its position in the string at
    /// `cursor`.
    pub(super) fn check_local(&self, cursor: &Cursor<'_>, path: &str, offset: usize, whose: MappingContext) {
        let Some(rest) = path.strip_prefix("$local") else {
            return;
        };
        let name = first_name(rest);
        let problem = match (whose, name) {
            (MappingContext::FlowInput, _) => Some((
                Code::NoLocalHere,
                "a flow has no `$local` before its steps ran".to_owned(),
                "`$input` is the execution's input",
            )),
            (MappingContext::StepOutput(Kind::Parallel | Kind::Foreach), Some(_)) => Some((
                Code::LocalIsList,
                format!("`{path}` finds nothing: `$local` is a list here"),
                "write `$local[0]…` for one item or `$local[*]…` for all",
            )),
            (MappingContext::StepOutput(Kind::Pass | Kind::Wait | Kind::Succeed | Kind::Fail), Some(_)) => Some((
                Code::LocalIsEmpty,
                format!("`{path}` finds nothing: this step's own `$local` is `{{}}`"),
                "`$input` is the step's own input, which has what earlier steps left",
            )),
            (MappingContext::Errors, Some(name)) if !matches!(name, "error" | "cause") => Some((
                Code::UnknownErrorMember,
                format!("`{path}` finds nothing: `$local` is the error here"),
                "it has `$local.error` and `$local.cause`",
            )),
            _ => None,
        };
        if let Some((code, message, help)) = problem
            && !self.leaves_off(code)
        {
            self.report(self.inside(cursor, code, offset, path.len(), message).help(help));
        }
    }
}
