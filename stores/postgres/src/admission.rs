//! What admission keeps: waiters, their dependencies, keys, and who holds slots of them.

use crate::codec::{Str, big, rows};
use crate::fault::Failure;
use crate::record::{bytes_json, optional_text, text, time};
use crate::session::{Owned, Param, Sent, Session, column};
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{
    AdmissionChange, EndedHolders, KeptKey, KeyPause, KeyView, LinePlace, PoolKey, STATUS_CODES, Waiter, Waiters,
};
use tokio_postgres::Row;

fn one<'s>(text: &'s Text) -> Owned<'s> {
    Box::new(Str(text))
}

/// Statements that make a change.
pub(crate) fn send<'s>(sent: &mut Vec<Sent<'s>>, change: &'s AdmissionChange) {
    match change {
        AdmissionChange::TakeSlots { execution, keys } => sent.push(Sent::new(
            "insert into slots select pool, key, $3 from unnest($1::text[], $2::text[]) as k (pool, key)
                on conflict do nothing",
            vec![
                column(&keys.iter().collect::<Vec<&'s PoolKey>>(), |key| Str(&key.pool)),
                column(&keys.iter().collect::<Vec<&'s PoolKey>>(), |key| Str(&key.key)),
                one(execution),
            ],
        )),
        AdmissionChange::ReleaseSlots { execution } => {
            sent.push(Sent::new(
                "delete from slots where execution = $1",
                vec![one(execution)],
            ));
        }
        AdmissionChange::PutWaiter(waiter) => put_waiter(sent, waiter),
        AdmissionChange::RemoveWaiter { execution } => {
            for sql in [
                "delete from dependencies where waiter in (select number from waiters where execution = $1)",
                "delete from waiter_ancestors where waiter in (select number from waiters where execution = $1)",
                "delete from waiters where execution = $1",
            ] {
                sent.push(Sent::new(sql, vec![one(execution)]));
            }
        }
        AdmissionChange::PutKey(key) => put_key(sent, key),
        AdmissionChange::RemoveKey(PoolKey { pool, key }) => sent.push(Sent::new(
            "delete from keys where pool = $1 and key = $2",
            vec![one(pool), one(key)],
        )),
    }
}

fn put_waiter<'s>(sent: &mut Vec<Sent<'s>>, waiter: &'s Waiter) {
    let number = big(waiter.number);
    // One that asked before has another number.
    for sql in [
        "delete from dependencies where waiter in (select number from waiters where execution = $1 or number = $2)",
        "delete from waiter_ancestors where waiter in (select number from waiters where execution = $1 and number <> $2)",
        "delete from waiters where execution = $1 and number <> $2",
    ] {
        sent.push(Sent::new(sql, vec![one(&waiter.execution), Box::new(number)]));
    }
    let open = (!waiter.open.is_empty()).then(|| serde_json::to_vec(&waiter.open).unwrap_or_default());
    let parked = waiter.parked.as_ref();
    let place = waiter.place();
    sent.push(Sent::new(
        "insert into waiters (number, execution, event, ask, open, pool, key, rank, ordered, requested, moves, claim)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
            on conflict (number) do update set execution = excluded.execution, event = excluded.event, ask = excluded.ask,
                open = excluded.open, pool = excluded.pool, key = excluded.key, rank = excluded.rank,
                ordered = excluded.ordered, requested = excluded.requested, moves = excluded.moves, claim = excluded.claim",
        vec![
            Box::new(number),
            one(&waiter.execution),
            Box::new(big(waiter.event.0)),
            Box::new(serde_json::to_vec(&waiter.ask).unwrap_or_default()),
            Box::new(open),
            Box::new(parked.map(|key| Str(&key.pool))),
            Box::new(parked.map(|key| Str(&key.key))),
            Box::new(i16::from(place.rank)),
            Box::new(place.order),
            Box::new(waiter.ask.requested.0),
            Box::new(i32::try_from(waiter.moves).unwrap_or(i32::MAX)),
            Box::new(waiter.claim.map(big)),
        ],
    ));
    if !waiter.open.is_empty() {
        let flow = |dependency: &'s starbridge_ports::Dependency| Str(dependency.flow.as_deref().unwrap_or_default());
        let open: Vec<&'s starbridge_ports::OpenDependency> = waiter.open.iter().collect();
        sent.push(Sent::new(
            "insert into dependencies select $1, flow, name, bound
                from unnest($2::text[], $3::text[], $4::text[]) as d (flow, name, bound) on conflict do nothing",
            vec![
                Box::new(number),
                column(&open, |open| flow(&open.dependency)),
                column(&open, |open| Str(open.dependency.execution.as_str())),
                column(&open, |open| open.bound.as_ref().map(|bound| Str(bound.as_str()))),
            ],
        ));
    }
    if !waiter.ask.ancestors.is_empty() {
        let ancestors: Vec<&'s Text> = waiter.ask.ancestors.iter().collect();
        sent.push(Sent::new(
            "insert into waiter_ancestors select execution, $1 from unnest($2::text[]) as a (execution) on conflict do nothing",
            vec![Box::new(number), column(&ancestors, |ancestor| Str(ancestor.as_str()))],
        ));
    }
}

