//! The form of checkpoints: those that were written before are read, and the same state is still written in the same bytes.
//!
//! `UPDATE=1` writes the files that are missing. One that is there never changes: another form has another number.

use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use starbridge_flow::value::Value;
use starbridge_machine::State;
use starbridge_machine::history::read_event;
use starbridge_tests::data;
use std::sync::Arc;

/// Histories of `tests/histories/v1`, and the events after which the state was written down.
const WRITTEN: [(&str, u64); 13] = [
    ("fork/composites", 12),
    ("redrive/foreach", 30),
    ("redrive/foreach", 60),
    ("redrive/graph", 20),
    ("redrive/manual-beside", 30),
    ("redrive/nested-rollback-failed", 34),
    ("redrive/nested-rollback-failed", 46),
    ("redrive/rollback-failed", 40),
    ("rollback/flow-timeout-into-rollback", 24),
    ("rollback/foreach-retry", 16),
    ("rollback/foreach-timeout", 28),
    ("rollback/parallel-patterns", 24),
    ("tasks/queue-timeout", 4),
];

/// The flow of a history, and the state after that event.
fn folded(history: &str, after: u64) -> (Arc<Flow>, State) {
    let path = data::root().join(format!("tests/histories/v1/{history}.jsonl"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let head = lines.next().unwrap();
    let definition = head.as_object().unwrap().get("definition").unwrap().to_string();
    let checked = starbridge_fdl::check(&Source::new("flow.json", definition), &Limits::default());
    let flow = checked.flow.unwrap();
    let mut state = State::new("e", Arc::default());
    for line in lines {
        let event = read_event(&flow, &line).unwrap();
        if event.id.0 <= after {
            state.apply(&flow, &event);
        }
    }
    assert_eq!((state.broken_at(), state.last_event().0), (None, after), "{history}");
    (flow, state)
}

#[test]
fn checkpoints_keep_their_form() {
    for (history, after) in WRITTEN {
        let (flow, state) = folded(history, after);
        let name = format!("tests/checkpoints/v4/{}-{after}.json", history.replace('/', "-"));
        let path = data::root().join(&name);
        if !path.exists() && std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, state.checkpoint(&flow)).unwrap();
        }
        let written = std::fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let now = state.checkpoint(&flow);
        assert_eq!(
            String::from_utf8_lossy(&now),
            String::from_utf8_lossy(&written),
            "{name}"
        );
        let restored = State::from_checkpoint(&flow, &written, Arc::default());
        let restored = restored.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(restored.checkpoint(&flow), written, "{name} changes on the way");
    }
}

#[test]
fn checkpoints_of_an_earlier_form_are_read() {
    let forms = ["v2", "v3"].into_iter();
    for (form, (history, after)) in forms.flat_map(|form| WRITTEN.map(|written| (form, written))) {
        let (flow, state) = folded(history, after);
        let name = format!("tests/checkpoints/{form}/{}-{after}.json", history.replace('/', "-"));
        let written = std::fs::read(data::root().join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let restored = State::from_checkpoint(&flow, &written, Arc::default());
        let restored = restored.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(
            (restored.last_event().0, restored.status()),
            (after, state.status()),
            "{name}"
        );
    }
}
