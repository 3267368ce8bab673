//! Flows: storing, showing and hiding them.

use super::keys::{admission_needed, limit_of, set_limit};
use crate::App;
use crate::shapes;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use starbridge_flow::graph::Flow;
use starbridge_flow::syntax::Format;
use starbridge_flow::value::Text;
use starbridge_flow::value::{Object, Value};
use starbridge_node::http::body::Sent;
use starbridge_node::http::reading::Query;
use starbridge_node::json::diagnosed;
use starbridge_node::node::{Node, Operator, PoolLimits, PutError};
use starbridge_node::offload::{self, INLINE_BYTES};
use starbridge_node::problem::{Answer, Problem, quoted};
use starbridge_ports::{FLOW_POOL, KeptFlow, KeptKey, PoolKey, StoreError};

/// `PUT /v1/flows/{name}`
pub async fn put(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(name): Path<String>,
    query: axum::extract::Query<Vec<(String, String)>>,
    headers: HeaderMap,
    mut body: Sent,
) -> Answer {
    let new_limits = Query::of(query.0, &["newLimits"])?.flag("newLimits")?;
    let (definition, format) = read_definition(&headers, &mut body)?;
    let named = name.clone();
    let (node, bytes) = (app.node.clone(), definition.len());
    let work = move || node.put_flow_audited(&named, definition, format, &operator, new_limits);
    let put = match is_large(bytes) {
        true => offload::work(bytes, work).await?,
        false => super::aside(&app.node, |_| work()).await?,
    };
    match put {
        Ok(put) => {
            let found = diagnosed(&put.source, &put.diagnostics).to_list();
            let body = serde_json::json!({
                "name": name,
                "version": put.version,
                "hash": put.flow.hash.as_str(),
                "diagnostics": found,
            });
            let status = if put.new { StatusCode::CREATED } else { StatusCode::OK };
            Ok(shapes::json(status, body.to_string()))
        }
        Err(error) => Err(not_put(&name, error)),
    }
}

/// Whether checking a definition of so many bytes takes long: few that do are checked at a time. The store is written for each, so
/// that none is checked where requests are answered.
fn is_large(bytes: usize) -> bool {
    bytes > INLINE_BYTES
}

/// A definition in a body, with its format where the request says it.
fn read_definition(headers: &HeaderMap, body: &mut Sent) -> Answer<(String, Option<Format>)> {
    let definition = String::from_utf8(body.take().into())
        .map_err(|error| Problem::bad(format!("the definition is not UTF-8: {}", error.utf8_error())))?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let format = match kind.unwrap_or_default() {
        kind if kind.contains("yaml") => Some(Format::Yaml),
        kind if kind.contains("json") => Some(Format::Json),
        _ => None,
    };
    Ok((definition, format))
}

/// The problem with a definition that is not stored.
pub(super) fn not_put(name: &str, error: PutError) -> Problem {
    match error {
        PutError::Name => bad_name(name),
        PutError::Bad { source, diagnostics } => {
            let detail = "the definition has errors: `diagnostics` has them all";
            let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidDefinition", detail);
            problem.with("diagnostics", diagnosed(&source, &diagnostics).to_list())
        }
        PutError::NotSupported(what) => {
            let detail =
                format!("the flow has {what}, which can't be honoured here: it needs a server that runs all the time");
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "NotSupported", detail)
        }
        PutError::Limits(PoolLimits { pool, limit, other }) => {
            let (flow, known) = other;
            let detail = format!(
                "the pool `{pool}` has the limit {limit} here and {known} in the flow `{flow}`: give both the same; to change the limit, put this one with \
                 `--new-limits` (`?newLimits=true`), then `{flow}` with the same limit; `starbridge key set` limits single keys"
            );
            let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "DifferentLimits", detail);
            problem.with("limit", known.into())
        }
        PutError::Store(error) => error.into(),
    }
}

