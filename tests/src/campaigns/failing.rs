//! A store that fails once at each of its operations, under a running node. The node must end, and
//! continue when it is started again over the repaired store.

use super::kills::{FLOWS, Witness, definition, hold_against};
use super::{Findings, laws};
use crate::faulty::{Fault, Faulty, Plan};
use starbridge_flow::time::Millis;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::Status;
use starbridge_node::config::Config;
use starbridge_node::export::ExportedHistory;
use starbridge_node::node::Node;
use starbridge_ports::{ExecutionRecord, Listing, Query, Receivers, ShardSet, Store};
use starbridge_runtime::{StartFailure, StartRequest, StartTime};
use starbridge_sqlite::SqliteStore;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The flows of the other campaigns that need no server to report to.
const STARTED: [&str; 3] = ["paced", "many", "undone"];
/// The one that begins later, under a key.
const DELAYED: &str = "many";
const DELAY: Millis = Millis(300);
/// How each operation fails: whether what comes after it fails as well.
const WAYS: [(Fault, bool, &str); 4] = [
    (Fault::Before, true, "failed, as did all after it"),
    (Fault::Before, false, "failed once"),
    (Fault::Lost, true, "done, and said to have failed"),
    (Fault::Panic, false, "in which the thread panicked"),
];
/// A node must be through with everything, or have ended, within this time.
const PATIENCE: Duration = Duration::from_secs(20);
/// Runs at once: they mostly wait.
const AT_ONCE: usize = 8;

/// Lets every `step`-th operation of a run fail, each way.
pub async fn run(step: u64) -> Findings {
    let mut findings = Findings::default();
    let straight = one(None).await;
    let operations = straight.as_ref().map_or(0, |(_, operations)| *operations);
    match straight {
        Ok((found, _)) => findings.problems.extend(found.problems),
        Err(problem) => findings.problem(problem),
    }
    findings.count("operations of a run without failures", operations);
    let plans = (1..=operations)
        .step_by(usize::try_from(step).unwrap_or(1))
        .flat_map(|operation| {
            WAYS.map(|(fault, for_good, _)| Plan {
                operation,
                fault,
                for_good,
            })
        });
    let mut under_way = JoinSet::new();
    for plan in plans {
        if under_way.len() >= AT_ONCE {
            take(under_way.join_next().await, &mut findings);
        }
        under_way.spawn(async move { (plan, one(Some(plan)).await) });
    }
    while let Some(done) = under_way.join_next().await {
        take(Some(done), &mut findings);
    }
    findings
}

type Done = Result<(Plan, Result<(Findings, u64), String>), tokio::task::JoinError>;

fn take(done: Option<Done>, findings: &mut Findings) {
    match done {
        Some(Ok((plan, Ok((mut found, _))))) => {
            for problem in &mut found.problems {
                *problem = format!("{plan:?}: {problem}");
            }
            let way = WAYS
                .iter()
                .find(|(fault, for_good, _)| (*fault, *for_good) == (plan.fault, plan.for_good));
            findings.count(&format!("operations {}", way.map_or("", |(.., word)| word)), 1);
            findings.add(found);
        }
        Some(Ok((plan, Err(problem)))) => findings.problem(format!("{plan:?}: {problem}")),
        Some(Err(error)) => findings.problem(error.to_string()),
        None => {}
    }
}

