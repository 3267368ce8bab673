//! A node of a cluster, beside whoever has the store: its row, its heartbeats, and what it sees of the others.
//!
//! A node draws from a sequence of its own with each heartbeat, and sees how far those of the others have come. So no clocks are
//! compared, and a database that stands still ends nobody.

use crate::PostgresStore;
use crate::checks::{Look, check};
use crate::clock::{self, ClockReading};
use crate::fault::Failure;
use crate::link::Link;
use crate::migrate;
use crate::open::{Readied, Taking, enter, look, open, ready};
use crate::open_error::OpenError;
use crate::session::Session;
use crate::session_lock;
use crate::settings::PostgresSettings;
use crate::wait::wait;
use starbridge_ports::StoreError;
use std::time::Instant;

/// How many nodes a cluster has at most.
pub const MAX_MEMBERS: i16 = 16;
/// Under this kind the store keeps which nodes were told to leave their work to others, by their names.
pub const DRAINS: &str = "drain";

/// A node, as another one sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberState {
    /// As its configuration says, unique in the cluster.
    pub name: String,
    /// Where others reach it.
    pub address: String,
    /// The SHA-256 of its certificate, in hexadecimal digits.
    pub certificate: String,
    /// The version of its program.
    pub version: String,
    /// What all its stays have in common.
    pub process: String,
    /// When it joined, in milliseconds since 1970 by the clock of the database.
    pub joined: i64,
    /// How far its heartbeats have come.
    pub beat: i64,
    /// What is kept about it on the shelf [`DRAINS`].
    pub drain: Option<String>,
}

/// What a heartbeat returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatReply {
    /// All nodes, in the order of their slots.
    pub members: Vec<MemberState>,
    /// The process that had the store last.
    pub owner: Option<String>,
    /// When it took it, in milliseconds since 1970 by the clock of the database.
    pub since: Option<i64>,
    /// Whether a session has the store now.
    pub is_held: bool,
    /// Whether the connection is a new one, so that nothing is known of the time before.
    pub is_fresh: bool,
    /// The clock of the database.
    pub clock: ClockReading,
}

/// A node that takes part. One thread uses it.
pub struct Member {
    settings: PostgresSettings,
    address: String,
    certificate: String,
    link: Link,
    session: Option<Session>,
    slot: i16,
    process: String,
}

/// The right to try to take the store, on any thread.
pub struct Claim {
    settings: PostgresSettings,
    taking: Taking,
    readied: Option<Readied>,
}

impl Claim {
    /// Does everything that can be done before the store is free, so that taking it takes milliseconds.
    ///
    /// # Errors
    ///
    /// What is wrong with the database, or with this program's place in it.
    pub fn prepare(mut self) -> Result<Self, OpenError> {
        let readied = ready(&self.settings, &self.taking)?;
        readied.warm()?;
        self.readied = Some(readied);
        Ok(self)
    }

    /// Takes the store. The handle is not patient.
    ///
    /// # Errors
    ///
    /// [`OpenError::Taken`] if another one was faster; otherwise what is wrong with the database.
    pub fn take(self) -> Result<PostgresStore, OpenError> {
        match self.readied {
            Some(readied) => enter(readied, &self.settings, &self.taking),
            None => open(&self.settings, &self.taking),
        }
    }
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claim")
            .field("readied", &self.readied.is_some())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member")
            .field("slot", &self.slot)
            .finish_non_exhaustive()
    }
}

impl Member {
    /// Joins, under the name of the settings' node. `address`: where others reach it; `certificate`: the SHA-256 of the one
    /// that it shows them.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: each says what to do.
    pub fn join(settings: &PostgresSettings, address: &str, certificate: &str) -> Result<Self, OpenError> {
        let target = settings.target().map_err(OpenError::Settings)?;
        let link = Link::new(target, &settings.schema, &settings.node).map_err(OpenError::Settings)?;
        // Besides those that read, it has one that writes and one that asks whether the database is back.
        let (session, _) = look(&link, settings, settings.readers + 2)?;
        let mut member = Self {
            settings: settings.clone(),
            address: address.to_owned(),
            certificate: certificate.to_owned(),
            link,
            session: None,
            slot: 0,
            process: String::new(),
        };
        wait(member.begin(&session))?;
        member.session = Some(session);
        Ok(member)
    }

    /// Takes a slot.
    async fn begin(&mut self, session: &Session) -> Result<(), OpenError> {
        let (schema, name) = (&self.settings.schema, &self.settings.node);
        if session_lock::take(session, &format!("{schema}/node/{name}"))
            .await?
            .is_some()
        {
            return Err(OpenError::Settings(format!(
                "a node `{name}` is in this cluster already: give each its own name with `cluster.node`"
            )));
        }
        // One at a time, also to make the store.
        let joining = format!("{schema}/join");
        if let Some(who) = session_lock::take(session, &joining).await? {
            let place = self.link.place().to_owned();
            return Err(OpenError::Taken { place, who });
        }
        let begun = self.enter(session).await;
        session_lock::give_back(session, &joining).await;
        begun
    }

