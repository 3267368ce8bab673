//! Makes the compiled flow from the parts: lists, loops, the definition and its hash.

use super::Checker;
use crate::FAULT_NAMES;
use crate::graph::{
    CatchTarget, ConcurrencyKey, Documents, FlowParts, List, OnTimeout, OutputPassing, Program, Schema, Step, StepId,
    StepKind,
};
use crate::hex;
use crate::time::Millis;
use crate::value::{Text, Value};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// The part of a definition that is about the flow as a whole.
pub(super) struct Header {
    pub(super) name: Option<Text>,
    pub(super) enter: Option<Arc<dyn Program>>,
    pub(super) leave: Option<Arc<dyn Program>>,
    pub(super) timeout: Millis,
    pub(super) on_timeout: OnTimeout,
    pub(super) input_schema: Option<Schema>,
    pub(super) output_schema: Option<Schema>,
    pub(super) concurrency: Vec<ConcurrencyKey>,
}

impl Checker<'_> {
    /// Puts everything together.
    pub(super) fn parts(&self, header: Header, steps: Vec<Step>) -> FlowParts {
        let definition = self.outline.root.to_value();
        FlowParts {
            name: header.name,
            hash: hash(&definition),
            definition,
            lists: self.compile_lists(&steps),
            steps,
            enter: header.enter,
            leave: header.leave,
            passing: OutputPassing::Merge,
            documents: Documents::Objects,
            timeout: header.timeout,
            on_timeout: header.on_timeout,
            input_schema: header.input_schema,
            output_schema: header.output_schema,
            concurrency: header.concurrency,
            fault_names: FAULT_NAMES,
        }
    }

    fn compile_lists(&self, steps: &[Step]) -> Vec<List> {
        let mut lists: Vec<List> = self
            .outline
            .lists
            .iter()
            .map(|list| List {
                steps: list.steps.clone(),
                loops: false,
            })
            .collect();
        for step in steps.iter().filter(|step| leads_back(step, steps)) {
            if let Some(list) = lists.get_mut(step.list.0 as usize) {
                list.loops = true;
            }
        }
        lists
    }
}

/// Whether an edge of the step leads to itself or to an earlier step of its list.
fn leads_back(step: &Step, steps: &[Step]) -> bool {
    let back = |id: StepId| {
        steps
            .get(id.0 as usize)
            .is_some_and(|target| target.position <= step.position)
    };
    let caught = step.catch.iter().any(|catch| match catch.target {
        CatchTarget::Goto(id) => back(id),
        CatchTarget::Manual => false,
    });
    let chosen = match &step.kind {
        StepKind::Choice(choice) => choice
            .arms
            .iter()
            .chain(&choice.default)
            .any(|arm| arm.goto.is_some_and(back)),
        _ => false,
    };
    caught || chosen
}

/// SHA-256 of the compact JSON, in lower-case hexadecimal: the same for JSON and YAML of one document.
fn hash(definition: &Value) -> Text {
    let digest = Sha256::digest(definition.to_json().as_bytes());
    Text::from(hex::encode(&digest))
}
