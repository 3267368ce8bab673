//! A second language on the same machine, shard, engine and stores, none of which has code for it:
//! other paths, other names of errors, steps that assign variables, a step whose concurrency and
//! time-out are programs. The language is in `lanes`.

#[path = "second_language/lanes.rs"]
mod lanes;

use serde_json::json;
use starbridge_flow::graph::{FaultKind, Flow, Origin};
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Millis;
use starbridge_flow::value::Value;
use starbridge_machine::{EventKind, Status};
use starbridge_memory::MemoryStore;
use starbridge_ports::{Connector, ExecutionRecord, OutcomeFuture, Request, Store};
use starbridge_runtime::{Command, FlowTable, StartRequest};
use starbridge_simulator::{Case, Crash, Flows, Interruption, Moment, Outcome, Simulation};
use starbridge_sqlite::SqliteStore;
use starbridge_tests::engine_thread::run_engine;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

const PACKING: &str = r#"
    greet set who = /customer/name, kind = "order"
    pack each /items as item at once /lanes within /patience into parts do fetch
    fetch call http://shop/fetch id = /item/id, for = /who
    close set who = /customer/name, last = /parts
"#;

/// A case in which each call takes a second.
fn packing(lanes: &serde_json::Value, patience: &serde_json::Value) -> Case {
    let items: Vec<_> = (0..6).map(|id| json!({"id": id})).collect();
    let case = json!({
        "name": "packing",
        "input": {"customer": {"name": "Ada"}, "items": items, "lanes": lanes, "patience": patience},
        "mocks": {"fetch": [{"result": {"fetched": true}, "delaySeconds": 1}]}
    });
    serde_json::from_value(case).unwrap()
}

fn simulation(text: &str, case: Case) -> Simulation {
    let flows = Flows {
        name: "lanes".to_owned(),
        flow: Arc::new(lanes::compile(text)),
        children: BTreeMap::new(),
    };
    Simulation::new(flows, case, Limits::default())
}

fn run(text: &str, case: Case) -> Outcome {
    simulation(text, case).run().unwrap()
}

fn error(outcome: &Outcome) -> (&str, &str) {
    let failure = outcome.failure.as_ref().unwrap();
    (&failure.error, &failure.cause)
}

#[test]
fn variables_are_assigned_by_steps() {
    let outcome = run(PACKING, packing(&json!(6), &json!(60_000)));
    assert_eq!(outcome.status, "Succeeded", "{:?}", outcome.failure);
    let output = serde_json::to_value(outcome.output.unwrap()).unwrap();
    assert_eq!(
        (&output["who"], &output["kind"], &output["last"]),
        (&json!("Ada"), &json!("order"), &output["parts"])
    );
    assert_eq!(output["parts"], json!(vec![json!({"fetched": true}); 6]));
}

#[test]
fn concurrency_may_be_a_program() {
    for (lanes, seconds) in [(1, 6), (2, 3), (4, 2), (6, 1), (100, 1)] {
        let outcome = run(PACKING, packing(&json!(lanes), &json!(60_000)));
        assert_eq!(
            (outcome.status.as_str(), outcome.elapsed),
            ("Succeeded", Millis::from_secs(seconds)),
            "{lanes}"
        );
    }
}

#[test]
fn timeout_of_a_step_may_be_a_program() {
    let outcome = run(PACKING, packing(&json!(2), &json!(2_500)));
    assert_eq!(error(&outcome), ("Lanes.Late", "the step took longer than 2 seconds"));
    assert_eq!(outcome.elapsed, Millis(2_500));
}

#[test]
fn timeout_of_a_call_may_be_a_program() {
    const LIMITED_CALL: &str = "fetch call-within /millis http://shop/fetch millis = /patience";
    let outcome = run(LIMITED_CALL, packing(&json!(1), &json!(1_500)));
    assert_eq!((outcome.status.as_str(), outcome.elapsed), ("Succeeded", Millis(1_000)));
    let outcome = run(LIMITED_CALL, packing(&json!(1), &json!(500)));
    assert_eq!((error(&outcome).0, outcome.elapsed), ("Lanes.Late", Millis(500)));
    let outcome = run(LIMITED_CALL, packing(&json!(1), &json!("soon")));
    assert_eq!(
        error(&outcome),
        ("Lanes.Missing", "the time-out is a string, not a whole number")
    );
}

