//! Bulk jobs: an act of an operator on many executions. The executions of a job are collected once,
//! and each is asked until it has a result. The append that carries out an item also writes its
//! result.

mod action;
mod collection;
mod places;

pub use action::{BAD_RESOLUTION, BulkAction, check_decision};
pub use places::BulkWait;

use super::filter::{ExecutionFilter, FILTER_BYTES};
use super::operator::Operator;
use super::queries::QueryError;
use super::reasons::FineReasons;
use super::{Node, NotTaken};
use crate::codes;
use crate::system::fresh_id;
use crate::visits::Visits;
use action::Asked;
use collection::Collection;
use places::Places;
use starbridge_flow::limits::ERROR_CAUSE_CHARS;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::{EventId, Rejection, Signal, cut};
use starbridge_ports::{
    AuditEntry, AuditKind, BulkItem, BulkItemId, BulkItems, BulkJob, BulkJobs, BulkPage, BulkResult, BulkState, Listed,
    StoreError,
};
use starbridge_runtime::Reply;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How many executions are read at a time when they are collected.
const PAGE: usize = 10_000;
/// How many executions of a job are asked at a time.
const AT_ONCE: usize = 64;
/// How many executions of a preview are shown.
const EXAMPLES: usize = 20;
/// How long to wait before asking an execution again that can't take anything at the moment.
const AGAIN: Duration = Duration::from_millis(200);
/// How often an execution is asked.
const TRIES: u32 = 150;
/// How long to wait after the store failed.
const AFTER_FAULT: Duration = Duration::from_secs(5);

/// The most bytes of a job's arguments, as JSON. Lists of jobs show them, and a page has a thousand.
const ARGUMENT_BYTES: usize = 64 * 1024;

/// Wakes the node's bulk jobs.
#[derive(Debug, Default)]
pub(super) struct Bulk {
    changed: Notify,
    places: Mutex<Places>,
}

impl Bulk {
    fn with_places<T>(&self, work: impl FnOnce(&mut Places) -> T) -> T {
        work(&mut self.places.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A bulk job that an operator requests.
#[derive(Clone, Debug, Default)]
pub struct WantedBulk {
    /// What is done, in one word.
    pub action: Text,
    /// The other arguments of the act.
    pub arguments: Object,
    /// The filter for the executions.
    pub filter: Object,
    /// The ids of those executions, in place of a filter.
    pub executions: Option<Vec<Text>>,
    /// The largest number of executions asked in a second.
    pub rate: Option<u32>,
}

/// Why a bulk job is not made or changed.
#[derive(Debug)]
pub enum BulkRefusal {
    /// The store has no bulk jobs.
    NotSupported,
    /// There is no such job.
    NoSuchJob,
    /// The job is in another state.
    State(BulkState),
    /// The request is invalid, for this reason.
    Bad(String),
    /// The store failed.
    Store(StoreError),
}

impl From<StoreError> for BulkRefusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The refusal of a filter.
fn bad_filter(mut why: String) -> BulkRefusal {
    why.insert_str(0, "`filter`: ");
    BulkRefusal::Bad(why)
}

/// The executions of a possible bulk job.
#[derive(Clone, Debug, Default)]
pub struct BulkPreview {
    /// How many executions match.
    pub executions: u64,
    /// How many of each flow have each status.
    pub counts: BTreeMap<(Text, &'static str), u64>,
    /// Some of them.
    pub examples: Vec<Listed>,
}

/// The answer of an execution.
enum Answer {
    /// It was carried out, and the result is written.
    Taken,
    /// It can't take anything at the moment.
    Later,
    /// It was not carried out.
    Not(BulkResult),
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Taken => Self::Taken,
            Reply::Held | Reply::Left | Reply::NoRoom => Self::Later,
            Reply::SetAside => Self::skipped("ExecutionSetAside"),
            Reply::NotEnded => Self::skipped("NotEnded"),
            Reply::Rejected(Rejection::AlreadyPaused) => Self::skipped("AlreadyPaused"),
            Reply::Rejected(Rejection::NotPaused) => Self::skipped("NotPaused"),
            Reply::Rejected(rejection) => match codes::of_rejection(&rejection) {
                (status, code) if status.is_server_error() => Self::Not(BulkResult::Failed(code.into())),
                (_, code) => Self::skipped(code),
            },
            _ => Self::skipped("NoSuchExecution"),
        }
    }
}

impl From<QueryError> for Answer {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Store(_) => Self::Not(BulkResult::Failed("StoreUnavailable".into())),
            QueryError::NoSuchExecution | QueryError::NoSuchEvent(_) => Self::skipped("NoSuchExecution"),
        }
    }
}

