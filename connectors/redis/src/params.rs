//! `serviceParams` as Redis streams understand them.

use starbridge_fdl::value::{Object, Value};
use starbridge_ports::Outcome;

/// The members of `serviceParams` that mean something here.
const KNOWN: [&str; 4] = ["body", "fields", "maxLength", "idempotency"];

/// What `serviceParams` say about a message.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Params {
    /// The body, where it is not the input.
    pub body: Option<Value>,
    /// Further fields.
    pub fields: Vec<(String, String)>,
    /// Entries the stream keeps, read or not.
    pub max_length: Option<u64>,
    /// Whether the step's key goes in the place of the call's.
    pub step_key: bool,
}

/// Reads `serviceParams`. The failure is what the call comes to then.
pub(crate) fn read(params: Option<&Value>) -> Result<Params, Outcome> {
    let Some(params) = params else {
        return Ok(Params::default());
    };
    match params.as_object() {
        Some(object) if KNOWN.iter().any(|key| object.contains_key(key)) => of_object(object),
        _ => Ok(Params {
            body: Some(params.clone()),
            ..Params::default()
        }),
    }
}

fn of_object(object: &Object) -> Result<Params, Outcome> {
    let mut params = Params::default();
    for (key, value) in object {
        match key.as_str() {
            "body" => params.body = Some(value.clone()),
            "fields" => params.fields = fields(value)?,
            "maxLength" => params.max_length = Some(max_length(value)?),
            "idempotency" => params.step_key = step_key(value)?,
            other => {
                return Err(refused(format!(
                    "`serviceParams` has `{other}` beside what Redis streams know (`body`, `fields`, `maxLength`, \
                     `idempotency`)"
                )));
            }
        }
    }
    Ok(params)
}

/// Text as it is, everything else as its JSON; `null` leaves a field out.
fn fields(value: &Value) -> Result<Vec<(String, String)>, Outcome> {
    let object = value.as_object();
    let object = object.ok_or_else(|| refused(format!("`fields` must be an object, not {}", value.kind())))?;
    let given = object.iter().filter(|(_, value)| !matches!(value, Value::Null));
    Ok(given
        .map(|(name, value)| (name.as_str().to_owned(), value.to_plain_text()))
        .collect())
}

fn max_length(value: &Value) -> Result<u64, Outcome> {
    let number = value.as_number().and_then(|number| number.to_string().parse().ok());
    number
        .filter(|&number| number > 0)
        .ok_or_else(|| refused(format!("`maxLength` must be a whole number from 1, not {value}")))
}

fn step_key(value: &Value) -> Result<bool, Outcome> {
    match value.as_str() {
        Some("step") => Ok(true),
        Some("call") => Ok(false),
        _ => Err(refused(format!("`idempotency` must be `step` or `call`, not {value}"))),
    }
}

/// The failure of a call that can't be made a message. Its name tells the interpreter that nothing was sent, so that there
/// is nothing to undo.
pub(crate) fn refused(cause: String) -> Outcome {
    Outcome::failed("FnF.NoSuchResource", cause)
}
