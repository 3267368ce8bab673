//! Admission within a single engine: a run in one process, where executions share keys only with
//! their children.

use super::Engine;
use crate::admission::{Admission, AdmissionCommand, AdmissionHandle, AdmissionSettings};
use starbridge_ports::{Admissions, StoreError};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Admission, and the rows it reads.
pub(super) struct AdmissionHere {
    admission: Admission,
    rows: Arc<dyn Admissions>,
    inbox: mpsc::UnboundedReceiver<AdmissionCommand>,
}

impl Engine {
    /// Applies concurrency keys to the executions of this engine, which must append by itself.
    /// `rows` are those of its history; no one else may write them. Executions can't wait for
    /// others by name.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the rows can't be read.
    pub fn admitting_here(mut self, rows: Arc<dyn Admissions>) -> Result<Self, StoreError> {
        let (handle, inbox) = AdmissionHandle::of_one_run();
        // What the store has of others stays there: they do not run here.
        let settings = AdmissionSettings {
            inbox: usize::MAX,
            ..AdmissionSettings::default()
        };
        let admission = Admission::resume(settings, rows.as_ref())?;
        self.shard.admit_through(handle);
        self.admission = Some(AdmissionHere { admission, rows, inbox });
        Ok(self)
    }

    /// Decides which executions may run. Returns whether there was anything to decide.
    pub(super) fn admit_here(&mut self) -> Result<bool, StoreError> {
        let Some(here) = &mut self.admission else {
            return Ok(false);
        };
        while let Ok(command) = here.inbox.try_recv() {
            if let AdmissionCommand::Deliver(message) = command {
                here.admission.deliver(message);
            }
        }
        if here.admission.is_idle() {
            return Ok(false);
        }
        let append = here.admission.poll(here.rows.as_ref())?.append;
        let told = append.sent.clone();
        if !append.changes_nothing_of_admission() {
            self.deps.history.append(&[append])?;
        }
        here.admission.settle();
        for message in told {
            self.shard.deliver(message);
        }
        Ok(true)
    }
}
