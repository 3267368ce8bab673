//! Running suspects alone. A suspect is an execution that was loaded both of the last two times the
//! process ended. Suspects run one at a time, and the store knows which one runs: if the process
//! ends twice more while the same one runs, that one was the cause, and only it is set aside.

use starbridge_flow::value::Text;
use starbridge_ports::{History, Mark};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Lets one suspect of a store run at a time.
pub(crate) struct SuspectLock {
    history: Arc<dyn History>,
    turn: Mutex<()>,
}

/// Held while a suspect runs.
pub(crate) struct SuspectGuard<'a> {
    alone: &'a SuspectLock,
    execution: Text,
    _turn: MutexGuard<'a, ()>,
}

impl SuspectLock {
    pub(crate) fn of(history: Arc<dyn History>) -> Self {
        Self {
            history,
            turn: Mutex::new(()),
        }
    }

    /// Waits until no other suspect runs, and marks the execution in the store.
    pub(crate) fn enter(&self, execution: &Text) -> SuspectGuard<'_> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.mark(execution, Mark::Alone);
        SuspectGuard {
            alone: self,
            execution: execution.clone(),
            _turn: turn,
        }
    }

    /// Marks an execution. An error of the store is ignored here, because the next append meets it too.
    fn mark(&self, execution: &Text, mark: Mark) {
        if let Err(error) = self.history.mark(&[(execution.clone(), mark)], None) {
            tracing::warn!(%execution, %error, "it can't be taken down how an execution is gone on with");
        }
    }
}

impl Drop for SuspectGuard<'_> {
    fn drop(&mut self) {
        self.alone.mark(&self.execution, Mark::Survived);
    }
}
