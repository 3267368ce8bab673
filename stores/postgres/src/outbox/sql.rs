//! What is asked of the database of an outbox.

/// The version of the installation.
pub(super) const VERSION: &str = "select max(version) from starbridge.outbox_format";

/// One process at a time takes for a store: a copy of a store's file has the same name.
pub(super) const ALONE: &str = "select pg_try_advisory_lock(1937007987, hashtext($1))";

/// Ends the connection of a node whose part this one took over: that one may stand still and hold the lock for ever. Its starts
/// are refused by the store, and rows that it took are found by the next look for [`TAKEN`].
pub(super) const SUCCEED: &str = "select pg_terminate_backend(pid) from pg_locks
    where locktype = 'advisory' and classid = 1937007987 and objid = (hashtext($1)::bigint & 4294967295)::oid
        and objsubid = 2 and pid <> pg_backend_pid()
        and database = (select oid from pg_database where datname = current_database())";

/// What was taken for this store before and is not finished.
pub(super) const TAKEN: &str = "select id::text, action, body::text, by from starbridge.outbox where taker = $1
    order by xid, number";

/// Takes new rows. All transactions older than the oldest that writes now have ended, so their rows are seen by this
/// snapshot: the next look can begin at that one. Nothing is locked that somebody else takes, only waited for: a row that
/// another server took, and gave back as it died, would else be behind the place where the next look begins.
pub(super) const TAKE: &str = "
with look as materialized (select pg_snapshot_xmin(pg_current_snapshot()) as oldest),
found as materialized (
    select o.id, sum(o.bytes::bigint) over (order by o.xid, o.number) - o.bytes as before
    from (
        select n.id, n.xid, n.number, n.bytes from starbridge.outbox n
        where n.taker is null and n.xid >= $1::text::xid8 order by n.xid, n.number limit $3::bigint
    ) o
),
taken as (
    update starbridge.outbox o set taker = $2 from found f
    where o.id = f.id and f.before < $4::bigint and o.taker is null
    returning o.id, o.xid, o.number, o.action, o.body, o.by
)
select look.oldest::text, (select count(*) from found), t.id::text, t.action, t.body::text, t.by
from look left join taken t on true order by t.xid, t.number";

pub(super) const DONE: &str = "delete from starbridge.outbox where id = any ($1::text[]::uuid[]) and taker = $2";

pub(super) const REFUSE: &str = "
with gone as (
    delete from starbridge.outbox where id = $1::text::uuid and taker = $2 returning id, action, body, by, time
)
insert into starbridge.outbox_refused (id, action, body, by, time, code, reason)
select id, action, body, by, time, $3::text, $4::text from gone";

pub(super) const STANDING: &str = "
select count(*), (extract(epoch from min(time)) * 1000)::bigint, (select count(*) from starbridge.outbox_refused)
from starbridge.outbox";

/// Tokens are left out: whoever has one may answer for its task.
pub(super) const REFUSED: &str = "
select number, id::text, action, body ->> 'flow', body ->> 'name', by, (extract(epoch from time) * 1000)::bigint,
    (extract(epoch from refused) * 1000)::bigint, code, reason
from starbridge.outbox_refused where number < $1 order by number desc limit $2";

pub(super) const REFUSED_ONE: &str = "
select number, id::text, action, body ->> 'flow', body ->> 'name', by, (extract(epoch from time) * 1000)::bigint,
    (extract(epoch from refused) * 1000)::bigint, code, reason
from starbridge.outbox_refused where id::text = $1";