#[test]
fn faults_of_programs_and_lookups_fail_the_execution() {
    for (lanes, patience, cause) in [
        (
            json!("two"),
            json!(1),
            "the concurrency is a string, not a whole number",
        ),
        (json!(0), json!(1), "the concurrency is 0: nothing could run"),
        (json!(1), json!(-1), "the time-out is a number, not a whole number"),
        (json!(1), json!(null), "the time-out is null, not a whole number"),
    ] {
        let outcome = run(PACKING, packing(&lanes, &patience));
        assert_eq!(error(&outcome), ("Lanes.Missing", cause));
    }
    let mut case = packing(&json!(1), &json!(1));
    case.input = Value::empty_object();
    assert_eq!(
        error(&run(PACKING, case.clone())),
        ("Lanes.Missing", "nothing at `/customer/name`")
    );
    let limits = Limits {
        evaluation_steps: 0,
        ..Limits::default()
    };
    let flows = Flows {
        name: "lanes".to_owned(),
        flow: Arc::new(lanes::compile("stop fail /a/b/c/d/e/f")),
        children: BTreeMap::new(),
    };
    let outcome = Simulation::new(flows, case, limits).run().unwrap();
    assert_eq!(error(&outcome).0, "Lanes.TooMuch");
}

#[test]
fn error_name_may_be_a_lookup() {
    let outcome = run("stop fail /customer/name", packing(&json!(1), &json!(1)));
    assert_eq!(error(&outcome), ("Ada", ""));
}

/// The same outcome, over each store, with a crash at each append that `straight` made.
fn comes_out_over_crashes(program: &str, case: &Case, straight: &Simulation, expected: &Outcome) {
    let (appends, _) = straight.operations();
    let folder = tempfile::tempdir().unwrap();
    for at in 1..=appends {
        let moment = Moment::ALL[at % 3];
        let stores: [Arc<dyn Store>; 2] = [
            Arc::new(MemoryStore::new()),
            Arc::new(SqliteStore::open(folder.path().join(format!("{at}.db"))).unwrap()),
        ];
        for store in stores {
            let interruption = Interruption {
                crash: Some(Crash { at, moment }),
                ..Interruption::default()
            };
            let mut again = simulation(program, case.clone()).over(store).interrupted(interruption);
            assert_eq!(&again.run().unwrap(), expected, "{moment:?} of append {at}");
            assert!(again.has_crashed(), "{moment:?} of append {at}");
        }
    }
}

#[test]
fn recovery_keeps_what_programs_computed_in_each_store() {
    for patience in [60_000, 2_500] {
        let case = || packing(&json!(2), &json!(patience));
        let mut straight = simulation(PACKING, case());
        let expected = straight.run().unwrap();
        comes_out_over_crashes(PACKING, &case(), &straight, &expected);
    }
}

/// The documents in the history of the main execution, in order.
fn data_of(simulation: &Simulation) -> Vec<String> {
    let (_, events) = simulation.histories().first_key_value().unwrap();
    let shown = events.iter().filter_map(|event| match &event.detail {
        EventKind::ExecutionStarted(started) => Some(started.input.to_json()),
        EventKind::StepStarted { input, .. } => Some(input.as_ref()?.to_json()),
        EventKind::TaskSucceeded { result, .. } => Some(result.to_json()),
        EventKind::StepSucceeded { output, .. } => Some(output.as_ref()?.to_json()),
        EventKind::ExecutionSucceeded { output } => Some(output.to_json()),
        _ => None,
    });
    shown.collect()
}

