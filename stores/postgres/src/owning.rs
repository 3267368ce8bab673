//! Who has which shard: the rows of `shards`, and what the writer knows of them.
//!
//! One process has the store, so there is one incarnation that is not over: that of whoever joined last. Nodes that stand by have no
//! shards; they are [`Member`](crate::Member)s.

use crate::PostgresStore;
use crate::codec::some_shards;
use crate::fault::Failure;
use crate::owner::{self, Shards, epochs_of};
use crate::write::{Owned, Work};
use starbridge_ports::{Epoch, Epochs, Incarnation, IncarnationState, Owning, ShardSet, StoreError};

async fn claim(work: &mut Work<'_>, shards: &ShardSet) -> Result<Epochs, Failure> {
    let claims = "update shards set incarnation = $1, epoch = epoch + 1
        where ($2::smallint[] is null or shard = any($2)) and (incarnation is null or incarnation = $1)
        returning shard, epoch";
    let rows = work
        .session
        .query(claims, &[&work.seat.incarnation, &some_shards(shards)])
        .await?;
    let claimed = epochs_of(&rows);
    let mut epochs = work.epochs.clone();
    epochs.take(&claimed);
    work.owned = Some(Owned::Shards(epochs));
    Ok(claimed)
}

async fn give_back(work: &mut Work<'_>, shards: &ShardSet) -> Result<(), Failure> {
    let gives = "update shards set incarnation = null, epoch = epoch + 1
        where ($2::smallint[] is null or shard = any($2)) and incarnation = $1";
    work.session
        .execute(gives, &[&work.seat.incarnation, &some_shards(shards)])
        .await?;
    let mut epochs = work.epochs.clone();
    epochs.set(shards, Epoch::NONE);
    work.owned = Some(Owned::Shards(epochs));
    Ok(())
}

/// Ends the stay that writes, and begins another one of the same process.
async fn anew(work: &mut Work<'_>, node: &str) -> Result<Incarnation, Failure> {
    let seat = owner::seat(work.session, node, Some(&work.seat.process), Shards::Free).await?;
    let incarnation = Incarnation(seat.incarnation.unsigned_abs());
    work.owned = Some(Owned::Anew(seat));
    Ok(incarnation)
}

impl PostgresStore {
    /// Does something for the stay of whoever joined.
    fn own<T>(
        &self,
        own: Incarnation,
        work: impl AsyncFn(&mut Work<'_>) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        if !self.shared.writer().has_joined(own) {
            return Err(StoreError::Over);
        }
        let done = self.write(work);
        done.map_err(|error| match self.shared.writer().is_over() {
            true => StoreError::Over,
            false => error,
        })
    }
}

impl Owning for PostgresStore {
    fn join(&self, name: &str) -> Result<Incarnation, StoreError> {
        let (fresh, node) = {
            let mut writer = self.shared.writer();
            (writer.join_fresh(), writer.node().to_owned())
        };
        let node = if node.is_empty() { name } else { &node };
        match fresh {
            Some(incarnation) => Ok(incarnation),
            None => self.write(async |work| anew(work, node).await),
        }
    }

    fn heartbeat(&self, own: Incarnation) -> Result<Vec<IncarnationState>, StoreError> {
        let seat = {
            let writer = self.shared.writer();
            if !writer.has_joined(own) || writer.is_over() {
                return Err(StoreError::Over);
            }
            writer.seat().incarnation
        };
        let asked = "select n.name from writers w join nodes n on n.incarnation = w.incarnation
            where w.incarnation = $1 and not w.over";
        let name = self.read(async |session| {
            let row = session.first(asked, &[&seat]).await?;
            Ok(row.map(|row| row.get::<_, String>(0)))
        })?;
        let mut writer = self.shared.writer();
        writer.beats += 1;
        Ok(vec![IncarnationState {
            incarnation: own,
            name: name.ok_or(StoreError::Over)?,
            beats: writer.beats,
            shards: writer.epochs().shards(),
        }])
    }

    fn claim(&self, own: Incarnation, shards: &ShardSet) -> Result<Epochs, StoreError> {
        self.own(own, async |work| claim(work, shards).await)
    }

    fn give_back(&self, own: Incarnation, shards: &ShardSet) -> Result<(), StoreError> {
        self.own(own, async |work| give_back(work, shards).await)
    }

    fn end(&self, incarnation: Incarnation) -> Result<(), StoreError> {
        // Whoever has the store has ended all others.
        match self.own(incarnation, async |work| give_back(work, &ShardSet::ALL).await) {
            Ok(()) => {
                self.shared.writer().leave();
                Ok(())
            }
            Err(StoreError::Over) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