impl Answer {
    fn skipped(code: &str) -> Self {
        Self::Not(BulkResult::Skipped(code.into()))
    }
}

impl Node {
    fn bulk_jobs(&self) -> Result<&dyn BulkJobs, BulkRefusal> {
        self.store.bulk_jobs().ok_or(BulkRefusal::NotSupported)
    }

    /// Makes a bulk job and returns it. It goes on by itself ([`Node::keep_bulk`]).
    ///
    /// # Errors
    ///
    /// [`BulkRefusal`].
    pub fn put_bulk(&self, wanted: WantedBulk, operator: &Operator) -> Result<BulkJob, BulkRefusal> {
        let jobs = self.bulk_jobs()?;
        BulkAction::read(&wanted.action, &wanted.arguments).map_err(BulkRefusal::Bad)?;
        ExecutionFilter::read(&wanted.filter).map_err(bad_filter)?;
        let arguments = cut_texts(&wanted.arguments);
        for (what, value, most) in [
            ("`arguments`", &arguments, ARGUMENT_BYTES),
            ("`filter`", &wanted.filter, FILTER_BYTES),
        ] {
            if value.json_len() > most {
                let detail = format!("{what} of a bulk job may have {most} bytes as JSON");
                return Err(BulkRefusal::Bad(detail));
            }
        }
        let now = self.now();
        let state = match wanted.executions {
            None => BulkState::Collecting,
            Some(_) => BulkState::Running,
        };
        let executions = wanted.executions.unwrap_or_default();
        let id = fresh_id(now);
        let mut audit = self.audit_entry(operator, &wanted.action, AuditKind::Bulk, &id);
        audit.detail = told(&wanted.arguments);
        match executions.len() {
            0 => audit.detail.insert("filter".into(), wanted.filter.clone().into()),
            listed => audit.detail.insert("executions".into(), (listed as u64).into()),
        };
        let job = BulkJob {
            id,
            action: wanted.action,
            arguments,
            filter: wanted.filter,
            by: operator.by.clone(),
            created: now,
            state,
            rate: wanted.rate,
            ..BulkJob::default()
        };
        jobs.put_job(&job, &executions, Some(&audit))?;
        self.bulk.changed.notify_one();
        jobs.job(&job.id)?.ok_or(BulkRefusal::NoSuchJob)
    }

    /// A bulk job.
    ///
    /// # Errors
    ///
    /// [`BulkRefusal`].
    pub fn bulk_job(&self, id: &str) -> Result<BulkJob, BulkRefusal> {
        self.bulk_jobs()?.job(id)?.ok_or(BulkRefusal::NoSuchJob)
    }

    /// A page of bulk jobs, the newest first.
    ///
    /// # Errors
    ///
    /// [`BulkRefusal`].
    pub fn bulk_page(&self, cursor: Option<&str>, limit: usize) -> Result<BulkPage, BulkRefusal> {
        Ok(self.bulk_jobs()?.jobs(cursor, limit)?)
    }

    /// At most `limit` items of a bulk job with a number over `after`.
    ///
    /// # Errors
    ///
    /// [`BulkRefusal`].
    pub fn bulk_items(
        &self,
        id: &str,
        which: BulkItems,
        after: u64,
        limit: usize,
    ) -> Result<Vec<BulkItem>, BulkRefusal> {
        let job = self.bulk_job(id)?;
        Ok(self.bulk_jobs()?.items(&job.id, which, after, limit)?)
    }

