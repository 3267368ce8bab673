//! The views for people who open the file with `sqlite3`: the view of events shows recorded
//! histories in full.

use rusqlite::Connection;
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::{Format, Source};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Value;
use starbridge_machine::history::{read_event, read_turn, write_turn};
use starbridge_machine::{Event, EventId, Status};
use starbridge_ports::{Append, ExecutionRecord, History, Turn};
use starbridge_sqlite::SqliteStore;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn recorded(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            recorded(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The appends of a history: a turn wherever the time changes.
fn appends(id: &str, flow: &starbridge_flow::graph::Flow, events: &[Event]) -> Vec<Append> {
    let turns = events.chunk_by(|a, b| a.time == b.time);
    let append = |events: &[Event]| {
        let turn = Turn {
            first: events[0].id,
            events: events.len() as u32,
            time: events[0].time,
            text: write_turn(flow, events),
        };
        assert_eq!(read_turn(flow, turn.first, turn.time, &turn.text).unwrap(), events);
        Append {
            execution: id.into(),
            expected: EventId(turn.first.0 - 1),
            record: (turn.first.0 == 1).then(ExecutionRecord::default),
            turn: Some(turn),
            ..Append::default()
        }
    };
    turns.map(append).collect()
}

fn shown(connection: &Connection, id: &str) -> Vec<Value> {
    let sql = "SELECT json_object('id', event, 'causedBy', caused_by, 'time', time, 'step', step, 'path', json(path), 'type', type,
        'detail', json(detail)), rollback FROM events WHERE execution = ?1 ORDER BY event";
    let mut statement = connection.prepare_cached(sql).unwrap();
    let rows = statement.query_map([id], |row| {
        let text: String = row.get(0)?;
        let rollback: bool = row.get(1)?;
        let text = if rollback {
            text.replacen('{', "{\"rollback\":true,", 1)
        } else {
            text
        };
        Ok(serde_json::from_str(&text).unwrap())
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// Whether a history has a type of event that few histories before it had. Using all histories
/// would take long and show nothing more.
fn shows_something_new(text: &str, seen: &mut BTreeMap<String, u32>) -> bool {
    const ENOUGH: u32 = 10;
    let types = text
        .split("\"type\":\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    let new: Vec<&str> = types
        .filter(|kind| seen.get(*kind).is_none_or(|times| *times < ENOUGH))
        .collect();
    for kind in &new {
        *seen.entry((*kind).to_owned()).or_default() += 1;
    }
    !new.is_empty()
}

#[test]
fn view_shows_histories_in_full() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("store.db")).unwrap();
    let mut files = Vec::new();
    recorded(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/histories/v1"),
        &mut files,
    );
    files.sort();
    let mut histories = Vec::new();
    let mut batch = Vec::new();
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for (number, file) in files.iter().enumerate() {
        let text = std::fs::read_to_string(file).unwrap();
        if !shows_something_new(&text, &mut seen) {
            continue;
        }
        let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let head = lines.next().unwrap();
        let definition = head.as_object().unwrap().get("definition").unwrap().to_json();
        let source = Source::new("definition", definition).with_format(Format::Json);
        let flow = starbridge_fdl::check(&source, &Limits::default()).flow.unwrap();
        let expected: Vec<Value> = lines.collect();
        let events: Vec<Event> = expected.iter().map(|line| read_event(&flow, line).unwrap()).collect();
        let id = format!("history-{number}");
        batch.extend(appends(&id, &flow, &events));
        histories.push((id, file, expected));
    }
    assert!(
        histories.len() > 20 && seen.len() > 25,
        "{} of {seen:?}",
        histories.len()
    );
    assert_eq!(store.append(&batch).unwrap(), []);
    let connection = Connection::open(store.path()).unwrap();
    for (id, file, expected) in histories {
        assert_eq!(shown(&connection, &id), expected, "{}", file.display());
    }
}

#[test]
fn view_shows_records_with_words_and_times() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("store.db")).unwrap();
    let append = Append {
        execution: "a".into(),
        turn: Some(Turn {
            first: EventId(1),
            events: 1,
            time: Timestamp(0),
            text: "[{\"y\":\"new one\"}]".to_owned(),
        }),
        record: Some(ExecutionRecord {
            flow: "order".into(),
            version: 2,
            status: Status::TimedOut,
            started: Timestamp(1_704_067_200_007),
            ended: Some(Timestamp(1_704_067_201_000)),
            ..ExecutionRecord::default()
        }),
        ..Append::default()
    };
    assert_eq!(store.append(&[append]).unwrap(), []);
    let connection = Connection::open(store.path()).unwrap();
    let row: [String; 5] = connection
        .query_row(
            "SELECT flow, name, status, started, ended FROM executions_readable",
            [],
            |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?]),
        )
        .unwrap();
    assert_eq!(
        row,
        [
            "order",
            "a",
            "TimedOut",
            "2024-01-01T00:00:00.007Z",
            "2024-01-01T00:00:01.000Z"
        ]
    );
    let kind: String = connection
        .query_row("SELECT type FROM events", [], |row| row.get(0))
        .unwrap();
    assert_eq!(kind, "new one");
}
