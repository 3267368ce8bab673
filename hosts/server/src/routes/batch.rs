//! Many starts in one request.

use super::executions::{START, begin, read_start};
use super::start_terms::traceparent_of;
use crate::App;
use crate::caller::Caller;
use crate::shapes;
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use starbridge_flow::value::{Object, Text, Value};
use starbridge_node::http::body::Sent;
use starbridge_node::http::reading::Body;
use starbridge_node::offload;
use starbridge_node::problem::{Answer, Problem};
use starbridge_node::sender_turns::SenderTurns;
use std::collections::HashMap;
use tokio::sync::{Semaphore, watch};

/// The largest number of executions in one batch.
const BATCH: usize = 1_000;
/// How many starts of batches of one sender are under way. Starts of others stand between them, however long each takes.
const AT_ONCE: usize = 64;
static STARTS: SenderTurns = SenderTurns::new();

/// Closed once the start is answered.
type Answered = watch::Receiver<()>;

/// `POST /v1/executions/batch`
pub async fn batch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    mut body: Sent,
) -> Answer {
    let entries = body.value().await?.as_array().cloned();
    let entries = entries.ok_or_else(|| Problem::bad("a batch is an array of `{flow, input, name, …}`"))?;
    if entries.len() > BATCH {
        let detail = format!("a batch has at most {BATCH} executions");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "BatchTooLarge", detail));
    }
    let room = app.answers.room_before(body.length())?;
    // Where no tokens are needed, nobody has to be told apart.
    let most = if caller.0.is_some() {
        AT_ONCE
    } else {
        Semaphore::MAX_PERMITS
    };
    let places = STARTS.of(caller.0.clone(), most);
    let mut last = LastOfIdentity::default();
    let mut under_way = Vec::new();
    for entry in entries.values() {
        let (app, caller, places) = (app.clone(), caller.clone(), places.clone());
        let entry = entry.as_object().cloned();
        let traceparent = traceparent_of(&headers);
        let (end, answered) = watch::channel(());
        let before = last.replace(entry.as_ref(), &answered);
        under_way.push(tokio::spawn(async move {
            for mut earlier in before {
                // This fails only if the sender has gone.
                let _ = earlier.changed().await;
            }
            let _place = places.acquire_owned().await.map_err(|_| Problem::stopping())?;
            let begun = begin_one(&app, &caller, entry, traceparent).await;
            drop(end);
            begun
        }));
    }
    let mut items = Vec::new();
    for start in under_way {
        let started = start.await.unwrap_or_else(|_| Err(Problem::stopping()));
        items.push(match started {
            Ok((status, shape)) => outcome(status, shape),
            Err(problem) => outcome(problem.status(), problem.to_value()),
        });
    }
    let page = shapes::page(items, None);
    room.write(StatusCode::OK, page.json_len(), move || Ok(page)).await
}

/// The last start so far with a name or a key. The next one comes after it: starts are carried out at the same time, and
/// of two with one name or key the first has to begin an execution.
#[derive(Default)]
struct LastOfIdentity(HashMap<(&'static str, Text, Text), Answered>);

impl LastOfIdentity {
    /// Notes a start as the last one. Returns the starts that it has to wait for.
    fn replace(&mut self, entry: Option<&Object>, answered: &Answered) -> Vec<Answered> {
        let text = |member: &str| entry?.get(member)?.as_text().cloned();
        let Some(flow) = text("flow") else {
            return Vec::new();
        };
        let identities = ["name", "onceKey"].into_iter();
        let identities = identities.filter_map(|member| Some((member, flow.clone(), text(member)?)));
        identities
            .filter_map(|identity| self.0.insert(identity, answered.clone()))
            .collect()
    }
}

async fn begin_one(
    app: &App,
    caller: &Caller,
    entry: Option<Object>,
    traceparent: Option<Text>,
) -> Answer<(StatusCode, Value)> {
    let entry = entry.ok_or_else(|| Problem::bad("an entry of a batch is an object"))?;
    let flow = entry.get("flow").and_then(Value::as_text).cloned();
    let flow = flow.ok_or_else(|| Problem::bad("`flow` must be a string: which one to start"))?;
    let others = entry.iter().filter(|(key, _)| key.as_str() != "flow");
    let others = others.map(|(key, value)| (key.clone(), value.clone())).collect();
    let mut request = read_start(&flow, &Body::of(others, START)?, traceparent)?;
    request.by = caller.0.clone();
    // A new execution is small until it is written, with the whole batch.
    let (status, found, _room) = begin(app, caller, &request, 0, app.answers.room()).await?;
    let read = offload::work(found.bytes(), move || found.shape());
    Ok((status, read.await??))
}

fn outcome(status: StatusCode, body: Value) -> Value {
    let key = if status.is_success() { "execution" } else { "problem" };
    let members = [("status".into(), u32::from(status.as_u16()).into()), (key.into(), body)];
    members.into_iter().collect::<Object>().into()
}
