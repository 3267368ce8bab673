//! Who has the store: one process at a time.
//!
//! Two things say so. A lock of the session ([`session_lock`]) tells a second process at once, and is gone with the session. But a process that
//! stood still may come back after its session ended. So each append also locks the row of its writer, and writes nothing if
//! that is over: whoever takes the store ends all writers before, which waits for appends under way.

use crate::clock;
use crate::fault::Failure;
use crate::final_counts::{self, Counts};
use crate::session::Session;
use crate::session_lock;
use starbridge_ports::{Epoch, Epochs};
use tokio_postgres::error::SqlState;

/// The stay of a process in a store.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    /// The number of the stay.
    pub incarnation: i64,
    /// What all stays of this process have in common, and no other's.
    pub process: String,
    /// How many executions have each status, if the stay before said so.
    pub counts: Option<Counts>,
}

/// The server's process of a connection, and when it began.
pub(crate) type Backend = (i32, String);

/// Begins each append: names its transaction, and fails if the writer is over.
pub(crate) const FENCE: &str = "select pg_current_xact_id()::text::bigint, 1 / (select count(*) from
    (select 1 from writers where incarnation = $1 and writer = 0 and not over for update) as mine)";

/// Whether the fence refused.
pub(crate) fn is_fenced(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::DIVISION_BY_ZERO)
}

/// Ends the sessions that have the lock, if the stay that has the store is one of this process, which has fallen silent.
pub(crate) async fn evict(session: &Session, schema: &str, process: &str) -> Result<(), Failure> {
    let is_silent = "$2 = (select n.process::text from writers w join nodes n on n.incarnation = w.incarnation
        where not w.over order by w.incarnation desc limit 1)";
    session_lock::evict(session, schema, is_silent, process).await
}

/// What becomes of the shards when a stay begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shards {
    /// Nobody has them until they are claimed.
    Free,
    /// The process still has those that it had, under the same epochs: nobody else had the store in between.
    Kept,
}

/// Begins a stay: ends all others, which waits for their appends under way. `process`: what the stays of this process have in
/// common, if it had one before.
pub(crate) async fn join(
    session: &Session,
    node: &str,
    process: Option<&str>,
    shards: Shards,
) -> Result<Seat, Failure> {
    session.run("begin").await?;
    let joined = seat(session, node, process, shards).await;
    session.run(if joined.is_ok() { "commit" } else { "rollback" }).await?;
    joined
}

/// The same within a transaction.
pub(crate) async fn seat(
    session: &Session,
    node: &str,
    process: Option<&str>,
    shards: Shards,
) -> Result<Seat, Failure> {
    let counts = final_counts::take(session).await?;
    let now = clock::NOW;
    let made = format!(
        "insert into nodes (name, version, joined, process)
        values ($1, $2, {now} / 1000, coalesce($3::text::uuid, gen_random_uuid())) returning incarnation, process::text"
    );
    let row = session
        .only(&made, &[&node, &env!("CARGO_PKG_VERSION"), &process])
        .await?;
    let (incarnation, process): (i64, String) = (row.get(0), row.get(1));
    // It may have had further stays whose beginning was not answered.
    let keeps = format!(
        "update shards set incarnation = {incarnation}
         where incarnation in (select incarnation from nodes where process = '{process}');"
    );
    let keeps = match shards {
        Shards::Kept => keeps.as_str(),
        Shards::Free => "",
    };
    // A writer that is not there is as one that is over.
    let take = format!(
        "update writers set over = true where not over; delete from writers where over;
         insert into writers values ({incarnation}, 0, false);
         {keeps}
         update shards set incarnation = null, epoch = epoch + 1 where incarnation <> {incarnation};
         delete from nodes where incarnation < {incarnation} - 1000 and slot is null"
    );
    session.run(&take).await?;
    Ok(Seat {
        incarnation,
        process,
        counts,
    })
}

/// The epochs of the shards that a stay has.
pub(crate) async fn owned_epochs(session: &Session, seat: &Seat) -> Result<Epochs, Failure> {
    let rows = session
        .query(
            "select shard, epoch from shards where incarnation = $1",
            &[&seat.incarnation],
        )
        .await?;
    Ok(epochs_of(&rows))
}

pub(crate) fn epochs_of(rows: &[tokio_postgres::Row]) -> Epochs {
    let mut epochs = Epochs::default();
    for row in rows {
        let (shard, epoch): (i16, i64) = (row.get(0), row.get(1));
        let shard = u8::try_from(shard).ok();
        epochs.set(&shard.into_iter().collect(), Epoch(epoch.unsigned_abs()));
    }
    epochs
}

/// Ends the server's process of a connection that is gone: the server may not have seen that, and what it does is waited for.
pub(crate) async fn end_former(session: &Session, former: &Backend) -> Result<(), Failure> {
    let ends = "select pg_terminate_backend(pid) from pg_catalog.pg_stat_activity
        where pid = $1 and backend_start::text = $2 and usename = current_user";
    session.query(ends, &[&former.0, &former.1]).await?;
    Ok(())
}

/// Whether the latest stay is one of this process. It may be one that it does not know, because nobody answered when it began.
pub(crate) async fn is_latest(session: &Session, seat: &Seat) -> Result<bool, Failure> {
    let asked = "select n.process::text from writers w join nodes n on n.incarnation = w.incarnation
        order by w.incarnation desc limit 1";
    let row = session.first(asked, &[]).await?;
    Ok(row.is_some_and(|row| row.get::<_, &str>(0) == seat.process))
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// All of it is kept.
    Committed,
    /// Nothing of it is.
    NotDone,
    /// The database does not know it any more.
    Forgotten,
}

pub(crate) async fn fate(session: &Session, transaction: i64) -> Result<Fate, Failure> {
    let asked = "select pg_xact_status($1::bigint::text::xid8)";
    let row = match session.first(asked, &[&transaction]).await {
        Ok(row) => row,
        // The database has not come that far: another one took over that had not heard of it.
        Err(error) if error.code() == Some(&SqlState::INVALID_PARAMETER_VALUE) => return Ok(Fate::NotDone),
        Err(error) => return Err(error.into()),
    };
    let said = row.and_then(|row| row.get::<_, Option<String>>(0));
    Ok(match said.as_deref() {
        Some("committed") => Fate::Committed,
        Some("aborted") => Fate::NotDone,
        _ => Fate::Forgotten,
    })
}

/// What became of an append. Its number alone may be another's by now; but it locked the row of its writer, and that stays to
/// be seen with all else that it wrote, as long as nothing is written under another stay. `wrote`: whether an append before it
/// locked that row and was committed.
pub(crate) async fn fate_of_append(
    session: &Session,
    seat: &Seat,
    transaction: i64,
    wrote: bool,
) -> Result<Fate, Failure> {
    let asked = "select xmax::text::bigint from writers where incarnation = $1";
    let locked = session.first(asked, &[&seat.incarnation]).await?;
    match locked.map(|row| row.get::<_, i64>(0)) {
        Some(by) if by == transaction % (1 << 32) => fate(session, transaction).await,
        // Whoever tidied the table up has taken the mark away.
        Some(0) if wrote => Ok(Fate::Forgotten),
        Some(_) => Ok(Fate::NotDone),
        None => Ok(Fate::Forgotten),
    }
}
