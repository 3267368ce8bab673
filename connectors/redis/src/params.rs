//! `serviceParams` of messages to Redis streams.

use starbridge_flow::value::Value;
use starbridge_ports::{Outcome, ParamsTable, ReadParam, SharedParams, param_names, read_body, read_idempotency};

/// The content of `serviceParams` for a message.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Params {
    /// Fields to add.
    pub fields: Vec<(String, String)>,
    /// How many entries the stream keeps, read or not.
    pub max_length: Option<u64>,
    /// The body and the key.
    pub shared: SharedParams,
}

impl AsMut<SharedParams> for Params {
    fn as_mut(&mut self) -> &mut SharedParams {
        &mut self.shared
    }
}

/// The members of `serviceParams` that these messages know.
const MEMBERS: [(&str, ReadParam<Params>); 4] = [
    ("body", read_body),
    ("fields", |params, value| {
        params.fields = fields(value)?;
        Ok(())
    }),
    ("maxLength", |params, value| {
        params.max_length = Some(max_length(value)?);
        Ok(())
    }),
    ("idempotency", read_idempotency),
];

/// The names of these members.
pub(crate) const KNOWN: [&str; 4] = param_names(&MEMBERS);

const TABLE: ParamsTable<Params> = ParamsTable {
    knower: "Redis streams know",
    members: &MEMBERS,
    ignored: &[],
    body: Some(read_body),
};

/// Reads `serviceParams`. On failure the call ends with this outcome.
pub(crate) fn read(params: Option<&Value>) -> Result<Params, Outcome> {
    TABLE.read(params)
}

/// Reads fields: text unchanged, everything else as its JSON. `null` leaves a field out.
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
