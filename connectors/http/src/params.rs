//! `serviceParams` as HTTP understands them.

use http::Method;
use starbridge_fdl::value::{Object, Value};
use starbridge_ports::{Outcome, ServiceParams, step_key};

/// The members of `serviceParams` that mean something to HTTP.
pub(crate) const KNOWN: [&str; 5] = ["method", "headers", "query", "body", "idempotency"];

/// What `serviceParams` say about a request.
#[derive(Default)]
pub(crate) struct Params {
    /// POST where none is given.
    pub method: Option<Method>,
    /// Further headers.
    pub headers: Object,
    /// Further parameters of the URL.
    pub query: Object,
    /// The body, where it is not the input.
    pub body: Option<Value>,
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
            "method" => params.method = Some(method(value)?),
            "headers" => params.headers = object("headers", value)?,
            "query" => params.query = object("query", value)?,
            "body" => params.body = Some(value.clone()),
            "idempotency" => params.step_key = step_key(value)?,
            other => {
                return Err(Outcome::not_sent(format!(
                    "`serviceParams` has `{other}` beside what HTTP knows (`method`, `headers`, `query`, `body`, `idempotency`)"
                )));
            }
        }
    }
    Ok(params)
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
