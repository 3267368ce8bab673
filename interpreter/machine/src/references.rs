//! References in a call: secrets and task tokens that are put in when it is sent (section "tasks").
//!
//! The definition alone, and the tokens an execution was started with, say where in a call a reference stands. Data
//! is never searched: a string elsewhere that looks like a reference stays a string.

use crate::effect::{CallPart, CallReference, Reference};
use crate::event::{EventId, TokenGrant};
use crate::state::{Frame, FrameId, State, Visit};
use starbridge_flow::graph::{Call, Carried, Flow, InputMode, Parameters, Pattern, Pointer, Program, Step, StepKind};
use starbridge_flow::value::Text;

impl State {
    /// The references in a call of a task.
    pub(crate) fn references_of_task(
        &self,
        flow: &Flow,
        frame: FrameId,
        visit: &Visit,
        step: &Step,
    ) -> Vec<CallReference> {
        let StepKind::Task(task) = &step.kind else {
            return Vec::new();
        };
        let mut tokens = self.grants(flow, frame);
        if let (Some(_), InputMode::Program(program)) = (&visit.mapped, &step.enter) {
            // The input is made just before the attempt's first call.
            tokens.extend(self.own_token(program.as_ref(), &task.call, visit.started.next()));
        }
        references(task.call.params.as_deref(), tokens)
    }

    /// The references in a call that undoes a task.
    pub(crate) fn references_of_undo(
        &self,
        program: Option<&dyn Program>,
        undo: &Call,
        call: EventId,
    ) -> Vec<CallReference> {
        let own = program.map(|program| self.own_token(program, undo, call));
        references(undo.params.as_deref(), own.into_iter().flatten().collect())
    }

    /// The token of a call, where a program puts it into the call's input.
    fn own_token(&self, program: &dyn Program, called: &Call, call: EventId) -> Vec<TokenGrant> {
        if called.pattern != Pattern::WaitForCallback {
            return Vec::new();
        }
        let grant = |at| TokenGrant {
            at,
            execution: self.execution().clone(),
            call,
        };
        program.carries(Carried::Token).into_iter().map(grant).collect()
    }

    /// The tokens that the execution was started with, where they stand in the input of the step that a frame is in.
    fn grants(&self, flow: &Flow, frame: FrameId) -> Vec<TokenGrant> {
        let granted = self.started().map_or(&[][..], |started| &started.tokens);
        if granted.is_empty() {
            return Vec::new();
        }
        let mut grants = granted.to_vec();
        if self.data.flow_input.is_some() {
            grants = carried(&grants, flow.enter.as_deref());
        }
        let way: Vec<&Frame> = self.frames.outward(frame).map(|(_, frame)| frame).collect();
        for frame in way.into_iter().rev() {
            grants = grants_in(flow, frame, grants);
        }
        grants
    }
}

/// Takes the places of tokens in the input of a composite; gives their places in the input of the step that one of
/// its lists is in.
fn grants_in(flow: &Flow, frame: &Frame, mut grants: Vec<TokenGrant>) -> Vec<TokenGrant> {
    let step = frame
        .visit()
        .and_then(|visit| Some((visit, flow.step(visit.step)?)))
        .filter(|_| !frame.replaced);
    let Some((visit, step)) = step else {
        return Vec::new();
    };
    let hidden = |at: &Pointer, by: &dyn Fn(&str) -> bool| at.first().is_none_or(|key| by(key));
    grants.retain(|grant| !hidden(&grant.at, &|key| frame.extra.contains_key(key)));
    match (&visit.mapped, &step.enter) {
        (Some(_), InputMode::Program(program)) => carried(&grants, Some(program.as_ref())),
        (Some(_), _) => Vec::new(),
        (None, InputMode::Input) => grants,
        (None, _) => {
            grants.retain(|grant| !hidden(&grant.at, &|key| frame.local.get(key).is_some()));
            grants
        }
    }
}

/// Takes the places of tokens in the data that a program reads; gives their places in what it makes.
fn carried(grants: &[TokenGrant], program: Option<&dyn Program>) -> Vec<TokenGrant> {
    let Some(program) = program else {
        return Vec::new();
    };
    let places = |grant: &TokenGrant| {
        let grant = grant.clone();
        let places = program.carries(Carried::Input(&grant.at)).into_iter();
        places.map(move |at| TokenGrant { at, ..grant.clone() })
    };
    grants.iter().flat_map(places).collect()
}

/// The references of a call: secrets where the parameters name them, tokens where they stand in the input and where
/// the parameters take them from it.
fn references(params: Option<&dyn Parameters>, tokens: Vec<TokenGrant>) -> Vec<CallReference> {
    let secrets = params
        .map_or(&[][..], |params| params.secrets())
        .iter()
        .map(|secret| CallReference {
            part: CallPart::Params,
            at: secret.at.clone(),
            reference: Reference::Secret(secret.name.clone()),
        });
    let mut references: Vec<CallReference> = secrets.collect();
    for TokenGrant { at, execution, call } in tokens {
        let taken = params.map(|params| params.carries(&at)).unwrap_or_default();
        let places = taken.into_iter().map(|at| (CallPart::Params, at));
        references.extend(places.chain([(CallPart::Input, at)]).map(|(part, at)| CallReference {
            part,
            at,
            reference: Reference::Token {
                execution: execution.clone(),
                call,
            },
        }));
    }
    references
}

impl Reference {
    /// The reference as values, histories and states write it.
    pub fn text(&self) -> Text {
        match self {
            Self::Secret(name) => Text::from(format!("secret://{name}")),
            Self::Token { execution, call } => Text::from(format!("task-token:{execution}/{call}")),
        }
    }
}
