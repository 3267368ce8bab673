//! `serviceParams` as HTTP understands them.

use reqwest::Method;
use starbridge_fdl::value::{Object, Value};
use starbridge_ports::Outcome;

/// The members of `serviceParams` that mean something to HTTP.
const KNOWN: [&str; 5] = ["method", "headers", "query", "body", "idempotency"];

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
            "method" => params.method = Some(method(value)?),
            "headers" => params.headers = members("headers", value)?,
            "query" => params.query = members("query", value)?,
            "body" => params.body = Some(value.clone()),
            "idempotency" => params.step_key = step_key(value)?,
            other => {
                return Err(bad(format!(
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
        Ok(Method::CONNECT | Method::TRACE) | Err(_) => {
            Err(bad(format!("`method` is {value}, which is none HTTP can call with")))
        }
        Ok(method) => Ok(method),
    }
}

fn members(name: &str, value: &Value) -> Result<Object, Outcome> {
    match value {
        Value::Object(members) => Ok(members.clone()),
        Value::Null => Ok(Object::new()),
        other => Err(bad(format!("`{name}` must be an object, not {}", other.kind()))),
    }
}

fn step_key(value: &Value) -> Result<bool, Outcome> {
    match value.as_str() {
        Some("step") => Ok(true),
        Some("call") => Ok(false),
        _ => Err(bad(format!("`idempotency` must be `step` or `call`, not {value}"))),
    }
}

/// The failure of a call that cannot be put into words of HTTP. Its name tells the interpreter that nothing was sent, so that
/// there is nothing to undo.
pub(crate) fn bad(cause: String) -> Outcome {
    Outcome::failed("FnF.NoSuchResource", cause)
}
