//! The data of admission: waiters, their dependencies, keys, and the holders of their slots.

use super::{Case, Tried, record, start_as};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{
    ADMISSION, AdmissionChange, Append, Ask, Dependency, EndedHolders, ExecutionRecord, KeptKey, KeyPause, LinePlace,
    Message, MessageBody, MessageId, NeededKey, OpenDependency, PoolKey, Receivers, ShardSet, Waiter, Waiters,
};

pub(super) const CASES: &[Case] = &[
    ("lines are in order", lines_are_in_order),
    ("a waiter is kept as it is", a_waiter_is_kept_as_it_is),
    ("dependencies are found", dependencies_are_found),
    ("slots are held until they are released", slots_are_held),
    ("holders that have ended are found", ended_holders_are_found),
    ("keys are kept", keys_are_kept),
    ("messages to admission are pending", messages_are_pending),
    ("messages to admission are read by pages", messages_are_read_by_pages),
];

fn key(name: &str) -> PoolKey {
    PoolKey {
        pool: "pool".into(),
        key: name.into(),
    }
}

fn waiter(number: u64, priority: u8, order: i64, requested: i64, parked: Option<&str>) -> Waiter {
    let limit = 2;
    Waiter {
        number,
        execution: Text::from(format!("e{number}")),
        event: EventId(number + 3),
        ask: Ask {
            flow: "f".into(),
            keys: vec![NeededKey { key: key("a"), limit }],
            after: Vec::new(),
            priority,
            order,
            requested: Timestamp(requested),
            ancestors: Vec::new(),
        },
        open: Vec::new(),
        parked: parked.map(key),
        moves: 0,
        claim: None,
    }
}

fn change(tried: &mut Tried<'_>, admission: Vec<AdmissionChange>) {
    tried.append(&[Append {
        admission,
        ..Append::default()
    }]);
}

fn put(tried: &mut Tried<'_>, waiters: Vec<Waiter>) {
    let changes = waiters
        .into_iter()
        .map(|waiter| AdmissionChange::PutWaiter(Box::new(waiter)));
    change(tried, changes.collect());
}

fn numbers(tried: &mut Tried<'_>, which: Waiters<'_>, limit: usize) -> Vec<u64> {
    let found = tried.store().waiters(which, limit).unwrap();
    let ids = tried.store().waiter_ids(which, limit).unwrap();
    let of_found = found.iter().map(|waiter| (waiter.number, waiter.execution.clone()));
    assert_eq!(ids, of_found.collect::<Vec<_>>());
    found.into_iter().map(|waiter| waiter.number).collect()
}

fn lines_are_in_order(tried: &mut Tried<'_>) {
    if !tried.store().keeps_admission() {
        return;
    }
    let waiters = vec![
        waiter(1, 0, 5, 50, Some("a")),
        waiter(2, 9, 7, 40, Some("a")),
        waiter(3, 9, 6, 30, Some("a")),
        waiter(4, 9, 6, 20, Some("a")),
        waiter(5, 9, 0, 10, Some("b")),
        waiter(6, 9, 0, 10, None),
    ];
    let third = waiters[1].place();
    let second_oldest = waiters[2].age();
    put(tried, waiters);
    let (a, b) = (key("a"), key("b"));
    assert_eq!(numbers(tried, Waiters::InLine(&a, None), 9), [3, 4, 2, 1]);
    assert_eq!(numbers(tried, Waiters::InLine(&a, None), 2), [3, 4]);
    assert_eq!(numbers(tried, Waiters::InLine(&a, Some(third)), 9), [1]);
    assert_eq!(numbers(tried, Waiters::ByAge(&a, None), 9), [4, 3, 2, 1]);
    assert_eq!(numbers(tried, Waiters::ByAge(&a, Some(second_oldest)), 9), [2, 1]);
    assert_eq!(numbers(tried, Waiters::InLine(&b, None), 9), [5]);
    let before = |tried: &mut Tried<'_>, place: LinePlace, most| tried.store().waiters_before(&a, place, most).unwrap();
    assert_eq!(before(tried, third, 9), 2);
    assert_eq!(before(tried, third, 1), 1);
    assert_eq!(tried.store().key(&a).unwrap().waiting, 4);
    assert_eq!(tried.store().last_waiter().unwrap(), (6, 0));
    let execution = Text::from("e3");
    change(tried, vec![AdmissionChange::RemoveWaiter { execution }]);
    assert_eq!(numbers(tried, Waiters::InLine(&a, None), 9), [4, 2, 1]);
}

