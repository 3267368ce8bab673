//! What is read of some shards only.

use super::notices::notice;
use super::queueing::{lease, task};
use super::{Case, Tried, message, record, start, start_as};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{ADMISSION, Append, ExecutionRecord, QueuedTask, Receivers, ShardSet, shard_of, shard_of_queue};
use std::collections::BTreeSet;

pub(super) const CASES: &[Case] = &[
    ("owners find their executions", owners_find_their_executions),
    ("owners find their messages", owners_find_their_messages),
    ("owners find their queues", owners_find_their_queues),
    ("owners find their notices", owners_find_their_notices),
    ("a limit counts those of the shards", a_limit_counts_those_of_the_shards),
];

/// Ids of every sort: UUIDs in small and in capital letters, names, and some that only look like UUIDs or take part in escapes.
fn ids() -> Vec<String> {
    let mut ids: Vec<String> = (0..24).map(|number| uuid(number * 11)).collect();
    ids.push(uuid(171).to_uppercase());
    ids.push(uuid(0).replace("00", "+f"));
    ids.push(uuid(0).replace("00", "zz"));
    ids.extend((0..24).map(|number| format!("name {number}")));
    ids.extend(["Zoë's \u{0}".to_owned(), format!("\u{0}{}", &uuid(17)[3..])]);
    ids
}

fn uuid(shard: u8) -> String {
    format!("0190b3e4-8c1d-7abc-9def-0123456789{shard:02x}")
}

/// Sets of owners: one that has all, several that divide the shards, one that has none, one that has a single shard.
fn sets() -> Vec<ShardSet> {
    let mut sets = vec![ShardSet::ALL, ShardSet::NONE, [171].into_iter().collect()];
    sets.extend((0..3).map(|which| ShardSet::part(which, 3)));
    sets
}

fn those_of<'a>(shards: &ShardSet, ids: &'a [String]) -> BTreeSet<&'a str> {
    ids.iter()
        .map(String::as_str)
        .filter(|id| shards.has(shard_of(id)))
        .collect()
}

fn asleep(id: &str, until: i64) -> Append {
    let sleeping = ExecutionRecord {
        awake: false,
        wake_at: Some(Timestamp(until)),
        ..record(id)
    };
    start_as(id, sleeping)
}

fn owners_find_their_executions(tried: &mut Tried<'_>) {
    let awake = ids();
    let sleeping: Vec<String> = awake.iter().map(|id| id.replace('9', "8")).collect();
    let sleeping: Vec<String> = sleeping.into_iter().filter(|id| !awake.contains(id)).collect();
    tried.append(&awake.iter().map(|id| start(id)).collect::<Vec<_>>());
    tried.append(&sleeping.iter().map(|id| asleep(id, 50)).collect::<Vec<_>>());
    for shards in sets() {
        let found = tried.store().awake(&shards).unwrap();
        assert!(found.is_sorted());
        let found: BTreeSet<&str> = found.iter().map(Text::as_str).collect();
        assert_eq!(found, those_of(&shards, &awake), "{shards:?}");
        let found = tried.store().due(&shards, Timestamp(51), usize::MAX).unwrap();
        let found: BTreeSet<&str> = found.iter().map(|(_, id)| id.as_str()).collect();
        assert_eq!(found, those_of(&shards, &sleeping), "{shards:?}");
    }
}

fn owners_find_their_messages(tried: &mut Tried<'_>) {
    let ids = ids();
    tried.append(&[start("sender")]);
    let to = ids.iter().map(String::as_str).chain([ADMISSION]);
    let sent = (3..).zip(to).map(|(event, to)| message("sender", event, to)).collect();
    tried.append(&[Append {
        sent,
        ..Append::default()
    }]);
    for shards in sets() {
        let found = tried.store().messages(&Receivers::Executions(shards)).unwrap();
        assert!(found.is_sorted_by_key(|message| message.id.event));
        let found: BTreeSet<&str> = found.iter().map(|message| message.id.to.as_str()).collect();
        assert_eq!(found, those_of(&shards, &ids), "{shards:?}");
    }
    let found = tried.store().messages(&Receivers::Admission).unwrap();
    assert_eq!(
        found.iter().map(|message| &*message.id.to).collect::<Vec<_>>(),
        [ADMISSION]
    );
    let all = tried.store().messages(&Receivers::All).unwrap();
    assert_eq!(all.len(), ids.len() + 1);
}