    /// The executions that a bulk job would be for.
    ///
    /// # Errors
    ///
    /// [`BulkRefusal`].
    pub fn preview_bulk(&self, wanted: &WantedBulk) -> Result<BulkPreview, BulkRefusal> {
        self.bulk_jobs()?;
        BulkAction::read(&wanted.action, &wanted.arguments).map_err(BulkRefusal::Bad)?;
        let filter = ExecutionFilter::read(&wanted.filter).map_err(bad_filter)?;
        let mut preview = BulkPreview::default();
        if let Some(executions) = &wanted.executions {
            for id in executions {
                if let Some(record) = self.store.record(id)? {
                    let id = id.clone();
                    preview.add(Listed { id, record });
                }
            }
            return Ok(preview);
        }
        self.each_page(&filter, self.now(), |page| {
            page.into_iter().for_each(|listed| preview.add(listed));
            Ok(true)
        })?;
        Ok(preview)
    }

    /// Calls `see` with the executions that matched at a time, in pages, until it returns false.
    fn each_page(
        &self,
        filter: &ExecutionFilter,
        at: Timestamp,
        mut see: impl FnMut(Vec<Listed>) -> Result<bool, StoreError>,
    ) -> Result<(), BulkRefusal> {
        let Some(mut wanted) = filter.selection().map_err(bad_filter)? else {
            return Ok(());
        };
        let just_after = at.plus(Millis(1));
        wanted.query.to = Some(wanted.query.to.map_or(just_after, |to| to.min(just_after)));
        wanted.query.limit = PAGE;
        let mut reasons = FineReasons::new(self.store.as_ref());
        loop {
            let mut page = self.store.list(&wanted.query)?;
            wanted.query.cursor = page.next;
            if wanted.is_refined() {
                let mut items = Vec::new();
                for listed in page.items {
                    if wanted.fits(reasons.of(&listed.id, &listed.record)?) {
                        items.push(listed);
                    }
                }
                page.items = items;
            }
            if !see(page.items)? || wanted.query.cursor.is_none() {
                return Ok(());
            }
        }
    }

    /// Suspends, resumes or cancels a bulk job, and returns it.
    ///
    /// # Errors
    ///
    /// [`BulkRefusal::State`] if the job is in a state that can't become that one, or another [`BulkRefusal`].
    pub fn change_bulk(&self, id: &str, to: BulkState, operator: &Operator) -> Result<BulkJob, BulkRefusal> {
        let jobs = self.bulk_jobs()?;
        use BulkState::{Cancelled, Collecting, Running, Suspended, Unfinished};
        // A collection may end meanwhile, so a suspension looks for one first.
        let (action, changes): (_, &[(&[BulkState], BulkState)]) = match to {
            Suspended => ("suspend", &[(&[Collecting], Unfinished), (&[Running], Suspended)]),
            Running => ("resume", &[(&[Suspended], Running), (&[Unfinished], Collecting)]),
            _ => ("cancel", &[(&[Collecting, Running, Suspended, Unfinished], Cancelled)]),
        };
        let audit = self.audit_entry(operator, action, AuditKind::Bulk, id);
        let mut changed = false;
        for (from, to) in changes {
            changed = changed || jobs.change_job(id, from, *to, self.now(), Some(&audit))?;
        }
        self.bulk.changed.notify_one();
        let job = jobs.job(id)?.ok_or(BulkRefusal::NoSuchJob)?;
        // A request for the current state changes nothing.
        match changed || changes.iter().any(|(_, to)| *to == job.state) {
            true => Ok(job),
            false => Err(BulkRefusal::State(job.state)),
        }
    }

    /// What a bulk job waits for before it goes on; `None` if it does not wait.
    pub fn bulk_wait(&self, job: &BulkJob) -> Option<BulkWait> {
        self.bulk.with_places(|places| places.wait_of(job))
    }

    /// Runs the bulk jobs forever, a few at a time.
    pub async fn keep_bulk(self: Arc<Self>) {
        if self.store.bulk_jobs().is_none() {
            return;
        }
        let mut running = JoinSet::new();
        loop {
            let node = self.clone();
            let open = tokio::task::spawn_blocking(move || Ok::<_, BulkRefusal>(node.bulk_jobs()?.jobs_to_run()?));
            match open.await {
                Ok(Ok(open)) => {
                    for id in self.bulk.with_places(|places| places.give(&open)) {
                        running.spawn(self.clone().run_bulk(id));
                    }
                }
                Ok(Err(error)) => {
                    tracing::warn!(?error, "bulk jobs can't be read");
                    tokio::time::sleep(AFTER_FAULT).await;
                    continue;
                }
                Err(_) => return,
            }
            // A job that came to rest may have been resumed meanwhile, so all jobs are looked at
            // again.
            tokio::select! {
                () = self.bulk.changed.notified() => {}
                Some(rested) = running.join_next() => {
                    if let Ok(id) = rested {
                        self.bulk.with_places(|places| places.leave(&id));
                    }
                }
            }
        }
    }

