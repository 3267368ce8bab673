//! The flows that operators limit or pause.

use starbridge_flow::value::Text;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

/// The flows whose starts have to be admitted whatever their keys.
#[derive(Debug, Default)]
pub(super) struct GovernedFlows {
    /// Those with a limit or a pause that an operator set.
    pub(super) set: BTreeSet<Text>,
    /// Those that an operator is about to limit or to pause, with how many such changes are under way.
    pub(super) changing: BTreeMap<Text, usize>,
}

/// A change of a flow's limit or pause that is under way. As long as it is kept, starts of the flow ask admission.
///
/// Call [`AdmissionHandle::begin_change`], wait until everything that owners decided before is durable
/// ([`crate::Command::AwaitDurable`]), and hand it to admission with the change: admission then finds in the store all that runs
/// without a slot.
#[derive(Debug)]
pub struct FlowChange {
    pub(super) governed: Arc<RwLock<GovernedFlows>>,
    pub(super) flow: Text,
}

impl Drop for FlowChange {
    fn drop(&mut self) {
        let mut flows = self.governed.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(changes) = flows.changing.get_mut(&self.flow) {
            *changes = changes.saturating_sub(1);
            if *changes == 0 {
                flows.changing.remove(&self.flow);
            }
        }
    }
}
