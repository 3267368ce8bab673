//! Taking from outboxes: each row is carried out once, and deleted when that is durable.

use crate::App;
use crate::routes::outbox_rows::{Asks, RowOutcome, carry_out};
use starbridge_flow::value::Text;
use starbridge_node::problem::Problem;
use starbridge_ports::{Backoff, Outbox, OutboxError, OutboxRefusal, OutboxRow};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How many rows are taken at a time.
const BATCH: usize = 1_000;
/// The pauses while a database can't be used.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(5)).with_jitter(50);
/// With so many bytes of rows that could not be carried out, no further ones are taken: each may have 64 MiB, and a server that has
/// no room for large executions may have none for long.
const HELD_BYTES: usize = 16 << 20;
/// How long rows wait for which the server had no room, and how much longer for each MiB of them: they are read again.
const BUSY: Duration = Duration::from_millis(100);
const BUSY_MIB: Duration = Duration::from_millis(50);

/// An outbox and what this server did with it.
pub struct Taken {
    /// The outbox.
    pub source: Arc<dyn Outbox>,
    /// Executions that this process started from it.
    pub started: AtomicU64,
    /// Rows of other kinds that this process carried out.
    pub carried_out: AtomicU64,
    /// Rows that this process refused.
    pub refused: AtomicU64,
    /// Refused rows that this process deleted, because more were refused than are kept.
    pub forgotten: AtomicU64,
    /// Why it can't be used now.
    why: Mutex<Option<String>>,
}

impl Taken {
    /// An outbox from which nothing was taken yet.
    pub fn new(source: Arc<dyn Outbox>) -> Self {
        Self {
            source,
            started: AtomicU64::new(0),
            carried_out: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            forgotten: AtomicU64::new(0),
            why: Mutex::new(None),
        }
    }

    /// Why it can't be used now.
    pub fn why(&self) -> Option<String> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, error: Option<&OutboxError>) {
        let mut why = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        let (outbox, place) = (self.source.name(), self.source.place());
        match (error, why.take()) {
            (None, None) => {}
            (None, Some(_)) => tracing::info!(outbox, database = place, "the outbox can be used again"),
            (Some(error), before) => {
                if before.as_deref() != Some(error.0.as_str()) {
                    tracing::warn!(outbox, %error, "the outbox can't be used: it is tried again and again, and the server serves on");
                }
                *why = Some(error.0.clone());
            }
        }
    }
}

/// Outboxes from which nothing was taken yet.
pub fn all(sources: Vec<Arc<dyn Outbox>>) -> Vec<Arc<Taken>> {
    sources.into_iter().map(|source| Arc::new(Taken::new(source))).collect()
}

/// Takes rows until the server is told to stop.
pub async fn keep_taking(app: App, outbox: Arc<Taken>) {
    let mut failures = BACKOFF.failures();
    let mut held = Held::default();
    while !app.draining.load(Ordering::SeqCst) && app.node.ended().borrow().is_none() {
        match turn(&app, &outbox, std::mem::take(&mut held)).await {
            Ok(Turn { left, idle }) => {
                failures.reset();
                outbox.note(None);
                held = left;
                if !held.again.is_empty() {
                    let mib = u32::try_from(held.bytes() >> 20).unwrap_or(u32::MAX);
                    tokio::time::sleep(BUSY + BUSY_MIB.saturating_mul(mib)).await;
                } else if idle {
                    outbox.source.wait().await;
                }
            }
            // What is held comes again.
            Err(error) => {
                outbox.note(Some(&error));
                tokio::time::sleep(failures.next_spread(chance())).await;
            }
        }
    }
}

/// An unpredictable number: each hasher of the standard library has random keys. Servers that lost one database do not come back
/// together.
fn chance() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Rows that were taken and are not carried out yet.
#[derive(Default)]
struct Held {
    /// Those that could not be carried out for now.
    again: Vec<OutboxRow>,
    /// Those that nobody has tried yet.
    new: Vec<OutboxRow>,
}

impl Held {
    /// The bytes of those that could not be carried out.
    fn bytes(&self) -> usize {
        self.again.iter().map(|row| row.body.len()).sum()
    }
}

/// What a turn leaves.
#[derive(Default)]
struct Turn {
    /// Rows for the next turn.
    left: Held,
    /// Whether there was nothing to do.
    idle: bool,
}