fn owners_find_their_queues(tried: &mut Tried<'_>) {
    let queues: Vec<String> = (0..12).map(|number| format!("queue {number} Zoë's \u{0}")).collect();
    // The tasks of a queue are of executions of all shards.
    let ids: Vec<String> = (0..4).map(|number| uuid(number * 50)).collect();
    for id in &ids {
        let tasks = (3..).zip(&queues).map(|(call, queue)| QueuedTask {
            wait_until: Some(Timestamp(90)),
            ..task(queue, id, call)
        });
        tried.append(&[Append {
            queued: tasks.collect(),
            ..start(id)
        }]);
    }
    let leases = (3..).zip(&queues).map(|(call, _)| lease(&ids[1], call, Some("w")));
    tried.append(&[Append::of_leases(leases.collect())]);
    for shards in sets() {
        let own = queues.iter().filter(|queue| shards.has(shard_of_queue(queue)));
        let own: BTreeSet<&str> = own.map(String::as_str).collect();
        let depths = tried.store().depths(&shards).unwrap();
        assert!(depths.is_sorted_by_key(|depth| depth.queue.clone()) && depths.iter().all(|depth| depth.waiting == 3));
        assert_eq!(depths.iter().map(|depth| &*depth.queue).collect::<BTreeSet<_>>(), own);
        let leased = tried.store().leased_tasks(&shards).unwrap();
        assert_eq!(leased.len(), own.len());
        assert_eq!(
            leased.iter().map(|(task, _)| &*task.queue).collect::<BTreeSet<_>>(),
            own
        );
        let overdue = tried.store().overdue_tasks(&shards, Timestamp(91), 99).unwrap();
        assert_eq!(overdue.len(), own.len() * 3);
        assert_eq!(overdue.iter().map(|task| &*task.queue).collect::<BTreeSet<_>>(), own);
        let some = tried.store().overdue_tasks(&shards, Timestamp(91), 2).unwrap();
        assert_eq!(some, overdue[..overdue.len().min(2)]);
    }
}

fn owners_find_their_notices(tried: &mut Tried<'_>) {
    let ids = ids();
    let told = ids.iter().map(|id| Append {
        notices: vec![notice("ops", 1, 50), notice("ops", 2, 20), notice("audit", 1, 10)],
        ..start(id)
    });
    tried.append(&told.collect::<Vec<_>>());
    for shards in sets() {
        let found = tried.store().next_notices(&shards, "ops", 999).unwrap();
        assert!(found.iter().all(|next| next.event.0 == 1));
        let found: BTreeSet<&str> = found.iter().map(|next| next.execution.as_str()).collect();
        assert_eq!(found, those_of(&shards, &ids), "{shards:?}");
    }
}

/// Those of other shards come first, and are more than what is asked for.
fn a_limit_counts_those_of_the_shards(tried: &mut Tried<'_>) {
    let of = |shard: u8, number: i64| format!("{number:08}-8c1d-7abc-9def-0123456789{shard:02x}");
    let ids: Vec<(String, i64)> = (0..40_i64)
        .map(|number| (of(if number % 10 == 9 { 7 } else { 8 }, number), 10 + number))
        .collect();
    let told = ids.iter().map(|(id, time)| Append {
        notices: vec![notice("ops", 1, *time)],
        ..asleep(id, *time)
    });
    tried.append(&told.collect::<Vec<_>>());
    // A name whose shard no database knows.
    let name = (0..)
        .map(|number| format!("name {number}"))
        .find(|name| shard_of(name) == 7);
    let name = name.unwrap_or_default();
    tried.append(&[Append {
        notices: vec![notice("ops", 1, 29)],
        ..asleep(&name, 29)
    }]);
    let seven: ShardSet = [7].into_iter().collect();
    let own = [of(7, 9), of(7, 19), name, of(7, 29), of(7, 39)];
    for limit in 0..6 {
        let due = tried.store().due(&seven, Timestamp(999), limit).unwrap();
        let due: Vec<&str> = due.iter().map(|(_, id)| id.as_str()).collect();
        assert_eq!(due, own[..limit.min(5)]);
        let next = tried.store().next_notices(&seven, "ops", limit).unwrap();
        let next: Vec<&str> = next.iter().map(|next| next.execution.as_str()).collect();
        assert_eq!(next, own[..limit.min(5)]);
    }
}
