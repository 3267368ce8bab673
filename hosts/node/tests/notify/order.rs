//! Order, back-off and failures, in virtual time.

use super::setting::{BEGIN, Call, Kept, Manner, Targets, TokioClock, notice, refused, taken, target, targets, world};
use starbridge_flow::time::Millis;
use starbridge_flow::time::Seconds;
use starbridge_machine::Status;
use starbridge_node::notify::{Notifier, NotifierSettings};
use starbridge_ports::Outcome;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A notifier whose targets all behave in one way.
struct Bench {
    kept: Arc<Kept>,
    targets: Arc<Targets>,
    notifier: Notifier,
}

impl Bench {
    fn new(names: &[&str], manner: Manner) -> Self {
        let (kept, clock) = (Arc::new(Kept::default()), TokioClock::started());
        let targets_of = Targets::new(clock.clone(), manner);
        let world = world(&kept, "redis", targets_of.clone(), clock);
        Self {
            kept,
            notifier: Notifier::new(targets(names), &world, &NotifierSettings::default()),
            targets: targets_of,
        }
    }

    /// Lets this much time pass.
    async fn pass(&self, time: Duration) {
        let _ = tokio::time::timeout(time, self.notifier.run()).await;
    }

    fn told(&self, target: &str) -> (u64, u64, u64) {
        let mut told = self.notifier.counters();
        let (_, told) = told.find(|(name, _)| *name == target).unwrap();
        let of = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::SeqCst);
        (of(&told.delivered), of(&told.failed), of(&told.dropped))
    }
}

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_hours(1);

