//! The connection that writes.

use crate::checks::backend;
use crate::fault::{Failure, said};
use crate::final_counts::Counts;
use crate::head::Heads;
use crate::link::Link;
use crate::owner::{self, Backend, FENCE, Fate, Seat, Shards};
use crate::session::{Param, Session};
use crate::session_lock;
use crate::wait::{Pending, all_in_order, wait};
use futures_util::future::join;
use rustc_hash::FxHashMap;
use starbridge_ports::{Epochs, Incarnation, STATUS_CODES, StoreError};

/// What one transaction works with.
pub(crate) struct Work<'a> {
    pub session: &'a Session,
    pub heads: &'a mut Heads,
    /// The number of the next execution. It only grows while the store is open, so that a cursor never meets another
    /// execution.
    pub next: &'a mut i64,
    /// The place of the next message.
    pub place: &'a mut i64,
    /// By how much the number of executions in each status changes.
    pub counts: Counts,
    /// The stay that writes.
    pub seat: &'a Seat,
    /// Under which epochs appends are taken.
    pub epochs: &'a Epochs,
    /// What changes about who has which shard.
    pub owned: Option<Owned>,
}

/// A change of who has which shard.
pub(crate) enum Owned {
    /// The stay that writes has these shards now.
    Shards(Epochs),
    /// It is over, and another one of this process begins.
    Anew(Seat),
}

/// What is known of the store after a transaction was committed.
struct After {
    counts: Counts,
    owned: Option<Owned>,
}

/// The connection that writes, and what it knows of what it wrote.
pub(crate) struct Writer {
    /// `None` after it was lost.
    session: Option<Session>,
    seat: Seat,
    /// The number under which the stay was joined: a new connection makes a stay with another number, which goes on with its shards.
    joined: Option<Incarnation>,
    /// Whether whoever joins gets a stay that nobody had before.
    is_fresh: bool,
    /// How often whoever joined said that it goes on.
    pub(crate) beats: u64,
    /// The epochs of the shards that the stay has.
    epochs: Epochs,
    /// Whether something was committed from this seat.
    wrote: bool,
    /// The server's processes of this connection and of those that were lost before it: one of them may still hold the lock.
    backends: Vec<Backend>,
    node: String,
    heads: Heads,
    next: i64,
    place: i64,
    counts: Counts,
    /// The transaction that was committed last.
    last: Option<i64>,
    /// A transaction whose commit was sent and not answered.
    unsettled: Option<i64>,
    /// What became of such transactions, for those who wait for it.
    fates: FxHashMap<i64, Fate>,
    /// Why nothing is written any more.
    broken: Option<StoreError>,
}

/// What became of some work.
pub(crate) enum Attempt<T> {
    /// It is durable.
    Done(T),
    /// It is not done.
    Failed(StoreError),
    /// It is not done: the database is away.
    Away(String),
    /// Its commit was sent and not answered: the number of the transaction, and what the work answered.
    Unknown(i64, T, String),
}

/// Why there is no connection to write on.
enum NoSession {
    Away(String),
    Broken(StoreError),
}

impl From<Failure> for NoSession {
    fn from(failure: Failure) -> Self {
        match failure.is_away() {
            true => Self::Away(failure.said()),
            false => Self::Broken(failure.into_store_error()),
        }
    }
}

impl Writer {
    pub(crate) async fn new(session: Session, seat: Seat, node: String) -> Result<Self, Failure> {
        session.prepare([FENCE]).await?;
        // The numbers of executions whose turns are still to be deleted must not be reused.
        let row = session
            .only(
                "select greatest((select coalesce(max(number), 0) from executions), (select coalesce(max(number), 0) from cleared)) + 1,
                    (select coalesce(max(place), 0) + 1 from messages)",
                &[],
            )
            .await?;
        let counts = match seat.counts {
            Some(counts) => counts,
            None => count(&session).await?,
        };
        let backends = vec![backend(&session).await?];
        Ok(Self {
            session: Some(session),
            seat,
            joined: None,
            is_fresh: true,
            beats: 0,
            epochs: Epochs::default(),
            wrote: false,
            backends,
            node,
            heads: Heads::default(),
            next: row.get(0),
            place: row.get(1),
            counts,
            last: None,
            unsettled: None,
            fates: FxHashMap::default(),
            broken: None,
        })
    }

    /// Whether nothing is written any more, because the store is somebody else's or may be.
    pub(crate) fn is_over(&self) -> bool {
        self.broken.is_some()
    }

