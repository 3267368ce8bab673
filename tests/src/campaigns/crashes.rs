//! Every moment at which a process can die, one after the other: each conformance case is run, its operations are counted,
//! and it is run again with a crash at each of them, and with a second one on the way back.

use super::{Findings, laws, on_all_processors};
use crate::conformance::{self, CaseFile, Histories};
use starbridge_flow::limits::Limits;
use starbridge_flow::value::Text;
use starbridge_machine::{CallToSend, EventId, EventKind};
use starbridge_memory::MemoryStore;
use starbridge_ports::Store;
use starbridge_runtime::{Outgoing, Shard, each_stored_event};
use starbridge_simulator::{Case, Crash, Flows, Interruption, Moment, Simulation};
use starbridge_sqlite::SqliteStore;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How much is tried.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Points of a case at which it crashes, for each moment; longer cases at points spread over their length.
    pub points: usize,
    /// Points from which it crashes again.
    pub pairs: usize,
    /// One in this many cases crashes again.
    pub twice: usize,
    /// The second crash comes at one of so many operations after the restart.
    pub deep: usize,
    /// One in this many cases is run over SQLite, too.
    pub over_sqlite: usize,
}

impl Options {
    /// The part that is tried before each change.
    pub const SLICE: Self = Self {
        points: 3,
        pairs: 1,
        twice: 3,
        deep: 1,
        over_sqlite: 40,
    };
    /// All of it.
    pub const FULL: Self = Self {
        points: 200,
        pairs: 6,
        twice: 1,
        deep: 3,
        over_sqlite: 4,
    };
}

/// Cases with more events than this are tried at fewer points.
const LONG: usize = 1_000;

/// A case with its flows.
struct Subject {
    name: String,
    flows: Flows,
    case: Case,
    limits: Limits,
}

/// Runs the campaign on as many threads as there are processors.
pub fn run(options: Options) -> Findings {
    let subjects = subjects();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut findings = Findings::default();
        while let Some((number, subject)) = take(&subjects, &next) {
            let once = Options { pairs: 0, ..options };
            let options = if number % options.twice == 0 { options } else { once };
            subject.try_all(options, None, &mut findings);
            if number % options.over_sqlite == 0 {
                subject.try_over_sqlite(options, &mut findings);
            }
        }
        findings
    };
    let mut findings = Findings::default();
    findings.count("cases", subjects.len() as u64);
    findings.add(on_all_processors(work));
    findings
}

fn take<'a>(subjects: &'a [Subject], next: &AtomicUsize) -> Option<(usize, &'a Subject)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    subjects.get(number).map(|subject| (number, subject))
}

fn subjects() -> Vec<Subject> {
    let mut subjects = Vec::new();
    for CaseFile {
        name,
        file,
        flows,
        limits,
    } in conformance::case_files()
    {
        for case in file.cases {
            subjects.push(Subject {
                name: format!("{name}: {}", case.name),
                flows: flows.clone(),
                case,
                limits: limits.clone(),
            });
        }
    }
    subjects
}

/// Numbers from 1 to `count`, all or so many spread over the whole.
fn points(count: usize, at_most: usize) -> impl Iterator<Item = usize> + Clone {
    let step = count.div_ceil(at_most.max(1)).max(1);
    (1..=count).step_by(step)
}

/// Sees what leaves: nothing before it is durable, and the same call the same way each time.
#[derive(Default)]
struct Sight {
    sent: BTreeMap<(Text, EventId), CallToSend>,
    repeated: u64,
    problems: Vec<String>,
}

impl Sight {
    fn see(&mut self, shard: &Shard, store: &dyn Store, outgoing: &Outgoing) {
        let Outgoing::Send { execution, call } = outgoing else {
            return;
        };
        if !matches!(store.turn_of(execution, call.call), Ok(Some(_))) {
            let problem = format!("{execution}/{} leaves before it is durable", call.call);
            self.problems.push(problem);
        }
        match self.sent.insert((execution.clone(), call.call), (**call).clone()) {
            Some(before)
                if before != **call && !(ends_later(&before, call) && was_resumed(shard, store, execution)) =>
            {
                let problem = format!("{execution}/{} is sent again as another call", call.call);
                self.problems.push(problem);
            }
            Some(_) => self.repeated += 1,
            None => {}
        }
    }
}

/// Whether a call is the same but for its end, which is later.
fn ends_later(before: &CallToSend, again: &CallToSend) -> bool {
    let ends_as_before = CallToSend {
        timeout_at: before.timeout_at,
        ..again.clone()
    };
    ends_as_before == *before && again.timeout_at > before.timeout_at
}

