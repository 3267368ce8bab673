//! A tiny second language: one step a line, and paths with slashes.
//!
//! ```text
//! greet set who = /customer/name, kind = "order"
//! pack each /items as item at once /lanes within /patience into parts do fetch
//! fetch call http://shop/fetch id = /item/id
//! done fail /who
//! ```
//!
//! `set` assigns variables, `each … do` runs another line's step for each item: `at once` and `within` say how many at a time,
//! and how long all may take in milliseconds. A `call` assigns what its result has; `call-within /path` is a call whose time-out stands at a
//! path of what it sends.
//!
//! A document is any JSON value here. `make /path` leaves what stands at a path in place of all variables, and
//! `hand http://shop/sum /path` sends it; `.` is the whole data, and a key of digits is also an index.

use starbridge_flow::graph::*;
use starbridge_flow::time::Millis;
use starbridge_flow::value::{Object, Text, Value};
use std::sync::Arc;

/// The names of faults in this language, in the order of [`FaultNames::KINDS`].
#[rustfmt::skip]
const NAMES: FaultNames = FaultNames::new("Lanes.", [
    "Lanes.Late", "Lanes.Silent", "Lanes.BadResult", "Lanes.Missing", "Lanes.BadOutput", "Lanes.TooLarge", "Lanes.TooMuch",
    "Lanes.Nowhere", "Lanes.Broken", "Lanes.Branch", "Lanes.Poll", "Lanes.Before", "Lanes.TooLong", "Lanes.Halted",
    "Lanes.Failed", "Lanes.Taken", "Lanes.StartedLate", "Lanes.Locked",
]);

/// `/a/b`: members inside each other.
#[derive(Clone, Debug)]
struct SlashPath {
    text: Text,
    keys: Vec<Text>,
}

impl SlashPath {
    fn new(text: &str) -> Self {
        Self {
            text: text.into(),
            keys: text.split('/').skip(1).map(Text::from).collect(),
        }
    }
}

impl Lookup for SlashPath {
    fn find<'a>(&self, data: Root<'a>, budget: &Budget) -> Result<Option<Value>, Fault> {
        budget.within(&self.text, budget.take(self.keys.len()))?;
        let Some((first, inner)) = self.keys.split_first() else {
            return Ok(data.to_value());
        };
        let inside = |data: Root<'a>, key: &Text| {
            let item = || data.item(key.parse().ok()?);
            data.member(key).or_else(item)
        };
        let found = inner
            .iter()
            .fold(inside(data, first), |found, key| inside(found?.into(), key));
        Ok(found.cloned())
    }

    fn text(&self) -> &Text {
        &self.text
    }
}

/// A path, or literal JSON.
#[derive(Debug)]
enum Term {
    Path(SlashPath),
    Constant(Value),
}

/// `a = /b, c = 1`
#[derive(Debug)]
struct Assignments(Vec<(Text, Term)>);

impl Assignments {
    fn new(text: &str) -> Arc<Self> {
        let one = |each: &str| {
            let (name, term) = each.split_once(" = ").unwrap();
            let term = match term.trim() {
                path if path.starts_with('/') => Term::Path(SlashPath::new(path)),
                json => Term::Constant(serde_json::from_str(json).unwrap()),
            };
            (Text::from(name.trim()), term)
        };
        Arc::new(Self(
            text.split(", ").filter(|each| !each.is_empty()).map(one).collect(),
        ))
    }
}

impl Program for Assignments {
    fn run(&self, scope: &Scope<'_>) -> Result<Output, Fault> {
        let mut made = Object::new();
        for (name, term) in &self.0 {
            let value = match term {
                Term::Constant(value) => value.clone(),
                Term::Path(path) => path
                    .find(scope.input, scope.budget)?
                    .ok_or_else(|| Fault::new(FaultKind::Input, format!("nothing at `{}`", path.text)))?,
            };
            made.insert(name.clone(), value);
        }
        Ok(Output {
            value: made.into(),
            missing: Vec::new(),
        })
    }
}

/// The value at a path, of any type.
#[derive(Debug)]
struct WholeOf(SlashPath);

impl Program for WholeOf {
    fn run(&self, scope: &Scope<'_>) -> Result<Output, Fault> {
        let found = self.0.find(scope.input, scope.budget)?;
        let nothing = || Fault::new(FaultKind::Input, format!("nothing at `{}`", self.0.text));
        Ok(Output {
            value: found.ok_or_else(nothing)?,
            missing: Vec::new(),
        })
    }
}

/// The results of a step's lists, under a name.
#[derive(Debug)]
struct CollectInto(Text);

impl Program for CollectInto {
    fn run(&self, scope: &Scope<'_>) -> Result<Output, Fault> {
        let collected = scope.variables.to_value().unwrap_or_default();
        Ok(Output {
            value: [(self.0.clone(), collected)].into_iter().collect(),
            missing: Vec::new(),
        })
    }
}

/// The number at a path.
fn amount<T>(path: &str) -> NumberSource<T> {
    NumberSource::Program(Assignments::new(&format!("value = {path}")))
}

