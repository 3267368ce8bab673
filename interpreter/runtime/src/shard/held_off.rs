//! Executions that are to go on and for which there is no room in memory. The store has them; what is posted to them is kept here.

use super::Shard;
use super::children::Incoming;
use starbridge_flow::value::Text;
use std::collections::{BTreeMap, VecDeque};

/// The executions that are held off.
#[derive(Default)]
pub(super) struct HeldOff {
    /// In the order in which they are let in.
    order: VecDeque<Text>,
    incoming: BTreeMap<Text, Vec<Incoming>>,
}

impl Shard {
    /// Holds an execution off that is not loaded.
    pub(crate) fn hold_off(&mut self, id: Text) {
        if !self.is_held_off(&id) {
            self.held_off.order.push_back(id.clone());
            self.held_off.incoming.insert(id, Vec::new());
        }
    }

    /// Whether an execution is held off.
    pub(crate) fn is_held_off(&self, id: &str) -> bool {
        !self.held_off.incoming.is_empty() && self.held_off.incoming.contains_key(id)
    }

    /// Whether any is held off.
    pub(crate) fn holds_any_off(&self) -> bool {
        !self.held_off.incoming.is_empty()
    }

    /// Whoever is to be let in next.
    pub(crate) fn first_held_off(&self) -> Option<Text> {
        self.held_off.order.front().cloned()
    }

    /// Ends the holding off of an execution. What was posted to it meanwhile comes before what is posted later.
    pub(crate) fn let_in(&mut self, id: &Text) {
        let Some(incoming) = self.held_off.incoming.remove(id) else {
            return;
        };
        self.held_off.order.retain(|held| held != id);
        for incoming in incoming.into_iter().rev() {
            self.inbox.push_front((id.clone(), incoming));
        }
    }

    /// Forgets all that are held off but these.
    pub(super) fn leave_held_off(&mut self, stays: impl Fn(&Text) -> bool) {
        self.held_off.order.retain(&stays);
        self.held_off.incoming.retain(|id, _| stays(id));
    }

    /// Keeps something posted to an execution that is set aside or held off.
    pub(super) fn keep_incoming(&mut self, id: &Text, incoming: Incoming) {
        match self.held_off.incoming.get_mut(id) {
            Some(kept) => kept.push(incoming),
            None => self.retain_incoming(id, incoming),
        }
    }
}