fn put_key<'s>(sent: &mut Vec<Sent<'s>>, kept: &'s KeptKey) {
    let paused = kept.paused.as_ref();
    sent.push(Sent::new(
        "insert into keys (pool, key, defined, set_to, set_by, paused_by, paused_since, stale)
            values ($1, $2, $3, $4, $5, $6, $7, $8)
            on conflict (pool, key) do update set defined = excluded.defined, set_to = excluded.set_to,
                set_by = excluded.set_by, paused_by = excluded.paused_by, paused_since = excluded.paused_since,
                stale = excluded.stale",
        vec![
            one(&kept.key.pool),
            one(&kept.key.key),
            Box::new(kept.defined.map(big)),
            Box::new(kept.set.map(big)),
            Box::new(kept.set_by.as_ref().map(|by| Str(by))),
            Box::new(paused.map(|paused| Str(&paused.by))),
            Box::new(paused.map(|paused| paused.since.0)),
            Box::new(kept.stale),
        ],
    ));
}

/// The columns of a waiter, for [`waiter_of`].
const COLUMNS: &str = "w.number, w.execution, w.event, w.ask, w.open, w.pool, w.key, w.moves, w.claim";

fn waiter_of(row: &Row) -> Result<Waiter, Failure> {
    let open: Option<&[u8]> = row.get(4);
    let open = open.map(serde_json::from_slice).transpose();
    let parked = optional_text(row, 5).zip(optional_text(row, 6));
    Ok(Waiter {
        number: row.get::<_, i64>(0).unsigned_abs(),
        execution: text(row, 1),
        event: EventId(row.get::<_, i64>(2).unsigned_abs()),
        ask: bytes_json(row, 3)?,
        open: open
            .map_err(|error| Failure::corrupt("a waiter", &error))?
            .unwrap_or_default(),
        parked: parked.map(|(pool, key)| PoolKey { pool, key }),
        moves: row.get::<_, i32>(7).unsigned_abs(),
        claim: row.get::<_, Option<i64>>(8).map(i64::unsigned_abs),
    })
}

/// What is read of each waiter.
struct Selected<T> {
    columns: &'static str,
    read: fn(&Row) -> Result<T, Failure>,
}

const WAITERS: Selected<Waiter> = Selected {
    columns: COLUMNS,
    read: waiter_of,
};
const IDS: Selected<(u64, Text)> = Selected {
    columns: "w.number, w.execution",
    read: |row| Ok((row.get::<_, i64>(0).unsigned_abs(), text(row, 1))),
};

