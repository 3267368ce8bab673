//! The plans that SQLite makes for lists: each follows an index.

use super::select;
use crate::record::SUCCEEDED_CODE;
use crate::ways::{Way, ways};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use starbridge_machine::Status;
use starbridge_ports::{Query, WaitingReason};

fn fresh() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    crate::open::keep_statements(&connection).unwrap();
    assert!(crate::migrate::bring_up(&mut connection).is_ok());
    connection
}

/// The query plan of SQLite.
fn plan(connection: &Connection, sql: &str, values: Vec<Value>) -> String {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let rows = statement.query_map(params_from_iter(values), |row| row.get::<_, String>(3));
    rows.unwrap().map(Result::unwrap).collect::<Vec<_>>().join("; ")
}

#[test]
fn query_plan_of_every_list_uses_an_index() {
    let connection = fresh();
    let flow = |query: Query| Query {
        flow: Some("f".into()),
        ..query
    };
    let labels = |query: Query| Query {
        labels: vec![("a".into(), "b".into()), ("c".into(), "d".into())],
        ..query
    };
    let name = |query: Query| Query {
        name: Some("n".into()),
        ..query
    };
    let any = Query::default;
    for (query, statuses, expected) in [
        (any(), &[] as &[usize], "SCAN e"),
        (any(), &[SUCCEEDED_CODE], "SCAN e"),
        (
            any(),
            &[1],
            "SEARCH e USING INDEX executions_status (status=? AND reason=?)",
        ),
        (flow(any()), &[], "SEARCH e USING INDEX executions_of_flow (flow=?)"),
        (
            flow(name(any())),
            &[SUCCEEDED_CODE, 1],
            "SEARCH e USING INDEX executions_of_flow (flow=?)",
        ),
        (
            flow(any()),
            &[5],
            "SEARCH e USING INDEX executions_status (status=? AND reason=?)",
        ),
        (
            flow(labels(any())),
            &[5],
            "SEARCH l USING PRIMARY KEY (label=? AND value=?); SEARCH e USING INTEGER PRIMARY KEY (rowid=?)",
        ),
    ] {
        let way = Way {
            statuses: statuses.to_vec(),
            reason: matches!(statuses, [1 | 5])
                .then_some(None)
                .filter(|_| query.labels.is_empty()),
        };
        let (sql, values) = select(&query, &way, (None, None), None);
        let plan = plan(&connection, &sql, values);
        assert!(plan.starts_with(expected), "{query:?} {statuses:?}: {plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{query:?} {statuses:?}: {plan}");
    }
    for statuses in [&[] as &[usize], &[1], &[SUCCEEDED_CODE, 2]] {
        let (sql, values) = select(
            &flow(name(any())),
            &Way::filtered(statuses.to_vec()),
            (None, Some(7)),
            Some(&[5, 6]),
        );
        let plan = plan(&connection, &sql, values);
        assert!(
            plan.starts_with("SEARCH e USING INTEGER PRIMARY KEY (rowid=?)"),
            "{statuses:?}: {plan}"
        );
    }
}

#[test]
fn query_plan_of_what_a_server_looks_for_uses_an_index() {
    let connection = fresh();
    for (sql, expected) in [
        ("SELECT id FROM executions WHERE awake = 1", "executions_awake"),
        (
            "SELECT id FROM executions WHERE ended IS NULL AND wake_at IS NOT NULL AND awake = 0 AND wake_at < 1 ORDER BY wake_at, number",
            "executions_times (ended=? AND wake_at>? AND wake_at<?)",
        ),
        (
            "SELECT id FROM executions WHERE ended IS NOT NULL AND ended < 1 ORDER BY ended, wake_at, number",
            "executions_times (ended>? AND ended<?)",
        ),
        (
            "SELECT place FROM tasks WHERE held IS NULL AND queue = 'q' ORDER BY priority DESC, round, ordered, place",
            "COVERING INDEX tasks_line (held=? AND queue=?)",
        ),
        ("SELECT message FROM tasks WHERE held >= 1", "INDEX tasks_line (held>?)"),
    ] {
        let plan = plan(&connection, sql, Vec::new());
        assert!(
            plan.contains(expected) && !plan.contains("TEMP B-TREE"),
            "{sql}: {plan}"
        );
    }
}

#[test]
fn query_plan_of_a_reason_uses_its_index() {
    let connection = fresh();
    let query = Query {
        flow: Some("f".into()),
        reasons: vec![WaitingReason::Paused],
        ..Query::default()
    };
    for statuses in [&[] as &[Status], &[Status::Running], &[Status::Running, Status::Failed]] {
        let query = Query {
            statuses: statuses.to_vec(),
            ..query.clone()
        };
        let ways = ways(&query, false);
        assert!(!ways.is_empty());
        for way in ways {
            let (sql, values) = select(&query, &way, (None, Some(7)), None);
            let plan = plan(&connection, &sql, values);
            let expected = "SEARCH e USING INDEX executions_status (status=? AND reason=?";
            assert!(plan.starts_with(expected), "{way:?}: {plan}");
            assert!(!plan.contains("TEMP B-TREE"), "{way:?}: {plan}");
        }
    }
    let query = Query {
        reasons: vec![WaitingReason::Running],
        ..Query::default()
    };
    for way in ways(&query, false) {
        let (sql, values) = select(&query, &way, (None, Some(7)), None);
        let plan = plan(&connection, &sql, values);
        assert!(plan.starts_with("SEARCH e USING INDEX executions_awake"), "{plan}");
    }
    let told = "SELECT reason, count(*) FROM executions WHERE status <> 4 AND reason IS NOT NULL GROUP BY reason";
    assert!(plan(&connection, told, Vec::new()).contains("COVERING INDEX executions_status"));
}

#[test]
fn query_plan_of_a_family_begins_with_its_members() {
    let connection = fresh();
    let children = Query {
        parent: Some("p".into()),
        ..Query::default()
    };
    let family = Query {
        root: Some("r".into()),
        ..Query::default()
    };
    let some = |query: &Query| Query {
        flow: Some("f".into()),
        labels: vec![("a".into(), "b".into()), ("c".into(), "d".into())],
        root: Some("r".into()),
        ..query.clone()
    };
    for statuses in [&[] as &[usize], &[1], &[SUCCEEDED_CODE, 2]] {
        for (query, index) in [
            (children.clone(), "executions_of_parent (parent_execution=?"),
            (some(&children), "executions_of_parent (parent_execution=?"),
            (family.clone(), "executions_of_root (root=?"),
            (some(&family), "executions_of_root (root=?"),
        ] {
            let (sql, values) = select(&query, &Way::filtered(statuses.to_vec()), (None, Some(7)), None);
            let plan = plan(&connection, &sql, values);
            let begins = format!("SEARCH e USING INDEX {index}");
            assert!(plan.starts_with(&begins), "{query:?} {statuses:?}: {plan}");
            assert!(!plan.contains("TEMP B-TREE"), "{query:?} {statuses:?}: {plan}");
        }
    }
}
