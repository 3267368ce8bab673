//! What a call hands down to its child: tokens in the input, and the token to which the child's end
//! is reported.

use super::execution_ids::parent_of;
use crate::references::references_in;
use starbridge_flow::graph::{Pattern, Pointer};
use starbridge_flow::value::Text;
use starbridge_machine::{CallPart, CallToSend, Parent, Reference, TokenGrant};

/// The member of `serviceParams` with the token to which a child's end is reported.
pub(super) const CALLBACK_TOKEN: &str = "CallbackFnFTaskToken";

/// The tokens below a place of a call, with their places relative to it.
pub(super) fn handed_down(call: &CallToSend, part: CallPart, below: &Pointer) -> Vec<TokenGrant> {
    let grant = |(at, reference): (&Pointer, &Reference)| match reference {
        Reference::Secret(_) => None,
        Reference::Token { execution, call } => Some(TokenGrant {
            at: at.strip_prefix(below)?,
            execution: execution.clone(),
            call: *call,
        }),
    };
    references_in(&call.references, part).filter_map(grant).collect()
}

/// The call that the token in [`CALLBACK_TOKEN`] belongs to; or why there is none, for people.
pub(super) fn call_to_report(execution: &Text, call: &CallToSend) -> Result<Parent, String> {
    let place = Pointer::of([CALLBACK_TOKEN]);
    let found = references_in(&call.references, CallPart::Params).find_map(|(at, reference)| match reference {
        Reference::Token { execution, call } if *at == place => Some(parent_of(execution, *call)),
        _ => None,
    });
    let Some(found) = found else {
        return Err(format!(
            "`{CALLBACK_TOKEN}` must be a task's token: `inputMappings` bring `$context.task.token` into the input"
        ));
    };
    // An execution gets one message about an end, and this one already waits for it.
    if call.pattern == Pattern::Sync && found.execution == *execution {
        return Err(format!(
            "`{CALLBACK_TOKEN}` has no meaning with `sync`, which waits for the child"
        ));
    }
    Ok(found)
}