    /// Continues a bulk job until it is collected, suspended or over. Returns its id.
    async fn run_bulk(self: Arc<Self>, id: Text) -> Text {
        let (node, of) = (self.clone(), id.clone());
        let worked = tokio::spawn(async move { node.go_on_with_bulk(&of).await });
        let error = match worked.await {
            Ok(Ok(())) => return id,
            Ok(Err(error)) => format!("{error:?}"),
            Err(error) => error.to_string(),
        };
        tracing::warn!(job = %id, error, "a bulk job can't go on just now");
        tokio::time::sleep(AFTER_FAULT).await;
        id
    }

    async fn go_on_with_bulk(self: &Arc<Self>, id: &Text) -> Result<(), BulkRefusal> {
        loop {
            let begun = Instant::now();
            let (node, of) = (self.clone(), id.clone());
            let step = tokio::task::spawn_blocking(move || node.next_of_bulk(&of)).await;
            let Ok(step) = step else { return Ok(()) };
            let Some((job, items)) = step? else {
                return Ok(());
            };
            let dealt = items.len();
            self.deal_with(&job, items).await?;
            if let Some(rate) = job.rate.filter(|rate| *rate > 0) {
                let seconds = dealt as f64 / f64::from(rate);
                tokio::time::sleep_until(begun + Duration::from_secs_f64(seconds)).await;
            }
        }
    }

    /// Collects the executions of a job, or returns its next items; `None` if it has to give its
    /// place on.
    fn next_of_bulk(&self, id: &str) -> Result<Option<(BulkJob, Vec<BulkItem>)>, BulkRefusal> {
        let jobs = self.bulk_jobs()?;
        let Some(job) = jobs.job(id)? else {
            return Ok(None);
        };
        if job.state == BulkState::Collecting {
            self.collect(jobs, &job)?;
        }
        if job.state != BulkState::Running {
            return Ok(None);
        }
        // A suspension counts within a second.
        let rate = job.rate.and_then(|rate| usize::try_from(rate).ok());
        let most = rate.map_or(AT_ONCE, |rate| rate.clamp(1, AT_ONCE));
        let items = jobs.items(id, BulkItems::Open, 0, most)?;
        if items.is_empty() {
            jobs.change_job(id, &[BulkState::Running], BulkState::Done, self.now(), None)?;
            return Ok(None);
        }
        Ok(Some((job, items)))
    }

    fn collect(&self, jobs: &dyn BulkJobs, job: &BulkJob) -> Result<(), BulkRefusal> {
        let filter = ExecutionFilter::read(&job.filter).map_err(bad_filter)?;
        let mut collection = Collection::of(jobs, &job.id);
        self.each_page(&filter, job.created, |page| {
            let ids: Vec<Text> = page.into_iter().map(|listed| listed.id).collect();
            collection.add(&ids)
        })?;
        Ok(collection.end()?)
    }

    /// Asks these executions, and writes the results of those that did not carry it out.
    async fn deal_with(self: &Arc<Self>, job: &BulkJob, items: Vec<BulkItem>) -> Result<(), BulkRefusal> {
        let action = BulkAction::read(&job.action, &job.arguments).map_err(BulkRefusal::Bad)?;
        let mut asking = JoinSet::new();
        for item in items {
            let (node, job, action) = (self.clone(), job.clone(), action.clone());
            asking.spawn(async move {
                let of = BulkItemId {
                    job: job.id.clone(),
                    number: item.number,
                };
                let result = node.deal_with_one(&job, &action, &of, &item.execution).await;
                (of, result)
            });
        }
        let mut results = Vec::new();
        while let Some(answered) = asking.join_next().await {
            match answered {
                Ok((item, Ok(Some(result)))) => results.push((item, result)),
                Ok((_, Ok(None))) => {}
                Ok((_, Err(NotTaken::Busy))) => tokio::time::sleep(AGAIN).await,
                // The next start goes on with it.
                Ok((_, Err(NotTaken::Stopping))) | Err(_) => tokio::time::sleep(AFTER_FAULT).await,
            }
        }
        let node = self.clone();
        let written = tokio::task::spawn_blocking(move || match results.is_empty() {
            true => Ok(()),
            false => Ok(node.bulk_jobs()?.set_results(&results)?),
        });
        written.await.unwrap_or(Ok(()))
    }

