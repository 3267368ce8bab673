//! Shards that have owners: what a former owner appends is refused. Stores whose shards have none pass by.

use super::notices::notice;
use super::operating::entry;
use super::queueing::{lease, task};
use super::{Case, Tried, message, more, record, start, start_as};
use starbridge_machine::EventId;
use starbridge_ports::{
    ADMISSION, Append, AuditQuery, Epoch, Epochs, ExecutionRecord, Incarnation, Owning, Receivers, Refusal, ShardSet,
    Store, StoreError, shard_of,
};

pub(super) const CASES: &[Case] = &[
    ("a former owner is refused", a_former_owner_is_refused),
    ("nothing of what is fenced is kept", nothing_of_what_is_fenced_is_kept),
    (
        "a claimed shard takes no append without epoch",
        a_claimed_shard_takes_no_append_without_epoch,
    ),
    ("a claim anew fences the one before", a_claim_anew_fences_the_one_before),
    ("what is given back is free", what_is_given_back_is_free),
    ("owners divide the shards", owners_divide_the_shards),
    (
        "an incarnation that is over can do nothing",
        an_incarnation_that_is_over_can_do_nothing,
    ),
    ("epochs outlive the process", epochs_outlive_the_process),
    ("refusals of a batch stay apart", refusals_of_a_batch_stay_apart),
];

fn uuid(shard: u8) -> String {
    format!("0190b3e4-8c1d-7abc-9def-0123456789{shard:02x}")
}

/// An append under the epoch of its shard.
fn under(epochs: &Epochs, append: Append) -> Append {
    Append {
        epoch: epochs.of_execution(&append.execution),
        ..append
    }
}

/// Joins, and claims these shards.
fn owner(owning: &dyn Owning, shards: &[u8]) -> (Incarnation, Epochs) {
    let own = owning.join("one").unwrap();
    (own, claimed(owning, own, shards))
}

fn claimed(owning: &dyn Owning, own: Incarnation, shards: &[u8]) -> Epochs {
    let wanted: ShardSet = shards.iter().copied().collect();
    let claimed = owning.claim(own, &wanted).unwrap();
    assert_eq!(claimed.shards(), wanted);
    claimed
}

fn refused(store: &dyn Store, append: Append) -> Vec<(usize, Refusal)> {
    store.append(&[append]).unwrap()
}

const FENCED: [(usize, Refusal); 1] = [(0, Refusal::Fenced)];

fn a_former_owner_is_refused(tried: &mut Tried<'_>) {
    let store = tried.store();
    let Some(owning) = store.owning() else { return };
    let (one, before) = owner(owning, &[3, 4]);
    let id = uuid(3);
    assert_eq!(refused(store, under(&before, start(&id))), []);
    owning.end(one).unwrap();
    // Whether or not somebody else has the shard already.
    assert_eq!(refused(store, under(&before, more(&id, 2, 1))), FENCED);
    let (two, now) = owner(owning, &[3]);
    assert!(two > one && now.of(3) > before.of(3));
    for late in [more(&id, 2, 1), more(&id, 7, 1), start(&id), start(&uuid(4))] {
        assert_eq!(refused(store, under(&before, late)), FENCED);
    }
    assert_eq!(refused(store, under(&now, more(&id, 2, 1))), []);
    assert_eq!(refused(store, under(&before, more(&id, 3, 1))), FENCED);
    assert_eq!(store.load(&id).unwrap().unwrap().turns.len(), 2);
    assert!(store.load(&uuid(4)).unwrap().is_none());
}

/// An append that changes all there is.
fn everything(id: &str, named: ExecutionRecord) -> Append {
    Append {
        checkpoint: Some(b"state".to_vec()),
        sent: vec![message(id, 2, "receiver")],
        received: vec![message("sender", 9, id).id],
        queued: vec![task("q", id, 2)],
        unqueued: vec![EventId(1)],
        notices: vec![notice("ops", 1, 50)],
        leases: vec![lease(&uuid(3), 1, Some("w"))],
        audit: vec![entry("ada", "stop", id, 7)],
        ..start_as(id, named)
    }
}

