//! Answers that repeat parts of the request.

use serde_json::Value;

/// The template with its paths replaced by what they find in the request, `null` where that is nothing.
pub(super) fn filled(template: &Value, request: &Value) -> Value {
    match template {
        Value::String(text) => match pointer(text) {
            Some(pointer) => request.pointer(&pointer).cloned().unwrap_or_default(),
            None => template.clone(),
        },
        Value::Array(items) => items.iter().map(|item| filled(item, request)).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| (key.clone(), filled(value, request)));
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}

/// `$.a.b[0]` as the JSON pointer `/a/b/0`, if it is a path.
fn pointer(text: &str) -> Option<String> {
    let path = text.strip_prefix('$')?;
    if !(path.is_empty() || path.starts_with(['.', '['])) {
        return None;
    }
    Some(path.replace(']', "").replace(['.', '['], "/"))
}
