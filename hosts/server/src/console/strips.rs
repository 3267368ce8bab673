//! The strips of a list: its page comes first, and a script asks for them then.

use super::answer::PageRefusal;
use super::asked::{Asked, Parameters};
use super::page::Page;
use crate::answers::aside;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::EventId;
use starbridge_node::node::Node;
use starbridge_node::problem::{Answer, Problem};
use starbridge_node::visits::Visits;

/// So many executions are asked for at a time: those of a page of the list.
const MOST: usize = 50;
/// So many events of each are looked at: the last.
const EVENTS: u64 = 200;

/// `GET /strips`
pub async fn strips(page: Page, query: Parameters) -> Response {
    match read(&page, query).await {
        Ok(found) => {
            let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
            (kind, starbridge_console::strips(&page.frame, &found)).into_response()
        }
        Err(refusal) => refusal.page(&page.frame),
    }
}

async fn read(page: &Page, query: Parameters) -> Result<Value, PageRefusal> {
    let asked = Asked::of(query, &["id"])?;
    let ids: Vec<String> = asked.each("id").map(str::to_owned).collect();
    if ids.len() > MOST {
        return Err(Problem::bad(format!("at most {MOST} executions are shown at a time")).into());
    }
    let read = aside(&page.app.node, move |node| {
        let all = ids.iter().filter_map(|id| strip(node, id).transpose());
        all.collect::<Answer<Vec<Value>>>()
    });
    let items = read.await??;
    Ok(Value::from(
        [("items".into(), items.into())].into_iter().collect::<Object>(),
    ))
}

/// The visits of an execution's last events; nothing for one that is gone.
fn strip(node: &Node, id: &str) -> Answer<Option<Value>> {
    let Some(record) = node.store().record(id)? else {
        return Ok(None);
    };
    let last = node.last_event(id)?;
    let flow = node.flow_of(id, &record)?;
    let mut visits = Visits::new(usize::try_from(EVENTS).unwrap_or(usize::MAX));
    let first = EventId(last.0.saturating_sub(EVENTS - 1).max(1));
    node.each_event_between(id, (first, last), |flow, event| {
        visits.see(flow, event);
        true
    })?;
    let ended = record.ended.map(|_| visits.time());
    let (rows, _) = visits.into_rows(ended);
    let told = rows.into_iter().map(|row| {
        let spans: Vec<Value> = row.spans().iter().map(|span| span.to_value()).collect();
        let mut shape = match row.into_value(&flow, |_, _| None) {
            Value::Object(shape) => shape,
            _ => Object::new(),
        };
        shape.insert("spans".into(), spans.into());
        Value::from(shape)
    });
    let members = [
        ("id", Value::from(Text::from(id))),
        ("visits", told.collect::<Vec<_>>().into()),
    ];
    let members = members.into_iter().map(|(key, value)| (Text::from(key), value));
    Ok(Some(members.collect::<Object>().into()))
}
