//! The connection that takes rows of an outbox. It knows where to continue.

use super::client::{CONNECT, ClientEvent, client};
use super::listening::Listening;
use super::{BYTES, Way, fit, sql};
use crate::session::Session;
use starbridge_flow::value::Text;
use starbridge_ports::{OutboxError, OutboxRow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;
use tokio_postgres::{Error, Row};

/// Between two looks at all rows: numbers of transactions may come from elsewhere, for example with a restored backup.
const WHOLE: Duration = Duration::from_secs(60);
/// The number before all transactions.
const FIRST: &str = "0";

/// Settings that override those of a role, a database or a pooler. Plans are made for full tables, as those of the store. A
/// policy for rows is an error, and not run.
const SET_UP: &str = "set search_path = pg_catalog, pg_temp; set synchronous_commit = on; \
    set default_transaction_isolation = 'read committed'; set default_transaction_read_only = off; \
    set plan_cache_mode = force_generic_plan; set enable_seqscan = off; set enable_hashjoin = off; \
    set enable_mergejoin = off; set jit = off; set lock_timeout = '20s'; set statement_timeout = '60s'; \
    set client_min_messages = warning; set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 2; \
    set tcp_keepalives_count = 3; set row_security = off";

/// A connection to the database of an outbox.
pub(super) struct Connected {
    pub(super) session: Session,
    /// Notified when a transaction says that it wrote a row, and when this connection has ended.
    pub(super) wake: Arc<Notify>,
    /// It ends with this connection.
    _listening: Listening,
    /// Whether the rows that were taken before this connection have been given.
    given_before: AtomicBool,
    from: Mutex<From>,
}

/// From where on the next look is.
struct From {
    /// The oldest transaction that may still commit rows that were not seen.
    oldest: String,
    /// When all rows are looked at again.
    whole: Instant,
}

/// A connection that may take.
pub(super) async fn connect(way: &Way, taker: &str, succeeds: &AtomicBool) -> Result<Connected, OutboxError> {
    let wake = Arc::new(Notify::new());
    let said = |error: Error| way.error(&error);
    let over = |_| OutboxError(format!("the database {} does not answer", way.place));
    let waiting = wake.clone();
    let hear = move |heard| {
        // The waiting task looks for rows, and finds that the connection has ended.
        if matches!(heard, ClientEvent::Ended) {
            waiting.notify_one();
        }
    };
    let made = tokio::time::timeout(CONNECT, client(way, hear)).await;
    let (client, _) = made.map_err(over)?.map_err(said)?;
    client.batch_execute(SET_UP).await.map_err(said)?;
    let session = Session::new(client);
    fit::database(&session, way).await?;
    if succeeds.load(Ordering::Acquire) {
        session.query(sql::SUCCEED, &[&taker]).await.map_err(said)?;
    }
    let mut alone = true;
    for asked in [sql::PRESENT, sql::ALONE] {
        let row = session.first(asked, &[&taker]).await.map_err(said)?;
        alone = alone && row.is_some_and(|row| row.get(0));
    }
    if !alone {
        return Err(OutboxError(format!(
            "the database {}: another process takes from the outbox for the same store, or its connection has not ended yet",
            way.place
        )));
    }
    succeeds.store(false, Ordering::Release);
    Ok(Connected {
        session,
        _listening: Listening::begin(way.clone(), wake.clone()),
        wake,
        given_before: AtomicBool::new(false),
        from: Mutex::new(From {
            oldest: FIRST.to_owned(),
            whole: Instant::now() + WHOLE,
        }),
    })
}

impl Connected {
    /// Takes rows: first what was taken before this connection, then new ones.
    pub(super) async fn take(&self, taker: &String, limit: usize) -> Result<Vec<OutboxRow>, Error> {
        if !self.given_before.load(Ordering::Acquire) {
            let rows = self.session.query(sql::TAKEN, &[taker]).await?;
            self.given_before.store(true, Ordering::Release);
            if !rows.is_empty() {
                return Ok(rows.iter().map(|row| outbox_row(row, 0, true)).collect());
            }
        }
        let mut from = self.from.lock().await;
        if Instant::now() >= from.whole {
            from.oldest = FIRST.to_owned();
            from.whole = Instant::now() + WHOLE;
        }
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self
            .session
            .query(sql::TAKE, &[&from.oldest, taker, &most, &BYTES])
            .await?;
        let taken: Vec<OutboxRow> = rows
            .iter()
            .filter(|row| row.get::<_, Option<&str>>(2).is_some())
            .map(|row| outbox_row(row, 2, false))
            .collect();
        if let Some(first) = rows.first() {
            let found = usize::try_from(first.get::<_, i64>(1)).unwrap_or(usize::MAX);
            // What was found and not taken is before that transaction.
            if taken.len() == found {
                from.oldest = first.get(0);
            }
        }
        Ok(taken)
    }
}

fn outbox_row(row: &Row, at: usize, again: bool) -> OutboxRow {
    OutboxRow {
        id: Text::from(row.get::<_, &str>(at)),
        action: row.get(at + 1),
        body: row.get(at + 2),
        by: Text::from(row.get::<_, &str>(at + 3)),
        again,
    }
}
