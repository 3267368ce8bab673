//! Bulk jobs and their items.

use crate::Kept;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{
    AuditEntry, BulkItem, BulkItemId, BulkItems, BulkJob, BulkPage, BulkResult, BulkState, OpenJob, StoreError,
};

/// A job with its items.
#[derive(Debug, Default)]
pub(crate) struct KeptJob {
    job: BulkJob,
    items: Vec<BulkItem>,
}

impl KeptJob {
    fn add(&mut self, first: u64, executions: &[Text]) {
        let new = (first..).zip(executions).map(|(number, execution)| BulkItem {
            number,
            execution: execution.clone(),
            result: None,
        });
        self.items.extend(new);
        self.job.items = self.items.len() as u64;
    }
}

impl Kept {
    pub(crate) fn put_job(&mut self, job: &BulkJob, executions: &[Text], audit: Option<&AuditEntry>) {
        let mut kept = KeptJob {
            job: job.clone(),
            items: Vec::new(),
        };
        kept.add(1, executions);
        self.jobs.push(kept);
        self.add_audit(audit);
    }

    fn job_mut(&mut self, id: &str) -> Option<&mut KeptJob> {
        self.jobs.iter_mut().find(|kept| kept.job.id == *id)
    }

    fn kept_job(&self, id: &str) -> Option<&KeptJob> {
        self.jobs.iter().find(|kept| kept.job.id == *id)
    }

    pub(crate) fn add_items(&mut self, job: &str, first: u64, executions: &[Text], last: bool) -> bool {
        let collecting = |kept: &&mut KeptJob| kept.job.state == BulkState::Collecting;
        let Some(kept) = self.job_mut(job).filter(collecting) else {
            return false;
        };
        if first == 1 {
            kept.items.clear();
        }
        kept.add(first, executions);
        if last {
            kept.job.state = BulkState::Running;
        }
        true
    }

    pub(crate) fn job(&self, job: &str) -> Option<BulkJob> {
        self.kept_job(job).map(|kept| kept.job.clone())
    }

    /// A page of jobs. A cursor is how many jobs were made before the last one shown.
    pub(crate) fn jobs(&self, cursor: Option<&str>, limit: usize) -> Result<BulkPage, StoreError> {
        let place = |cursor: &str| cursor.parse::<usize>().map_err(|_| StoreError::BadCursor);
        let before = cursor.map(place).transpose()?.unwrap_or(usize::MAX);
        let before = before.min(self.jobs.len());
        let first = before.saturating_sub(limit);
        let items = self.jobs.get(first..before).unwrap_or_default();
        Ok(BulkPage {
            items: items.iter().rev().map(|kept| kept.job.clone()).collect(),
            next: (first > 0).then(|| Text::from(first.to_string())),
        })
    }

    pub(crate) fn jobs_to_run(&self) -> Vec<OpenJob> {
        let open = |kept: &&KeptJob| matches!(kept.job.state, BulkState::Collecting | BulkState::Running);
        let shown = |kept: &KeptJob| OpenJob {
            id: kept.job.id.clone(),
            state: kept.job.state,
            rate: kept.job.rate,
        };
        self.jobs.iter().filter(open).map(shown).collect()
    }

    pub(crate) fn items(&self, job: &str, which: BulkItems, after: u64, limit: usize) -> Vec<BulkItem> {
        let items = self.kept_job(job).map_or(&[][..], |kept| &kept.items);
        let wanted = items
            .iter()
            .filter(|item| item.number > after && which.fits(item.result.as_ref()));
        wanted.take(limit).cloned().collect()
    }

    pub(crate) fn set_result(&mut self, item: &BulkItemId, result: &BulkResult) {
        let Some(kept) = self.job_mut(&item.job) else {
            return;
        };
        let open = |kept: &&mut BulkItem| kept.number == item.number && kept.result.is_none();
        let Some(open) = kept.items.iter_mut().find(open) else {
            return;
        };
        open.result = Some(result.clone());
        match result {
            BulkResult::Done => kept.job.done += 1,
            BulkResult::Skipped(_) => kept.job.skipped += 1,
            BulkResult::Failed(_) => kept.job.failed += 1,
        }
    }

    pub(crate) fn change_job(
        &mut self,
        job: &str,
        from: &[BulkState],
        to: BulkState,
        now: Timestamp,
        audit: Option<&AuditEntry>,
    ) -> bool {
        let fits = |kept: &&mut KeptJob| from.contains(&kept.job.state);
        let Some(kept) = self.job_mut(job).filter(fits) else {
            return false;
        };
        kept.job.state = to;
        kept.job.ended = to.is_over().then_some(now);
        self.add_audit(audit);
        true
    }

    pub(crate) fn clear_jobs(&mut self, before: Timestamp, limit: usize) -> usize {
        let over = |kept: &KeptJob| kept.job.ended.is_some_and(|ended| ended < before);
        let mut cleared = 0;
        while cleared < limit
            && let Some(place) = self.jobs.iter().position(over)
            && let Some(kept) = self.jobs.get_mut(place)
        {
            let left = limit - cleared;
            let items = kept.items.len().min(left);
            kept.items.drain(..items);
            cleared += items;
            if items < left {
                self.jobs.remove(place);
                cleared += 1;
            }
        }
        cleared
    }
}