    async fn enter(&mut self, session: &Session) -> Result<(), OpenError> {
        migrate::bring_up(session, &self.link).await?;
        let name = &self.settings.node;
        // Whoever had that name is gone, because it had the lock.
        let leaves = "delete from nodes where slot is not null and name = $1";
        session.execute(leaves, &[name]).await.map_err(Failure::from)?;
        self.clear(session).await?;
        let now = clock::NOW;
        let joins = format!(
            "insert into nodes (name, process, address, certificate, version, slot, joined)
            select $1::text, coalesce(nullif($2::text, '')::uuid, gen_random_uuid()), $3::text, $4::text, $5::text,
                free.slot, {now} / 1000
            from generate_series(0, $6::smallint - 1) as free (slot)
            where not exists (select 1 from nodes n where n.slot = free.slot) order by free.slot limit 1
            returning slot, process::text"
        );
        let version = env!("CARGO_PKG_VERSION");
        let most = MAX_MEMBERS;
        let row = session
            .first(
                &joins,
                &[name, &self.process, &self.address, &self.certificate, &version, &most],
            )
            .await
            .map_err(Failure::from)?;
        let row = row.ok_or_else(|| {
            OpenError::Settings(format!(
                "the cluster has {MAX_MEMBERS} nodes already, which is the most it takes"
            ))
        })?;
        (self.slot, self.process) = (row.get(0), row.get(1));
        Ok(())
    }

    /// Takes away nodes whose session has ended: who has one holds the lock of its name.
    async fn clear(&self, session: &Session) -> Result<(), OpenError> {
        let all = session
            .query("select name from nodes where slot is not null", &[])
            .await;
        for row in all.map_err(Failure::from)? {
            let name: &str = row.get(0);
            let class = session_lock::class(&format!("{}/node/{name}", self.settings.schema));
            if !session_lock::is_held_by_others(session, class)
                .await
                .map_err(OpenError::from)?
            {
                let leaves = "delete from nodes where slot is not null and name = $1";
                session.execute(leaves, &[&name]).await.map_err(Failure::from)?;
            }
        }
        Ok(())
    }

    /// What all stays of this process have in common.
    pub fn process(&self) -> &str {
        &self.process
    }

    /// Where the database is, for people.
    pub fn place(&self) -> &str {
        self.link.place()
    }

    /// The right to try to take the store; first from this process, if it is silent.
    pub fn claim(&self, silent: Option<&str>) -> Claim {
        Claim {
            settings: self.settings.clone(),
            taking: Taking {
                process: Some(self.process.clone()),
                silent: silent.map(str::to_owned),
            },
            readied: None,
        }
    }

    /// Tells the others that this node lives, and sees which of them do.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database is away. The next one makes a new connection.
    pub fn beat(&mut self) -> Result<HeartbeatReply, StoreError> {
        let kept = self.session.take().filter(|session| !session.is_closed());
        let is_fresh = kept.is_none();
        let session = match kept {
            Some(session) => session,
            None => self.again()?,
        };
        let seen = wait(self.see(&session, is_fresh)).map_err(Failure::into_store_error)?;
        if seen.members.iter().all(|member| member.process != self.process) {
            // Somebody took this node for one that is gone.
            wait(self.enter(&session)).map_err(|error| StoreError::Unavailable(error.to_string()))?;
        }
        self.session = Some(session);
        Ok(seen)
    }

    /// A new connection, with the lock of the name.
    fn again(&mut self) -> Result<Session, StoreError> {
        let session = self.link.connect().map_err(Failure::into_store_error)?;
        if !wait(session.takes_writes()) {
            return Err(StoreError::Unavailable("the database takes no writes yet".to_owned()));
        }
        let begun = wait(async {
            check(&session, Look::Again, &self.link, &self.settings).await?;
            self.begin(&session).await
        });
        begun.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(session)
    }

    async fn see(&self, session: &Session, is_fresh: bool) -> Result<HeartbeatReply, Failure> {
        let held = session_lock::is_held();
        let now = clock::NOW;
        let state = format!(
            "select {held}, nextval($2::text::regclass), latest.process, latest.joined, {now}
            from (select 1) as one left join (
                select n.process::text as process, n.joined from writers w join nodes n on n.incarnation = w.incarnation
                where not w.over order by w.incarnation desc limit 1) as latest on true"
        );
        let others =
            "select n.name, coalesce(n.address, ''), coalesce(n.certificate, ''), n.version, n.process::text, n.joined,
                coalesce(pg_sequence_last_value(('heartbeat_' || n.slot)::regclass), 0), convert_from(s.text, 'UTF8')
            from nodes n left join shelf s on s.kind = $1 and s.name = n.name
            where n.slot is not null order by n.slot";
        let (key, mine) = (
            session_lock::class(&self.settings.schema),
            format!("heartbeat_{}", self.slot),
        );
        let asked = Instant::now();
        let answers = session
            .query_all(&[(&state, &[&key, &mine]), (others, &[&DRAINS])])
            .await?;
        let [state, others] = answers.as_slice() else {
            return Err(Failure::corrupt("the database", &"two queries have not two answers"));
        };
        let state = state
            .first()
            .ok_or_else(|| Failure::corrupt("the database", &"a query that always has a row has none"))?;
        let member = |row: &tokio_postgres::Row| MemberState {
            name: row.get(0),
            address: row.get(1),
            certificate: row.get(2),
            version: row.get(3),
            process: row.get(4),
            joined: row.get(5),
            beat: row.get(6),
            drain: row.get(7),
        };
        Ok(HeartbeatReply {
            members: others.iter().map(member).collect(),
            owner: state.get(2),
            since: state.get(3),
            is_held: state.get(0),
            is_fresh,
            clock: ClockReading::new(asked, state.get(4)),
        })
    }

    /// Leaves: others see at once that this node is gone.
    pub fn leave(mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        let (name, schema) = (self.settings.node.clone(), self.settings.schema.clone());
        self.link.briefly(async move {
            let leaves = "delete from nodes where slot is not null and name = $1";
            // If this fails, the end of the session says the same.
            let _ = session.execute(leaves, &[&name]).await;
            session_lock::give_back(&session, &format!("{schema}/node/{name}")).await;
        });
    }
}