/// Carries out what is held, or else what it takes. While a full batch is carried out, the next one is taken.
async fn turn(app: &App, outbox: &Taken, held: Held) -> Result<Turn, OutboxError> {
    let (eager, is_full) = (held.again.is_empty(), held.bytes() >= HELD_BYTES);
    let mut rows = held.again;
    rows.extend(held.new);
    if rows.len() < BATCH && (rows.is_empty() || !eager) && !is_full {
        rows.extend(outbox.source.take(BATCH - rows.len()).await?);
    }
    let many = eager && rows.len() >= BATCH;
    let more = async {
        match many {
            true => outbox.source.take(BATCH).await,
            false => Ok(Vec::new()),
        }
    };
    let (turn, new) = tokio::join!(carry_out_all(app, outbox, rows), more);
    let mut turn = turn?;
    turn.left.new = new?;
    Ok(turn)
}

/// Carries rows out and deletes them.
async fn carry_out_all(app: &App, outbox: &Taken, rows: Vec<OutboxRow>) -> Result<Turn, OutboxError> {
    let idle = rows.is_empty();
    // A stop may be for an execution that another row of these starts.
    let (starts, others): (Vec<OutboxRow>, Vec<OutboxRow>) = rows.into_iter().partition(|row| row.action == "start");
    let mut turn = Turn {
        idle,
        ..Turn::default()
    };
    let mut done = finish(app, outbox, starts, &mut turn).await?;
    let waiting: BTreeSet<Text> = turn.left.again.iter().map(|row| row.id.clone()).collect();
    let names = |row: &OutboxRow| waiting.iter().any(|id| row.body.contains(id.as_str()));
    let (early, others): (Vec<OutboxRow>, Vec<OutboxRow>) = others.into_iter().partition(names);
    turn.left.again.extend(early);
    done.extend(finish(app, outbox, others, &mut turn).await?);
    if !done.is_empty() {
        outbox.source.done(done).await?;
    }
    Ok(turn)
}

/// Carries rows out, all at once. Returns those whose consequence is durable; what is refused is put aside.
async fn finish(app: &App, outbox: &Taken, rows: Vec<OutboxRow>, turn: &mut Turn) -> Result<Vec<Text>, OutboxError> {
    let mut under_way = Vec::with_capacity(rows.len());
    let asks = Asks {
        outbox: outbox.source.name().into(),
        rights: outbox.source.rights().clone(),
    };
    for row in rows {
        let (app, asks, row) = (app.clone(), asks.clone(), Arc::new(row));
        let of = row.clone();
        under_way.push((row, tokio::spawn(async move { carry_out(&app, &asks, &of).await })));
    }
    let mut done = Vec::with_capacity(under_way.len());
    let mut refused = Vec::new();
    for (row, work) in under_way {
        let outcome = work.await.unwrap_or(RowOutcome::Again);
        // Whoever carried it out is done with it.
        let row = Arc::unwrap_or_clone(row);
        match outcome {
            RowOutcome::Done => {
                let counter = match row.action == "start" {
                    true => &outbox.started,
                    false => &outbox.carried_out,
                };
                counter.fetch_add(1, Ordering::Relaxed);
                done.push(row.id);
            }
            RowOutcome::Before => done.push(row.id),
            // What became of it is looked up next time.
            RowOutcome::Again => turn.left.again.push(OutboxRow { again: true, ..row }),
            RowOutcome::Refused(problem) => refused.push((row, problem)),
        }
    }
    refuse(outbox, refused).await?;
    Ok(done)
}

/// Marks rows that can't be carried out as refused, and logs it.
async fn refuse(outbox: &Taken, rows: Vec<(OutboxRow, Problem)>) -> Result<(), OutboxError> {
    if rows.is_empty() {
        return Ok(());
    }
    let refusals = rows.iter().map(|(row, problem)| OutboxRefusal {
        id: row.id.clone(),
        code: problem.code().to_owned(),
        reason: problem.detail().to_owned(),
    });
    let forgotten = outbox.source.refuse(refusals.collect()).await?;
    outbox.refused.fetch_add(rows.len() as u64, Ordering::Relaxed);
    let name = outbox.source.name();
    for (row, problem) in &rows {
        let (id, code, reason) = (&row.id, problem.code(), problem.detail());
        tracing::warn!(outbox = name, %id, action = row.action, by = %row.by, code, reason,
            "a row of the outbox can't be carried out and is kept aside: `starbridge outbox refused` lists them");
    }
    if forgotten > 0 {
        outbox.forgotten.fetch_add(forgotten, Ordering::Relaxed);
        tracing::warn!(
            outbox = name,
            forgotten,
            "more rows of the outbox were refused than are kept: the oldest are deleted (`keep_refused`)"
        );
    }
    Ok(())
}
