//! The audit list: what operators did.

use crate::App;
use crate::answers::aside;
use crate::shapes;
use axum::extract::State;
use axum::http::StatusCode;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_node::http::reading::Query;
use starbridge_node::problem::{Answer, Problem, quoted};
use starbridge_ports::{AuditEntry, AuditKind, AuditQuery};

type Parameters = axum::extract::Query<Vec<(String, String)>>;

/// `GET /v1/audit`
pub async fn list(State(app): State<App>, query: Parameters) -> Answer {
    const KNOWN: &[&str] = &["from", "to", "by", "action", "kind", "object", "cursor", "limit"];
    let query = Query::of(query.0, KNOWN)?;
    let wanted = AuditQuery {
        from: query.time("from")?,
        to: query.time("to")?,
        by: query.get("by").map(Text::from),
        action: query.get("action").map(Text::from),
        kind: query.get("kind").map(kind_of).transpose()?,
        name: query.get("object").map(Text::from),
        cursor: query.get("cursor").map(Text::from),
        limit: usize::try_from(query.number("limit", 100, 1, 1000)?).unwrap_or(100),
    };
    let page = aside(&app.node, move |node| node.store().audit(&wanted)).await??;
    let items = page.items.iter().map(|(number, entry)| shape(*number, entry));
    let page = shapes::page(items.collect(), page.next.map(Value::from));
    app.answers.value(StatusCode::OK, page).await
}

fn kind_of(word: &str) -> Answer<AuditKind> {
    AuditKind::parse(word).ok_or_else(|| {
        let kinds = AuditKind::ALL.map(AuditKind::as_str).join(", ");
        Problem::bad(format!("there is no kind {}: known are {kinds}", quoted(word)))
    })
}

fn shape(number: u64, entry: &AuditEntry) -> Value {
    let mut shape = Object::new();
    let mut set = |key: &str, value: Value| drop(shape.insert(key.into(), value));
    set("number", number.into());
    set("time", entry.time.to_string().into());
    set("by", entry.by.clone().into());
    set("action", entry.action.clone().into());
    set("kind", entry.kind.as_str().into());
    set("object", entry.name.clone().into());
    set("detail", entry.detail.clone().into());
    if let Some(request) = &entry.request {
        set("request", request.clone().into());
    }
    shape.into()
}
