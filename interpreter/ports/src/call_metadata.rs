//! Metadata that a call carries to its receiver (section "keys" of the language reference): the same fields over
//! every transport, each in the transport's own form.

use crate::Request;
use std::borrow::Cow;

/// One field of a call's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallField {
    /// The call's idempotency key, the same when the call is sent again; or the step's key, if the flow asks for
    /// that.
    IdempotencyKey,
    /// The key of the step's visit, the same over its retries and polls.
    StepKey,
    /// The execution's id.
    Execution,
    /// The flow's name.
    Flow,
    /// The step's name.
    Step,
    /// The attempt, from 1.
    Attempt,
    /// `normal`, or `rollback` where the call undoes something.
    Type,
    /// When the task counts as done.
    Pattern,
    /// W3C trace context.
    Traceparent,
    /// When the attempt ends.
    TimeoutAt,
}

impl CallField {
    /// All fields, in the order in which they are sent.
    pub const ALL: [Self; 10] = [
        Self::IdempotencyKey,
        Self::StepKey,
        Self::Execution,
        Self::Flow,
        Self::Step,
        Self::Attempt,
        Self::Type,
        Self::Pattern,
        Self::Traceparent,
        Self::TimeoutAt,
    ];

    /// The name of the field as a header or attribute; `None` if it is not sent as one.
    pub fn header(self) -> Option<&'static str> {
        match self {
            Self::IdempotencyKey => Some("Idempotency-Key"),
            Self::StepKey => Some("Starbridge-Step-Key"),
            Self::Execution => Some("Starbridge-Execution"),
            Self::Flow => Some("Starbridge-Flow"),
            Self::Step => Some("Starbridge-Step"),
            Self::Attempt => Some("Starbridge-Attempt"),
            Self::Type => Some("Starbridge-Type"),
            Self::Traceparent => Some("traceparent"),
            Self::Pattern | Self::TimeoutAt => None,
        }
    }

    /// The name of the field in a message.
    pub fn member(self) -> &'static str {
        match self {
            Self::IdempotencyKey => "idempotencyKey",
            Self::StepKey => "stepKey",
            Self::Execution => "execution",
            Self::Flow => "flow",
            Self::Step => "step",
            Self::Attempt => "attempt",
            Self::Type => "type",
            Self::Pattern => "pattern",
            Self::Traceparent => "traceparent",
            Self::TimeoutAt => "timeoutAt",
        }
    }

    /// The name of the field as an environment variable; `None` if it is not given as one.
    pub fn variable(self) -> Option<&'static str> {
        match self {
            Self::IdempotencyKey => Some("STARBRIDGE_IDEMPOTENCY_KEY"),
            Self::StepKey => Some("STARBRIDGE_STEP_KEY"),
            Self::Execution => Some("STARBRIDGE_EXECUTION"),
            Self::Flow => Some("STARBRIDGE_FLOW"),
            Self::Step => Some("STARBRIDGE_STEP"),
            Self::Attempt => Some("STARBRIDGE_ATTEMPT"),
            Self::Type => Some("STARBRIDGE_TYPE"),
            Self::Traceparent => Some("TRACEPARENT"),
            Self::Pattern | Self::TimeoutAt => None,
        }
    }
}

/// The metadata of a call, read from its request.
#[derive(Clone, Copy, Debug)]
pub struct CallMetadata<'a> {
    request: &'a Request,
    step_key: bool,
}

impl<'a> CallMetadata<'a> {
    /// The metadata of this request. If `step_key` is true, the step's key replaces the call's idempotency key
    /// (`"idempotency": "step"`).
    pub fn of(request: &'a Request, step_key: bool) -> Self {
        Self { request, step_key }
    }

    /// The idempotency key, or the step's key in its place.
    pub fn idempotency_key(&self) -> &'a str {
        match self.step_key {
            true => &self.request.keys.step_visit,
            false => &self.request.keys.idempotency,
        }
    }

    /// The value of a field as text; `None` if this call has none.
    pub fn get(&self, field: CallField) -> Option<Cow<'a, str>> {
        let request = self.request;
        let keys = &request.keys;
        Some(Cow::Borrowed(match field {
            CallField::IdempotencyKey => self.idempotency_key(),
            CallField::StepKey => &keys.step_visit,
            CallField::Execution => &keys.execution,
            CallField::Flow => &keys.flow,
            CallField::Step => &keys.step,
            CallField::Attempt => return Some(Cow::Owned(request.attempt.to_string())),
            CallField::Type => starbridge_machine::call_type(request.rollback),
            CallField::Pattern => request.pattern.as_str(),
            CallField::Traceparent => keys.traceparent.as_deref()?,
            CallField::TimeoutAt => return request.timeout_at.map(|at| Cow::Owned(at.to_string())),
        }))
    }

    /// The fields that have a value, with it, in the order of [`CallField::ALL`].
    pub fn pairs(self) -> impl Iterator<Item = (CallField, Cow<'a, str>)> {
        let pair = move |field| Some((field, self.get(field)?));
        CallField::ALL.into_iter().filter_map(pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallIds, ResourceFamily};
    use starbridge_flow::graph::Pattern;
    use starbridge_flow::time::Timestamp;
    use starbridge_flow::value::Value;

    fn request() -> Request {
        Request {
            target: "http://localhost/f".to_owned(),
            via: ResourceFamily::Direct,
            pattern: Pattern::WaitForCallback,
            input: Value::empty_object(),
            params: None,
            keys: CallIds {
                idempotency: "e/7".to_owned(),
                step_visit: "e/5".to_owned(),
                execution: "e".to_owned(),
                flow: "order".to_owned(),
                step: "pay".to_owned(),
                traceparent: None,
            },
            attempt: 2,
            rollback: false,
            polling: false,
            follow: false,
            timeout_at: None,
            answer_limit: 1,
        }
    }

    #[test]
    fn call_metadata_has_every_field_that_has_a_value() {
        let mut request = request();
        let pairs = |request: &Request, step_key| {
            let pairs = CallMetadata::of(request, step_key).pairs();
            let pairs: Vec<String> = pairs
                .map(|(field, value)| format!("{}={value}", field.member()))
                .collect();
            pairs.join(" ")
        };
        assert_eq!(
            pairs(&request, false),
            "idempotencyKey=e/7 stepKey=e/5 execution=e flow=order step=pay attempt=2 type=normal \
             pattern=waitForCallback"
        );
        request.rollback = true;
        request.keys.traceparent = Some("00-a-b-01".to_owned());
        request.timeout_at = Some(Timestamp(0));
        assert_eq!(
            pairs(&request, true),
            "idempotencyKey=e/5 stepKey=e/5 execution=e flow=order step=pay attempt=2 type=rollback \
             pattern=waitForCallback traceparent=00-a-b-01 timeoutAt=1970-01-01T00:00:00.000Z"
        );
    }

    #[test]
    fn call_metadata_names_are_made_of_the_same_words() {
        for field in CallField::ALL {
            let plain = |name: &str| {
                let name = name.to_ascii_lowercase().replace(['-', '_'], "");
                name.strip_prefix("starbridge").map_or(name.clone(), str::to_owned)
            };
            let member = plain(field.member());
            assert_eq!(field.header().map_or(member.clone(), plain), member);
            assert_eq!(field.variable().map_or(member.clone(), plain), member);
        }
    }
}
