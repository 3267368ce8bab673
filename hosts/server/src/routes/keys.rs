//! Concurrency keys: their limits, the holders of their slots, and the number of waiters.

use super::route::{PAGE, Route};
use crate::App;
use crate::scope::Scope;
use crate::shapes;
use axum::Extension;
use axum::extract::{Path, Query as Parameters, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing;
use starbridge_flow::limits::is_name;
use starbridge_flow::value::{Array, Object, Text, Value};
use starbridge_node::http::body::Sent;
use starbridge_node::http::reading::{Body, Query};
use starbridge_node::node::{Operator, ShownKey};
use starbridge_node::problem::{Answer, Problem, quoted};
use starbridge_ports::{FLOW_POOL, KeyView, PoolKey};

/// The routes of concurrency keys.
pub(super) const ROUTES: &[Route] = &[
    Route {
        method: "GET",
        path: "/v1/keys",
        scope: Some(Scope::Read),
        summary: "The concurrency keys that are set, held or waited for, in the order of pools and keys",
        query: PAGE,
        body: None,
        answers: &[
            (200, "a page of them", Some("KeyPage")),
            (422, "`NotSupported`: the server has no admission", Some("Problem")),
        ],
        handler: Some(|| routing::get(list)),
    },
    Route {
        method: "GET",
        path: "/v1/keys/{pool}/{key}",
        scope: Some(Scope::Read),
        summary: "A concurrency key: its limit, how many wait, and up to ten that hold slots of it",
        query: &[],
        body: None,
        answers: &[
            (200, "the key", Some("Key")),
            (404, "nothing is known of it", Some("Problem")),
        ],
        handler: Some(|| routing::get(get)),
    },
    Route {
        method: "PUT",
        path: "/v1/keys/{pool}/{key}",
        scope: Some(Scope::Admin),
        summary: "Sets the limit of a concurrency key, in place of the definition's; 0 admits nobody",
        query: &[],
        body: Some("KeyLimit"),
        answers: &[
            (200, "the key", Some("Key")),
            (422, "`NotSupported`: the server has no admission", Some("Problem")),
        ],
        handler: Some(|| routing::put(put)),
    },
    Route {
        method: "DELETE",
        path: "/v1/keys/{pool}/{key}",
        scope: Some(Scope::Admin),
        summary: "Unsets the limit of a concurrency key: that of the definition holds again",
        query: &[],
        body: None,
        answers: &[(204, "done", None), (404, "nothing is known of it", Some("Problem"))],
        handler: Some(|| routing::delete(unset)),
    },
];

/// The longest key, in bytes: as long as a start's may be.
const KEY_BYTES: usize = 256;
/// The largest limit that an operator can set.
const MAX_LIMIT: u64 = 1_000_000_000;

/// The problem of a server without admission.
pub(super) fn admission_needed(app: &App) -> Answer<()> {
    if app.node.has_admission() {
        return Ok(());
    }
    let detail = "concurrency keys, and limits and pauses of flows, can't be honoured here: they need a server that runs all the time";
    Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "NotSupported", detail))
}

/// A limit in a body, if it is there.
pub(super) fn limit_of(body: &Body, member: &str) -> Answer<Option<u64>> {
    match body.number(member)? {
        Some(limit) if limit > MAX_LIMIT => Err(Problem::bad(format!(
            "`{member}` must be a whole number from 0 to {MAX_LIMIT}"
        ))),
        limit => Ok(limit),
    }
}

/// A limit in the form of the API; null if there is none.
pub(super) fn set_limit(limit: Option<u64>) -> Value {
    limit.map_or(Value::Null, Value::from)
}

fn pool_key(pool: &str, key: &str) -> Answer<PoolKey> {
    let bare = pool.strip_prefix('@').unwrap_or(pool);
    if !is_name(bare) {
        return Err(Problem::bad(format!(
            "{} is no name of a pool: 1 to 128 letters, digits, `_` and `-`, a letter or `_` first",
            quoted(pool)
        )));
    }
    if key.is_empty() || key.len() > KEY_BYTES {
        return Err(Problem::bad(format!("a key has 1 to {KEY_BYTES} bytes")));
    }
    Ok(PoolKey {
        pool: pool.into(),
        key: key.into(),
    })
}

/// A key whose limit may be set. Those of a pool with `@` belong to the server.
fn settable(pool: &str, key: &str) -> Answer<PoolKey> {
    if pool.starts_with('@') {
        let own = match pool {
            FLOW_POOL => "`starbridge flow set` limits and pauses a flow",
            _ => "they belong to the server, which lets one run of a schedule begin after the other",
        };
        let detail = format!("keys of the pool {} can't be set: {own}", quoted(pool));
        return Err(Problem::bad(detail));
    }
    pool_key(pool, key)
}

/// Where a page begins: after this key. A pool of an earlier version may not be a valid name, so
/// the cursor contains its length.
fn cursor_of(key: &PoolKey) -> String {
    let PoolKey { pool, key } = key;
    format!("{}:{pool}{key}", pool.len())
}

