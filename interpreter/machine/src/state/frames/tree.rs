//! The frames by their ids.

use super::frame::Frame;
use crate::state::{FrameId, ROOT};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The frames by their ids. The frame of the flow's own list has a place of its own, because each event looks frames
/// up some ten times, and in most executions it is the only one.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameTree {
    root: Option<Box<Frame>>,
    inner: FxHashMap<FrameId, Frame>,
}

impl FrameTree {
    pub(super) fn get(&self, id: FrameId) -> Option<&Frame> {
        match id {
            ROOT => self.root.as_deref(),
            _ => self.inner.get(&id),
        }
    }

    pub(super) fn get_mut(&mut self, id: FrameId) -> Option<&mut Frame> {
        match id {
            ROOT => self.root.as_deref_mut(),
            _ => self.inner.get_mut(&id),
        }
    }

    pub(super) fn insert(&mut self, id: FrameId, frame: Frame) {
        match id {
            ROOT => self.root = Some(Box::new(frame)),
            _ => drop(self.inner.insert(id, frame)),
        }
    }

    pub(super) fn remove(&mut self, id: FrameId) -> Option<Frame> {
        match id {
            ROOT => self.root.take().map(|root| *root),
            _ => self.inner.remove(&id),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.root.is_none() && self.inner.is_empty()
    }

    /// All frames, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (FrameId, &Frame)> {
        let root = self.root.as_deref().map(|root| (ROOT, root));
        root.into_iter()
            .chain(self.inner.iter().map(|(id, frame)| (*id, frame)))
    }

    /// All frames, in no particular order.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Frame> {
        self.root.as_deref_mut().into_iter().chain(self.inner.values_mut())
    }
}

impl FromIterator<(FrameId, Frame)> for FrameTree {
    fn from_iter<I: IntoIterator<Item = (FrameId, Frame)>>(frames: I) -> Self {
        let mut tree = Self::default();
        for (id, frame) in frames {
            tree.insert(id, frame);
        }
        tree
    }
}

/// Written as pairs, in the order of the ids.
impl Serialize for FrameTree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut pairs: Vec<(FrameId, &Frame)> = self.iter().collect();
        pairs.sort_by_key(|(id, _)| *id);
        pairs.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FrameTree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<(FrameId, Frame)>::deserialize(deserializer).map(Self::from_iter)
    }
}