fn ids(calls: &[Call]) -> Vec<&str> {
    calls.iter().map(|call| call.id.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn notice_order_is_kept_within_an_execution() {
    let fails = |request: &starbridge_ports::Request| {
        let first_of_a = request.keys.idempotency == "a/1" && request.attempt <= 2;
        if first_of_a { refused() } else { taken() }
    };
    let bench = Bench::new(&["ops"], Box::new(fails));
    for (execution, event) in [("a", 1), ("a", 5), ("b", 1), ("a", 9), ("b", 2)] {
        bench.kept.add("ops", &notice(execution, event, Status::Running));
    }
    bench.pass(SECOND / 2).await;
    assert_eq!(ids(&bench.targets.of("ops")), ["a/1", "b/1", "b/2"]);
    bench.pass(HOUR).await;
    let calls = bench.targets.of("ops");
    assert_eq!(ids(&calls)[3..], ["a/1", "a/1", "a/5", "a/9"]);
    let waited: Vec<u64> = calls.iter().skip(3).map(|call| call.at.since(BEGIN).0).collect();
    assert!((800..=1_000).contains(&waited[0]), "{waited:?}");
    assert!((1_600..=2_000).contains(&(waited[1] - waited[0])), "{waited:?}");
    assert_eq!(waited[1..], [waited[1]; 3], "once it is told, the rest follows at once");
    assert_eq!(bench.kept.left(), 0);
    assert_eq!(bench.told("ops"), (5, 2, 0));
}

#[tokio::test(start_paused = true)]
async fn notification_target_that_never_answers_blocks_nobody_else() {
    let silent = |request: &starbridge_ports::Request| match request.target.as_str() {
        "redis:silent" => None,
        _ => taken(),
    };
    let bench = Bench::new(&["silent", "fast"], Box::new(silent));
    for execution in 0..100 {
        for target in ["silent", "fast"] {
            bench
                .kept
                .add(target, &notice(&execution.to_string(), 1, Status::Failed));
        }
    }
    bench.pass(SECOND).await;
    let fast = bench.targets.of("fast");
    assert_eq!(fast.len(), 100);
    assert!(fast.iter().all(|call| call.at == BEGIN));
    assert_eq!(bench.targets.of("silent").len(), 8, "as many as may be out");
    bench.pass(SECOND * 60).await;
    assert_eq!(bench.targets.most.load(Ordering::SeqCst), 8);
    assert!(bench.told("silent").1 >= 40, "each is given up after ten seconds");
    assert_eq!(bench.kept.left(), 100);
}

#[tokio::test(start_paused = true)]
async fn notice_is_dropped_after_three_days() {
    let fails = |request: &starbridge_ports::Request| match request.keys.idempotency.as_str() {
        "a/1" => refused(),
        _ => taken(),
    };
    let bench = Bench::new(&["ops"], Box::new(fails));
    bench.kept.add("ops", &notice("a", 1, Status::Running));
    bench.kept.add("ops", &notice("a", 2, Status::Failed));
    bench.pass(HOUR * 71).await;
    assert_eq!(bench.told("ops").2, 0);
    let before = bench.targets.of("ops");
    assert!(ids(&before).iter().all(|id| *id == "a/1"));
    // At most ten minutes and at least eight between tries, except the first ones.
    assert!((71 * 6..=71 * 8 + 20).contains(&before.len()), "{}", before.len());
    bench.pass(HOUR * 2).await;
    assert_eq!(bench.told("ops").2, 1);
    let last = bench.targets.of("ops").pop().unwrap();
    assert_eq!((last.id.as_str(), last.taken), ("a/2", true));
    assert_eq!(bench.kept.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn notification_target_that_is_away_costs_little() {
    let away = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let is_away = away.clone();
    let manner = move |_: &starbridge_ports::Request| {
        if is_away.load(Ordering::SeqCst) {
            refused()
        } else {
            taken()
        }
    };
    let bench = Bench::new(&["ops"], Box::new(manner));
    bench.kept.add("ops", &notice("f", 1, Status::Failed));
    bench.pass(HOUR * 80).await;
    assert_eq!(bench.told("ops").2, 1);
    let tried = bench.targets.of("ops").len();
    for execution in 0..200 {
        bench
            .kept
            .add("ops", &notice(&format!("g{execution}"), 1, Status::Failed));
    }
    bench.pass(SECOND).await;
    assert_eq!((bench.told("ops").2, bench.targets.of("ops").len()), (201, tried));
}

#[tokio::test(start_paused = true)]
async fn notification_target_retry_after_is_kept() {
    let busy = |request: &starbridge_ports::Request| match request.attempt {
        1 => Some((
            Duration::ZERO,
            Outcome::Failed {
                error: "HTTP.429".into(),
                cause: String::new(),
                retry_after: Some(Seconds(90)),
            },
        )),
        _ => taken(),
    };
    let bench = Bench::new(&["ops"], Box::new(busy));
    bench.kept.add("ops", &notice("a", 1, Status::Running));
    bench.pass(HOUR).await;
    let calls = bench.targets.of("ops");
    assert_eq!(calls[1].at.since(calls[0].at), Millis(90_000));
}

#[tokio::test(start_paused = true)]
async fn notifier_reads_nothing_while_idle() {
    let bench = Bench::new(&["ops", "audit"], Box::new(|_| taken()));
    let later = async {
        tokio::time::sleep(HOUR).await;
        assert_eq!(bench.kept.asked.load(Ordering::SeqCst), 2, "once for each target");
        bench.kept.add("ops", &notice("a", 1, Status::Running));
        bench.notifier.wake();
        tokio::time::sleep(HOUR).await;
    };
    tokio::select! {
        () = bench.notifier.run() => {}
        () = later => {}
    }
    let calls = bench.targets.of("ops");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].at, BEGIN.plus(Millis(3_600_000)), "at once when it is woken");
}

#[tokio::test(start_paused = true)]
async fn notifier_loses_no_notice_when_the_store_fails() {
    let bench = Bench::new(&["ops"], Box::new(|_| taken()));
    bench.kept.unreadable.store(true, Ordering::SeqCst);
    bench.kept.add("ops", &notice("a", 1, Status::Running));
    bench.kept.add("ops", &notice("a", 2, Status::Succeeded));
    bench.pass(SECOND * 10).await;
    assert!(bench.targets.of("ops").is_empty());
    assert!(
        bench.kept.asked.load(Ordering::SeqCst) <= 11,
        "it is asked once a second"
    );
    bench.kept.unreadable.store(false, Ordering::SeqCst);
    bench.kept.unwritable.store(true, Ordering::SeqCst);
    bench.pass(SECOND * 10).await;
    let told = bench.targets.of("ops");
    assert!(
        (2..=12).contains(&told.len()) && ids(&told).iter().all(|id| *id == "a/1"),
        "{told:?}"
    );
    bench.kept.unwritable.store(false, Ordering::SeqCst);
    bench.pass(SECOND * 10).await;
    assert_eq!(bench.targets.of("ops").last().unwrap().id, "a/2");
    assert_eq!(bench.kept.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn notification_target_waits_for_its_connector_or_secret() {
    let (kept, clock) = (Arc::new(Kept::default()), TokioClock::started());
    let answering = Targets::new(clock.clone(), Box::new(|_| taken()));
    let world = world(&kept, "http", answering.clone(), clock);
    let of = vec![
        target("queue", "sqs:alerts", ""),
        target("signed", "https://h/x", "secret://NOBODY_HAS_IT"),
    ];
    let notifier = Notifier::new(of, &world, &NotifierSettings::default());
    for name in notifier.wanting(Status::Running).map(str::to_owned).collect::<Vec<_>>() {
        kept.add(&name, &notice("a", 1, Status::Running));
    }
    let _ = tokio::time::timeout(SECOND * 10, notifier.run()).await;
    assert_eq!(kept.left(), 2);
    assert!(answering.calls.lock().unwrap().is_empty());
    assert!(
        notifier
            .counters()
            .all(|(_, told)| told.failed.load(Ordering::SeqCst) >= 3)
    );
}

/// Three targets, each of which fails or is slow now and then, and a process that ends halfway.
#[tokio::test(start_paused = true)]
async fn notice_is_delivered_in_order_at_least_once() {
    let by_chance = |request: &starbridge_ports::Request| {
        let text = format!("{}{}{}", request.target, request.keys.idempotency, request.attempt);
        let sum = text.bytes().fold(7_u64, |sum, byte| sum * 31 % 9_973 + u64::from(byte));
        match sum % 10 {
            0..3 => refused(),
            3 => None,
            slow => taken().map(|(_, outcome)| (Duration::from_millis(slow * 100), outcome)),
        }
    };
    let bench = Bench::new(&["one", "two", "three"], Box::new(by_chance));
    for event in 1..=6 {
        for execution in 0..20 {
            for target in ["one", "two", "three"] {
                bench
                    .kept
                    .add(target, &notice(&format!("e{execution}"), event, Status::Running));
            }
        }
    }
    for _ in 0..20 {
        // Deliveries in progress are dropped each time.
        bench.pass(SECOND * 3).await;
    }
    bench.pass(HOUR * 10).await;
    assert_eq!(bench.kept.left(), 0);
    for target in ["one", "two", "three"] {
        let mut of: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for call in bench.targets.of(target).into_iter().filter(|call| call.taken) {
            of.entry(call.execution).or_default().push(call.id);
        }
        assert_eq!(of.len(), 20);
        for (execution, mut ids) in of {
            assert!(ids.is_sorted(), "{target}: {ids:?}");
            ids.dedup();
            let all: Vec<String> = (1..=6).map(|event| format!("{execution}/{event}")).collect();
            assert_eq!(ids, all, "{target}");
        }
    }
}