#[test]
fn documents_may_be_any_json_value_in_each_store() {
    const SUMS: &str = r#"
        pick make /0
        sum hand http://shop/sum .
        again hand http://shop/nothing /1
        keep make .
        last hand http://shop/last .
    "#;
    let mut case: Case = serde_json::from_value(json!({
        "name": "sums",
        "mocks": {
            "sum": [{"result": 3, "delaySeconds": 1}],
            "again": [{"result": null, "delaySeconds": 1}],
            "last": [{"result": ["done"]}]
        }
    }))
    .unwrap();
    case.input = (&json!([[1, 2], "two"])).into();
    let mut straight = simulation(SUMS, case.clone());
    let expected = straight.run().unwrap();
    assert_eq!(expected.status, "Succeeded", "{:?}", expected.failure);
    assert_eq!(expected.output.as_ref().unwrap().to_json(), r#"["done"]"#);
    assert_eq!(
        data_of(&straight),
        [
            r#"[[1,2],"two"]"#,
            "[1,2]",
            "3",
            r#""two""#,
            "null",
            "null",
            r#"["done"]"#,
            r#"["done"]"#,
        ]
    );
    comes_out_over_crashes(SUMS, &case, &straight, &expected);
}

/// Answers each call with the outcome that its target names.
struct NamedOutcomes;

impl Connector for NamedOutcomes {
    fn call(&self, request: Request) -> OutcomeFuture<'_> {
        use starbridge_ports::Outcome;
        let outcome = match request.target.rsplit('/').next().unwrap_or_default() {
            "large" => Outcome::failed(FaultKind::TooLarge, "it is large"),
            "nowhere" => Outcome::not_sent("nobody is there"),
            "speaks" => Outcome::failed(FaultKind::Outside(Origin::Function, "Lanes.Late".into()), "it says so"),
            "named" => Outcome::failed("Shop.Closed", "come back tomorrow"),
            _ => Outcome::Result(Value::empty_object()),
        };
        Box::pin(std::future::ready(outcome))
    }
}

/// Runs a flow in real time over a store, to its end.
fn run_on_engine(store: &Arc<dyn Store>, flow: Flow) -> ExecutionRecord {
    let mut flows = FlowTable::default();
    flows.put("lanes", Arc::new(flow));
    let commands = run_engine(store, flows, Arc::new(NamedOutcomes));
    let (reply, answer) = oneshot::channel();
    let request = StartRequest {
        flow: "lanes".into(),
        ..StartRequest::default()
    };
    let start = Command::Start {
        request: Box::new(request),
        wait: false,
        reply,
    };
    commands.blocking_send(start).unwrap();
    let id = answer.blocking_recv().unwrap().unwrap().snapshot.execution;
    let begun = Instant::now();
    loop {
        let record = store.record(&id).unwrap().unwrap();
        if record.status.is_ended() {
            return record;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{record:?}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

#[test]
fn fault_names_of_connectors_are_those_of_the_language() {
    let folder = tempfile::tempdir().unwrap();
    let stores: [Arc<dyn Store>; 2] = [
        Arc::new(MemoryStore::new()),
        Arc::new(SqliteStore::open(folder.path().join("store.db")).unwrap()),
    ];
    for store in stores {
        for (target, error) in [
            ("http://shop/large", "Lanes.TooLarge"),
            ("http://shop/nowhere", "Lanes.Nowhere"),
            ("http://shop/speaks", "Function.Lanes.Late"),
            ("http://shop/named", "Shop.Closed"),
            ("ftp://shop/", "Lanes.Nowhere"),
            ("flow:nobody", "Lanes.Nowhere"),
        ] {
            let record = run_on_engine(&store, lanes::compile(&format!("fetch call {target} a = 1")));
            assert_eq!(record.status, Status::Failed, "{target}");
            assert_eq!(record.failure.unwrap().error, error, "{target}");
        }
        let record = run_on_engine(&store, lanes::compile("fetch call http://shop/ a = 1"));
        assert_eq!(record.status, Status::Succeeded);
    }
}
