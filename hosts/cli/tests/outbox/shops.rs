//! The shop of `examples/outbox` in each language, straight and through a pooler.

use crate::stand::{Stand, command, said};
use starbridge_services::Pooler;
use std::path::PathBuf;
use std::process::Command;

const LANGUAGES: [&str; 3] = ["python", "node", "rust"];

fn example(file: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/outbox")).join(file)
}

/// A database and a server as README of the example says.
fn stand() -> Stand {
    let mut stand = Stand::installed();
    let tables = std::fs::read_to_string(example("tables.sql")).unwrap();
    stand.session("starbridge").run(&tables).unwrap();
    stand.serve();
    stand.well(&["flow", "put", example("flow.json").to_str().unwrap()]);
    stand
}

/// The shop of a language: it writes orders, and says the ids of what it asked to start.
fn sell(language: &str, port: u16, words: &[&str]) -> String {
    let named = |name: &str| std::env::var_os(format!("STARBRIDGE_CLIENT_{name}")).unwrap();
    let mut command = match language {
        "python" => Command::new(named("PYTHON")),
        "node" => Command::new("node"),
        _ => Command::new(named("RUST")),
    };
    match language {
        "python" => _ = command.arg(example("shop.py")),
        "node" => _ = command.arg(example("shop.js")).env("NODE_PATH", named("NODE")),
        _ => {}
    }
    command
        .arg(format!("postgres://shop@127.0.0.1:{port}/postgres"))
        .args(words);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{language} {words:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// All that a shop does, with numbers of its own. Returns the names of what must run.
fn all_ways(stand: &Stand, language: &str, port: u16, first: u32) -> Vec<String> {
    let number = |plus: u32| (first + plus).to_string();
    let said = sell(language, port, &[&number(0), "3"]);
    assert_eq!(said.lines().count(), 3, "{said}");
    sell(language, port, &[&number(3), "1", "rollback"]);
    sell(language, port, &[&number(4), "1", "savepoint"]);
    sell(language, port, &[&number(5), "2", "prepare"]);
    stand.until_empty();
    let again = sell(language, port, &[&number(0), "1", "again"]);
    stand.until_empty();
    let id = again.trim().split_once(": ").unwrap().1.to_owned();
    let refused = stand.refused();
    let row = refused.iter().find(|row| row["id"] == *id).unwrap();
    assert_eq!(
        (&row["code"], &row["by"]),
        (&"ExecutionAlreadyExists".into(), &"shop".into())
    );
    [0, 1, 2, 4, 5, 6].map(|plus| format!("order-{}", first + plus)).into()
}

#[test]
fn each_language_starts_what_it_commits_straight_and_through_a_pooler() {
    let stand = stand();
    let pooler = Pooler::before(stand.service.port(), "transaction", 2);
    let mut expected = Vec::new();
    for (at, language) in (1..).zip(LANGUAGES) {
        expected.extend(all_ways(&stand, language, stand.service.port(), at * 100));
        expected.extend(all_ways(&stand, language, pooler.port(), at * 100 + 50));
    }
    expected.sort();
    assert_eq!(stand.names("shop"), expected);
    let session = stand.session("starbridge");
    assert_eq!(
        session.text("select count(*)::text from public.orders"),
        expected.len().to_string()
    );
}

/// What is done first with a new installation.
#[test]
fn ten_orders_while_the_server_is_away_run_when_it_is_back() {
    let mut stand = stand();
    stand.kill();
    let port = stand.service.port();
    sell("node", port, &["10", "10"]);
    sell("python", port, &["20", "1", "rollback"]);
    stand.serve();
    stand.until("the ten run", || stand.names("shop").len() == 10);
    stand.until_empty();
    assert_eq!(stand.names("shop").len(), 10);
}

#[test]
fn no_store_is_kept_behind_a_pooler_in_transaction_mode() {
    let stand = Stand::without_server();
    let straight = stand.session("starbridge");
    let grant = "grant create on database postgres to shop; grant usage, create on schema starbridge to shop";
    straight.run(grant).unwrap();
    let pooler = Pooler::before(stand.service.port(), "transaction", 2);
    let url = |port: u16| format!("postgres://shop@127.0.0.1:{port}/postgres");
    let refused = command(stand.path(), &["store", "init", &url(pooler.port())]);
    assert!(!refused.status.success(), "{refused:?}");
    assert!(said(&refused).contains("`pool_mode = session`"), "{}", said(&refused));
    let made = command(stand.path(), &["store", "init", &url(stand.service.port())]);
    assert!(made.status.success(), "{}", said(&made));
}