    /// The result of an item that was not carried out.
    async fn deal_with_one(
        self: &Arc<Self>,
        job: &BulkJob,
        action: &BulkAction,
        item: &BulkItemId,
        execution: &Text,
    ) -> Result<Option<BulkResult>, NotTaken> {
        let operator = Operator {
            by: job.by.clone(),
            request: None,
        };
        let entry = AuditEntry {
            detail: told(&job.arguments),
            bulk: Some(item.clone()),
            ..self.audit_entry(&operator, &job.action, AuditKind::Execution, execution)
        };
        let entry = entry.with("bulk", job.id.clone());
        for _ in 0..TRIES {
            match self.ask_one(action, &job.by, execution, entry.clone()).await? {
                Answer::Taken => return Ok(None),
                Answer::Later => tokio::time::sleep(AGAIN).await,
                Answer::Not(result) => return Ok(Some(result)),
            }
        }
        Ok(Some(BulkResult::Failed("ExecutionBusy".into())))
    }

    async fn ask_one(
        self: &Arc<Self>,
        action: &BulkAction,
        by: &Text,
        execution: &Text,
        entry: AuditEntry,
    ) -> Result<Answer, NotTaken> {
        let signal = match action.asked(by) {
            Asked::Signal(signal) => signal,
            Asked::Deletion => {
                let (node, id) = (self.clone(), execution.clone());
                let needed = tokio::task::spawn_blocking(move || node.is_needed(&id)).await;
                return Ok(match needed.map_err(|_| NotTaken::Stopping)? {
                    Ok(false) => self.delete_audited(execution, entry).await?.into(),
                    Ok(true) => Answer::skipped("NotEnded"),
                    Err(error) => error.into(),
                });
            }
            Asked::Decision(step, resolution) => {
                let (node, id) = (self.clone(), execution.clone());
                let waiting = tokio::task::spawn_blocking(move || node.step_to_resolve(&id, step.as_deref())).await;
                match waiting.map_err(|_| NotTaken::Stopping)? {
                    Ok(request) => Signal::Resolve { request, resolution },
                    Err(answer) => return Ok(answer),
                }
            }
        };
        Ok(self.signal_audited(execution, signal, Some(entry)).await?.into())
    }

    /// The event of the step that waits for an operator: the one of this name, or the only one.
    fn step_to_resolve(&self, execution: &str, step: Option<&str>) -> Result<EventId, Answer> {
        let mut visits = Visits::new(usize::MAX).only("manual");
        self.each_event(execution, |flow, event| {
            visits.see(flow, event);
            true
        })?;
        let (mut rows, _) = visits.into_rows(None);
        rows.retain(|row| step.is_none_or(|step| row.step() == step));
        match rows.as_slice() {
            [row] => Ok(row.request().unwrap_or(EventId(row.event()))),
            [] => Err(Answer::skipped("NotManual")),
            _ => Err(Answer::skipped("SeveralSteps")),
        }
    }
}

impl BulkPreview {
    fn add(&mut self, listed: Listed) {
        self.executions += 1;
        let of = (listed.record.flow.clone(), listed.record.status.as_str());
        *self.counts.entry(of).or_default() += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(listed);
        }
    }
}

/// Arguments with the texts for people cut to what a history keeps of them.
fn cut_texts(arguments: &Object) -> Object {
    let short = |(key, value): (&Text, &Value)| {
        let value = match (key.as_str(), value.as_str()) {
            ("cause" | "note", Some(text)) => cut(text, ERROR_CAUSE_CHARS).into(),
            _ => value.clone(),
        };
        (key.clone(), value)
    };
    arguments.iter().map(short).collect()
}

/// The arguments as the audit list has them, without data of executions.
fn told(arguments: &Object) -> Object {
    let told = cut_texts(arguments);
    let told = told.iter().filter(|(key, _)| key.as_str() != "output");
    told.map(|(key, value): (&Text, &Value)| (key.clone(), value.clone()))
        .collect()
}
