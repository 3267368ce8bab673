//! What `serviceParams` mean to every connector that sends messages (section "tasks").

use crate::Outcome;
use starbridge_fdl::value::{Object, Value};

/// What `serviceParams` give a connector that knows some of their members.
#[derive(Debug, PartialEq)]
pub enum ServiceParams<'a> {
    /// There are none: the input is what is sent.
    None,
    /// They have none of the known members: they are the body, whole.
    Body(&'a Value),
    /// Members, a known one among them.
    Members(&'a Object),
}

impl<'a> ServiceParams<'a> {
    /// Tells which they are.
    pub fn of(params: Option<&'a Value>, known: impl Fn(&str) -> bool) -> Self {
        match (params, params.and_then(Value::as_object)) {
            (None, _) => Self::None,
            (_, Some(members)) if members.iter().any(|(name, _)| known(name.as_str())) => Self::Members(members),
            (Some(body), _) => Self::Body(body),
        }
    }
}

/// `idempotency`: whether the step's key goes in the place of the call's.
pub fn step_key(value: &Value) -> Result<bool, Outcome> {
    match value.as_str() {
        Some("step") => Ok(true),
        Some("call") => Ok(false),
        _ => Err(Outcome::not_sent(format!(
            "`idempotency` must be `step` or `call`, not {value}"
        ))),
    }
}
