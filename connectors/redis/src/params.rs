//! `serviceParams` as Redis streams understand them.

use starbridge_fdl::value::{Object, Value};
use starbridge_ports::{Outcome, ServiceParams, step_key};

/// The members of `serviceParams` that mean something here.
pub(crate) const KNOWN: [&str; 4] = ["body", "fields", "maxLength", "idempotency"];

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
    match ServiceParams::of(params, |name| KNOWN.contains(&name)) {
        ServiceParams::None => Ok(Params::default()),
        ServiceParams::Members(members) => of_members(members),
        ServiceParams::Body(body) => Ok(Params {
            body: Some(body.clone()),
            ..Params::default()
        }),
    }
}

fn of_members(members: &Object) -> Result<Params, Outcome> {
    let mut params = Params::default();
    for (key, value) in members {
        match key.as_str() {
            "body" => params.body = Some(value.clone()),
            "fields" => params.fields = fields(value)?,
            "maxLength" => params.max_length = Some(max_length(value)?),
            "idempotency" => params.step_key = step_key(value)?,
            other => {
                return Err(Outcome::not_sent(format!(
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
    let object =
        object.ok_or_else(|| Outcome::not_sent(format!("`fields` must be an object, not {}", value.kind())))?;
    let given = object.iter().filter(|(_, value)| !matches!(value, Value::Null));
    Ok(given
        .map(|(name, value)| (name.as_str().to_owned(), value.to_plain_text()))
        .collect())
}

fn max_length(value: &Value) -> Result<u64, Outcome> {
    let number = value.as_number().and_then(|number| number.to_string().parse().ok());
    number
        .filter(|&number| number > 0)
        .ok_or_else(|| Outcome::not_sent(format!("`maxLength` must be a whole number from 1, not {value}")))
}
