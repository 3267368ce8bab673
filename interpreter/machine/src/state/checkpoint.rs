//! Checkpoints: a state written down, so that loading need not fold the whole history. Only ever a shortcut.

use super::{Book, Children, FrameId, Inside, Phase, State, step_input};
use crate::MACHINE_VERSION;
use crate::event::{Child, EventId, Path};
use serde::{Deserialize, Serialize};
use starbridge_fdl::graph::{Flow, StepKind};
use starbridge_fdl::limits::Limits;
use starbridge_fdl::value::{Overlay, Text};
use std::sync::Arc;

/// Version of the form of checkpoints.
const FORMAT: u32 = 2;

/// What a checkpoint opens with: another one is ignored and rebuilt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Version of the form.
    pub format: u32,
    /// Hash of the definition.
    pub definition_hash: Text,
    /// Version of the machine.
    pub machine: u32,
    /// The last event folded into it.
    pub event: EventId,
}

/// Why a checkpoint can't be used. The history still can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointError {
    /// It can't be read.
    Unreadable,
    /// It is of another form, definition or machine.
    Other(Checkpoint),
}

#[derive(Serialize, Deserialize)]
struct Written<B> {
    #[serde(flatten)]
    head: Checkpoint,
    execution: Text,
    book: B,
}

impl State {
    /// Writes the state down. The same state gives the same bytes.
    pub fn checkpoint(&self, flow: &Flow) -> Vec<u8> {
        serde_json::to_vec(&Written {
            head: Checkpoint {
                format: FORMAT,
                definition_hash: flow.hash.clone(),
                machine: MACHINE_VERSION,
                event: self.book.last,
            },
            execution: self.execution.clone(),
            book: &self.book,
        })
        .unwrap_or_default()
    }

    /// Reads a state that was written down under the same definition by the same machine.
    pub fn from_checkpoint(flow: &Flow, bytes: &[u8], limits: Arc<Limits>) -> Result<Self, CheckpointError> {
        let head: Checkpoint = serde_json::from_slice(bytes).map_err(|_| CheckpointError::Unreadable)?;
        if head.format != FORMAT || head.machine != MACHINE_VERSION || head.definition_hash != flow.hash {
            return Err(CheckpointError::Other(head));
        }
        let written: Written<Book> = serde_json::from_slice(bytes).map_err(|_| CheckpointError::Unreadable)?;
        let mut state = Self {
            execution: written.execution,
            limits,
            book: written.book,
            recent: None,
        };
        state.count_unsent();
        state
            .sound(flow)
            .and_then(|()| state.rebuild(flow))
            .ok_or(CheckpointError::Unreadable)?;
        Ok(state)
    }

    /// Makes anew what is not written down because it follows: paths and inputs, from outside in.
    fn rebuild(&mut self, flow: &Flow) -> Option<()> {
        let mut ids: Vec<FrameId> = self.book.frames.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            self.rebuild_frame(flow, id)?;
        }
        Some(())
    }

    /// The same of one frame, where those around it are as they should be.
    pub(crate) fn rebuild_frame(&mut self, flow: &Flow, id: FrameId) -> Option<()> {
        let parent = self.book.frames.get(&id)?.parent;
        let (path, mut input) = match parent {
            None => (Path::default(), self.root_input()?),
            Some((outer, child)) => self.inside_of_parent(flow, outer, child)?,
        };
        let frame = self.book.frames.get_mut(&id)?;
        for (key, value) in &frame.extra {
            input.insert(key.clone(), value.clone());
        }
        if frame.replaced {
            input = Overlay::new(frame.local.clone());
        }
        frame.path = path;
        frame.data = input.clone();
        frame.data.merge(&frame.local);
        frame.input = input;
        let (shown, plain) = (frame.data.clone(), frame.input.clone());
        if let Some(visit) = frame.visit_mut()
            && visit.started > EventId::default()
            && let Some(step) = flow.step(visit.step)
        {
            visit.input = step_input(step, visit.mapped.as_ref(), shown, plain);
            if let (StepKind::Foreach(foreach), Phase::Started(Inside::Children(children))) =
                (&step.kind, &mut visit.phase)
            {
                children.collection = Children::collected(foreach, &visit.input);
            }
        }
        Some(())
    }

    fn root_input(&self) -> Option<Overlay> {
        let input = match &self.book.flow_input {
            Some(input) => input.clone(),
            None => self.book.started.as_ref()?.input.clone(),
        };
        Some(Overlay::new(input))
    }

    fn inside_of_parent(&self, flow: &Flow, outer: FrameId, child: Child) -> Option<(Path, Overlay)> {
        let frame = self.book.frames.get(&outer)?;
        let visit = frame.visit()?;
        let mut input = visit.input.clone();
        if let (StepKind::Foreach(_), Some(children)) = (&flow.step(visit.step)?.kind, visit.children()) {
            input.exempt_also(children.collection_len());
        }
        Some((frame.path.inside(visit.step, child), input))
    }
}

/// A hash map, written in the order of its keys.
pub(super) mod sorted {
    use rustc_hash::FxHashMap;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in super::super) fn serialize<K, V, S>(map: &FxHashMap<K, V>, serializer: S) -> Result<S::Ok, S::Error>
    where
        K: Ord + Serialize,
        V: Serialize,
        S: Serializer,
    {
        let mut entries: Vec<(&K, &V)> = map.iter().collect();
        entries.sort_by_key(|(key, _)| *key);
        entries.serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, K, V, D>(deserializer: D) -> Result<FxHashMap<K, V>, D::Error>
    where
        K: Eq + std::hash::Hash + Deserialize<'de>,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Vec::<(K, V)>::deserialize(deserializer).map(|entries| entries.into_iter().collect())
    }
}

/// A map whose keys are no strings, written as a list of pairs.
pub(super) mod pairs {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::collections::BTreeMap;

    pub(in super::super) fn serialize<K, V, S>(map: &BTreeMap<K, V>, serializer: S) -> Result<S::Ok, S::Error>
    where
        K: Serialize,
        V: Serialize,
        S: Serializer,
    {
        serializer.collect_seq(map)
    }

    pub(in super::super) fn deserialize<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Ord + Deserialize<'de>,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Vec::<(K, V)>::deserialize(deserializer).map(|entries| entries.into_iter().collect())
    }
}