/// `POST /v1/flows/{name}/check`
pub async fn check(State(app): State<App>, Path(name): Path<String>, headers: HeaderMap, mut body: Sent) -> Answer {
    let (definition, format) = read_definition(&headers, &mut body)?;
    let named = name.clone();
    let (node, bytes) = (app.node.clone(), definition.len());
    let work = move || {
        let checked = node.check_flow(&named, definition, format)?;
        let flows = node.store().flows().map_err(PutError::Store)?;
        Ok((checked, versions_of(&flows, &named, false).unwrap_or_default()))
    };
    let checked = match is_large(bytes) {
        true => offload::read(bytes, work).await?,
        false => super::aside(&app.node, |_| work()).await?,
    };
    let (checked, versions) = checked.map_err(|error| not_put(&name, error))?;
    let latest = versions.first();
    let found = diagnosed(&checked.source, &checked.diagnostics).to_list();
    let body = serde_json::json!({
        "name": name,
        "hash": checked.flow.hash.as_str(),
        "latestVersion": latest.map(|latest| latest.version),
        "same": latest.is_some_and(|latest| latest.hash == checked.flow.hash),
        "diagnostics": found,
    });
    Ok(shapes::json(StatusCode::OK, body.to_string()))
}

/// The problem with a name that is not allowed.
fn bad_name(name: &str) -> Problem {
    Problem::bad(format!(
        "{} is no name of a flow: 1 to 128 of `A-Z a-z 0-9 _ -`, beginning with a letter or `_`",
        quoted(name)
    ))
}

/// `GET /v1/flows/{name}`
pub async fn get(
    State(app): State<App>,
    Path(name): Path<String>,
    query: axum::extract::Query<Vec<(String, String)>>,
) -> Answer {
    let query = Query::of(query.0, &["version", "text"])?;
    let version = query.number("version", 0, 1, u64::MAX)?;
    let with_text = query.flag("text")?;
    if let Some(flow) = app.node.flows().flow_of_messages(&name, version) {
        let governed = super::aside(&app.node, {
            let name = name.clone();
            move |node| governing(node, &name)
        });
        let mut shape = made(&name, version, &flow);
        show_limits(&mut shape, &governed.await??);
        return app.answers.value(StatusCode::OK, shape.into()).await;
    }
    // A version that the request names may be one that still runs.
    let hidden = version > 0;
    let (kept, governed) = super::aside(&app.node, move |node| {
        let kept = versions_of(&node.store().flows()?, &name, hidden)?;
        Ok::<_, Problem>((kept, governing(node, &name)?))
    })
    .await??;
    let found = match version {
        0 => kept.into_iter().next(),
        version => kept.into_iter().find(|kept| kept.version == version),
    };
    let kept = found.ok_or_else(|| Problem::missing("NoSuchFlow", "there is no such version of the flow"))?;
    let mut shape = match shapes::flow(&kept) {
        Value::Object(shape) => shape,
        _ => Object::new(),
    };
    if let Some(flow) = app.node.flows().running(&kept.name, kept.version) {
        shape.insert("definition".into(), flow.definition.clone());
    }
    if with_text {
        shape.insert("text".into(), Text::from(kept.definition).into());
    }
    show_limits(&mut shape, &governed);
    app.answers.value(StatusCode::OK, shape.into()).await
}

/// A flow that no store has: that of a queue's messages.
fn made(name: &str, version: u64, flow: &Flow) -> Object {
    let members = [
        ("name", Text::from(name).into()),
        ("version", version.into()),
        ("hash", flow.hash.clone().into()),
        ("definition", flow.definition.clone()),
        ("text", flow.definition.to_json().into()),
    ];
    members
        .into_iter()
        .map(|(name, value)| (Text::from(name), value))
        .collect()
}

/// `GET /v1/flows/{name}/versions`
pub async fn versions(State(app): State<App>, Path(name): Path<String>) -> Answer {
    let kept = super::aside(&app.node, move |node| versions_of(&node.store().flows()?, &name, false)).await??;
    let items = kept.iter().map(shapes::flow).collect();
    app.answers.value(StatusCode::OK, shapes::page(items, None)).await
}

