//! The cluster, as the node that has the store sees it.

use super::route::Route;
use crate::scope::Scope;
use crate::{App, shapes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use starbridge_flow::value::{Object, Value};
use starbridge_node::cluster::Cluster;

/// The routes of clusters.
pub(super) const ROUTES: &[Route] = &[Route {
    method: "GET",
    path: "/v1/cluster",
    scope: Some(Scope::Read),
    summary: "The nodes of the cluster, and which of them has the store; no nodes where there is no cluster",
    query: &[],
    body: None,
    answers: &[(200, "the cluster", Some("Cluster"))],
    handler: Some(|| get(cluster)),
}];

/// `GET /v1/cluster`
async fn cluster(State(app): State<App>) -> Response {
    let value = app.cluster.as_ref().map_or_else(nothing, |cluster| shown(cluster));
    shapes::json(StatusCode::OK, value.to_json())
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
        object.insert("silentBeats".into(), Value::from(u64::from(node.silent)));
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
