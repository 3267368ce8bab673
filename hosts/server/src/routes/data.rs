//! A datum of a history, in parts; and the sender's own identity.

use super::route::Route;
use crate::App;
use crate::caller::Caller;
use crate::scope::Scope;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::EventId;
use starbridge_node::http::reading::Query;
use starbridge_node::problem::{Answer, Problem, quoted};

type Parameters = axum::extract::Query<Vec<(String, String)>>;

/// The routes of data.
pub(super) const ROUTES: &[Route] = &[
    Route {
        method: "GET",
        path: "/v1/executions/{id}/data",
        scope: Some(Scope::Read),
        summary: "A datum of its history as JSON text, as much of it as is wanted",
        query: &[
            ("event", "number of the event"),
            ("part", "the member of its `detail`; all of it where none is given"),
            ("pointer", "the place in that, as a JSON pointer (RFC 6901)"),
            ("from", "from this byte of its text on"),
            ("bytes", "how many at most: 1 to 1048576, 65536 where none is given"),
        ],
        body: None,
        answers: &[
            (200, "a part of its text, and how long all of it is", Some("Datum")),
            (404, "there is no such execution, event or datum", Some("Problem")),
        ],
        handler: Some(|| get(data)),
    },
    Route {
        method: "GET",
        path: "/v1/me",
        scope: Some(Scope::Any),
        summary: "Whom the server takes the sender for: the name and the scopes of its token; any token may ask",
        query: &[],
        body: None,
        answers: &[(200, "the sender", Some("Me"))],
        handler: Some(|| get(me)),
    },
];

/// `GET /v1/executions/{id}/data`
async fn data(State(app): State<App>, Path(id): Path<String>, query: Parameters) -> Answer {
    let query = Query::of(query.0, &["event", "part", "pointer", "from", "bytes"])?;
    if query.get("event").is_none() {
        return Err(Problem::bad(
            "`event` is missing: the number of an event of the history",
        ));
    }
    let event = EventId(query.number("event", 1, 1, u64::MAX)?);
    let from = usize::try_from(query.number("from", 0, 0, u64::MAX)?).unwrap_or(usize::MAX);
    let bytes = usize::try_from(query.number("bytes", 64 << 10, 1, 1 << 20)?).unwrap_or(0);
    let part = query.get("part").map(str::to_owned);
    let pointer = query.get("pointer").unwrap_or_default().to_owned();
    let node = app.node.clone();
    let make = move || {
        let read = node.written_event(&id, event)?;
        let detail = read.get("detail").cloned().unwrap_or_default();
        let known = || {
            let members = detail.as_object().into_iter().flatten();
            let members: Vec<&str> = members.map(|(key, _)| key.as_str()).collect();
            members.join(", ")
        };
        let whole = match &part {
            None => Some(&detail),
            Some(part) => detail.get(part),
        };
        let found = whole.and_then(|whole| at_pointer(whole, &pointer));
        let found = found.ok_or_else(|| {
            let detail = match (&part, whole.is_some()) {
                (Some(part), false) => format!("event {event} has no {}: it has {}", quoted(part), known()),
                _ => format!("there is nothing at the pointer {}", quoted(&pointer)),
            };
            Problem::missing("NoSuchData", detail)
        })?;
        let text = found.to_json();
        let begin = text.ceil_char_boundary(from.min(text.len()));
        // At least one character, so that a reader always gets further.
        let end = text.ceil_char_boundary(begin.saturating_add(bytes).min(text.len()));
        let mut shape = Object::new();
        let mut set = |key: &str, value: Value| drop(shape.insert(key.into(), value));
        set("event", event.0.into());
        set("kind", Text::from(found.kind()).into());
        set("bytes", (text.len() as u64).into());
        set("from", (begin as u64).into());
        set("text", Text::from(text.get(begin..end).unwrap_or_default()).into());
        let next = (end < text.len()).then_some(end as u64);
        set("next", next.map(Value::from).unwrap_or_default());
        Ok::<_, Problem>(shape.into())
    };
    app.answers.room().write_all(StatusCode::OK, make).await
}

/// The value at a JSON pointer.
fn at_pointer<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    if pointer.is_empty() {
        return Some(value);
    }
    let mut found = value;
    for part in pointer.strip_prefix('/')?.split('/') {
        let key = part.replace("~1", "/").replace("~0", "~");
        found = match found {
            Value::Array(array) => array.values().get(key.parse::<usize>().ok()?)?,
            other => other.get(&key)?,
        };
    }
    Some(found)
}

/// `GET /v1/me`
async fn me(State(app): State<App>, Extension(caller): Extension<Caller>) -> Answer {
    let scopes = app.access.scopes_of(caller.0.as_deref());
    let scopes: Vec<Value> = scopes
        .into_iter()
        .map(|scope| Text::from(scope.as_str()).into())
        .collect();
    let mut shape = Object::new();
    shape.insert("name".into(), caller.0.map(Value::from).unwrap_or_default());
    shape.insert("scopes".into(), scopes.into());
    app.answers.value(StatusCode::OK, shape.into()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_lead_into_lists_and_objects() {
        let value = Value::read_bounded(br#"{"a/b": [1, {"~": 2}], "": 3}"#, 1 << 16).unwrap();
        let found = |pointer: &str| at_pointer(&value, pointer).map(Value::to_json);
        assert_eq!(found("/a~1b/1/~0").as_deref(), Some("2"));
        assert_eq!(found("/").as_deref(), Some("3"));
        assert_eq!(found("").map(|all| all.len()), Some(value.json_len()));
        for nothing in ["/a~1b/2", "/a~1b/x", "a", "/b"] {
            assert_eq!(found(nothing), None, "{nothing}");
        }
    }
}