/// `GET /v1/flows`
pub async fn list(State(app): State<App>) -> Answer {
    let flows = super::aside(&app.node, |node| node.store().flows()).await??;
    let mut latest: Vec<KeptFlow> = Vec::new();
    for kept in flows.into_iter().filter(|kept| !kept.hidden) {
        match latest.last_mut().filter(|last| last.name == kept.name) {
            Some(last) => *last = kept,
            None => latest.push(kept),
        }
    }
    let items = latest.iter().map(shapes::flow).collect();
    app.answers.value(StatusCode::OK, shapes::page(items, None)).await
}

/// `PATCH /v1/flows/{name}`
pub async fn change(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(name): Path<String>,
    mut body: Sent,
) -> Answer {
    admission_needed(&app)?;
    let body = body.read(&["maxRunning", "paused"]).await?;
    let max_running = match body.members().get("maxRunning") {
        None => None,
        Some(Value::Null) => Some(None),
        Some(_) => Some(limit_of(&body, "maxRunning")?),
    };
    let paused = body.flag("paused")?;
    if max_running.is_none() && paused.is_none() {
        return Err(Problem::bad(
            "nothing is to be set: give `maxRunning`, `paused` or both",
        ));
    }
    let known = name.clone();
    super::aside(&app.node, move |node| versions_of(&node.store().flows()?, &known, true)).await??;
    let flow = Text::from(name.as_str());
    let of = name.clone();
    let before = super::aside(&app.node, move |node| governing(node, &of)).await??;
    // Nothing is done if it is so already: the audit list only has changes.
    let same = max_running.is_none_or(|limit| limit == before.set)
        && paused.is_none_or(|paused| paused == before.paused.is_some());
    if !same {
        app.node.set_flow(&flow, max_running, paused, &operator).await?;
    }
    let governed = super::aside(&app.node, move |node| governing(node, &name)).await??;
    let mut shape: Object = [("name".into(), Value::from(flow))].into_iter().collect();
    show_limits(&mut shape, &governed);
    app.answers.value(StatusCode::OK, shape.into()).await
}

/// The stored settings of the key that stands for a flow.
fn governing(node: &Node, flow: &str) -> Result<KeptKey, StoreError> {
    let key = PoolKey {
        pool: FLOW_POOL.into(),
        key: flow.into(),
    };
    Ok(node.store().kept_key(&key)?.0)
}

/// The limit and the pause of a flow.
fn show_limits(shape: &mut Object, governed: &KeptKey) {
    shape.insert("maxRunning".into(), set_limit(governed.set));
    shape.insert("paused".into(), governed.paused.is_some().into());
}

/// `DELETE /v1/flows/{name}`
pub async fn hide(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(name): Path<String>,
) -> Answer<Response> {
    let missing = no_such_flow(&name);
    let (flow, by) = (Text::from(name.as_str()), operator.clone());
    let (known, limited) = super::aside(&app.node, move |node| {
        let known = node.hide_flow(&name, &by)?;
        let limited = node.has_admission() && governing(node, &name)?.set.is_some();
        Ok::<_, StoreError>((known, limited))
    })
    .await??;
    if known && limited {
        // A flow that is put under this name later begins without the limit. A pause stays, because
        // the waiting executions must not begin.
        app.node.set_flow(&flow, Some(None), None, &operator).await?;
    }
    if known {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Err(missing)
    }
}

/// The problem that there is no such flow.
pub fn no_such_flow(name: &str) -> Problem {
    Problem::missing("NoSuchFlow", format!("there is no flow {}", quoted(name)))
}

/// The versions of a flow, the newest first; none of a hidden flow, unless `hidden` is true.
fn versions_of(flows: &[KeptFlow], name: &str, hidden: bool) -> Answer<Vec<KeptFlow>> {
    let of = flows
        .iter()
        .filter(|kept| kept.name.as_str() == name && (hidden || !kept.hidden));
    let mut kept: Vec<KeptFlow> = of.cloned().collect();
    kept.sort_by_key(|kept| std::cmp::Reverse(kept.version));
    if kept.is_empty() {
        return Err(no_such_flow(name));
    }
    Ok(kept)
}
