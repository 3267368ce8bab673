//! Whether nodes reach each other: tried when a node joins, not at the first request.

use super::asking::client;
use super::pins::Identity;
use super::role::NOT_OWNER;
use axum::body::Body;
use axum::http::{HeaderName, Response, StatusCode};
use starbridge_node::cluster::{Cluster, ShownNode};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// Asks a node whether it reaches the one with this name.
pub(super) const REACH: HeaderName = HeaderName::from_static("starbridge-link-reach");
/// How long a node may take to answer that.
const ANSWER: Duration = Duration::from_secs(5);
/// So often a node is asked that has not seen this one yet.
const TRIES: u32 = 6;
/// So often a node must say that it does not reach this one: it may have much to do just now.
const FAILURES: u32 = 3;
/// Between two such questions: a heartbeat.
const AGAIN: Duration = Duration::from_millis(500);

/// Whether a node that joined and another one reach each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The name of the other one.
    pub node: String,
    /// Where it should be.
    pub address: String,
    /// Why this node does not reach it.
    pub there: Result<(), String>,
    /// Why it does not reach this node, if it could be asked.
    pub back: Result<(), String>,
}

/// Tries all other nodes that live, and lets them try this one.
pub async fn try_others(identity: Arc<Identity>, cluster: Arc<Cluster>) -> Vec<Tried> {
    let mut asked = tokio::task::JoinSet::new();
    for other in cluster.others().into_iter().filter(|other| other.silent == 0) {
        asked.spawn(try_one(identity.clone(), cluster.name.clone(), other));
    }
    asked.join_all().await
}

async fn try_one(identity: Arc<Identity>, me: String, other: ShownNode) -> Tried {
    let mut tried = Tried {
        node: other.name.clone(),
        address: other.address.clone(),
        there: Ok(()),
        back: Ok(()),
    };
    let mut failures = 0;
    for _ in 0..TRIES {
        match knock(&identity, &other, Some(&me)).await {
            Ok(answered) if answered.status() == StatusCode::NOT_FOUND => tokio::time::sleep(AGAIN).await,
            Ok(answered) if answered.status() == StatusCode::BAD_GATEWAY => {
                failures += 1;
                tried.back = Err(answered.text().await.unwrap_or_default());
                if failures == FAILURES {
                    return tried;
                }
                tokio::time::sleep(AGAIN).await;
            }
            Ok(_) => {
                tried.back = Ok(());
                return tried;
            }
            Err(why) => {
                tried.there = Err(why);
                return tried;
            }
        }
    }
    tried
}

/// Asks at the link of a node. `about`: whether it reaches that one.
async fn knock(identity: &Identity, node: &ShownNode, about: Option<&str>) -> Result<reqwest::Response, String> {
    let client = client(identity, &node.certificate).ok_or("no client can be made")?;
    let mut request = client.get(format!("https://{}/", node.address)).timeout(ANSWER);
    if let Some(about) = about {
        request = request.header(REACH, about);
    }
    request.send().await.map_err(|error| root(&error))
}

fn root(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// Says whether this node reaches another one. Only the addresses of nodes are tried.
pub(super) async fn answer(identity: &Identity, cluster: &Cluster, name: &str) -> Response<Body> {
    let others = cluster.others();
    let (status, text) = match others.iter().find(|other| other.name == name) {
        None => (StatusCode::NOT_FOUND, String::new()),
        Some(other) => match knock(identity, other, None).await {
            Ok(answered) if answered.headers().contains_key(NOT_OWNER) => (StatusCode::NO_CONTENT, String::new()),
            Ok(_) => (StatusCode::BAD_GATEWAY, "somebody else answers there".to_owned()),
            Err(why) => (StatusCode::BAD_GATEWAY, why),
        },
    };
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response
}