/// Whether an execution was paused and resumed: that moves the ends of its calls.
fn was_resumed(shard: &Shard, store: &dyn Store, execution: &str) -> bool {
    let mut resumed = false;
    let Some(flow) = shard.flow(execution) else {
        return false;
    };
    let read = each_stored_event(store, flow, execution, |event| {
        resumed = matches!(event.detail, EventKind::ExecutionResumed { .. });
        !resumed
    });
    read.is_ok() && resumed
}

impl Subject {
    fn simulation(&self, store: Arc<dyn Store>) -> Simulation {
        Simulation::new(self.flows.clone(), self.case.clone(), self.limits.clone()).over(store)
    }

    fn try_over_sqlite(&self, options: Options, findings: &mut Findings) {
        match tempfile::tempdir() {
            Ok(folder) => self.try_all(options, Some(folder.path()), findings),
            Err(error) => findings.problem(error.to_string()),
        }
    }

    /// Crashes at all points; in a folder, over SQLite and at few of them.
    fn try_all(&self, options: Options, folder: Option<&Path>, findings: &mut Findings) {
        let mut straight = self.simulation(Arc::new(MemoryStore::new()));
        match straight.run() {
            Ok(outcome) if outcome.status != "Refused" => {}
            // Nothing has begun, so nothing can be lost.
            Ok(_) => return,
            Err(error) => return findings.problem(format!("{}: {error}", self.name)),
        }
        let histories = straight.histories().clone();
        for (id, events) in &histories {
            let broken = laws::broken(id, events);
            findings
                .problems
                .extend(broken.into_iter().map(|law| format!("{}: {law}", self.name)));
        }
        let events: usize = histories.values().map(Vec::len).sum();
        let (appends, dispatches) = straight.operations();
        let fewer = (events / LONG + 1) * if folder.is_some() { 20 } else { 1 };
        let (at_most, pairs) = ((options.points / fewer).max(1), options.pairs / fewer);
        for moment in Moment::ALL {
            let operations = if moment.is_of_append() { appends } else { dispatches };
            for at in points(operations, at_most) {
                self.try_one(Crash { at, moment }, None, &histories, folder, findings);
            }
            for at in points(operations, pairs).take(pairs) {
                for second in Moment::ALL {
                    for deep in 1..=options.deep {
                        let again = Crash {
                            at: deep,
                            moment: second,
                        };
                        self.try_one(Crash { at, moment }, Some(again), &histories, folder, findings);
                    }
                }
            }
        }
    }

    fn try_one(
        &self,
        crash: Crash,
        again: Option<Crash>,
        expected: &Histories,
        folder: Option<&Path>,
        findings: &mut Findings,
    ) {
        let interruption = Interruption {
            crash: Some(crash),
            again,
            ..Interruption::default()
        };
        let store: Arc<dyn Store> = match folder {
            None => Arc::new(MemoryStore::new()),
            Some(folder) => match fresh_store(folder) {
                Ok(store) => Arc::new(store),
                Err(error) => return findings.problem(error),
            },
        };
        let sight = Rc::new(RefCell::new(Sight::default()));
        let (seen, kept) = (Rc::clone(&sight), Arc::clone(&store));
        let observer = Box::new(move |shard: &Shard, outgoing: &Outgoing| {
            seen.borrow_mut().see(shard, kept.as_ref(), outgoing);
        });
        let mut run = self.simulation(store).interrupted(interruption).observed(observer);
        let outcome = run.run();
        findings.count("runs", 1);
        findings.count(if folder.is_some() { "over SQLite" } else { "over memory" }, 1);
        match again {
            None => findings.count(&format!("one crash, {:?}", crash.moment), 1),
            Some(_) if run.has_crashed() => findings.count(&format!("two crashes, the first {:?}", crash.moment), 1),
            Some(_) => findings.count("the second crash never came", 1),
        }
        let sight = sight.borrow();
        findings.count("calls sent again", sight.repeated);
        let mut problems = sight.problems.clone();
        match outcome {
            Err(error) => problems.push(error.to_string()),
            Ok(outcome) => problems.extend(conformance::difference(&outcome, run.histories(), expected)),
        }
        if again.is_none() && !run.has_crashed() {
            problems.push("the crash never came".to_owned());
        }
        let named = |problem| format!("{}: {crash:?} {again:?}: {problem}", self.name);
        findings.problems.extend(problems.into_iter().map(named));
    }
}

/// A store in its own file; the previous one in that folder is deleted.
fn fresh_store(folder: &Path) -> Result<SqliteStore, String> {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        std::fs::remove_file(entry.path()).map_err(|error| error.to_string())?;
    }
    SqliteStore::open(folder.join("flows.db")).map_err(|error| error.to_string())
}