fn nothing_of_what_is_fenced_is_kept(tried: &mut Tried<'_>) {
    let store = tried.store();
    let Some(owning) = store.owning() else { return };
    let (one, before) = owner(owning, &[3]);
    let (id, other) = (uuid(3), format!("0{}", &uuid(3)[1..]).replace("0190", "0191"));
    let first = Append {
        queued: vec![task("q", &id, 1)],
        sent: vec![message("sender", 9, &other)],
        ..start(&id)
    };
    assert_eq!(refused(store, under(&before, first)), []);
    owning.end(one).unwrap();
    let (_, now) = owner(owning, &[3]);
    let seen = || {
        let depths = store.depths(&ShardSet::ALL).unwrap();
        let waiting: Vec<u64> = depths.iter().map(|depth| depth.waiting).collect();
        (
            store.load(&id).unwrap().unwrap().turns,
            store.messages(&Receivers::All).unwrap(),
            waiting,
            store.leased_tasks(&ShardSet::ALL).unwrap(),
            store.next_notices(&ShardSet::ALL, "ops", 9).unwrap(),
            store
                .audit(&AuditQuery {
                    limit: 9,
                    ..AuditQuery::default()
                })
                .unwrap()
                .items
                .len(),
            store.counts().unwrap(),
            store.awake(&ShardSet::ALL).unwrap(),
        )
    };
    let kept = seen();
    let named = record("free");
    assert_eq!(
        refused(store, under(&before, everything(&other, named.clone()))),
        FENCED
    );
    assert_eq!(seen(), kept);
    let deletion = Append {
        expected: EventId(2),
        deleted: true,
        execution: id.as_str().into(),
        ..Append::default()
    };
    assert_eq!(refused(store, under(&before, deletion)), FENCED);
    assert_eq!(seen(), kept);
    // The name is free.
    assert_eq!(store.named("order", "free").unwrap(), None);
    assert_eq!(refused(store, under(&now, start_as(&other, named))), []);
}

fn a_claimed_shard_takes_no_append_without_epoch(tried: &mut Tried<'_>) {
    let store = tried.store();
    let Some(owning) = store.owning() else { return };
    assert_eq!(refused(store, start(&uuid(3))), []);
    let (_, epochs) = owner(owning, &[3]);
    assert_eq!(refused(store, more(&uuid(3), 2, 1)), FENCED);
    assert_eq!(refused(store, under(&epochs, more(&uuid(3), 2, 1))), []);
    // Nobody has that one, so nobody has an epoch of it.
    assert_eq!(refused(store, start(&uuid(4))), []);
    let claimed = Append {
        epoch: epochs.of(3),
        ..more(&uuid(4), 2, 1)
    };
    assert_eq!(refused(store, claimed), FENCED);
    // Of no shard.
    let leases = Append::of_leases(vec![lease(&uuid(3), 1, Some("w"))]);
    assert_eq!(refused(store, leases), []);
    let asks = Append {
        sent: vec![message(&uuid(3), 3, ADMISSION)],
        ..Append::default()
    };
    assert_eq!(refused(store, asks), []);
    assert_eq!(store.messages(&Receivers::Admission).unwrap().len(), 1);
}

fn a_claim_anew_fences_the_one_before(tried: &mut Tried<'_>) {
    let store = tried.store();
    let Some(owning) = store.owning() else { return };
    let (own, before) = owner(owning, &[3, 4]);
    let now = claimed(owning, own, &[3]);
    assert!(now.of(3) > before.of(3) && now.of(4) == Epoch::NONE);
    assert_eq!(refused(store, under(&before, start(&uuid(3)))), FENCED);
    assert_eq!(refused(store, under(&now, start(&uuid(3)))), []);
    assert_eq!(refused(store, under(&before, start(&uuid(4)))), []);
}

fn what_is_given_back_is_free(tried: &mut Tried<'_>) {
    let store = tried.store();
    let Some(owning) = store.owning() else { return };
    let (own, before) = owner(owning, &[3, 4]);
    owning.give_back(own, &[3, 9].into_iter().collect()).unwrap();
    assert_eq!(refused(store, under(&before, start(&uuid(3)))), FENCED);
    assert_eq!(refused(store, start(&uuid(3))), []);
    assert_eq!(refused(store, under(&before, start(&uuid(4)))), []);
    let now = claimed(owning, own, &[3]);
    assert!(now.of(3) > before.of(3));
    let states = owning.heartbeat(own).unwrap();
    assert_eq!(
        states.last().map(|state| state.shards),
        Some([3, 4].into_iter().collect())
    );
}

