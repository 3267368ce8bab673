//! The one runner of conformance cases.

pub(crate) mod golden;
pub mod operated;

use crate::data;
use crate::outstanding::Outstanding;
use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use starbridge_flow::value::Text;
use starbridge_machine::{Event, State, history};
use starbridge_simulator::{
    Case, Crash, FlowSource, Flows, Interruption, Moment, Outcome, Simulation, TestFile, compare,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The result of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// Cases run.
    pub cases: usize,
    /// Further runs of them with a crash or with every signal twice.
    pub interrupted: usize,
    /// Prefixes of histories that were folded again.
    pub prefixes: usize,
    /// The faults found.
    pub faults: Vec<Fault>,
}

/// Something wrong with a case.
#[derive(Debug)]
pub struct Fault {
    /// The file, from `tests/conformance/`.
    pub file: String,
    /// The case.
    pub case: String,
    /// The fault.
    pub problem: String,
}

impl Report {
    pub(crate) fn fault(&mut self, file: &str, case: &str, problem: String) {
        self.faults.push(Fault {
            file: file.to_owned(),
            case: case.to_owned(),
            problem,
        });
    }

    /// How many cases have a fault.
    pub fn failed_cases(&self) -> usize {
        self.faults
            .iter()
            .map(|fault| (&fault.file, &fault.case))
            .collect::<BTreeSet<_>>()
            .len()
    }
}

pub(crate) type Histories = BTreeMap<Text, Vec<Event>>;

/// A case is interrupted at no more points than this; longer ones at points spread over their length.
const POINTS: usize = 40;
/// Histories longer than this are folded at prefixes spread over their length.
const PREFIXES: usize = 120;

/// Runs the cases whose file or name contains `wanted`.
pub fn run(wanted: Option<&str>) -> Report {
    let folder = data::folder().join("conformance");
    let mut report = Report::default();
    for path in operated::files() {
        let file = path.strip_prefix(&folder).unwrap_or(&path).to_string_lossy();
        operated::run_file(&path, &file, wanted, &mut report);
    }
    for path in data::files(&folder, ".test.json") {
        let file = path
            .strip_prefix(&folder)
            .unwrap_or(&path)
            .to_string_lossy()
            .into_owned();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let fault = |case: &str, problem: String| Fault {
            file: file.clone(),
            case: case.to_owned(),
            problem,
        };
        let parsed = TestFile::parse(&text)
            .map_err(|error| error.to_string())
            .and_then(|parsed| Ok((load(&parsed, &path)?, parsed)));
        let (flows, parsed) = match parsed {
            Ok(loaded) => loaded,
            Err(problem) => {
                report.cases += 1;
                report.faults.push(fault("(the file)", problem));
                continue;
            }
        };
        let limits = parsed.limits.over(Limits::default());
        for (index, case) in parsed.cases.iter().enumerate() {
            if wanted.is_some_and(|wanted| !file.contains(wanted) && !case.name.contains(wanted)) {
                continue;
            }
            report.cases += 1;
            let mut problems = run_case(&flows, case, &limits, &mut report);
            if index == 0 {
                problems.extend(golden::compare(&file, &flows, case, &limits));
            }
            report
                .faults
                .extend(problems.into_iter().map(|problem| fault(&case.name, problem)));
        }
    }
    report
}

/// A test file of the conformance cases, its flows and its limits.
pub struct CaseFile {
    /// The name of the file.
    pub name: String,
    /// What it holds.
    pub file: TestFile,
    /// Its flows, checked.
    pub flows: Flows,
    /// The limits of its cases.
    pub limits: Limits,
}

/// The test files of the conformance cases, for campaigns. Files that can't be read are left out: the conformance run reports
/// them.
pub fn case_files() -> impl Iterator<Item = CaseFile> {
    let paths = data::files(&data::folder().join("conformance"), ".test.json");
    paths.into_iter().filter_map(|path| {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let file = TestFile::parse(&text).ok()?;
        Some(CaseFile {
            name: path.file_name()?.to_string_lossy().into_owned(),
            flows: load(&file, &path).ok()?,
            limits: file.limits.over(Limits::default()),
            file,
        })
    })
}

/// The flows of a test file, checked.
pub fn load(file: &TestFile, path: &Path) -> Result<Flows, String> {
    let flow = |source: &FlowSource, name: &str| -> Result<Arc<Flow>, String> {
        let source = match source {
            FlowSource::Definition(definition) => Source::new(
                format!("{name}.json"),
                serde_json::to_string(definition).unwrap_or_default(),
            ),
            FlowSource::Path(relative) => {
                let file = path.parent().unwrap_or(Path::new("")).join(relative);
                let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
                Source::new(relative.clone(), text)
            }
        };
        let checked = starbridge_fdl::check(&source, &Limits::default());
        checked.flow.ok_or_else(|| {
            let list: Vec<String> = checked
                .diagnostics
                .iter()
                .map(|diagnostic| {
                    format!(
                        "{} {}: {}",
                        diagnostic.code.as_str(),
                        diagnostic.pointer,
                        diagnostic.message
                    )
                })
                .collect();
            format!("the flow `{name}` has errors:\n  {}", list.join("\n  "))
        })
    };
    let mut children = BTreeMap::new();
    for (name, source) in &file.flows {
        children.insert(name.clone(), flow(source, name)?);
    }
    Ok(Flows {
        name: "flow".to_owned(),
        flow: flow(&file.flow, "flow")?,
        children,
    })
}

