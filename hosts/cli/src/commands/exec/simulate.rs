//! `exec --mock`: the flow in virtual time, its tasks answered from a test file.

use super::{Options, Prepared};
use crate::definitions::{read_text, without_mark};
use crate::exit::Exit;
use crate::output::{Output, bad, fault, finish_value};
use crate::progress::Progress;
use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::value::{Object, Value};
use starbridge_node::export::{export_event, export_head, needed_version};
use starbridge_runtime::Outgoing;
use starbridge_simulator::{Flows, Outcome, Simulation, TestFile};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

pub(super) fn run(options: &Options, output: Output, prepared: Prepared) -> Result<(), Exit> {
    let Some(mock) = &options.mock else {
        return Ok(());
    };
    check(&prepared.main.flow, output)?;
    let text = read_text(mock, output)?;
    let file = match TestFile::parse(without_mark(&text)) {
        Ok(file) => file,
        Err(error) => {
            return Err(bad(
                output,
                &format!("{}: {error}", mock.display()),
                "`starbridge schema test` prints what a test file looks like",
            ));
        }
    };
    let wanted = options.case.as_deref();
    let case = match wanted {
        None => file.cases.first(),
        Some(name) => file.cases.iter().find(|case| case.name == name),
    };
    let Some(mut case) = case.cloned() else {
        let names: Vec<&str> = file.cases.iter().map(|case| case.name.as_str()).collect();
        let message = format!("`{}` has no case `{}`", mock.display(), wanted.unwrap_or_default());
        return Err(bad(output, &message, &format!("it has: {}", names.join(", "))));
    };
    if let Some(input) = prepared.input {
        case.input = input.into();
    }
    if let Some(name) = &options.name {
        case.execution_name = Some(name.clone());
    }
    let flows = Flows {
        name: prepared.main.name.clone(),
        flow: prepared.main.flow.clone(),
        children: prepared.children.clone(),
    };
    let mut progress = Progress::new(output, options.verbose);
    let observer = Box::new(move |shard: &starbridge_runtime::Shard, outgoing: &Outgoing| {
        if let Outgoing::Turn { execution, events } = outgoing
            && let Some(flow) = shard.flow(execution)
        {
            progress.turn(execution, flow, events, execution.as_str() == "case");
        }
    });
    let mut simulation = Simulation::new(flows, case, file.limits.over(Limits::default())).observed(observer);
    let outcome = match simulation.run() {
        Ok(outcome) => outcome,
        Err(error) => {
            return Err(bad(
                output,
                &error.to_string(),
                "give it an answer under `mocks`, by the step's name",
            ));
        }
    };
    if let Some(refusal) = &outcome.refusal {
        return Err(bad(output, refusal, "nothing was started"));
    }
    write_history(options, output, &prepared.main.flow, &prepared.children, &simulation)?;
    print_outcome(output, &outcome)
}

/// Whether a flow can run in virtual time.
fn check(flow: &Flow, output: Output) -> Result<(), Exit> {
    if flow.may_ask_operator() {
        return Err(bad(
            output,
            "the flow has a `catch` with `manual`, and nobody can be asked in virtual time",
            "nothing was started: run it without `--mock` on a terminal",
        ));
    }
    Ok(())
}

/// The history of the execution, for `--history`.
fn write_history(
    options: &Options,
    output: Output,
    flow: &Flow,
    children: &BTreeMap<String, Arc<Flow>>,
    simulation: &Simulation,
) -> Result<(), Exit> {
    let Some(mut file) = super::open_history(options, output)? else {
        return Ok(());
    };
    let Some((id, events)) = simulation.histories().first_key_value() else {
        return Ok(());
    };
    let mut lines = vec![export_head(id, needed_version(events), flow, children)];
    lines.extend(events.iter().map(|event| export_event(flow, event)));
    let written = lines
        .iter()
        .try_for_each(|line| writeln!(file, "{line}"))
        .and_then(|()| file.flush());
    written.map_err(|error| fault(output, &format!("the history can't be written: {error}"), ""))
}

fn print_outcome(output: Output, outcome: &Outcome) -> Result<(), Exit> {
    if let Some(result) = outcome.output.clone().filter(|_| outcome.status == "Succeeded") {
        return finish_value(output, &result, Ok(()));
    }
    let failure = outcome.failure.as_ref();
    let result: Object = [
        ("status".into(), Value::from(outcome.status.as_str())),
        (
            "error".into(),
            failure.map(|failure| failure.error.clone().into()).unwrap_or_default(),
        ),
        (
            "cause".into(),
            failure.map(|failure| failure.cause.clone().into()).unwrap_or_default(),
        ),
        (
            "step".into(),
            outcome.failed_step.clone().map(Value::from).unwrap_or_default(),
        ),
    ]
    .into_iter()
    .collect();
    finish_value(output, &result.into(), Err(Exit::Found))
}