impl<T> Selected<T> {
    async fn select(&self, session: &Session, rest: &str, values: &[Param<'_>]) -> Result<Vec<T>, Failure> {
        let sql = format!("select {} from waiters w where {rest}", self.columns);
        session.query(&sql, values).await?.iter().map(self.read).collect()
    }
}

pub(crate) async fn waiter(session: &Session, execution: &str) -> Result<Option<Waiter>, Failure> {
    Ok(WAITERS
        .select(session, "w.execution = $1", &[&Str(execution)])
        .await?
        .pop())
}

pub(crate) async fn waiters(session: &Session, which: Waiters<'_>, limit: usize) -> Result<Vec<Waiter>, Failure> {
    find(session, &WAITERS, which, limit).await
}

/// Nothing of what they ask for is read.
pub(crate) async fn waiter_ids(
    session: &Session,
    which: Waiters<'_>,
    limit: usize,
) -> Result<Vec<(u64, Text)>, Failure> {
    find(session, &IDS, which, limit).await
}

async fn find<T>(
    session: &Session,
    selected: &Selected<T>,
    which: Waiters<'_>,
    limit: usize,
) -> Result<Vec<T>, Failure> {
    let limit = rows(limit);
    match which {
        Waiters::InLine(key, after) => {
            let (rank, order, number) = after.map_or((-1, i64::MIN, 0), |after| {
                (i16::from(after.rank), after.order, big(after.number))
            });
            let rest = "w.pool = $1 and w.key = $2 and (w.rank, w.ordered, w.number) > ($3, $4, $5)
                order by w.rank, w.ordered, w.number limit $6";
            selected
                .select(
                    session,
                    rest,
                    &[&Str(&key.pool), &Str(&key.key), &rank, &order, &number, &limit],
                )
                .await
        }
        Waiters::ByAge(key, after) => {
            let (requested, number) = after.map_or((i64::MIN, 0), |after| (after.requested.0, big(after.number)));
            let rest = "w.pool = $1 and w.key = $2 and (w.requested, w.number) > ($3, $4)
                order by w.requested, w.number limit $5";
            selected
                .select(
                    session,
                    rest,
                    &[&Str(&key.pool), &Str(&key.key), &requested, &number, &limit],
                )
                .await
        }
        Waiters::Claimed(after) => {
            let rest = "w.claim is not null and w.number > $1 order by w.number limit $2";
            selected.select(session, rest, &[&big(after), &limit]).await
        }
        Waiters::BoundTo(execution, after) => {
            let rest = "w.number in (select distinct waiter from dependencies where bound = $1 and waiter > $2
                order by waiter limit $3) order by w.number";
            selected
                .select(session, rest, &[&Str(execution), &big(after), &limit])
                .await
        }
        Waiters::Named(flow, name, after) => {
            let rest = "w.number in (select waiter from dependencies where flow = $1 and name = $2 and bound is null
                and waiter > $3 order by waiter limit $4) order by w.number";
            selected
                .select(session, rest, &[&Str(flow), &Str(name), &big(after), &limit])
                .await
        }
        Waiters::Unbound(after) => {
            let rest = "w.number in (select distinct waiter from dependencies where bound is null and waiter > $1
                order by waiter limit $2) order by w.number";
            selected.select(session, rest, &[&big(after), &limit]).await
        }
        Waiters::Below(ancestor, after) => {
            let rest = "w.number in (select waiter from waiter_ancestors where execution = $1 and waiter > $2
                order by waiter limit $3) order by w.number";
            selected
                .select(session, rest, &[&Str(ancestor), &big(after), &limit])
                .await
        }
    }
}

async fn number(session: &Session, sql: &str, values: &[Param<'_>]) -> Result<u64, Failure> {
    Ok(session.only(sql, values).await?.get::<_, i64>(0).unsigned_abs())
}

pub(crate) async fn waiters_before(
    session: &Session,
    key: &PoolKey,
    place: LinePlace,
    most: u64,
) -> Result<u64, Failure> {
    let sql = "select count(*) from (select 1 from waiters where pool = $1 and key = $2
        and (rank, ordered, number) < ($3, $4, $5) limit $6) as before";
    let values: [Param<'_>; 6] = [
        &Str(&key.pool),
        &Str(&key.key),
        &i16::from(place.rank),
        &place.order,
        &big(place.number),
        &big(most),
    ];
    number(session, sql, &values).await
}

pub(crate) async fn count_waiters(session: &Session) -> Result<u64, Failure> {
    number(session, "select count(*) from waiters", &[]).await
}

pub(crate) async fn last_waiter(session: &Session) -> Result<(u64, u64), Failure> {
    let sql = "select coalesce((select max(number) from waiters), 0),
        coalesce((select max(claim) from waiters where claim is not null), 0)";
    let row = session.only(sql, &[]).await?;
    let number = |column: usize| row.get::<_, i64>(column).unsigned_abs();
    Ok((number(0), number(1)))
}

fn pool_key(row: &Row) -> PoolKey {
    PoolKey {
        pool: text(row, 0),
        key: text(row, 1),
    }
}

pub(crate) async fn slots_of(session: &Session, execution: &str) -> Result<Vec<PoolKey>, Failure> {
    let sql = "select pool, key from slots where execution = $1 order by pool, key";
    Ok(session
        .query(sql, &[&Str(execution)])
        .await?
        .iter()
        .map(pool_key)
        .collect())
}