fn a_waiter_is_kept_as_it_is(tried: &mut Tried<'_>) {
    if !tried.store().keeps_admission() {
        return;
    }
    let mut one = waiter(7, 4, -3, 70, None);
    one.ask.ancestors = vec!["above".into(), "root".into()];
    one.claim = Some(12);
    one.moves = 8;
    put(tried, vec![one.clone()]);
    assert_eq!(tried.store().waiter("e7").unwrap(), Some(one.clone()));
    assert_eq!(numbers(tried, Waiters::Claimed(0), 9), [7]);
    assert_eq!(numbers(tried, Waiters::Claimed(7), 9), Vec::<u64>::new());
    assert_eq!(numbers(tried, Waiters::Below("root", 0), 9), [7]);
    assert_eq!(numbers(tried, Waiters::Below("e7", 0), 9), Vec::<u64>::new());
    assert_eq!(tried.store().last_waiter().unwrap(), (7, 12));
    one.claim = None;
    one.parked = Some(key("b"));
    put(tried, vec![one.clone()]);
    assert_eq!(tried.store().waiter("e7").unwrap(), Some(one));
    assert_eq!(numbers(tried, Waiters::Claimed(0), 9), Vec::<u64>::new());
    assert_eq!(tried.store().waiter("e8").unwrap(), None);
    let execution = Text::from("e7");
    change(tried, vec![AdmissionChange::RemoveWaiter { execution }]);
    assert_eq!(numbers(tried, Waiters::Below("root", 0), 9), Vec::<u64>::new());
    // The next one of that number has no ancestors.
    put(tried, vec![waiter(7, 4, -3, 70, None)]);
    assert_eq!(numbers(tried, Waiters::Below("root", 0), 9), Vec::<u64>::new());
}

fn dependencies_are_found(tried: &mut Tried<'_>) {
    if !tried.store().keeps_admission() {
        return;
    }
    let open = |flow: Option<&str>, execution: &str, bound: Option<&str>| OpenDependency {
        dependency: Dependency {
            flow: flow.map(Text::from),
            execution: execution.into(),
            any_end: true,
        },
        bound: bound.map(Text::from),
    };
    let mut one = waiter(1, 0, 0, 0, None);
    one.open = vec![open(Some("f"), "n", None), open(None, "id", Some("id"))];
    let mut two = waiter(2, 0, 0, 0, None);
    two.open = vec![open(Some("f"), "n", Some("id")), open(Some("f"), "m", Some("id"))];
    assert!(!tried.store().anyone_depends().unwrap());
    put(tried, vec![one.clone(), two.clone()]);
    assert!(tried.store().anyone_depends().unwrap());
    assert_eq!(numbers(tried, Waiters::Named("f", "n", 0), 9), [1]);
    assert_eq!(numbers(tried, Waiters::Named("g", "n", 0), 9), Vec::<u64>::new());
    assert_eq!(numbers(tried, Waiters::BoundTo("id", 0), 9), [1, 2]);
    assert_eq!(numbers(tried, Waiters::BoundTo("id", 0), 1), [1]);
    assert_eq!(numbers(tried, Waiters::BoundTo("id", 1), 9), [2]);
    assert_eq!(numbers(tried, Waiters::Unbound(0), 9), [1]);
    assert_eq!(tried.store().waiter("e1").unwrap(), Some(one.clone()));
    one.open.remove(0);
    two.open.clear();
    put(tried, vec![one, two]);
    assert_eq!(numbers(tried, Waiters::Named("f", "n", 0), 9), Vec::<u64>::new());
    assert_eq!(numbers(tried, Waiters::BoundTo("id", 0), 9), [1]);
    let execution = Text::from("e1");
    change(tried, vec![AdmissionChange::RemoveWaiter { execution }]);
    assert_eq!(numbers(tried, Waiters::BoundTo("id", 0), 9), Vec::<u64>::new());
    assert!(!tried.store().anyone_depends().unwrap());
}