/// A run with a failure, or without one: what is wrong, and how many operations there were.
async fn one(plan: Option<Plan>) -> Result<(Findings, u64), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("flows.db");
    let witness = Witness::start(String::new()).await?;
    let mut findings = Findings::default();

    let opened = SqliteStore::open(&file).map_err(|error| error.to_string())?;
    let store = Arc::new(Faulty::new(opened));
    let node = node(store.clone(), witness.port())?;
    for flow in STARTED.into_iter().chain(["leaf"]) {
        node.put_flow(flow, definition(flow), None)
            .map_err(|error| format!("{flow}: {error:?}"))?;
    }
    store.plan(plan);
    let mut acknowledged = Vec::new();
    for flow in STARTED {
        if let Ok(start) = node.begin(request(flow), false).await {
            acknowledged.push((flow, start.snapshot.execution));
        }
    }
    findings.count("starts acknowledged", acknowledged.len() as u64);
    let begun = Instant::now();
    let failed = loop {
        let end = node.ended().borrow().clone();
        if let Some(end) = end {
            break end.is_err();
        }
        if acknowledged.len() == STARTED.len() && have_ended(store.behind(), &acknowledged) {
            break false;
        }
        if begun.elapsed() > PATIENCE {
            findings.problem("the node neither ends nor goes on");
            break false;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let operations = store.operations();
    if failed {
        findings.count("nodes that ended with an error", 1);
        // An owner that has not failed may still take it until the node is drained: then it counts like any other.
        if let Ok(start) = node.begin(request("paced"), false).await {
            findings.count("starts acknowledged by another owner of a node that failed", 1);
            acknowledged.push(("paced", start.snapshot.execution));
        }
    } else if plan.is_some() {
        findings.count("failures that only one caller noticed", 1);
    }
    // It has said why it ended. Its last operation, which notes the end, may be the one that panics.
    let _ = unless_it_panics(node.drain(Duration::ZERO)).await;
    drop(node);
    close(store).await?;

    let store = Arc::new(SqliteStore::open(&file).map_err(|error| error.to_string())?);
    let node = self::node(store.clone(), witness.port())?;
    let begun = Instant::now();
    while !(have_ended(store.as_ref(), &acknowledged) && is_idle(store.as_ref())) && begun.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    audit(&node, store.as_ref(), &acknowledged, &witness, &mut findings);
    if let Some((_, first)) = acknowledged.iter().find(|(flow, _)| *flow == DELAYED) {
        let again = node.begin(request(DELAYED), false).await;
        if !matches!(&again, Err(StartFailure::Exists(known)) if known == first) {
            findings.problem(format!("a second start under the key of {first} is {again:?}"));
        }
    }
    let drained = node.drain(Duration::ZERO).await;
    findings.problems.extend(drained.err().map(|error| error.to_string()));
    Ok((findings, operations))
}

/// The output of a future, or nothing if it panics.
async fn unless_it_panics<F: Future>(future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    let polled = std::future::poll_fn(|context| {
        let poll = AssertUnwindSafe(|| future.as_mut().poll(context));
        match std::panic::catch_unwind(poll) {
            Ok(poll) => poll.map(Some),
            Err(_) => std::task::Poll::Ready(None),
        }
    });
    polled.await
}

fn node(store: Arc<dyn Store>, witness: u16) -> Result<Node, String> {
    let mut config = Config::default();
    config.http.private_addresses = true;
    config.runtime.owners = 2;
    config.runtime.hot_executions = 1;
    let target = format!("http://127.0.0.1:{witness}/{{function}}");
    config.resources.insert("witness:{function}".to_owned(), target);
    let settings = config.node(store)?;
    tokio::task::block_in_place(|| Node::start(settings)).map_err(|error| error.to_string())
}

fn request(flow: &str) -> StartRequest {
    let items: Value = vec![Value::from(1u32), Value::from(2u32)].into();
    StartRequest {
        flow: Text::from(flow),
        input: [("items".into(), items)].into_iter().collect(),
        time: match flow {
            DELAYED => StartTime::After(DELAY),
            _ => StartTime::Now,
        },
        once_key: (flow == DELAYED).then(|| Text::from("once")),
        ..StartRequest::default()
    }
}

/// Waits until nothing holds the store any more.
async fn close(store: Arc<Faulty<SqliteStore>>) -> Result<(), String> {
    let begun = Instant::now();
    let mut store = Some(store);
    while let Some(held) = store.take() {
        match Arc::try_unwrap(held) {
            Ok(_) => return Ok(()),
            Err(held) if begun.elapsed() < PATIENCE => store = Some(held),
            Err(_) => return Err("a thread of the node does not end".to_owned()),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

fn have_ended(store: &dyn Store, acknowledged: &[(&str, Text)]) -> bool {
    let ended = |id: &Text| matches!(store.record(id), Ok(Some(record)) if record.ended.is_some());
    acknowledged.iter().all(|(_, id)| ended(id))
}

fn is_idle(store: &dyn Store) -> bool {
    let waits = |counts: Vec<(Status, u64)>| counts.iter().any(|(status, _)| status.is_before_start());
    store.awake(&ShardSet::ALL).is_ok_and(|awake| awake.is_empty())
        && store.messages(&Receivers::All).is_ok_and(|left| left.is_empty())
        && store.counts().is_ok_and(|counts| !waits(counts))
}

fn audit(node: &Node, store: &SqliteStore, acknowledged: &[(&str, Text)], witness: &Witness, findings: &mut Findings) {
    let query = Query {
        limit: 1_000,
        ..Query::default()
    };
    let items = store.list(&query).map(|page| page.items).unwrap_or_default();
    let records: BTreeMap<Text, ExecutionRecord> = items.into_iter().map(|listed| (listed.id, listed.record)).collect();
    for (flow, id) in acknowledged {
        let expected = FLOWS
            .iter()
            .find(|(known, ..)| known == flow)
            .map(|(_, status, _)| *status);
        let status = records.get(id).map(|record| record.status.as_str());
        if status != expected {
            findings.problem(format!("{flow} {id} was acknowledged and is {status:?}"));
        }
    }
    let mut histories = Vec::new();
    for (id, record) in &records {
        match node
            .flow_of(id, record)
            .and_then(|flow| Ok(ExportedHistory::of_execution(store, flow, id)?))
        {
            Ok(history) => {
                findings.problems.extend(laws::broken(id, &history.events));
                histories.push(history);
            }
            Err(problem) => findings.problem(format!("{id}: {problem}")),
        }
    }
    hold_against(&histories, witness, findings);
}