fn read_cursor(cursor: &str) -> Option<PoolKey> {
    let (length, rest) = cursor.split_once(':')?;
    let (pool, key) = rest.split_at_checked(length.parse().ok()?)?;
    Some(PoolKey {
        pool: pool.into(),
        key: key.into(),
    })
}

async fn known(app: &App, key: PoolKey) -> Answer<ShownKey> {
    let found = super::aside(&app.node, move |node| node.shown_key(&key)).await??;
    let KeyView { kept, held, waiting } = &found.view;
    if kept.limit().is_none() && *held == 0 && *waiting == 0 {
        let PoolKey { pool, key } = &kept.key;
        let detail = format!(
            "nothing is known of a key {} in the pool `{pool}`: nobody holds it or waits for it, and nothing is set for it",
            quoted(key)
        );
        return Err(Problem::missing("NoSuchKey", detail));
    }
    Ok(found)
}

/// `GET /v1/keys`
pub async fn list(State(app): State<App>, Parameters(given): Parameters<Vec<(String, String)>>) -> Answer {
    admission_needed(&app)?;
    let query = Query::of(given, &["cursor", "limit"])?;
    let limit = usize::try_from(query.number("limit", 100, 1, 1000)?).unwrap_or(100);
    let after = query.get("cursor").map(|cursor| {
        let read = read_cursor(cursor);
        read.ok_or_else(|| Problem::bad("`cursor` must be `next` of the page before"))
    });
    let after = after.transpose()?;
    // One more than the page, to know whether there is another page.
    let mut views = super::aside(&app.node, move |node| node.shown_keys(after.as_ref(), limit + 1)).await??;
    let more = views.len() > limit;
    views.truncate(limit);
    let next = views
        .last()
        .filter(|_| more)
        .map(|last| Value::from(cursor_of(&last.kept.key)));
    let items = views.iter().map(|view| shape(view).into()).collect();
    app.answers.value(StatusCode::OK, shapes::page(items, next)).await
}

/// `GET /v1/keys/{pool}/{key}`
pub async fn get(State(app): State<App>, Path((pool, key)): Path<(String, String)>) -> Answer {
    admission_needed(&app)?;
    let found = known(&app, pool_key(&pool, &key)?).await?;
    app.answers.value(StatusCode::OK, with_holders(&found)).await
}

/// `PUT /v1/keys/{pool}/{key}`
pub async fn put(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path((pool, key)): Path<(String, String)>,
    mut body: Sent,
) -> Answer {
    admission_needed(&app)?;
    let key = settable(&pool, &key)?;
    let limit = limit_of(&body.read(&["limit"]).await?, "limit")?;
    let limit = limit.ok_or_else(|| Problem::bad("`limit` is missing: a whole number from 0"))?;
    change(&app, &key, Some(limit), &operator).await?;
    let found = super::aside(&app.node, move |node| node.shown_key(&key)).await??;
    app.answers.value(StatusCode::OK, with_holders(&found)).await
}

/// `DELETE /v1/keys/{pool}/{key}`
pub async fn unset(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path((pool, key)): Path<(String, String)>,
) -> Answer<Response> {
    admission_needed(&app)?;
    let key = settable(&pool, &key)?;
    known(&app, key.clone()).await?;
    change(&app, &key, None, &operator).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Sets or unsets a limit. Nothing is done if it is so already: the audit list only has changes.
async fn change(app: &App, key: &PoolKey, limit: Option<u64>, operator: &Operator) -> Answer<()> {
    let of = key.clone();
    let (kept, _) = super::aside(&app.node, move |node| node.store().kept_key(&of)).await??;
    if kept.set != limit {
        app.node.set_key(key.clone(), limit, operator).await?;
    }
    Ok(())
}

fn shape(view: &KeyView) -> Object {
    let KeyView { kept, held, waiting } = view;
    let mut shape: Object = [
        ("pool".into(), Value::from(kept.key.pool.clone())),
        ("key".into(), kept.key.key.clone().into()),
        ("limit".into(), set_limit(kept.limit())),
        ("definedLimit".into(), set_limit(kept.defined)),
        ("setLimit".into(), set_limit(kept.set)),
    ]
    .into_iter()
    .collect();
    if let Some(by) = &kept.set_by {
        shape.insert("setBy".into(), by.clone().into());
    }
    shape.insert("paused".into(), kept.paused.is_some().into());
    shape.insert("held".into(), (*held).into());
    shape.insert("waiting".into(), (*waiting).into());
    shape
}

fn with_holders(found: &ShownKey) -> Value {
    let mut shape = shape(&found.view);
    shape.insert("holders".into(), ids(&found.holders));
    shape.into()
}

fn ids(ids: &[Text]) -> Value {
    let ids: Vec<Value> = ids.iter().cloned().map(Value::from).collect();
    Array::from(ids).into()
}
