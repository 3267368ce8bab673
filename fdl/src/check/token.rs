//! Tasks that wait for a report: whether what they call gets the token (section "tasks").

use super::Checker;
use super::cursor::Cursor;
use super::resource::Reach;
use super::service_params::Reads;
use crate::diagnostics::Code;
use crate::graph::{Call, Carried, Pattern, Program};
use crate::syntax::NodeKind;
use crate::value::Text;

impl Checker<'_> {
    /// Warns of a call that waits for a report although nobody gets its token. `enter` makes the input of the call.
    pub(super) fn check_token(&self, cursor: &Cursor<'_>, call: &Call, enter: Option<&dyn Program>) {
        let Some(pattern) = cursor.member("pattern") else {
            return;
        };
        // A worker of a queue gets the token of its task anyway, and the resource map may lead elsewhere to a queue.
        let waits = call.pattern == Pattern::WaitForCallback && cursor.node.get("poll").is_none();
        if !waits || Reach::of(&call.resource).may_be(Reach::Queue) {
            return;
        }
        let places = enter.map(|enter| enter.carries(Carried::Token)).unwrap_or_default();
        let Some(place) = places.first() else {
            let message = "nobody gets the token of this call, so no report can end it";
            let found = pattern.problem(Code::TokenNotSent, message);
            self.report(found.help(match self.is_in_template(cursor) {
                true => "a template makes text of it: only a mapping whose `source` is `$context.task.token` sends it",
                false => "map it into the input: to the target `token` from the source `$context.task.token`",
            }));
            return;
        };
        let (Some(params), Some(reads)) = (&call.params, Reads::of(&call.resource)) else {
            return;
        };
        let sends_input = cursor
            .node
            .get("serviceParams")
            .is_some_and(|node| reads.sends_input(node));
        if sends_input || places.iter().any(|place| !params.carries(place).is_empty()) {
            return;
        }
        let message = "the token of this call is in its input, but `serviceParams` do not send it";
        let key = place.first().map(Text::as_str).unwrap_or_default();
        let found = pattern.problem(Code::TokenNotSent, message);
        self.report(found.help(format!(
            "the input has it below `{key}`: send it where the resource looks for it, such as `\"$.{key}\"`"
        )));
    }

    /// Whether a template of the input has the token as a part.
    fn is_in_template(&self, cursor: &Cursor<'_>) -> bool {
        let Some(mappings) = cursor.member("inputMappings") else {
            return false;
        };
        mappings.entries().any(|mapping| {
            let template = mapping.node.get("template").map(|template| &template.kind);
            matches!(template, Some(NodeKind::String(text)) if text.contains("{$context.task.token"))
        })
    }
}
