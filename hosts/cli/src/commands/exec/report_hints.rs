//! Tells people how to report to a task that waits for a callback.

use crate::progress::Progress;
use starbridge_flow::graph::{Flow, Pattern, StepKind, Undo};
use starbridge_flow::value::Text;
use starbridge_machine::CallToSend;
use starbridge_runtime::TokenKeys;
use std::net::SocketAddr;
use std::sync::Arc;

/// The address for reports.
#[derive(Default)]
pub(super) struct ReportHints {
    on: Option<(SocketAddr, TokenKeys)>,
}

impl ReportHints {
    pub(super) fn on(&mut self, address: SocketAddr, tokens: TokenKeys) {
        self.on = Some((address, tokens));
    }

    /// Handles a call that leaves: if it waits for a callback, prints how to report.
    pub(super) fn call(&self, execution: &Text, call: &CallToSend, progress: &Progress) {
        let Some((address, tokens)) = &self.on else {
            return;
        };
        if call.pattern != Pattern::WaitForCallback {
            return;
        }
        let token = tokens.sign(execution, call.call);
        progress.line(&format!(
            "? {} waits for a report:\n    curl -X POST http://{address}/v1/callbacks/{token}/succeed -d '{{\"output\": {{}}}}'\n    or …/fail with '{{\"error\": \"…\", \"cause\": \"…\"}}', or …/heartbeat",
            call.step
        ));
    }
}

/// Whether some task of these flows waits for a callback.
pub(super) fn is_needed(flows: &[&Arc<Flow>]) -> bool {
    flows.iter().flat_map(|flow| &flow.steps).any(|step| match &step.kind {
        StepKind::Task(task) => {
            let undo = task.rollback.as_ref().map(|rollback| &rollback.undo);
            task.call.pattern == Pattern::WaitForCallback
                || matches!(undo, Some(Undo::Call(call)) if call.pattern == Pattern::WaitForCallback)
        }
        _ => false,
    })
}
