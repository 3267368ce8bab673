//! Messages: calls that are done once their task is in a queue (section "tasks", `acs:mns:`). The task is the only step of an
//! execution of its own, so that it outlives the one that sent it.

use super::Shard;
use super::execution_ids::parent_of;
use super::handed_down::handed_down;
use super::start_request::StartRequest;
use crate::flows::flow_of_messages;
use md5::{Digest, Md5};
use starbridge_flow::graph::{DEFAULT_PRIORITY, Pattern, Pointer};
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::{CallPart, CallToSend, Signal};
use starbridge_ports::ResourceFamily;
use std::fmt::Write;

impl Shard {
    /// The queue into which a call puts a message; `None` if the call waits for its worker.
    ///
    /// An undo waits, because it counts as done only when it was carried out; so does a step that polls, for its answer.
    pub(super) fn posted_to(&self, call: &CallToSend) -> Option<Text> {
        if call.pattern != Pattern::RequestResponse || call.rollback || call.polling || call.child.is_some() {
            return None;
        }
        let (queue, via) = self.queue_behind(&call.resource)?;
        (via == ResourceFamily::MessageService).then_some(queue)
    }

    /// The start of the execution whose task is the message.
    pub(super) fn start_of_message(
        &self,
        execution: &Text,
        call: &CallToSend,
        queue: &Text,
        name: Option<Text>,
    ) -> StartRequest {
        let part = match call.params {
            Some(_) => CallPart::Params,
            None => CallPart::Input,
        };
        let outer = self.state(execution).and_then(|state| state.started());
        StartRequest {
            flow: flow_of_messages(queue),
            version: Some(1),
            input: body(call).clone(),
            name,
            labels: outer.and_then(|started| started.labels.clone()),
            traceparent: outer.and_then(|started| started.terms.traceparent.clone()),
            order_time: outer.and_then(|started| started.terms.order_time),
            priority: Some(call.priority).filter(|priority| *priority != DEFAULT_PRIORITY),
            parent: Some(parent_of(execution, call.call)),
            tokens: handed_down(call, part, &Pointer::default()),
            ..StartRequest::default()
        }
    }
}

/// What the message says.
fn body(call: &CallToSend) -> &Value {
    call.params.as_ref().unwrap_or(&call.input)
}

/// The result of a call whose message is in its queue, under the names of the family for which the flow was written.
pub(super) fn posted(execution: &Text, call: &CallToSend, message: &Text) -> Signal {
    let digest = Md5::digest(body(call).to_json().as_bytes());
    let md5 = digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02X}");
        text
    });
    let result: Object = [
        ("MessageId".into(), message.clone().into()),
        ("RequestId".into(), call.idempotency_key(execution).into()),
        ("MessageBodyMD5".into(), md5.into()),
    ]
    .into_iter()
    .collect();
    Signal::Succeeded {
        call: call.call,
        result: result.into(),
        worker: None,
        held_time: None,
    }
}
