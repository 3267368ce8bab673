//! A miniature of Amazon States Language: Pass, Choice, Wait, Task, Succeed and Fail.

use serde_json::Value as Json;
use starbridge_flow::graph::*;
use starbridge_flow::path::Query;
use starbridge_flow::time::Millis;
use starbridge_flow::value::{Text, Value};
use std::sync::Arc;

/// The names of this language for faults, in the order of [`FaultNames::KINDS`].
#[rustfmt::skip]
const NAMES: FaultNames = FaultNames::new("States.", [
    "States.Timeout", "States.HeartbeatTimeout", "States.ResultInvalid", "States.ParameterPathFailure",
    "States.OutputPathFailure", "States.DataLimitExceeded", "States.LimitExceeded", "States.ResourceNotFound",
    "States.Runtime", "States.BranchFailed", "States.PollFailed", "States.DependencyFailed",
    "States.ExecutionTimeout", "States.Aborted", "States.Failed", "States.ExecutionAlreadyExists",
    "States.StartDeadline", "States.ConcurrencyDeadlock",
]);

/// Data made from a state's input: a member `x.$` is a path, every other one a constant. What is no object is a constant.
/// `None` is the input itself.
#[derive(Debug)]
struct Template(Option<Value>);

impl Program for Template {
    fn run(&self, scope: &Scope<'_>) -> Result<Output, Fault> {
        let member = |(key, value): (&Text, &Value)| {
            let Some((target, path)) = key.strip_suffix(".$").zip(value.as_str()) else {
                return Ok((key.clone(), value.clone()));
            };
            let found = Query::parse(path)
                .ok()
                .and_then(|query| query.find(scope.input, scope.budget).ok().flatten());
            let fault = || Fault::new(FaultKind::Input, format!("nothing at `{path}`"));
            Ok((Text::from(target), found.ok_or_else(fault)?))
        };
        let value = match &self.0 {
            Some(Value::Object(template)) => template.iter().map(member).collect::<Result<Value, Fault>>()?,
            Some(constant) => constant.clone(),
            None => scope.input.to_value().unwrap_or_default(),
        };
        Ok(Output {
            value,
            missing: Vec::new(),
        })
    }
}

/// `Variable` and `StringEquals`.
#[derive(Debug)]
struct StringEquals(Query, Value);

impl Guard for StringEquals {
    fn holds(&self, data: Root<'_>, budget: &Budget) -> Result<bool, Fault> {
        let found = budget.within(self.0.text(), self.0.find(data, budget))?;
        Ok(found.as_ref() == Some(&self.1))
    }
}

/// Compiles a definition to a flow.
pub fn compile(definition: &str) -> Flow {
    let definition: Json = serde_json::from_str(definition).unwrap();
    let mut states: Vec<(&String, &Json)> = definition["States"].as_object().unwrap().iter().collect();
    // A list begins with its first step. From there `Next` leads anywhere.
    states.sort_by_key(|(name, _)| definition["StartAt"] != ***name);
    let id = |name: &Json| {
        states
            .iter()
            .position(|(state, _)| *name == ***state)
            .map(|at| StepId(at as u32))
    };
    let steps: Vec<Step> = (0..)
        .zip(&states)
        .map(|(at, (name, state))| step(name, state, at, &id))
        .collect();
    let list = List {
        steps: (0..steps.len()).map(|at| StepId(at as u32)).collect(),
        loops: true,
    };
    let parts = FlowParts {
        name: None,
        hash: "miniature".into(),
        definition: Value::from(&definition),
        steps,
        lists: vec![list],
        enter: None,
        leave: None,
        passing: OutputPassing::Replace,
        documents: Documents::Any,
        timeout: Millis::MAX,
        on_timeout: OnTimeout::Cancel,
        input_schema: None,
        output_schema: None,
        concurrency: Vec::new(),
        fault_names: NAMES,
    };
    Flow::new(parts).unwrap()
}

fn step(name: &str, state: &Json, position: u32, id: &dyn Fn(&Json) -> Option<StepId>) -> Step {
    let template = |member: &str| state.get(member).map(Value::from);
    let leave = if state["Type"] == "Task" {
        OutputMode::Local
    } else {
        OutputMode::Program(Arc::new(Template(template("Result"))))
    };
    let enter = template("Parameters").map(|made| InputMode::Program(Arc::new(Template(Some(made)))));
    let retry = |retry: &Json| Retry {
        errors: items(&retry["ErrorEquals"], |name| match name.as_str().unwrap() {
            "States.ALL" => Matcher::Any,
            "States.TaskFailed" => Matcher::Not(FaultKind::Timeout),
            name => Matcher::Kind(NAMES.kind(name)),
        }),
        interval: Millis::from_secs(retry["IntervalSeconds"].as_u64().unwrap()),
        max_interval: Millis::MAX,
        max_attempts: retry["MaxAttempts"].as_u64().unwrap(),
        multiplier: 2.0,
        jitter: 0.0,
        backoff: BackoffKind::Exponential,
        values: None,
    };
    Step {
        name: name.into(),
        list: ListId(0),
        position,
        kind: kind(state, id),
        enter: enter.unwrap_or(InputMode::Input),
        leave,
        failed: None,
        settings: None,
        next: id(&state["Next"]),
        retry: items(&state["Retry"], retry),
        catch: Vec::new(),
        timeout: state["TimeoutSeconds"]
            .as_u64()
            .map(|seconds| NumberSource::Fixed(Millis::from_secs(seconds))),
    }
}

fn kind(state: &Json, id: &dyn Fn(&Json) -> Option<StepId>) -> StepKind {
    let source = |member: &str| Source::Constant(Value::from(&state[member]));
    let arm = |condition, next: &Json| Arm {
        condition,
        text: Text::default(),
        list: None,
        goto: id(next),
    };
    let choice = |rule: &Json| {
        let variable = Query::parse(rule["Variable"].as_str().unwrap()).unwrap();
        let equals: Arc<dyn Guard> = Arc::new(StringEquals(variable, Value::from(&rule["StringEquals"])));
        arm(Some(equals), &rule["Next"])
    };
    match state["Type"].as_str().unwrap() {
        "Pass" => StepKind::Pass,
        "Wait" => StepKind::Wait(Wait::Duration(source("Seconds"))),
        "Succeed" => StepKind::Succeed,
        "Fail" => StepKind::Fail(Fail {
            error: Some(source("Error")),
            cause: Some(source("Cause")),
        }),
        "Choice" => StepKind::Choice(Choice {
            arms: items(&state["Choices"], choice),
            default: Some(arm(None, &state["Default"])),
        }),
        task => {
            assert_eq!(task, "Task");
            let resource = state["Resource"].as_str().unwrap().into();
            let call = Call {
                resource,
                template: None,
                pattern: Pattern::RequestResponse,
                params: None,
            };
            StepKind::Task(Box::new(Task {
                call,
                poll: None,
                rollback: None,
                priority: None,
                heartbeat: None,
                wait: None,
                total_timeout: None,
            }))
        }
    }
}

fn items<T>(list: &Json, made: impl Fn(&Json) -> T) -> Vec<T> {
    list.as_array().into_iter().flatten().map(made).collect()
}
