//! Which triggers start an execution.

use super::{at, expression};
use crate::schedule::{CatchUp, Firing, ON_TIME, Overlap, Schedule};
use starbridge_flow::time::Timestamp;

fn schedule(text: &str, overlap: Overlap, catch_up: CatchUp) -> Schedule {
    Schedule {
        overlap,
        catch_up,
        ..Schedule::new("nightly", expression(text), "report").unwrap()
    }
}

/// The minutes of 2026-01-01 at which something is started.
fn started(firing: &Firing) -> Vec<i64> {
    let minutes = |time: Timestamp| (time.0 - at("2026-01-01T00:00:00Z").0) / 60_000;
    firing.starts.iter().map(|trigger| minutes(trigger.time)).collect()
}

fn minute(minute: i64) -> Timestamp {
    Timestamp(at("2026-01-01T00:00:00Z").0 + minute * 60_000)
}

#[test]
fn trigger_on_time_starts() {
    for overlap in [Overlap::Skip, Overlap::Queue, Overlap::Allow] {
        for catch_up in [CatchUp::None, CatchUp::Last] {
            let schedule = schedule("*/10 * * * *", overlap, catch_up);
            let early = schedule.fires(Some(minute(0)), Timestamp(minute(10).0 - 1), false);
            assert_eq!((started(&early), early.next), (vec![], Some(minute(10))));
            for late in [0, 1, ON_TIME.0 as i64 - 1] {
                let now = Timestamp(minute(10).0 + late);
                let firing = schedule.fires(Some(minute(0)), now, false);
                assert_eq!(started(&firing), [10]);
                assert_eq!((firing.last, firing.next, firing.missed), (now, Some(minute(20)), None));
                assert_eq!(started(&schedule.fires(Some(firing.last), now, true)), [0; 0]);
            }
        }
    }
}

#[test]
fn missed_triggers_catch_up() {
    // Nothing handled the schedule from minute 0 to minute 35.
    let none = schedule("*/10 * * * *", Overlap::Allow, CatchUp::None).fires(Some(minute(0)), minute(35), false);
    assert_eq!(
        (started(&none), none.missed, none.next),
        (vec![], Some(minute(30)), Some(minute(40)))
    );
    let last = schedule("*/10 * * * *", Overlap::Allow, CatchUp::Last).fires(Some(minute(0)), minute(35), false);
    assert_eq!(
        (started(&last), last.missed, last.next),
        (vec![30], None, Some(minute(40)))
    );
    // A trigger on time stands for those missed before it.
    for catch_up in [CatchUp::None, CatchUp::Last] {
        let firing = schedule("*/10 * * * *", Overlap::Allow, catch_up).fires(Some(minute(0)), minute(30), false);
        assert_eq!((started(&firing), firing.missed), (vec![30], Some(minute(20))));
    }
    // A year of seconds costs no more than a minute of them.
    let busy = schedule("* * * * * *", Overlap::Skip, CatchUp::Last);
    let firing = busy.fires(Some(at("2025-01-01T00:00:00Z")), minute(0), false);
    assert_eq!((firing.starts.len(), firing.overlapped.len()), (1, 59));
    assert_eq!(firing.missed, Some(Timestamp(minute(0).0 - 60_000)));
}

#[test]
fn overlap() {
    let every = |overlap| schedule("@every 20s", overlap, CatchUp::None);
    let (from, now) = (Some(minute(0)), minute(1));
    for (running, starts, overlapped) in [(false, 1, 2), (true, 0, 3)] {
        let firing = every(Overlap::Skip).fires(from, now, running);
        assert_eq!((firing.starts.len(), firing.overlapped.len()), (starts, overlapped));
    }
    for (overlap, queued) in [(Overlap::Allow, false), (Overlap::Queue, true)] {
        for running in [false, true] {
            let firing = every(overlap).fires(from, now, running);
            let times: Vec<i64> = firing
                .starts
                .iter()
                .map(|trigger| trigger.time.0 - minute(0).0)
                .collect();
            assert_eq!(times, [20_000, 40_000, 60_000]);
            assert!(firing.starts.iter().all(|trigger| trigger.queued == queued));
            assert!(firing.overlapped.is_empty());
        }
    }
    // One that is caught up is skipped like any other.
    let caught_up = schedule("*/10 * * * *", Overlap::Skip, CatchUp::Last).fires(from, minute(35), true);
    assert_eq!((started(&caught_up), caught_up.overlapped), (vec![], vec![minute(30)]));
}

