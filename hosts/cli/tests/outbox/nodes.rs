//! Nodes of a cluster: the one that has the store takes from outboxes, whichever it is.

use crate::server::{Server, starbridge};
use crate::stand::Stand;
use std::net::{Ipv4Addr, TcpListener};

/// Starts a node over the database of the stand.
fn node(stand: &Stand, name: &str) -> Server {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let link = free.local_addr().unwrap().port();
    drop(free);
    let store = format!("{}?sslmode=disable", stand.service.url());
    let mut command = starbridge();
    command
        .args([
            "serve",
            "--config",
            "server.toml",
            "--listen",
            "127.0.0.1:0",
            "--node",
            name,
            "--db",
            &store,
        ])
        .env("STARBRIDGE_CLUSTER_LISTEN", format!("127.0.0.1:{link}"))
        .env("STARBRIDGE_RUNTIME_OWNERS", "1");
    Server::run(stand.path(), &mut command)
}

fn order(stand: &Stand, names: impl Iterator<Item = u32>) {
    let shop = stand.session("shop");
    for name in names {
        shop.order(&format!("o{name:03}"));
    }
}

#[test]
fn the_owner_takes_and_whoever_succeeds_it_goes_on() {
    let mut stand = Stand::without_server();
    let first = node(&stand, "first");
    first.says("this node has the store now");
    let second = node(&stand, "second");
    second.says("standing by");
    stand.server = Some(second);
    let flow = r#"{"version": "v1", "type": "flow", "steps": [{"type": "pass", "name": "p"}]}"#;
    std::fs::write(stand.path().join("order.json"), flow).unwrap();
    stand.well(&["flow", "put", "order.json"]);
    order(&stand, 0..100);
    // The node that stands by passes on what it is asked.
    assert_eq!(stand.get("/v1/outboxes")["items"][0]["name"], "shop");
    first.send("-KILL");
    order(&stand, 100..200);
    stand.server().says("this node has the store now");
    stand.until_empty();
    assert_eq!(stand.names("order").len(), 200);
    drop(first);
    // A node that stands still keeps its connections: its successor ends them.
    let third = node(&stand, "third");
    third.says("standing by");
    let second = stand.server.replace(third).unwrap();
    second.send("-STOP");
    order(&stand, 200..300);
    stand.server().says("this node has the store now");
    stand.until_empty();
    assert_eq!(stand.names("order").len(), 300);
    second.send("-CONT");
    second.says("the store is not this node's any more");
    order(&stand, 300..400);
    stand.until_empty();
    let expected: Vec<String> = (0..400).map(|name| format!("o{name:03}")).collect();
    assert_eq!(stand.names("order"), expected);
    assert_eq!(stand.refused().len(), 0);
}