/// The text between two words of a line.
fn between<'l>(line: &'l str, from: &str, to: &str) -> &'l str {
    let rest = line.split_once(from).unwrap().1;
    rest.split_once(to).map_or(rest, |(found, _)| found).trim()
}

/// A line: its name, its kind, and the rest.
type Line<'l> = (&'l str, &'l str, &'l str);

/// A text as a flow.
pub fn compile(text: &str) -> Flow {
    let lines: Vec<Line<'_>> = text
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.trim().split_once(' ')?;
            let (kind, rest) = rest.split_once(' ')?;
            Some((name, kind, rest))
        })
        .collect();
    let id = |name: &str| StepId(lines.iter().position(|line| line.0 == name).unwrap() as u32);
    let inner: Vec<StepId> = lines
        .iter()
        .filter(|line| line.1 == "each")
        .map(|line| id(between(line.2, " do ", "\n")))
        .collect();
    let mut lists = vec![List::default()];
    lists.extend(inner.iter().map(|step| List {
        steps: vec![*step],
        loops: false,
    }));
    lists[0].steps = (0..lines.len() as u32)
        .map(StepId)
        .filter(|step| !inner.contains(step))
        .collect();
    let list_of = |step: StepId| inner.iter().position(|inner| *inner == step).map_or(0, |at| at + 1);
    let steps = lines.iter().map(|line| {
        let list = list_of(id(line.0));
        let siblings = &lists[list].steps;
        let position = siblings.iter().position(|step| *step == id(line.0)).unwrap();
        Step {
            list: ListId(list as u32),
            position: position as u32,
            next: siblings.get(position + 1).copied(),
            ..step(*line, |name| ListId(list_of(id(name)) as u32))
        }
    });
    Flow::new(FlowParts {
        name: None,
        hash: Text::from(text),
        // A definition is whatever a language writes: here it is text.
        definition: Value::from(text),
        steps: steps.collect(),
        lists: lists.clone(),
        enter: None,
        leave: None,
        passing: OutputPassing::Merge,
        documents: Documents::Any,
        timeout: Millis(1_000_000_000),
        on_timeout: OnTimeout::Cancel,
        input_schema: None,
        output_schema: None,
        concurrency: Vec::new(),
        fault_names: NAMES,
    })
    .unwrap()
}

/// A step that does not know its place yet.
fn step((name, kind, rest): Line<'_>, list_of: impl Fn(&str) -> ListId) -> Step {
    let step = Step {
        name: name.into(),
        list: ListId(0),
        position: 0,
        kind: StepKind::Pass,
        enter: InputMode::Merged,
        leave: OutputMode::Local,
        failed: None,
        settings: None,
        next: None,
        retry: Vec::new(),
        catch: Vec::new(),
        timeout: None,
    };
    match kind {
        "set" => Step {
            leave: OutputMode::Program(Assignments::new(rest)),
            ..step
        },
        "call" => {
            let (target, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            Step {
                kind: StepKind::Task(Box::new(task(target))),
                enter: InputMode::Program(Assignments::new(rest)),
                ..step
            }
        }
        "call-within" => {
            let (path, rest) = rest.split_once(' ').unwrap();
            Step {
                timeout: Some(amount(path)),
                ..self::step((name, "call", rest), list_of)
            }
        }
        "fail" => Step {
            kind: StepKind::Fail(Fail {
                error: Some(Source::Lookup(Arc::new(SlashPath::new(rest)))),
                cause: None,
            }),
            ..step
        },
        _ => whole_step((name, kind, rest), step, list_of),
    }
}

/// A step that takes a document as it is, or goes through a list.
fn whole_step((name, kind, rest): Line<'_>, step: Step, list_of: impl Fn(&str) -> ListId) -> Step {
    match kind {
        "make" => Step {
            leave: OutputMode::Program(Arc::new(WholeOf(SlashPath::new(rest)))),
            ..step
        },
        "hand" => {
            let (target, path) = rest.split_once(' ').unwrap();
            Step {
                // Programs that make a step's input see the list's input, and the default is the variables over it.
                enter: match path {
                    "." => InputMode::Merged,
                    path => InputMode::Program(Arc::new(WholeOf(SlashPath::new(path)))),
                },
                ..self::step((name, "call", target), list_of)
            }
        }
        "each" => Step {
            kind: StepKind::Foreach(Foreach {
                collection: Arc::new(SlashPath::new(rest.split(' ').next().unwrap())),
                item: between(rest, " as ", " ").into(),
                index: None,
                list: list_of(between(rest, " do ", "\n")),
                concurrency: amount(between(rest, " at once ", " ")),
                tolerance: None,
            }),
            leave: OutputMode::Program(Arc::new(CollectInto(between(rest, " into ", " ").into()))),
            timeout: Some(amount(between(rest, " within ", " "))),
            ..step
        },
        other => panic!("there is no `{other}`"),
    }
}

fn task(target: &str) -> Task {
    Task {
        call: Call {
            resource: target.into(),
            template: None,
            pattern: Pattern::RequestResponse,
            params: None,
        },
        poll: None,
        rollback: None,
        priority: None,
        heartbeat: None,
        wait: None,
        total_timeout: None,
    }
}