pub(crate) async fn all_slots(session: &Session, most: usize) -> Result<Option<Vec<(Text, PoolKey)>>, Failure> {
    // Where there are too many, none is read.
    let more = "select 1 from slots limit 1 offset $1";
    if session.first(more, &[&rows(most)]).await?.is_some() {
        return Ok(None);
    }
    let found = session.query("select pool, key, execution from slots", &[]).await?;
    Ok(Some(found.iter().map(|row| (text(row, 2), pool_key(row))).collect()))
}

pub(crate) async fn anyone_depends(session: &Session) -> Result<bool, Failure> {
    let sql = "select 1 from dependencies where bound is not null limit 1";
    Ok(session.first(sql, &[]).await?.is_some())
}

pub(crate) async fn holders(session: &Session, key: &PoolKey, limit: usize) -> Result<Vec<Text>, Failure> {
    let sql = "select execution from slots where pool = $1 and key = $2 order by execution limit $3";
    let found = session
        .query(sql, &[&Str(&key.pool), &Str(&key.key), &rows(limit)])
        .await?;
    Ok(found.iter().map(|row| text(row, 0)).collect())
}

pub(crate) async fn ended_holders(session: &Session, after: &str, limit: usize) -> Result<EndedHolders, Failure> {
    let sql = "select h.execution, coalesce(e.status, 0::smallint)
        from (select distinct execution from slots where execution > $1 order by execution limit $2) h
        left join executions e on e.id = h.execution order by h.execution";
    let holder = |row: &Row| {
        let code = usize::try_from(row.get::<_, i16>(1)).unwrap_or_default();
        (text(row, 0), STATUS_CODES.get(code).copied().unwrap_or_default())
    };
    let found = session.query(sql, &[&Str(after), &rows(limit)]).await?;
    Ok(EndedHolders::of(found.iter().map(holder).collect(), limit))
}

const KEY_COLUMNS: &str = "pool, key, defined, set_to, set_by, paused_by, paused_since, stale";

fn key_of(row: &Row) -> KeptKey {
    let limit = |column: usize| row.get::<_, Option<i64>>(column).map(i64::unsigned_abs);
    let paused = optional_text(row, 5).zip(time(row, 6));
    KeptKey {
        key: pool_key(row),
        defined: limit(2),
        set: limit(3),
        set_by: optional_text(row, 4),
        paused: paused.map(|(by, since)| KeyPause { by, since }),
        stale: row.get(7),
    }
}

pub(crate) async fn kept_key(session: &Session, key: &PoolKey) -> Result<(KeptKey, u64), Failure> {
    let kept = format!("select {KEY_COLUMNS} from keys where pool = $1 and key = $2");
    let held = "select count(*) from slots where pool = $1 and key = $2";
    let (pool, name) = (Str(&key.pool), Str(&key.key));
    let values: [Param<'_>; 2] = [&pool, &name];
    let mut answers = session
        .query_all(&[(&kept, &values), (held, &values)])
        .await?
        .into_iter();
    let kept = answers.next().unwrap_or_default().first().map(key_of);
    let held = answers
        .next()
        .unwrap_or_default()
        .first()
        .map_or(0, |row| row.get::<_, i64>(0));
    Ok((kept.unwrap_or_else(|| KeptKey::of(key.clone())), held.unsigned_abs()))
}

pub(crate) async fn key(session: &Session, key: &PoolKey) -> Result<KeyView, Failure> {
    let (kept, held) = kept_key(session, key).await?;
    let sql = "select count(*) from waiters where pool = $1 and key = $2";
    let waiting = number(session, sql, &[&Str(&key.pool), &Str(&key.key)]).await?;
    Ok(KeyView { kept, held, waiting })
}

pub(crate) async fn kept_keys(
    session: &Session,
    after: Option<&PoolKey>,
    limit: usize,
) -> Result<Vec<KeptKey>, Failure> {
    let sql = format!("select {KEY_COLUMNS} from keys where (pool, key) > ($1, $2) order by pool, key limit $3");
    let (pool, key) = after.map_or(("", ""), |after| (after.pool.as_str(), after.key.as_str()));
    let found = session.query(&sql, &[&Str(pool), &Str(key), &rows(limit)]).await?;
    Ok(found.iter().map(key_of).collect())
}

pub(crate) async fn stale_keys(session: &Session) -> Result<Vec<PoolKey>, Failure> {
    let sql = "select pool, key from keys where stale order by pool, key";
    Ok(session.query(sql, &[]).await?.iter().map(pool_key).collect())
}
