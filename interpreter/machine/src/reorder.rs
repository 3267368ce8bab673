//! Changing the order of an execution (section "operating executions"): its place in the queues, and that of its tasks.

use crate::event::EventKind;
use crate::signal::{NewOrder, Rejection};
use crate::state::{ROOT, State};
use crate::turn::Turn;
use starbridge_flow::value::Text;

impl State {
    /// Takes another priority or order.
    pub(crate) fn take_reorder(
        &mut self,
        turn: &mut Turn<'_>,
        by: Option<String>,
        order: NewOrder,
    ) -> Result<(), Rejection> {
        if self.data.status.is_ended() {
            return Err(Rejection::Finished);
        }
        let NewOrder {
            priority,
            order_time,
            start_now,
            drop_after,
        } = order;
        if start_now || drop_after {
            return Err(Rejection::AlreadyStarted);
        }
        if priority.is_none() && order_time.is_none() {
            return Err(Rejection::NothingToDo);
        }
        let place = self.flow_place(ROOT);
        let detail = EventKind::ExecutionReordered {
            priority,
            order_time,
            by: Text::from(by.unwrap_or_default()),
        };
        self.emit(turn, place, detail);
        Ok(())
    }

    /// The terms stored with the start are the valid ones, so the new order replaces theirs.
    pub(crate) fn fold_reordered(&mut self, priority: Option<u8>, order_time: Option<i64>) -> Option<()> {
        let terms = &mut self.data.started.as_mut()?.terms;
        terms.priority = priority.or(terms.priority);
        terms.order_time = order_time.or(terms.order_time);
        Some(())
    }
}
