//! The cluster, as the node that has the store sees it.

use super::route::Route;
use crate::answers::aside;
use crate::scope::Scope;
use crate::{App, shapes};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use starbridge_flow::value::{Object, Value};
use starbridge_node::cluster::{Cluster, ClusterView, DRAINS, ShownNode, drain_mark};
use starbridge_node::node::Operator;
use starbridge_node::problem::{Answer, Problem, quoted};
use starbridge_ports::AuditKind;

/// The routes of clusters.
pub(super) const ROUTES: &[Route] = &[
    Route {
        method: "GET",
        path: "/v1/cluster",
        scope: Some(Scope::Read),
        summary: "The nodes of the cluster, and which of them has the store; no nodes where there is no cluster",
        query: &[],
        body: None,
        answers: &[(200, "the cluster", Some("Cluster"))],
        handler: Some(|| get(cluster)),
    },
    Route {
        method: "POST",
        path: "/v1/cluster/nodes/{name}/drain",
        scope: Some(Scope::Admin),
        summary: "Lets a node leave its work to others: the owner hands the store over, a node that stands by ends",
        query: &[],
        body: None,
        answers: &[
            (202, "it was told", Some("DrainedNode")),
            (404, "there is no such node", Some("Problem")),
            (409, "no other node is to take the store", Some("Problem")),
        ],
        handler: Some(|| post(drain)),
    },
];

/// How many shards a store has.
const SHARDS: u64 = 256;

/// `GET /v1/cluster`
async fn cluster(State(app): State<App>) -> Response {
    let value = app.cluster.as_ref().map_or_else(nothing, |cluster| shown(cluster));
    shapes::json(StatusCode::OK, value.to_json())
}

/// `POST /v1/cluster/nodes/{name}/drain`
async fn drain(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(name): Path<String>,
) -> Answer<Response> {
    let missing = || {
        Problem::missing(
            "NoSuchNode",
            format!("there is no node {} in this cluster", quoted(&name)),
        )
    };
    let view = app.cluster.as_ref().ok_or_else(missing)?.view();
    let node = view.nodes.iter().find(|node| node.name == name).ok_or_else(missing)?;
    let owns = view.owner.as_deref() == Some(&node.process);
    if owns && !view.has_other(&node.process) {
        return Err(no_other_node(&view, node));
    }
    let mark = drain_mark(&node.process, app.node.now());
    let entry = app.node.audit_entry(&operator, "drain", AuditKind::Node, &name);
    let kept = name.clone();
    aside(&app.node, move |node| {
        node.store().put_value(DRAINS, &kept, &mark, Some(&entry))
    })
    .await??;
    let mut told = Object::default();
    told.insert("name".into(), Value::from(name));
    told.insert("owner".into(), Value::from(owns));
    Ok(shapes::json(StatusCode::ACCEPTED, Value::from(told).to_json()))
}

/// A node that was drained takes the store only if there is no owner: otherwise the work would come back to it.
fn no_other_node(view: &ClusterView, owner: &ShownNode) -> Problem {
    let drained = view
        .nodes
        .iter()
        .find(|node| node.process != owner.process && node.drained.is_some());
    let detail = match drained {
        Some(drained) => format!(
            "no other node is to take the store from `{}`: `{}` was told to leave its work to others; start that one again, or another one, first",
            owner.name, drained.name
        ),
        None => format!(
            "no other node can take the store from `{}`: start one first",
            owner.name
        ),
    };
    Problem::conflict("NoOtherNode", detail)
}

fn nothing() -> Value {
    let mut object = Object::default();
    object.insert("owner".into(), Value::Null);
    object.insert("since".into(), Value::Null);
    object.insert("nodes".into(), Value::from(Vec::<Value>::new()));
    Value::from(object)
}

fn shown(cluster: &Cluster) -> Value {
    let view = cluster.view();
    let owner = view.owner().map(|owner| owner.name.clone());
    let nodes = view.nodes.iter().map(|node| {
        let mut object = Object::default();
        object.insert("name".into(), Value::from(node.name.as_str()));
        object.insert("address".into(), Value::from(node.address.as_str()));
        object.insert("version".into(), Value::from(node.version.as_str()));
        object.insert("joined".into(), Value::from(node.joined.to_string()));
        object.insert(
            "owner".into(),
            Value::from(owner.as_deref() == Some(node.name.as_str())),
        );
        let shards = if owner.as_deref() == Some(node.name.as_str()) {
            SHARDS
        } else {
            0
        };
        object.insert("shards".into(), Value::from(shards));
        object.insert("silentBeats".into(), Value::from(u64::from(node.silent)));
        object.insert("drained".into(), Value::from(node.drained.is_some()));
        Value::from(object)
    });
    let nodes: Vec<Value> = nodes.collect();
    let mut object = Object::default();
    object.insert("owner".into(), owner.clone().map_or(Value::Null, Value::from));
    object.insert(
        "since".into(),
        view.since.map_or(Value::Null, |since| Value::from(since.to_string())),
    );
    object.insert("nodes".into(), Value::from(nodes));
    Value::from(object)
}

/// The metrics of a node of a cluster.
pub fn metrics(cluster: &Cluster) -> String {
    let all = cluster.counters.all().map(|(name, help, kind, value)| {
        let name = format!("starbridge_cluster_{name}");
        format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n")
    });
    all.concat()
}
