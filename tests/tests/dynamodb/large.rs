//! Data larger than an item, or than a transaction.

use crate::faults::Plan;
use crate::on_both;
use crate::stand::Stand;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{Append, Catalogue, ExecutionLeases, History, KeyValue, Message, MessageBody, Receivers, Turn};
use starbridge_tests::stores::{message, more, start, turn};

on_both!(
    large_turns_are_kept,
    many_messages_are_kept,
    what_was_cut_short_is_finished,
    large_things_are_kept,
    long_histories_are_loaded_from_their_checkpoint,
);

/// Text that hardly compresses.
fn noise(bytes: usize) -> String {
    let mut state = 88_172_645_463_325_252u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b' ' + u8::try_from(state % 94).unwrap())
    };
    (0..bytes).map(|_| next()).collect()
}

fn with_text(append: Append, text: &str) -> Append {
    let turn = append.turn.clone().map(|turn| Turn {
        text: text.to_owned(),
        ..turn
    });
    Append { turn, ..append }
}

fn large_turns_are_kept(stand: &Stand) {
    let table = stand.table();
    let store = stand.store(&table, "one");
    let text = noise(2_000_000);
    assert_eq!(store.append(&[with_text(start("a"), &text)]).unwrap(), []);
    let state = noise(700_000).into_bytes();
    let large = Append {
        checkpoint: Some(state.clone()),
        ..with_text(more("a", 2, 1), &text)
    };
    assert_eq!(store.append(&[large]).unwrap(), []);
    assert_eq!(store.append(&[with_text(more("a", 3, 1), &text[..5_000])]).unwrap(), []);
    let whole = store.load_whole("a").unwrap().unwrap();
    let texts: Vec<usize> = whole.turns.iter().map(|turn| turn.text.len()).collect();
    assert_eq!(texts, [2_000_000, 2_000_000, 5_000]);
    assert!(whole.turns.iter().all(|turn| text.starts_with(&turn.text)));
    let loaded = store.load("a").unwrap().unwrap();
    assert_eq!(loaded.checkpoint, Some((EventId(3), state)));
    assert_eq!(loaded.turns.len(), 1);
}

fn sent(count: u64) -> Vec<Message> {
    let message = |number: u64| {
        let to = if number.is_multiple_of(2) { "b" } else { "nobody" };
        Message {
            body: MessageBody::Failed {
                call: EventId(number),
                version: 1,
                error: "E".into(),
                cause: Text::from(noise(200)),
            },
            ..message("a", number, to)
        }
    };
    (0..count).map(message).collect()
}

fn many_messages_are_kept(stand: &Stand) {
    let store = stand.store(&stand.table(), "one");
    let many = Append {
        sent: sent(500),
        ..more("a", 2, 1)
    };
    assert_eq!(store.append(&[start("b"), start("a"), many]).unwrap(), []);
    assert_eq!(store.messages(&Receivers::All).unwrap(), sent(500));
    assert_eq!(store.messages_for("b").unwrap().len(), 250);
    // As many are dealt with at once, with a turn and without.
    let (even, odd): (Vec<_>, Vec<_>) = sent(500)
        .into_iter()
        .map(|message| message.id)
        .partition(|id| id.event.0.is_multiple_of(2));
    let with = Append {
        received: even,
        ..more("b", 2, 1)
    };
    let without = Append {
        received: odd,
        turn: None,
        ..more("a", 3, 1)
    };
    assert_eq!(store.append(&[with, without]).unwrap(), []);
    assert_eq!(store.messages(&Receivers::All).unwrap(), []);
}

/// The process is gone after the turn, and before all that belongs to it is written.
fn what_was_cut_short_is_finished(stand: &Stand) {
    // Transactions of the other stand-in copy the whole table: one moment is tried there.
    let moments = match stand.kind {
        starbridge_services::Kind::Moto => &[(2, true)][..],
        _ => &[(0, false), (1, true), (2, true), (5, true)],
    };
    for &(writes, kept) in moments {
        let table = stand.table();
        let maker = stand.store(&table, "one");
        assert_eq!(maker.append(&[start("a"), start("b")]).unwrap(), []);
        let many = Append {
            sent: sent(500),
            ..more("a", 2, 1)
        };
        let dying = stand.store(&table, "one").with_faults(Plan::die_after(writes).hook());
        assert!(dying.append(&[many]).is_err());
        let later = stand.store(&table, "one");
        let turns = later.load("a").unwrap().unwrap().turns;
        assert_eq!(turns.len(), if kept { 2 } else { 1 }, "{writes}");
        let expected = if kept { sent(500) } else { vec![] };
        assert_eq!(later.messages(&Receivers::All).unwrap(), expected, "{writes}");
        // It is done once.
        let seen = Append {
            received: expected.into_iter().map(|message| message.id).collect(),
            ..more("b", 2, 1)
        };
        assert_eq!(later.append(&[seen]).unwrap(), []);
        later.load("a").unwrap();
        assert_eq!(later.messages(&Receivers::All).unwrap(), []);
    }
}

fn large_things_are_kept(stand: &Stand) {
    let store = stand.store(&stand.table(), "one");
    let text = noise(1_500_000);
    store
        .put_flow("f", &text, "1", starbridge_flow::time::Timestamp(1), None)
        .unwrap();
    store
        .put_flow("f", "{}", "2", starbridge_flow::time::Timestamp(1), None)
        .unwrap();
    let flows = store.flows().unwrap();
    assert_eq!(flows.len(), 2);
    assert_eq!(flows[0].definition, text);
    store.put_value("kind", "", &text, None).unwrap();
    assert_eq!(store.list_values("kind").unwrap(), [(String::new(), text.clone())]);
    assert_eq!(store.get_value("kind", "").unwrap(), Some(text.clone()));
    assert_eq!(store.delete_value("kind", "", None), Ok(true));
    let body = MessageBody::Reported {
        call: EventId(1),
        output: serde_json::from_value(serde_json::json!({ "text": text })).unwrap(),
    };
    let large = Message {
        body,
        ..message("x", 1, "a")
    };
    let sends = Append {
        sent: vec![large.clone()],
        ..start("x")
    };
    assert_eq!(store.append(&[start("a"), sends]).unwrap(), []);
    assert_eq!(store.messages_for("a").unwrap(), [large]);
}

fn long_histories_are_loaded_from_their_checkpoint(stand: &Stand) {
    let store = stand.store(&stand.table(), "one");
    let text = noise(150_000);
    assert_eq!(store.append(&[start("a")]).unwrap(), []);
    for number in 0..40 {
        let append = Append {
            checkpoint: (number == 35).then(|| vec![7]),
            ..with_text(more("a", 2 + number, 1), &text)
        };
        assert_eq!(store.append(&[append]).unwrap(), []);
    }
    let before = store.counted().reads;
    let loaded = store.load("a").unwrap().unwrap();
    let short = store.counted().reads - before;
    assert_eq!(loaded.checkpoint, Some((EventId(38), vec![7])));
    let firsts: Vec<u64> = loaded.turns.iter().map(|turn| turn.first.0).collect();
    assert_eq!(firsts, [39, 40, 41, 42]);
    let before = store.counted().reads;
    let whole = store.load_whole("a").unwrap().unwrap();
    assert_eq!(whole.turns.len(), 41);
    assert_eq!(whole.turns[0], turn(1, 2));
    assert!(short < store.counted().reads - before, "{short}");
}