fn slots_are_held(tried: &mut Tried<'_>) {
    if !tried.store().keeps_admission() {
        return;
    }
    let take = |execution: &str, keys: &[&str]| AdmissionChange::TakeSlots {
        execution: execution.into(),
        keys: keys.iter().map(|name| key(name)).collect(),
    };
    change(tried, vec![take("e1", &["a", "b"]), take("e2", &["a"])]);
    // It is there already.
    change(tried, vec![take("e1", &["a"])]);
    assert_eq!(tried.store().slots_of("e1").unwrap(), [key("a"), key("b")]);
    assert_eq!(tried.store().holders(&key("a"), 9).unwrap(), ["e1", "e2"]);
    let mut all = tried.store().all_slots(3).unwrap().expect("there are three");
    all.sort();
    let held = [("e1", "a"), ("e1", "b"), ("e2", "a")];
    assert_eq!(all, held.map(|(execution, name)| (Text::from(execution), key(name))));
    assert_eq!(tried.store().all_slots(2).unwrap(), None);
    assert_eq!(tried.store().holders(&key("a"), 1).unwrap(), ["e1"]);
    assert_eq!(tried.store().kept_key(&key("a")).unwrap().1, 2);
    let execution = Text::from("e1");
    change(
        tried,
        vec![AdmissionChange::ReleaseSlots { execution }, take("e1", &["c"])],
    );
    assert_eq!(tried.store().slots_of("e1").unwrap(), [key("c")]);
    assert_eq!(tried.store().key(&key("a")).unwrap().held, 1);
}

fn ended_holders_are_found(tried: &mut Tried<'_>) {
    if !tried.store().keeps_admission() {
        return;
    }
    let mut starts = Vec::new();
    for (id, status) in [
        ("e1", Status::Failed),
        ("e2", Status::Running),
        ("e3", Status::Queued),
        ("e4", Status::Succeeded),
        ("e5", Status::Stopped),
    ] {
        let ended = ExecutionRecord { status, ..record(id) };
        starts.push(start_as(id, ended));
    }
    tried.append(&starts);
    let take = |execution: &str| AdmissionChange::TakeSlots {
        execution: execution.into(),
        keys: vec![key("a"), key("b")],
    };
    let holders = ["e1", "e2", "e3", "e4", "gone"];
    change(tried, holders.into_iter().map(take).collect());
    let expected = [("e1", Status::Failed), ("e4", Status::Succeeded), ("gone", Status::New)];
    let expected = expected.map(|(id, status)| (Text::from(id), status));
    // In pages of any size.
    for limit in 1..8 {
        let (mut found, mut after, mut pages) = (Vec::new(), Some(Text::default()), 0);
        while let Some(last) = after {
            let EndedHolders { ended, looked } = tried.store().ended_holders(&last, limit).unwrap();
            found.extend(ended);
            after = looked;
            pages += 1;
        }
        assert_eq!(
            (found, pages),
            (expected.to_vec(), holders.len() / limit + 1),
            "{limit}"
        );
    }
    let released = holders.map(|id| AdmissionChange::ReleaseSlots { execution: id.into() });
    change(tried, released.into_iter().collect());
    assert_eq!(tried.store().ended_holders("", 8).unwrap(), EndedHolders::default());
}