    /// Makes sure that the store still is this process's: a connection that was lost is made anew. While the database is away
    /// nothing is known.
    pub(crate) fn hold(&mut self, link: &Link) -> Result<(), StoreError> {
        match self.session(link) {
            Ok(session) => {
                self.session = Some(session);
                Ok(())
            }
            Err(NoSession::Away(_)) => Ok(()),
            Err(NoSession::Broken(error)) => Err(error),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// The stay that writes.
    pub(crate) fn seat(&self) -> &Seat {
        &self.seat
    }

    /// The shards that it has.
    pub(crate) fn epochs(&self) -> &Epochs {
        &self.epochs
    }

    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    /// Whether this number is of the stay that writes.
    pub(crate) fn has_joined(&self, incarnation: Incarnation) -> bool {
        self.joined == Some(incarnation)
    }

    /// Joins the stay that began when the store was opened, unless somebody has joined it before.
    pub(crate) fn join_fresh(&mut self) -> Option<Incarnation> {
        if !std::mem::take(&mut self.is_fresh) {
            return None;
        }
        self.joined = Some(Incarnation(self.seat.incarnation.unsigned_abs()));
        self.joined
    }

    /// Whoever joined it is over; the store can still be written.
    pub(crate) fn leave(&mut self) {
        self.joined = None;
    }

    /// What the next stay need not count again, if it is certain.
    pub(crate) fn leaves(&self) -> Option<(Seat, Counts)> {
        let is_certain = self.broken.is_none() && self.unsettled.is_none();
        is_certain.then(|| (self.seat.clone(), self.counts))
    }

    /// Takes the connection, and writes nothing any more.
    pub(crate) fn give_up(&mut self) -> Option<Session> {
        self.broken.get_or_insert(StoreError::Unavailable(
            "the store was left to another process".to_owned(),
        ));
        self.close()
    }

    /// Takes the connection, to close it.
    pub(crate) fn close(&mut self) -> Option<Session> {
        self.session.take()
    }

    /// Does some work atomically. `Done`: what it wrote is durable.
    pub(crate) fn attempt<T>(
        &mut self,
        link: &Link,
        work: &impl AsyncFn(&mut Work<'_>) -> Result<T, Failure>,
    ) -> Attempt<T> {
        let session = match self.session(link) {
            Ok(session) => session,
            Err(NoSession::Away(why)) => return Attempt::Away(why),
            Err(NoSession::Broken(error)) => return Attempt::Failed(error),
        };
        let tried = wait(self.transact(&session, work));
        let (transaction, done, after) = match tried {
            Ok(done) => done,
            Err(failure) => return self.undo(session, failure),
        };
        match wait(session.run("commit")) {
            Ok(()) => {
                self.last = Some(transaction);
                self.wrote = true;
                self.know(after);
                self.session = Some(session);
                Attempt::Done(done)
            }
            Err(error) => {
                self.heads.clear();
                // Whatever it was: the server may have done it before it said so.
                self.unsettled = Some(transaction);
                Attempt::Unknown(transaction, done, said(&error))
            }
        }
    }

    fn know(&mut self, after: After) {
        self.counts = after.counts;
        match after.owned {
            Some(Owned::Shards(epochs)) => self.epochs = epochs,
            Some(Owned::Anew(seat)) => {
                self.joined = Some(Incarnation(seat.incarnation.unsigned_abs()));
                self.seat = seat;
                self.beats = 0;
                self.epochs = Epochs::default();
                self.wrote = false;
            }
            None => {}
        }
    }

    /// Everything but the commit.
    async fn transact<T>(
        &mut self,
        session: &Session,
        work: &impl AsyncFn(&mut Work<'_>) -> Result<T, Failure>,
    ) -> Result<(i64, T, After), Failure> {
        let mine: [Param<'_>; 1] = [&self.seat.incarnation];
        let begin: Pending<'_, Result<Option<i64>, Failure>> = Box::pin(async {
            session.run("begin").await?;
            Ok(None)
        });
        let fence: Pending<'_, Result<Option<i64>, Failure>> = Box::pin(async {
            let row = session.only(FENCE, &mine).await?;
            Ok(Some(row.get(0)))
        });
        let mut with = Work {
            session,
            heads: &mut self.heads,
            next: &mut self.next,
            place: &mut self.place,
            counts: self.counts,
            seat: &self.seat,
            epochs: &self.epochs,
            owned: None,
        };
        // The work is sent behind them without waiting for what they answer. If one of them fails, so does all of it.
        let (begun, done) = join(all_in_order(vec![begin, fence]), work(&mut with)).await;
        let mut transaction = None;
        for answer in begun {
            transaction = answer?.or(transaction);
        }
        let after = After {
            counts: with.counts,
            owned: with.owned,
        };
        let transaction =
            transaction.ok_or_else(|| Failure::corrupt("the database", &"a transaction has no number"))?;
        Ok((transaction, done?, after))
    }

    fn undo<T>(&mut self, session: Session, failure: Failure) -> Attempt<T> {
        self.heads.clear();
        if failure.is_away() {
            let why = failure.into_store_error();
            return Attempt::Away(why.to_string());
        }
        if let Failure::Database(error) = &failure
            && owner::is_fenced(error)
        {
            return Attempt::Failed(self.breaks("another process has taken the store over"));
        }
        // If this fails, the next one makes a new connection.
        if wait(session.run("rollback")).is_ok() {
            self.session = Some(session);
        }
        Attempt::Failed(failure.into_store_error())
    }

    fn breaks(&mut self, why: &str) -> StoreError {
        let error = StoreError::Unavailable(why.to_owned());
        self.broken = Some(error.clone());
        error
    }

    /// What became of a transaction whose commit was not answered. The work's own answer is good if it was committed.
    pub(crate) fn settle(&mut self, link: &Link, transaction: i64) -> Attempt<Fate> {
        match self.session(link) {
            Ok(session) => self.session = Some(session),
            Err(NoSession::Away(why)) => return Attempt::Away(why),
            Err(NoSession::Broken(error)) => return Attempt::Failed(error),
        }
        match self.fates.remove(&transaction) {
            Some(Fate::Committed) => Attempt::Done(Fate::Committed),
            Some(Fate::NotDone) => Attempt::Done(Fate::NotDone),
            Some(Fate::Forgotten) | None => Attempt::Failed(
                self.breaks("the database no longer knows whether the last turns were kept: start again"),
            ),
        }
    }

    /// The connection, or a new one.
    fn session(&mut self, link: &Link) -> Result<Session, NoSession> {
        if let Some(broken) = &self.broken {
            return Err(NoSession::Broken(broken.clone()));
        }
        match self.session.take() {
            Some(session) if !session.is_closed() => Ok(session),
            _ => self.rejoin(link).inspect_err(|no_session| {
                if let NoSession::Broken(error) = no_session {
                    self.broken = Some(error.clone());
                }
            }),
        }
    }

    /// A new connection goes on where the one before was lost, unless somebody else had the store in between: what this process
    /// knows of its executions must still be so.
    fn rejoin(&mut self, link: &Link) -> Result<Session, NoSession> {
        let session = link.connect()?;
        wait(self.take_back(&session, link))?;
        self.heads.clear();
        Ok(session)
    }

    async fn take_back(&mut self, session: &Session, link: &Link) -> Result<(), NoSession> {
        if !session.takes_writes().await {
            return Err(NoSession::Away("it takes no writes yet".to_owned()));
        }
        for former in &self.backends {
            owner::end_former(session, former).await?;
        }
        let mine = backend(session).await?;
        self.backends.push(mine.clone());
        if let Some(who) = session_lock::take(session, link.schema()).await? {
            let why = format!("while the database was away, {who} has taken the store");
            return Err(gone(&why));
        }
        if !owner::is_latest(session, &self.seat).await? {
            return Err(gone(
                "another process had the store while the database was away: start again",
            ));
        }
        self.settle_all(session).await?;
        self.seat = owner::join(session, &self.node, Some(&self.seat.process), Shards::Kept).await?;
        // A claim whose commit was not answered is among them.
        self.epochs = owner::owned_epochs(session, &self.seat).await?;
        self.wrote = false;
        self.backends = vec![mine];
        session.prepare([FENCE]).await.map_err(Failure::from)?;
        Ok(())
    }

    /// What became of what was committed last. This is asked before anything is written on a new connection: after a crash the
    /// numbers of transactions that left nothing are given again.
    async fn settle_all(&mut self, session: &Session) -> Result<(), NoSession> {
        if let Some(transaction) = self.unsettled {
            let fate = owner::fate_of_append(session, &self.seat, transaction, self.wrote).await?;
            self.counts = count(session).await?;
            self.fates.insert(transaction, fate);
            self.unsettled = None;
            if fate == Fate::Committed {
                self.last = Some(transaction);
            }
        }
        if let Some(last) = self.last
            && owner::fate(session, last).await? == Fate::NotDone
        {
            return Err(gone(
                "the database has come back without what was acknowledged last: another one took over that was behind, or \
                 it was restored; start again to go on from what it has",
            ));
        }
        Ok(())
    }
}

/// The store is not this process's any more.
fn gone(why: &str) -> NoSession {
    NoSession::Broken(StoreError::Unavailable(why.to_owned()))
}

async fn count(session: &Session) -> Result<Counts, Failure> {
    let mut counts = [0; STATUS_CODES.len()];
    for row in session
        .query("select status, count(*) from executions group by status", &[])
        .await?
    {
        let code: i16 = row.get(0);
        if let Some(count) = usize::try_from(code).ok().and_then(|code| counts.get_mut(code)) {
            *count = row.get(1);
        }
    }
    Ok(counts)
}