#[test]
fn paused_schedule_misses_nothing() {
    let mut schedule = schedule("*/10 * * * *", Overlap::Allow, CatchUp::Last);
    schedule.paused = true;
    let paused = schedule.fires(Some(minute(0)), minute(35), false);
    assert_eq!(
        (started(&paused), paused.missed, paused.next, paused.last),
        (vec![], None, None, minute(35))
    );
    schedule.paused = false;
    let resumed = schedule.fires(Some(paused.last), minute(36), false);
    assert_eq!((started(&resumed), resumed.next), (vec![], Some(minute(40))));
}

#[test]
fn schedule_repeats_nothing_when_the_clock_is_set_back() {
    let schedule = schedule("*/10 * * * *", Overlap::Allow, CatchUp::Last);
    let new = schedule.fires(None, minute(10), false);
    assert_eq!(
        (started(&new), new.last, new.next),
        (vec![], minute(10), Some(minute(20)))
    );
    let back = schedule.fires(Some(minute(20)), minute(5), false);
    assert_eq!(
        (started(&back), back.last, back.next),
        (vec![], minute(20), Some(minute(30)))
    );
}

/// The same trigger leads to the same execution, no matter when it is handled.
#[test]
fn trigger_names_and_inputs_follow_from_its_time() {
    let mut schedule = schedule("CRON_TZ=Europe/Berlin 30 2 * * *", Overlap::Skip, CatchUp::Last);
    schedule.payload = serde_json::from_str(r#"{"region": "eu"}"#).unwrap();
    let (last, trigger) = (Some(at("2026-01-01T00:00:00Z")), at("2026-01-01T01:30:00Z"));
    let first = schedule.fires(last, trigger, false);
    let again = schedule.fires(last, Timestamp(trigger.0 + 3_600_000), false);
    assert_eq!(first.starts, again.starts);
    let [start] = first.starts.as_slice() else {
        panic!("{first:?}");
    };
    assert_eq!(start.name, "nightly-20260101T013000Z");
    assert_eq!(
        start.input.to_json(),
        r#"{"payload":{"region":"eu"},"triggerTime":"2026-01-01T01:30:00Z","triggerName":"nightly"}"#
    );
}

#[test]
fn schedule_names_leave_room_for_the_time() {
    let named = |name: &str| Schedule::new(name, expression("@daily"), "report").is_ok();
    for (name, good) in [
        ("a", true),
        ("_a-1", true),
        ("1a", false),
        ("", false),
        ("a b", false),
        ("ä", false),
    ] {
        assert_eq!(named(name), good, "{name}");
    }
    assert!(named(&"n".repeat(111)) && !named(&"n".repeat(112)));
    let mut longest = Schedule::new(&"n".repeat(111), expression("@every 1s"), "report").unwrap();
    longest.overlap = Overlap::Allow;
    let firing = longest.fires(Some(minute(0)), Timestamp(minute(0).0 + 1000), false);
    assert_eq!(firing.starts[0].name.len(), 128);
}

#[test]
fn words() {
    for overlap in [Overlap::Skip, Overlap::Queue, Overlap::Allow] {
        assert_eq!(Overlap::parse(overlap.as_str()), Some(overlap));
    }
    for catch_up in [CatchUp::None, CatchUp::Last] {
        assert_eq!(CatchUp::parse(catch_up.as_str()), Some(catch_up));
    }
    assert_eq!((Overlap::parse("Skip"), CatchUp::parse("all")), (None, None));
}
