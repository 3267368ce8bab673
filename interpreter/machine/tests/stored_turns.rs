//! Turns that are read from their stored form: what is wrong with one is told.

mod set_up;

use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Value;
use starbridge_machine::history::{read_turn, write_turn};
use starbridge_machine::{Child, EventId, Signal, State};
use std::sync::Arc;

const STEPS: &str = r#"{"type": "foreach", "name": "each", "iterationMapping": {"collection": "$.items", "item": "item"},
    "steps": [{"type": "pass", "name": "p"}]}"#;

#[test]
fn turn_is_read_as_it_was_written() {
    let flow = set_up::flow(STEPS);
    let mut start = set_up::start();
    if let Signal::Start(record) = &mut start {
        record.input = Value::read_bounded(br#"{"items": [1, "two", {"three": 3}]}"#, 1 << 12).unwrap();
    }
    let mut state = State::new("e", Arc::new(Limits::default()));
    let mut events = Vec::new();
    state.advance(&flow, start, Timestamp(9), &mut events).unwrap();
    assert!(events.iter().any(|event| event.path.items().len() == 1));
    let text = write_turn(&flow, &events);
    assert_eq!(read_turn(&flow, EventId(1), Timestamp(9), &text).unwrap(), events);
}

#[test]
fn members_come_in_any_order_and_some_are_unknown() {
    let flow = set_up::flow(STEPS);
    let text = r#"[{"p":[["each","i",7]],"later":{"a":[1]},"y":"se","s":"p","r":true},{"y":"ss","c":2,"s":"p","p":[["each","i",7]],"d":{"n":3}},
        {"y":"cc"},{"y":"se","s":"p","p":[["each","a","default"]]}]"#;
    let events = read_turn(&flow, EventId(40), Timestamp(5), text).unwrap();
    let told: Vec<_> = events
        .iter()
        .map(|event| (event.id.0, event.caused_by.0, event.rollback))
        .collect();
    assert_eq!(told, [(40, 39, true), (41, 2, false), (42, 41, false), (43, 42, false)]);
    assert_eq!(events[0].path, events[1].path);
    assert_eq!(events[0].path.items()[0].child, Child::Iteration(7));
    assert!(events[2].path.items().is_empty() && events[2].step.is_none());
    assert_eq!(events[3].path.items()[0].child, Child::Arm(None));
}

#[test]
fn what_is_wrong_is_told_in_words_of_the_history_where_they_say_more() {
    let flow = set_up::flow(STEPS);
    let read = |text: &str| {
        let read = read_turn(&flow, EventId(1), Timestamp(0), text);
        read.map(|events| events.len()).map_err(|wrong| wrong.message)
    };
    assert_eq!(read("[]"), Ok(0));
    for (text, said) in [
        (r#"[{"y":"zz"}]"#, "there is no event type `zz`"),
        (r#"[{"c":4}]"#, "`y` is missing"),
        (r#"[{"y":"se","s":"none"}]"#, "the flow has no step `none`"),
        (r#"[{"y":"se","p":[["none","i",1]]}]"#, "the flow has no step `none`"),
        (r#"[{"y":"ss"}]"#, "`attempt` is missing"),
        (r#"[{"y":"ss","d":[]}]"#, "`d` must be an object, not an array"),
    ] {
        assert_eq!(read(text), Err(said.to_owned()), "{text}");
    }
    let unreadable = [
        "",
        "[",
        "{}",
        "[1]",
        "[{}] 1",
        r#"[{"y":1}]"#,
        r#"[{"y":"se","p":[["each","i"]]}]"#,
        r#"[{"y":"se","p":[["each","i",1,2]]}]"#,
        r#"[{"y":"se","p":[["each","x",1]]}]"#,
        r#"[{"y":"se","p":[["each","a","other"]]}]"#,
    ];
    for text in unreadable {
        let said = read(text).unwrap_err();
        assert!(
            said.starts_with("a turn is not readable: ") || said == "`y` is missing",
            "{text}: {said}"
        );
    }
}
