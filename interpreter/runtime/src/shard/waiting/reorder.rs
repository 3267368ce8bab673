//! Changing the order of an execution that waits to begin: in its kept start, and at admission.

use super::ask_of_start;
use crate::shard::admission::message_to_admission;
use crate::shard::{Outgoing, Shard};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{NewOrder, Rejection, Status};
use starbridge_ports::{Append, MessageBody, RequestChange};

impl Shard {
    /// Gives a waiting execution another place or start time, or drops its dependencies.
    pub(super) fn reorder_waiting(&mut self, id: &Text, order: NewOrder, now: Timestamp) -> Result<(), Rejection> {
        let number = self.ask_number(now);
        let waiting = self.waiting.get_mut(id).ok_or(Rejection::Unknown)?;
        let (kept, record) = (&mut waiting.kept, &mut waiting.record);
        let terms = &mut kept.start.terms;
        terms.priority = order.priority.or(terms.priority);
        terms.order_time = order.order_time.or(terms.order_time);
        (record.priority, record.order_time) = (terms.priority, terms.order_time);
        let is_delayed = record.status == Status::Delayed;
        if order.start_now && is_delayed {
            kept.start_at = kept.start_at.min(now);
            record.wake_at = Some(now);
        }
        if order.drop_after {
            kept.after.clear();
            if record.status == Status::Blocked {
                record.status = Status::Queued;
            }
        }
        let ask = ask_of_start(kept, 0);
        let has_asked = !is_delayed && !kept.admitted;
        let reorder = has_asked.then(|| {
            let body = MessageBody::Reorder {
                priority: ask.priority,
                order: ask.order,
                no_after: order.drop_after,
            };
            message_to_admission(id, number, body)
        });
        let text = serde_json::to_string(kept).unwrap_or_default();
        let record = record.clone();
        waiting.unsettled += 1;
        self.held.extend(reorder.iter().cloned().map(Outgoing::Message));
        self.pending.push(Append {
            execution: id.clone(),
            record: Some(record),
            request: RequestChange::Replace(text),
            sent: reorder.into_iter().collect(),
            audit: self.audited.take().into_iter().collect(),
            ..Append::default()
        });
        self.look_at_waiting(id, now);
        Ok(())
    }
}
