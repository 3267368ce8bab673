//! An outbox: a table in somebody's database, to which they write in their own transactions what is to be started.
//!
//! It shares driver, URLs and TLS with the store, and nothing else: its database may be any, and the store may be a file.

mod client;
mod connection;
mod fit;
mod install;
mod listening;
mod sql;

pub use install::{INSTALL_SQL, install};

use crate::fault::said;
use crate::session::Param;
use crate::settings::{PostgresSettings, Target, wants_tls};
use connection::Connected;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{
    Outbox, OutboxError, OutboxFuture, OutboxRefusal, OutboxRights, OutboxRow, OutboxStanding, RefusedRow,
};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio_postgres::{Config, Error, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The version of the installation that this program knows.
const VERSION: i32 = 1;
/// Between two looks while no notification comes.
const LOOK: Duration = Duration::from_millis(500);
/// How long an answer to a person may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many bytes of rows are taken at a time, a single larger one excepted.
const BYTES: i64 = 16 << 20;

/// So many refused rows later it is looked whether there are too many.
const REFUSED_BETWEEN_LOOKS: u64 = 1_000;
/// How many refused rows are deleted at a time.
const FORGOTTEN_AT_A_TIME: i64 = 10_000;

/// Where an outbox is, and who takes from it.
#[derive(Clone, Debug)]
pub struct OutboxSettings {
    /// Its name in the configuration.
    pub name: String,
    /// The URL of its database.
    pub url: String,
    /// The password, where the URL has none.
    pub password: Option<String>,
    /// The name of the store for which rows are taken. Only a server over that store finishes what was taken for it.
    pub taker: String,
    /// Whether whoever takes for the same store may be another node, whose part this one took over: its connection is ended.
    pub succeeds: bool,
    /// What its rows may ask for.
    pub rights: OutboxRights,
    /// How many refused rows are kept, about; 0: all.
    pub keep_refused: u64,
}

/// An outbox in a PostgreSQL database.
pub struct PostgresOutbox {
    name: String,
    taker: String,
    rights: OutboxRights,
    /// Whether the connection of a predecessor is still to be ended. That is done once: one that is told late that its part is
    /// over must not end its successor's.
    succeeds: AtomicBool,
    keep_refused: u64,
    /// How many rows were refused since it was looked whether there are too many.
    refused: AtomicU64,
    way: Way,
    /// The connection, once there is one.
    connected: Mutex<Option<Arc<Connected>>>,
}

/// How connections are made.
#[derive(Clone)]
struct Way {
    config: Config,
    tls: Option<MakeRustlsConnect>,
    place: String,
}

impl Way {
    fn new(url: &str, password: Option<&String>) -> Result<Self, String> {
        let settings = PostgresSettings {
            url: url.to_owned(),
            password: password.cloned(),
            ..PostgresSettings::default()
        };
        let Target { config, roots, place } = settings.target()?;
        let tls = match wants_tls(&config) {
            true => Some(crate::link::tls(roots.as_deref())?),
            false => None,
        };
        Ok(Self { config, tls, place })
    }

    fn error(&self, error: &Error) -> OutboxError {
        let why = said(error);
        let hint = match error.code().map(|code| code.code()) {
            Some("42P01" | "3F000") => {
                "; the outbox is not installed in it: `starbridge outbox install postgres://…` does that"
            }
            Some("25006") => {
                "; this is a standby: `url` must name the primary, or all hosts with `?target_session_attrs=read-write`"
            }
            Some("42501") => "; the server's role needs `grant starbridge_taker`",
            _ => "",
        };
        OutboxError(format!("the database {}: {why}{hint}", self.place))
    }
}

impl PostgresOutbox {
    /// An outbox that connects when it is first asked.
    ///
    /// # Errors
    ///
    /// What is wrong with the settings.
    pub fn new(settings: OutboxSettings) -> Result<Self, String> {
        let mut way = Way::new(&settings.url, settings.password.as_ref())?;
        client::be_patient(&mut way.config);
        Ok(Self {
            way,
            name: settings.name,
            taker: settings.taker,
            rights: settings.rights,
            succeeds: AtomicBool::new(settings.succeeds),
            keep_refused: settings.keep_refused,
            // The first refusal looks at what was refused before this process.
            refused: AtomicU64::new(REFUSED_BETWEEN_LOOKS),
            connected: Mutex::new(None),
        })
    }

    async fn connected(&self) -> Result<Arc<Connected>, OutboxError> {
        let mut kept = self.connected.lock().await;
        if let Some(connected) = kept.as_ref().filter(|connected| !connected.session.is_closed()) {
            return Ok(connected.clone());
        }
        *kept = None;
        let connected = connection::connect(&self.way, &self.taker, &self.succeeds).await?;
        let connected = Arc::new(connected);
        *kept = Some(connected.clone());
        Ok(connected)
    }

    /// Does something for whoever takes. After an error nobody knows what became of it, so the connection is given up, and what
    /// was taken is found again.
    async fn taking<T>(&self, work: impl AsyncFnOnce(&Connected) -> Result<T, Error>) -> Result<T, OutboxError> {
        let connected = self.connected().await?;
        let done = self.fitting(&connected, work).await;
        if done.is_err() {
            *self.connected.lock().await = None;
        }
        done
    }

    /// Uses the tables, unless that would run code of their owner.
    async fn fitting<T>(
        &self,
        connected: &Connected,
        work: impl AsyncFnOnce(&Connected) -> Result<T, Error>,
    ) -> Result<T, OutboxError> {
        fit::tables(&connected.session, &self.way).await?;
        work(connected).await.map_err(|error| self.way.error(&error))
    }

    /// Asks something for a person, who does not wait long.
    async fn asking<T>(&self, work: impl AsyncFnOnce(&Connected) -> Result<T, Error>) -> Result<T, OutboxError> {
        let asked = async {
            let connected = self.connected().await?;
            self.fitting(&connected, work).await
        };
        let answered = tokio::time::timeout(PATIENCE, asked).await;
        answered.unwrap_or_else(|_| Err(OutboxError(format!("the database {} does not answer", self.way.place))))
    }
}

impl Outbox for PostgresOutbox {
    fn name(&self) -> &str {
        &self.name
    }

    fn place(&self) -> &str {
        &self.way.place
    }

    fn rights(&self) -> &OutboxRights {
        &self.rights
    }

    fn take(&self, limit: usize) -> OutboxFuture<'_, Vec<OutboxRow>> {
        Box::pin(self.taking(async move |connected| connected.take(&self.taker, limit).await))
    }

    fn wait(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let connected = self.connected.lock().await.clone();
            let woken = async {
                match connected {
                    Some(connected) => connected.wake.notified().await,
                    None => std::future::pending().await,
                }
            };
            // A transaction without a notification is found by a look.
            let _ = tokio::time::timeout(LOOK, woken).await;
        })
    }

    fn done(&self, ids: Vec<Text>) -> OutboxFuture<'_, ()> {
        Box::pin(self.taking(async move |connected| {
            let ids: Vec<&str> = ids.iter().map(Text::as_str).collect();
            connected
                .session
                .execute(sql::DONE, &[&ids, &self.taker])
                .await
                .map(drop)
        }))
    }

    fn refuse(&self, rows: Vec<OutboxRefusal>) -> OutboxFuture<'_, u64> {
        Box::pin(self.taking(async move |connected| {
            let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
            let codes: Vec<&str> = rows.iter().map(|row| row.code.as_str()).collect();
            let reasons: Vec<&str> = rows.iter().map(|row| row.reason.as_str()).collect();
            let values: [Param<'_>; 4] = [&ids, &self.taker, &codes, &reasons];
            let kept = connected.session.execute(sql::REFUSE, &values).await?;
            let refused = self.refused.fetch_add(kept, Ordering::Relaxed).saturating_add(kept);
            if self.keep_refused == 0 || refused < REFUSED_BETWEEN_LOOKS {
                return Ok(0);
            }
            let keep = i64::try_from(self.keep_refused).unwrap_or(i64::MAX);
            let values: [Param<'_>; 2] = [&keep, &FORGOTTEN_AT_A_TIME];
            let forgotten = connected.session.execute(sql::FORGET, &values).await?;
            if forgotten < FORGOTTEN_AT_A_TIME.unsigned_abs() {
                self.refused.store(0, Ordering::Relaxed);
            }
            Ok(forgotten)
        }))
    }

    fn standing(&self) -> OutboxFuture<'_, OutboxStanding> {
        Box::pin(self.asking(async move |connected| {
            let row = connected.session.first(sql::STANDING, &[]).await?;
            let count = |row: &Row, column: usize| u64::try_from(row.get::<_, i64>(column)).unwrap_or_default();
            Ok(row.map_or_else(OutboxStanding::default, |row| OutboxStanding {
                waiting: count(&row, 0),
                oldest: row.get::<_, Option<i64>>(1).map(Timestamp),
                refused: count(&row, 2),
            }))
        }))
    }

    fn refused(&self, below: Option<i64>, limit: usize) -> OutboxFuture<'_, Vec<RefusedRow>> {
        Box::pin(self.asking(async move |connected| {
            let (below, limit) = (below.unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
            let rows = connected.session.query(sql::REFUSED, &[&below, &limit]).await?;
            Ok(rows.iter().map(refused_row).collect())
        }))
    }

    fn refused_one(&self, id: Text) -> OutboxFuture<'_, Option<RefusedRow>> {
        Box::pin(self.asking(async move |connected| {
            let row = connected.session.first(sql::REFUSED_ONE, &[&id.as_str()]).await?;
            Ok(row.as_ref().map(refused_row))
        }))
    }
}

fn refused_row(row: &Row) -> RefusedRow {
    let text = |column: usize| row.get::<_, Option<&str>>(column).map(Text::from);
    RefusedRow {
        number: row.get(0),
        id: text(1).unwrap_or_default(),
        action: row.get(2),
        flow: text(3),
        name: text(4),
        by: text(5).unwrap_or_default(),
        written: Timestamp(row.get(6)),
        refused: Timestamp(row.get(7)),
        code: text(8).unwrap_or_default(),
        reason: text(9).unwrap_or_default(),
    }
}
