//! A store that is copied from a file into the database, and back.

use crate::stand::Stand;
use serde_json::json;
use starbridge_flow::value::Text;
use starbridge_node::config::Config;
use starbridge_node::node::Node;
use starbridge_node::store_copy::{CopyPlace, copy};
use starbridge_node::stores::open_store;
use starbridge_ports::{Cell, Listing, Store, TABLES, TableRows};
use starbridge_postgres::PostgresStore;
use starbridge_runtime::StartRequest;
use starbridge_sqlite::SqliteStore;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Flows that leave rows of many kinds: an ended one, one in a queue, one that waits for a name, one that waits for a time.
async fn fill(store: Arc<dyn Store>) {
    let node = Node::start(Config::default().node(store).unwrap()).unwrap();
    for (name, steps) in [
        ("done", json!([{"type": "pass", "name": "p"}])),
        (
            "queued",
            json!([{"type": "task", "name": "t", "resource": "queue:jobs"}]),
        ),
        ("asleep", json!([{"type": "wait", "name": "w", "duration": 86_400}])),
    ] {
        let flow = json!({"version": "v1", "type": "flow", "steps": steps});
        node.put_flow(name, flow.to_string(), None).unwrap();
        let request = StartRequest {
            flow: name.into(),
            // PostgreSQL holds no U+0000 in a text.
            input: (&json!({"text": "a\u{0}b\u{e000}", "n": 7})).into(),
            labels: Some([(Text::from("kind"), "x\u{e000}".into())].into_iter().collect()),
            ..StartRequest::default()
        };
        node.begin(request, false).await.unwrap();
    }
    node.drain(Duration::from_secs(5)).await.unwrap();
}

/// All rows of a store, in an order of their own.
fn rows(store: &dyn TableRows) -> Vec<(&'static str, Vec<Vec<Cell>>)> {
    let rows = TABLES.iter().map(|table| {
        let mut rows = Vec::new();
        store
            .each_row(table, &mut |_, some| {
                rows.extend(some);
                Ok(())
            })
            .unwrap();
        rows.sort_by_key(|row| format!("{row:?}"));
        assert_eq!(store.count_rows(table).unwrap(), rows.len() as u64);
        (table.name, rows)
    });
    rows.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_is_copied_into_the_database_and_back() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flows.db");
    fill(open_store(&file).unwrap()).await;
    let work = move || {
        let stand = Stand::start();
        let settings = stand.settings();
        let mut config = Config::default();
        config.store.schema.clone_from(&settings.schema);
        let database = Path::new(&settings.url);
        let back = folder.path().join("back.db");
        for (from, to) in [(file.as_path(), database), (database, back.as_path())] {
            let from = CopyPlace::source(from, &config).unwrap();
            let to = CopyPlace::target(to, &config).unwrap();
            let copied = copy(&from, &to, &mut |_| {}).unwrap();
            let executions = copied.iter().find(|copied| copied.table == "executions").unwrap();
            assert_eq!(executions.rows, 3);
        }
        let first = rows(&SqliteStore::open(&file).unwrap());
        let between = rows(&PostgresStore::open(&settings).unwrap());
        let last = rows(&SqliteStore::open(&back).unwrap());
        assert_eq!(first, between);
        assert_eq!(first, last);
        assert_eq!(
            SqliteStore::open(&back).unwrap().counts().unwrap(),
            SqliteStore::open(&file).unwrap().counts().unwrap()
        );
        let again = CopyPlace::target(&back, &config).unwrap_err();
        assert!(again.contains("is not empty"), "{again}");
        (stand, settings, folder)
    };
    let (stand, settings, _folder) = tokio::task::spawn_blocking(work).await.unwrap();
    // It goes on where it stopped.
    let store = tokio::task::spawn_blocking(move || PostgresStore::open(&settings).unwrap())
        .await
        .unwrap();
    let store = Arc::new(store);
    let node = Node::start(Config::default().node(store.clone()).unwrap()).unwrap();
    let all = starbridge_ports::Query {
        limit: 10,
        ..starbridge_ports::Query::default()
    };
    assert_eq!(store.list(&all).unwrap().items.len(), 3);
    let request = StartRequest {
        flow: "done".into(),
        ..StartRequest::default()
    };
    node.begin(request, false).await.unwrap();
    node.drain(Duration::from_secs(5)).await.unwrap();
    assert_eq!(store.list(&all).unwrap().items.len(), 4);
    drop(stand);
}