fn owners_divide_the_shards(tried: &mut Tried<'_>) {
    let store = tried.store();
    let Some(owning) = store.owning() else { return };
    let (one, first) = owner(owning, &[3, 4]);
    let two = owning.join("two").unwrap();
    let beats = |own| {
        let states = owning.heartbeat(own)?;
        Ok::<_, StoreError>(
            states
                .into_iter()
                .map(|state| (state.incarnation, state.beats, state.shards)),
        )
    };
    let Ok(states) = beats(one) else {
        // One process has the store at a time.
        assert_eq!(claimed(owning, two, &[3, 4]).shards().len(), 2);
        return;
    };
    let both: ShardSet = [3, 4].into_iter().collect();
    assert_eq!(states.collect::<Vec<_>>(), [(one, 1, both), (two, 0, ShardSet::NONE)]);
    let second = owning.claim(two, &[4, 5].into_iter().collect()).unwrap();
    assert_eq!(second.shards(), [5].into_iter().collect());
    let states: Vec<_> = beats(two).unwrap().collect();
    assert_eq!(states, [(one, 1, both), (two, 1, second.shards())]);
    assert_eq!(refused(store, under(&first, start(&uuid(4)))), []);
    assert_eq!(refused(store, under(&second, start(&uuid(5)))), []);
    assert_eq!(refused(store, under(&second, more(&uuid(4), 2, 1))), FENCED);
    assert_eq!(refused(store, under(&first, more(&uuid(5), 2, 1))), FENCED);
    // Who gives back what is another's changes nothing.
    owning.give_back(two, &both).unwrap();
    assert_eq!(refused(store, under(&first, more(&uuid(4), 2, 1))), []);
}

fn an_incarnation_that_is_over_can_do_nothing(tried: &mut Tried<'_>) {
    let store = tried.store();
    let Some(owning) = store.owning() else { return };
    let (one, _) = owner(owning, &[3]);
    owning.end(one).unwrap();
    owning.end(one).unwrap();
    let (two, now) = owner(owning, &[3]);
    assert_eq!(owning.heartbeat(one), Err(StoreError::Over));
    assert_eq!(owning.claim(one, &ShardSet::ALL), Err(StoreError::Over));
    assert_eq!(owning.give_back(one, &ShardSet::ALL), Err(StoreError::Over));
    owning.end(one).unwrap();
    let states = owning.heartbeat(two).unwrap();
    let shards: Vec<_> = states.iter().map(|state| (state.incarnation, state.shards)).collect();
    assert_eq!(shards, [(two, now.shards())]);
    assert_eq!(refused(store, under(&now, start(&uuid(3)))), []);
}

fn epochs_outlive_the_process(tried: &mut Tried<'_>) {
    let Some((one, before)) = tried.store().owning().map(|owning| owner(owning, &[3, 4])) else {
        return;
    };
    let store = tried.store();
    let Some(owning) = store.owning() else { return };
    if owning.heartbeat(one).is_ok() {
        // It was not opened again.
        return;
    }
    assert_eq!(refused(store, under(&before, start(&uuid(3)))), FENCED);
    assert_eq!(refused(store, start(&uuid(4))), []);
    let (two, now) = owner(owning, &[3]);
    assert!(two > one && now.of(3) > before.of(3));
    assert_eq!(refused(store, under(&before, start(&uuid(3)))), FENCED);
    assert_eq!(refused(store, under(&now, start(&uuid(3)))), []);
}

fn refusals_of_a_batch_stay_apart(tried: &mut Tried<'_>) {
    let store = tried.store();
    let Some(owning) = store.owning() else { return };
    let (own, before) = owner(owning, &[3, 4]);
    let now = claimed(owning, own, &[3]);
    let name = (0..)
        .map(|number| format!("name {number}"))
        .find(|name| shard_of(name) == 4);
    let name = name.unwrap_or_default();
    let batch = [
        under(&before, start(&uuid(3))),
        under(&before, start(&uuid(4))),
        under(&before, more(&uuid(3), 2, 1)),
        under(&now, start(&uuid(3))),
        under(&before, start(&name)),
        under(&before, more(&name, 7, 1)),
        under(&before, more(&uuid(4), 2, 1)),
    ];
    let refusals = store.append(&batch).unwrap();
    // What follows a refused append of the same execution is refused too.
    assert_eq!(
        refusals,
        [
            (0, Refusal::Fenced),
            (2, Refusal::Fenced),
            (3, Refusal::Conflict),
            (5, Refusal::Conflict)
        ]
    );
    assert_eq!(store.load(&uuid(4)).unwrap().unwrap().turns.len(), 2);
    assert!(store.load(&uuid(3)).unwrap().is_none() && store.load(&name).unwrap().is_some());
}
