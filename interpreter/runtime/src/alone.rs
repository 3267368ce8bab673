//! Going on with suspects: executions that were there when the process came to its end, twice in a row. They are gone on with one
//! at a time, and the store knows with which: if the process comes to its end once more, it was because of that one, and nobody
//! else is set aside for it.

use starbridge_flow::value::Text;
use starbridge_ports::{History, Mark};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Lets one suspect of a store at a time be gone on with.
pub(crate) struct Alone {
    history: Arc<dyn History>,
    turn: Mutex<()>,
}

/// That a suspect is being gone on with.
pub(crate) struct Entered<'a> {
    alone: &'a Alone,
    execution: Text,
    _turn: MutexGuard<'a, ()>,
}

impl Alone {
    pub(crate) fn of(history: Arc<dyn History>) -> Self {
        Self {
            history,
            turn: Mutex::new(()),
        }
    }

    /// Waits for its turn, and takes down that it has come.
    pub(crate) fn enter(&self, execution: &Text) -> Entered<'_> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.mark(execution, Mark::Alone);
        Entered {
            alone: self,
            execution: execution.clone(),
            _turn: turn,
        }
    }

    /// A store that fails is found out by the next append.
    fn mark(&self, execution: &Text, mark: Mark) {
        if let Err(error) = self.history.mark(&[(execution.clone(), mark)]) {
            tracing::warn!(%execution, %error, "it can't be taken down how an execution is gone on with");
        }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.alone.mark(&self.execution, Mark::Survived);
    }
}
