//! Whether an execution that ended without success can go on with another definition.

use crate::export::ExportedHistory;
use crate::replay::{Divergence, fold, replay_before};
use starbridge_flow::graph::{Flow, StepId};
use starbridge_flow::limits::Limits;
use starbridge_flow::value::Text;
use starbridge_machine::history::{read_event, write_event};
use starbridge_machine::{Event, EventId};

/// Why it can't.
#[derive(Debug)]
pub(crate) enum FitError {
    /// The history can't be read from this event on, or not by its own definition.
    Broken(EventId),
    /// The other definition would have done something else.
    Differs(Box<Divergence>),
}

/// The events of a history, read with the definition with which it will go on; `None` if a redrive
/// would enter nothing again, which the redrive then reports itself. Before the first step that is
/// entered again, both definitions must have done the same; the later events must be known to the
/// new definition.
pub(crate) fn fit(history: &ExportedHistory, flow: &Flow, limits: &Limits) -> Result<Option<Vec<Event>>, FitError> {
    let state = fold(history, None).map_err(FitError::Broken)?;
    let Some((from, steps)) = state.redriven_steps(&history.flow) else {
        return Ok(None);
    };
    let replayed = replay_before(history, flow, limits.clone(), from);
    if let Some(divergence) = replayed.divergence {
        return Err(FitError::Differs(Box::new(divergence)));
    }
    let again = replayed.state.redriven_steps(flow);
    let again = again.map(|(_, steps)| names(flow, &steps)).unwrap_or_default();
    let wanted = names(&history.flow, &steps);
    if again != wanted {
        return Err(FitError::Differs(Box::new(other_steps(history, from, &wanted, &again))));
    }
    let events = history.events.iter().map(|event| {
        let written = write_event(&history.flow, event);
        read_event(flow, &written.into()).map_err(|_| FitError::Broken(event.id))
    });
    events.collect::<Result<_, _>>().map(Some)
}

fn names(flow: &Flow, steps: &[StepId]) -> Vec<Text> {
    let name = |step: &StepId| flow.step(*step).map(|step| step.name.clone()).unwrap_or_default();
    steps.iter().map(name).collect()
}

/// The difference, if other steps would be entered again.
fn other_steps(history: &ExportedHistory, from: EventId, wanted: &[Text], again: &[Text]) -> Divergence {
    let place = usize::try_from(from.0).unwrap_or(0).saturating_sub(1);
    let event = history.events.get(place);
    let listed = |steps: &[Text]| match steps {
        [] => "none".to_owned(),
        steps => steps
            .iter()
            .map(|step| format!("`{step}`"))
            .collect::<Vec<_>>()
            .join(", "),
    };
    Divergence {
        event: from,
        recorded: event.map(|event| write_event(&history.flow, event)),
        expected: None,
        refused: Some(format!(
            "the steps to enter again are {}, and with that version {}",
            listed(wanted),
            listed(again)
        )),
    }
}
