//! Shards of the store that are taken in and given up.

use super::{CALL, SLEEP, sent, shard, start, succeeded};
use crate::shard::{ExecutionSeed, PumpResult, Shard, StartRequest};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::Rejection;
use starbridge_ports::{Epoch, Epochs, Message, MessageBody, MessageId, Refusal, ShardSet, shard_of};

/// Appends what is decided.
fn commit(shard: &mut Shard) {
    assert_eq!(shard.pump(Timestamp(0)), PumpResult::Decided);
    shard.take_batch();
    shard.committed(&[]);
}

#[test]
fn messages_of_the_store_let_nothing_leave_before_it_is_durable() {
    let mut shard = shard(CALL);
    start(&mut shard);
    shard.redeliver(Vec::new());
    assert!(shard.take_outgoing().is_empty());
    commit(&mut shard);
    assert_eq!(sent(&mut shard).len(), 1);
}

#[test]
fn a_shard_that_was_given_up_decides_nothing() {
    let mut shard = shard(&format!("{CALL}, {SLEEP}"));
    let (gone, stays) = (start(&mut shard), start(&mut shard));
    commit(&mut shard);
    let calls = sent(&mut shard);
    assert_ne!(shard_of(&gone), shard_of(&stays));
    let left: ShardSet = [shard_of(&gone)].into_iter().collect();
    let message = Message {
        id: MessageId {
            from: stays.clone(),
            event: calls[0].1,
            to: gone.clone(),
        },
        body: MessageBody::GivenUp,
    };
    shard.deliver(message.clone());
    shard.leave(&left);
    shard.deliver(message);
    assert!(!shard.owns(&gone) && shard.owns(&stays));
    // Neither an answer nor a message nor a start changes anything.
    let answered = shard.signal(&gone, succeeded(calls[0].1), Timestamp(1));
    assert_eq!(answered, Err(Rejection::Unknown));
    assert_eq!(shard.pump(Timestamp(1)), PumpResult::Idle);
    shard.signal(&stays, succeeded(calls[1].1), Timestamp(1)).unwrap();
    commit(&mut shard);
    shard.forget_left(&left);
    assert_eq!(shard.executions().collect::<Vec<_>>(), [&stays]);
    assert!(shard.next_wakeup().is_some() && shard.fire_next(Timestamp(6_000)));
}

#[test]
fn what_was_decided_for_a_shard_that_another_owner_got_is_dropped() {
    let mut shard = shard(&format!("{CALL}, {SLEEP}"));
    let (gone, stays) = (start(&mut shard), start(&mut shard));
    let (left, kept): (ShardSet, ShardSet) = (
        [shard_of(&gone)].into_iter().collect(),
        [shard_of(&stays)].into_iter().collect(),
    );
    let mut epochs = Epochs::default();
    epochs.set(&left, Epoch(4));
    epochs.set(&kept, Epoch(5));
    shard.append_under(&epochs);
    assert_eq!(shard.pump(Timestamp(0)), PumpResult::Decided);
    let batch = shard.take_batch();
    assert_eq!(batch.iter().map(|append| append.epoch.0).collect::<Vec<_>>(), [4, 5]);
    shard.committed(&[]);
    let calls = sent(&mut shard);
    for ((execution, call), mark) in calls.iter().zip([7, 8]) {
        shard.signal(execution, succeeded(*call), Timestamp(1)).unwrap();
        shard.mark(mark);
    }
    assert_eq!(shard.take_batch().len(), 2);
    // Decided while the store is asked, in the same shard.
    let beside = (0..).map(|number| format!("e{number} beside"));
    let beside = beside.into_iter().find(|name| left.has_execution(name)).map(Text::from);
    let request = StartRequest {
        flow: "f".into(),
        name: beside,
        ..StartRequest::default()
    };
    shard.start(request, Timestamp(1)).unwrap();
    shard.committed(&[(0, Refusal::Fenced)]);
    assert!(shard.take_lost().is_empty(), "its shard is, not it alone");
    assert_eq!(shard.take_fenced(), left);
    shard.drop_fenced(&left);
    assert!(!shard.owns(&gone) && shard.owns(&stays));
    assert_eq!(shard.pump(Timestamp(1)), PumpResult::Idle);
    assert_eq!(shard.executions().collect::<Vec<_>>(), [&stays]);
    let told = shard.take_outgoing();
    assert!(
        told.iter()
            .all(|outgoing| outgoing.execution().is_none_or(|of| *of == stays))
    );
    assert!(shard.fire_next(Timestamp(6_000)));
    assert_eq!(shard.pump(Timestamp(6_000)), PumpResult::Decided);
    assert_eq!(shard.take_batch()[0].epoch, Epoch(5));
}

#[test]
fn no_timer_fires_in_a_shard_that_was_given_up() {
    let mut shard = shard(SLEEP);
    start(&mut shard);
    commit(&mut shard);
    assert_eq!(shard.next_wakeup(), Some(Timestamp(5_000)));
    shard.leave(&ShardSet::ALL);
    assert_eq!(shard.next_wakeup(), None);
    assert!(!shard.fire_next(Timestamp(5_000)));
    shard.forget_left(&ShardSet::ALL);
    assert!(shard.is_empty());
}

#[test]
fn a_new_execution_is_one_of_its_owner() {
    let mut shard = shard(CALL);
    let id = "0190b3e4-8c1d-7abc-9def-012345678905";
    shard.id_source = Box::new(move |request, _| ExecutionSeed {
        id: request.id.clone().unwrap_or_else(|| id.into()),
        seed: 1,
    });
    shard.own([3, 9].into_iter().collect());
    let mut begun = |id: Option<&str>| {
        let request = StartRequest {
            flow: "f".into(),
            id: id.map(Text::from),
            ..StartRequest::default()
        };
        shard.new_seed(&request, Timestamp(0)).id
    };
    assert_eq!(begun(None), "0190b3e4-8c1d-7abc-9def-012345678909");
    // An id that somebody gave stays as it is.
    assert_eq!(begun(Some("mine")), "mine");
    shard.own([5].into_iter().collect());
    assert_eq!(start(&mut shard), id);
}
