//! `serviceParams` of programs.

use starbridge_flow::value::Value;
use starbridge_ports::{Outcome, ParamsTable, ReadParam, param_names};

/// The content of `serviceParams` for a run.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Params {
    /// The arguments, in order.
    pub args: Vec<String>,
    /// Variables. One without a value is removed from those that the program would inherit.
    pub env: Vec<(String, Option<String>)>,
    /// The working folder, if it is set.
    pub cwd: Option<String>,
}

/// The members of `serviceParams` that programs know.
const MEMBERS: [(&str, ReadParam<Params>); 3] = [
    ("args", |params, value| {
        params.args = args(value)?;
        Ok(())
    }),
    ("env", |params, value| {
        params.env = env(value)?;
        Ok(())
    }),
    ("cwd", |params, value| {
        let folder = value.as_str();
        let folder = folder.ok_or_else(|| Outcome::not_sent(format!("`cwd` must be text, not {}", value.kind())))?;
        params.cwd = Some(folder.to_owned());
        Ok(())
    }),
];

/// The names of these members.
pub(crate) const KNOWN: [&str; 3] = param_names(&MEMBERS);

const TABLE: ParamsTable<Params> = ParamsTable {
    knower: "programs know",
    members: &MEMBERS,
    ignored: &[],
    body: None,
};

/// Reads `serviceParams`. On failure the call ends with this outcome.
pub(crate) fn read(params: Option<&Value>) -> Result<Params, Outcome> {
    TABLE.read(params)
}

fn args(value: &Value) -> Result<Vec<String>, Outcome> {
    let list = value.as_array();
    let list = list.ok_or_else(|| Outcome::not_sent(format!("`args` must be an array, not {}", value.kind())))?;
    list.values()
        .iter()
        .map(|item| scalar("an item of `args`", item))
        .collect()
}

fn env(value: &Value) -> Result<Vec<(String, Option<String>)>, Outcome> {
    let object = value.as_object();
    let object = object.ok_or_else(|| Outcome::not_sent(format!("`env` must be an object, not {}", value.kind())))?;
    let mut env = Vec::new();
    for (name, value) in object {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(Outcome::not_sent(format!(
                "`{}` is no name of a variable",
                name.escape_default()
            )));
        }
        let value = match value {
            Value::Null => None,
            value => Some(scalar(&format!("the variable `{name}`"), value)?),
        };
        env.push((name.as_str().to_owned(), value));
    }
    Ok(env)
}

/// A text for a program. The value may be a secret, so an error does not repeat it.
fn scalar(what: &str, value: &Value) -> Result<String, Outcome> {
    match value {
        Value::Null | Value::Array(_) | Value::Object(_) => Err(Outcome::not_sent(format!(
            "{what} must be text or a number, not {}",
            value.kind()
        ))),
        Value::String(text) if text.contains('\0') => Err(Outcome::not_sent(format!("{what} has a NUL in it"))),
        value => Ok(value.to_plain_text()),
    }
}