fn keys_are_kept(tried: &mut Tried<'_>) {
    if !tried.store().keeps_admission() {
        return;
    }
    let nothing = KeptKey::of(key("a"));
    assert_eq!(tried.store().kept_key(&key("a")).unwrap(), (nothing.clone(), 0));
    let set = KeptKey {
        defined: Some(5),
        set: Some(3),
        set_by: Some("o".into()),
        stale: true,
        ..nothing
    };
    let paused = KeptKey {
        paused: Some(KeyPause {
            by: "o".into(),
            since: Timestamp(9),
        }),
        ..KeptKey::of(key("b"))
    };
    change(
        tried,
        vec![
            AdmissionChange::PutKey(set.clone()),
            AdmissionChange::PutKey(paused.clone()),
        ],
    );
    assert_eq!(tried.store().key(&key("a")).unwrap().kept, set);
    assert_eq!(tried.store().kept_keys(None, 9).unwrap(), [set.clone(), paused.clone()]);
    assert_eq!(tried.store().kept_keys(Some(&key("a")), 9).unwrap(), [paused]);
    assert_eq!(tried.store().stale_keys().unwrap(), [key("a")]);
    let calm = KeptKey { stale: false, ..set };
    change(
        tried,
        vec![AdmissionChange::PutKey(calm), AdmissionChange::RemoveKey(key("b"))],
    );
    assert_eq!(tried.store().stale_keys().unwrap(), []);
    assert_eq!(tried.store().kept_keys(None, 9).unwrap().len(), 1);
}

fn messages_are_pending(tried: &mut Tried<'_>) {
    if !tried.store().keeps_admission() {
        return;
    }
    let id = MessageId {
        from: "e1".into(),
        event: EventId(4),
        to: ADMISSION.into(),
    };
    let message = Message {
        id: id.clone(),
        body: MessageBody::Admit,
    };
    let other = MessageId {
        to: "e2".into(),
        ..id.clone()
    };
    let to_other = Message {
        id: other.clone(),
        body: MessageBody::Admit,
    };
    tried.append(&[Append {
        sent: vec![message, to_other],
        ..Append::default()
    }]);
    assert!(tried.store().is_pending(&id).unwrap());
    let asked = [
        id.clone(),
        MessageId {
            event: EventId(5),
            ..id.clone()
        },
        other.clone(),
    ];
    assert_eq!(tried.store().pending_of(&asked).unwrap(), [id.clone(), other.clone()]);
    let mut receivers = |to| {
        let messages = tried.store().messages(&to).unwrap();
        messages.into_iter().map(|message| message.id.to).collect::<Vec<_>>()
    };
    assert_eq!(
        (
            receivers(Receivers::Admission),
            receivers(Receivers::Executions(ShardSet::ALL))
        ),
        (vec![ADMISSION.into()], vec![other.to])
    );
    tried.append(&[Append {
        received: vec![id.clone()],
        ..Append::default()
    }]);
    assert!(!tried.store().is_pending(&id).unwrap());
}

/// Messages to admission are read a few at a time, in the order in which they were sent, and those of one execution alone.
fn messages_are_read_by_pages(tried: &mut Tried<'_>) {
    if !tried.store().keeps_admission() {
        return;
    }
    let message = |from: &str, event: u64, to: &str| Message {
        id: MessageId {
            from: from.into(),
            event: EventId(event),
            to: to.into(),
        },
        body: MessageBody::Withdrawn,
    };
    let sent = vec![
        message("b", 1, ADMISSION),
        message("b", 2, "c"),
        message("a", 1, ADMISSION),
        message("b", 3, ADMISSION),
    ];
    tried.append(&[Append {
        sent: sent.clone(),
        ..Append::default()
    }]);
    let [first, _, second, third] = &sent[..] else {
        unreachable!()
    };
    let store = tried.store();
    assert_eq!(store.first_messages(2).unwrap(), [first.clone(), second.clone()]);
    assert_eq!(store.messages_of("b").unwrap(), [first.clone(), third.clone()]);
    assert_eq!(store.messages_of("c").unwrap(), []);
    tried.append(&[Append {
        received: vec![first.id.clone()],
        ..Append::default()
    }]);
    let store = tried.store();
    assert_eq!(store.first_messages(9).unwrap(), [second.clone(), third.clone()]);
    assert_eq!(store.messages_of("b").unwrap(), std::slice::from_ref(third));
}
