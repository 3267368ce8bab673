//! Secrets: values refer to them, and they are put in only when a value leaves (section "tasks").

use starbridge_fdl::value::{Array, Object, Text, Value};
use starbridge_ports::Secrets;

const SECRET: &str = "secret://";

/// The value with secrets in place of their references; the name of one that is not there otherwise.
pub fn reveal_secrets(value: &Value, secrets: &dyn Secrets) -> Result<Value, String> {
    match value {
        Value::String(text) => match text.strip_prefix(SECRET) {
            None => Ok(value.clone()),
            Some(name) => {
                let secret = secrets.get(name).ok_or_else(|| name.to_owned())?;
                Ok(Value::from(secret.reveal()))
            }
        },
        Value::Array(array) => {
            let values = array.values().iter().map(|value| reveal_secrets(value, secrets));
            Ok(Array::from(values.collect::<Result<Vec<Value>, String>>()?).into())
        }
        Value::Object(object) => {
            let members = object
                .iter()
                .map(|(key, value)| Ok((key.clone(), reveal_secrets(value, secrets)?)));
            let members: Result<Vec<(Text, Value)>, String> = members.collect();
            Ok(members?.into_iter().collect::<Object>().into())
        }
        other => Ok(other.clone()),
    }
}
