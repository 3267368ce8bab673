//! Reading the order and time of a start, and the worker that had a task.

use super::{HistoryError, Keys, Members, error};
use crate::event::{EventKind, Holder, StartTerms, Waited, WaitedFor, WaitedKey};
use starbridge_flow::value::Text;

impl Members<'_> {
    /// The detail of an `ExecutionReordered`.
    pub(super) fn new_order(&self) -> Result<EventKind, HistoryError> {
        Ok(EventKind::ExecutionReordered {
            priority: self.maybe_priority()?,
            order_time: self.order_time()?,
            by: self.text("by")?,
        })
    }

    fn maybe_priority(&self) -> Result<Option<u8>, HistoryError> {
        self.maybe("priority", |m, key| {
            u8::try_from(m.number(key)?).map_err(|_| error(format!("`{key}` is too large")))
        })
    }

    fn order_time(&self) -> Result<Option<i64>, HistoryError> {
        self.maybe("orderTime", |m, key| {
            let value = m.value(key)?;
            let whole = value.as_number().and_then(serde_json::Number::as_i64);
            whole.ok_or_else(|| Self::wrong(key, "a whole number", value))
        })
    }

    /// The worker that held a task, if one did.
    pub(super) fn holder(&self) -> Result<Option<Box<Holder>>, HistoryError> {
        self.maybe("worker", |m, key| {
            Ok(Box::new(Holder {
                worker: m.text(key)?,
                held_time: m.time("heldTime")?,
            }))
        })
    }

    pub(super) fn start_terms(&self) -> Result<StartTerms, HistoryError> {
        Ok(StartTerms {
            by: self.maybe("by", Self::text)?,
            once_key: self.maybe("onceKey", Self::text)?,
            priority: self.maybe_priority()?,
            order_time: self.order_time()?,
            traceparent: self.maybe("traceparent", Self::text)?,
            report_to: self.maybe("reportTo", Self::call_of)?,
            waited: self.maybe("waited", |m, key| {
                let waited = Members {
                    flow: m.flow,
                    object: m.object(key)?,
                    keys: Keys::Long,
                };
                Ok(Waited {
                    requested_time: waited.time("requestedTime")?,
                    start_at: waited.maybe("startAt", Members::time)?,
                    after: waited.maybe("after", Members::waited_for)?.unwrap_or_default(),
                    keys: waited.maybe("keys", Members::waited_keys)?.unwrap_or_default(),
                })
            })?,
        })
    }

    fn maybe_text(&self, key: &str) -> Result<Option<Text>, HistoryError> {
        self.get(key).map(|_| self.text(key)).transpose()
    }

    fn waited_for(&self, key: &str) -> Result<Vec<WaitedFor>, HistoryError> {
        self.each(key, |of| {
            Ok(WaitedFor {
                flow: of.maybe_text("flow")?,
                execution: of.text("execution")?,
                any_end: match of.maybe_text("when")?.as_deref() {
                    None => false,
                    Some("ended") => true,
                    Some(other) => return Err(error(format!("`when` must be `ended`, not `{other}`"))),
                },
            })
        })
    }

    fn waited_keys(&self, key: &str) -> Result<Vec<WaitedKey>, HistoryError> {
        self.each(key, |of| {
            Ok(WaitedKey {
                pool: of.text("pool")?,
                key: of.text("key")?,
            })
        })
    }
}
