//! Whether an execution that ended without success can go on with another definition.

use crate::export::ExportedHistory;
use crate::replay::{Divergence, fold, replay_before};
use starbridge_flow::graph::{Flow, StepId};
use starbridge_flow::limits::Limits;
use starbridge_flow::value::Text;
use starbridge_machine::history::{read_event, write_event};
use starbridge_machine::{Event, EventId};

/// Why one can't.
#[derive(Debug)]
pub(crate) enum Misfit {
    /// The history can't be read from this event on, or by the definition of its own.
    Broken(EventId),
    /// Something else would have been done.
    Differs(Box<Divergence>),
}

/// The events of a history as the definition that it is to go on with reads them; `None` if a redrive would enter nothing
/// again, which it then says itself. Before the first step that is entered again the same must have been done, and what comes
/// after must be something the definition knows.
pub(crate) fn fit(history: &ExportedHistory, flow: &Flow, limits: &Limits) -> Result<Option<Vec<Event>>, Misfit> {
    let state = fold(history, None).map_err(Misfit::Broken)?;
    let Some((from, steps)) = state.redriven_steps(&history.flow) else {
        return Ok(None);
    };
    let replayed = replay_before(history, flow, limits.clone(), from);
    if let Some(divergence) = replayed.divergence {
        return Err(Misfit::Differs(Box::new(divergence)));
    }
    let again = replayed.state.redriven_steps(flow);
    let again = again.map(|(_, steps)| names(flow, &steps)).unwrap_or_default();
    let wanted = names(&history.flow, &steps);
    if again != wanted {
        return Err(Misfit::Differs(Box::new(other_steps(history, from, &wanted, &again))));
    }
    let events = history.events.iter().map(|event| {
        let written = write_event(&history.flow, event);
        read_event(flow, &written.into()).map_err(|_| Misfit::Broken(event.id))
    });
    events.collect::<Result<_, _>>().map(Some)
}

fn names(flow: &Flow, steps: &[StepId]) -> Vec<Text> {
    let name = |step: &StepId| flow.step(*step).map(|step| step.name.clone()).unwrap_or_default();
    steps.iter().map(name).collect()
}

/// The difference where other steps would be entered again.
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
