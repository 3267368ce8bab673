//! `serviceParams` of HTTP calls.

use http::Method;
use starbridge_flow::value::{Object, Value};
use starbridge_ports::{Outcome, ParamsTable, ReadParam, SharedParams, param_names, read_body, read_idempotency};

/// The content of `serviceParams` for a request.
#[derive(Default)]
pub(crate) struct Params {
    /// The method; POST if `None`.
    pub method: Option<Method>,
    /// Headers to add.
    pub headers: Object,
    /// Parameters to add to the URL.
    pub query: Object,
    /// The body and the key.
    pub shared: SharedParams,
}

impl AsMut<SharedParams> for Params {
    fn as_mut(&mut self) -> &mut SharedParams {
        &mut self.shared
    }
}

/// The members of `serviceParams` that HTTP calls know.
const MEMBERS: [(&str, ReadParam<Params>); 5] = [
    ("method", |params, value| {
        params.method = Some(method(value)?);
        Ok(())
    }),
    ("headers", |params, value| {
        params.headers = object("headers", value)?;
        Ok(())
    }),
    ("query", |params, value| {
        params.query = object("query", value)?;
        Ok(())
    }),
    ("body", read_body),
    ("idempotency", read_idempotency),
];

/// The names of these members.
pub(crate) const KNOWN: [&str; 5] = param_names(&MEMBERS);

const TABLE: ParamsTable<Params> = ParamsTable {
    knower: "HTTP knows",
    members: &MEMBERS,
    ignored: &[],
    body: Some(read_body),
};

/// Reads `serviceParams`. On failure the call ends with this outcome.
pub(crate) fn read(params: Option<&Value>) -> Result<Params, Outcome> {
    TABLE.read(params)
}

fn method(value: &Value) -> Result<Method, Outcome> {
    let word = value.as_str().unwrap_or_default().to_ascii_uppercase();
    match Method::from_bytes(word.as_bytes()) {
        Ok(Method::CONNECT | Method::TRACE) | Err(_) => Err(Outcome::not_sent(format!(
            "`method` is {value}, which is none HTTP can call with"
        ))),
        Ok(method) => Ok(method),
    }
}

fn object(name: &str, value: &Value) -> Result<Object, Outcome> {
    match value {
        Value::Object(members) => Ok(members.clone()),
        Value::Null => Ok(Object::new()),
        other => Err(Outcome::not_sent(format!(
            "`{name}` must be an object, not {}",
            other.kind()
        ))),
    }
}
