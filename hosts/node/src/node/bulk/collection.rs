//! Collecting the executions of a bulk job.

use starbridge_flow::value::Text;
use starbridge_ports::{BulkJobs, StoreError};

/// How many executions are written at a time: turns of executions are appended in between.
const WRITTEN: usize = 1_000;

/// The executions that are collected for a job.
pub(super) struct Collection<'a> {
    jobs: &'a dyn BulkJobs,
    job: &'a str,
    next: u64,
    /// Whether the job was suspended or cancelled: what was not written then is missing, whatever becomes of the job.
    was_ended: bool,
}

impl<'a> Collection<'a> {
    pub(super) fn of(jobs: &'a dyn BulkJobs, job: &'a str) -> Self {
        Self {
            jobs,
            job,
            next: 1,
            was_ended: false,
        }
    }

    /// Adds executions. Returns whether the job still collects.
    pub(super) fn add(&mut self, executions: &[Text]) -> Result<bool, StoreError> {
        for some in executions.chunks(WRITTEN) {
            if !self.jobs.add_items(self.job, self.next, some, false)? {
                self.was_ended = true;
                return Ok(false);
            }
            self.next += some.len() as u64;
        }
        Ok(true)
    }

    /// Lets the job run, if all of its executions are there. Otherwise it is collected anew once it is resumed.
    pub(super) fn end(self) -> Result<(), StoreError> {
        if !self.was_ended {
            self.jobs.add_items(self.job, self.next, &[], true)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::in_memory;
    use starbridge_flow::time::Timestamp;
    use starbridge_ports::{BulkJob, BulkState};

    #[test]
    fn job_that_is_resumed_before_its_collection_has_ended_is_collected_anew() {
        let store = in_memory();
        let jobs = store.bulk_jobs().unwrap();
        let job = BulkJob {
            id: "j".into(),
            ..BulkJob::default()
        };
        jobs.put_job(&job, &[], None).unwrap();
        let change = |from, to| assert!(jobs.change_job("j", &[from], to, Timestamp(0), None).unwrap());
        let mut collection = Collection::of(jobs, "j");
        assert!(collection.add(&["a".into(), "b".into()]).unwrap());
        change(BulkState::Collecting, BulkState::Unfinished);
        assert!(!collection.add(&["c".into()]).unwrap());
        change(BulkState::Unfinished, BulkState::Collecting);
        collection.end().unwrap();
        assert_eq!(jobs.job("j").unwrap().unwrap().state, BulkState::Collecting);
        let mut anew = Collection::of(jobs, "j");
        assert!(anew.add(&["a".into(), "b".into(), "c".into()]).unwrap());
        anew.end().unwrap();
        let job = jobs.job("j").unwrap().unwrap();
        assert_eq!((job.state, job.items), (BulkState::Running, 3));
    }
}