fn run_case(flows: &Flows, case: &Case, limits: &Limits, report: &mut Report) -> Vec<String> {
    let mut straight = Simulation::new(flows.clone(), case.clone(), limits.clone());
    let outcome = match straight.run() {
        Ok(outcome) => outcome,
        Err(error) => return vec![error.to_string()],
    };
    let mut problems = compare(&case.expect, &outcome);
    if outcome.status == "Refused" {
        return problems;
    }
    let histories = straight.histories().clone();
    for (id, events) in &histories {
        let flow = straight.shard().flow(id).cloned();
        if let Some((flow, live)) = flow.zip(straight.shard().state(id)) {
            problems.extend(replay(&flow, live, events, limits, report));
        }
    }
    let (appends, dispatches) = straight.operations();
    let mut interruptions = vec![Interruption {
        everything_twice: true,
        ..Interruption::default()
    }];
    let crashes = |count: usize, moment: Moment| {
        points(count).map(move |at| Interruption {
            crash: Some(Crash { at, moment }),
            ..Interruption::default()
        })
    };
    interruptions.extend(crashes(appends, Moment::AnswerLost));
    interruptions.extend(crashes(dispatches, Moment::AfterDispatch));
    for interruption in interruptions {
        report.interrupted += 1;
        let mut again = Simulation::new(flows.clone(), case.clone(), limits.clone()).interrupted(interruption);
        let problem = match again.run() {
            Err(error) => Some(error.to_string()),
            Ok(outcome) => difference(&outcome, again.histories(), &histories),
        };
        if let Some(problem) = problem {
            problems.push(format!("{interruption:?}: {problem}"));
            break;
        }
    }
    problems
}

/// Points from 1 to `count`, all or spread over the whole.
fn points(count: usize) -> impl Iterator<Item = usize> {
    let step = count.div_ceil(POINTS).max(1);
    (1..=count).step_by(step)
}

/// The places where an interrupted run's histories differ from the straight run's.
pub(crate) fn difference(outcome: &Outcome, got: &Histories, expected: &Histories) -> Option<String> {
    for (id, events) in expected {
        let others = got.get(id).map(Vec::as_slice).unwrap_or_default();
        let same = events.iter().zip(others).take_while(|(a, b)| a == b).count();
        if same < events.len() || same < others.len() {
            return Some(format!(
                "the history of `{id}` changes at event {} ({}):\n    straight    {:?}\n    interrupted {:?}",
                same + 1,
                outcome.status,
                events.get(same),
                others.get(same)
            ));
        }
    }
    (got.len() != expected.len()).then(|| "other executions were started".to_owned())
}

/// Folds a history again: at every prefix, the serialized state must equal that of one fold, and
/// its checkpoint must restore it.
pub(crate) fn replay(flow: &Flow, live: &State, events: &[Event], limits: &Limits, report: &mut Report) -> Vec<String> {
    let limits = Arc::new(limits.clone());
    let mut problems = Vec::new();
    let mut folded = State::new(live.execution().clone(), limits.clone());
    let step = events.len().div_ceil(PREFIXES).max(1);
    for (index, event) in events.iter().enumerate() {
        let written = history::write_event(flow, event);
        match history::read_event(flow, &written.clone().into()) {
            Ok(read) if read == *event => {}
            other => {
                problems.push(format!(
                    "event {} does not come back from its written form: {other:?}",
                    event.id
                ));
                return problems;
            }
        }
        folded.apply(flow, event);
        if let Some(at) = folded.broken_at() {
            problems.push(format!("replay breaks at event {at}: {:?}", event));
            return problems;
        }
        if index % step != 0 && index + 1 != events.len() {
            continue;
        }
        report.prefixes += 1;
        let checkpoint = folded.checkpoint(flow);
        match State::from_checkpoint(flow, &checkpoint, limits.clone()) {
            Err(error) => {
                problems.push(format!("the checkpoint at event {} can't be read: {error:?}", event.id));
                return problems;
            }
            Ok(mut restored) => {
                if restored.checkpoint(flow) != checkpoint {
                    problems.push(format!("the checkpoint at event {} changes on the way", event.id));
                    return problems;
                }
                // What an execution holds decides what comes next, so it may not depend on how it was loaded.
                if restored.held() != folded.held() {
                    problems.push(format!("at event {} the restored state holds something else", event.id));
                    return problems;
                }
                let outstanding = Outstanding::of(&folded, flow);
                if let Err(problem) = outstanding.check(&folded, flow) {
                    problems.push(format!("at event {}: {problem}", event.id));
                    return problems;
                }
                if Outstanding::of(&restored, flow) != outstanding {
                    problems.push(format!(
                        "at event {} the restored state asks for something else",
                        event.id
                    ));
                    return problems;
                }
                for event in events.iter().skip(index + 1).take(3) {
                    restored.apply(flow, event);
                }
                if let Some(at) = restored.broken_at() {
                    problems.push(format!("a state restored at event {} breaks at event {at}", event.id));
                    return problems;
                }
            }
        }
    }
    if folded.checkpoint(flow) != live.checkpoint(flow) {
        problems.push("folding the history does not lead to the state that wrote it".to_owned());
    }
    problems
}
