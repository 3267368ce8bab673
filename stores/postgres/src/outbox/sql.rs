//! What is asked of the database of an outbox.

/// The version of the installation.
pub(super) const VERSION: &str = "select max(version) from starbridge.outbox_format";

/// The encoding, and what does not belong to whom it should. Whoever owns a table can give it a trigger, which acts with the rights of
/// those who write it; whoever owns the schema can make its tables anew. So all has one owner, or superusers have it all; and
/// what belongs to less than a superuser is no place for the rights of one.
pub(super) const FIT: &str = "
with space as (
    select n.oid, n.nspowner, r.rolsuper from pg_namespace n join pg_roles r on r.oid = n.nspowner
    where n.nspname = 'starbridge'
),
owned as (
    select 0 as place, 'the schema starbridge' as what, nspowner as owner from space
    union all
    select 1, 'the table starbridge.' || c.relname, c.relowner from space join pg_class c on c.relnamespace = space.oid
    where c.relname in ('outbox', 'outbox_format', 'outbox_refused')
    union all
    select 2, 'the function starbridge.' || p.proname, p.proowner
    from space join pg_proc p on p.pronamespace = space.oid
    where p.proname in ('outbox_add', 'outbox_id', 'start_execution', 'succeed', 'fail', 'stop_execution')
)
select current_setting('server_encoding'), (
    select format('%s belongs to the role %I', o.what, r.rolname)
    from space cross join owned o join pg_roles r on r.oid = o.owner
    where case when space.rolsuper then not r.rolsuper
        else r.oid <> space.nspowner or (select rolsuper from pg_roles where rolname = current_user) end
    order by o.place, o.what limit 1
)";

/// The rights of the server's role elsewhere. A role that uses a table trusts its owner, who can make it run code, for example code that
/// changes the role's password. What any other role could give this one does not count: else that one could stop all outboxes.
pub(super) const POWERS: &str = r"
with me as (select oid, rolname, rolcreaterole, rolcreatedb, rolreplication from pg_roles where rolname = session_user),
strange as (
    select from pg_namespace n join pg_roles r on r.oid = n.nspowner
    where n.nspname = 'starbridge' and not r.rolsuper and r.rolname <> session_user
)
select format('the server''s role %I %s', me.rolname, p.power)
from strange cross join me cross join lateral (
    select 0 as place, 'may make roles' as power where me.rolcreaterole
    union all
    select 1, 'may make databases' where me.rolcreatedb
    union all
    select 2, 'may replicate' where me.rolreplication
    union all
    select 3, format('is a member of the role %I', r.rolname) from pg_roles r
    where r.oid <> me.oid and (r.rolsuper or r.rolcreaterole or r.rolname like 'pg\_%') and r.rolname <> 'pg_database_owner'
        and pg_has_role(me.oid, r.oid, 'member')
    union all
    select 4, format('owns the database %I', d.datname) from pg_database d
    where d.datdba = me.oid and d.datname <> current_database()
    union all
    select 5, format('owns something in the database %I', d.datname)
    from pg_shdepend s join pg_database d on d.oid = s.dbid
    where s.refclassid = 'pg_authid'::regclass and s.refobjid = me.oid and s.deptype = 'o'
        and d.datname <> current_database()
) p order by p.place, p.power limit 1";

/// Everything that would run code with the rights of the server's role when it uses a table of another role. Triggers and
/// foreign keys may be there although superusers own the table: their rights can be granted.
pub(super) const CODE: &str = "
with tables as materialized (
    select c.oid, c.relname, c.relkind, c.relispartition, r.rolsuper or r.rolname = current_user as trusted
    from pg_namespace n join pg_class c on c.relnamespace = n.oid join pg_roles r on r.oid = c.relowner
    where n.nspname = 'starbridge' and c.relname in ('outbox', 'outbox_format', 'outbox_refused')
)
select format('the table starbridge.%I %s', t.relname, x.what)
from tables t cross join lateral (
    select format('has the trigger %I', g.tgname) as what
    from pg_trigger g join pg_proc p on p.oid = g.tgfoid join pg_roles r on r.oid = p.proowner
    where g.tgrelid = t.oid
        and not (t.trusted and not g.tgisinternal and (r.rolsuper or r.rolname = current_user))
    union all
    select y.what from (
        select 'is no plain table' as what where t.relkind <> 'r' or t.relispartition
        union all
        select 'is inherited' from pg_inherits where inhparent = t.oid or inhrelid = t.oid
        union all
        select format('has the policy %I', polname) from pg_policy where polrelid = t.oid
        union all
        select format('has the rule %I', rulename) from pg_rewrite where ev_class = t.oid
        union all
        select format('has the constraint %I', conname) from pg_constraint
        where conrelid = t.oid and contype not in ('p', 'u', 'n')
        union all
        select format('has the statistics %I', stxname) from pg_statistic_ext where stxrelid = t.oid
        union all
        select format('has the index %I', c.relname) from pg_index i join pg_class c on c.oid = i.indexrelid
        where i.indrelid = t.oid and (i.indexprs is not null
            or pg_get_expr(i.indpred, i.indrelid) not in ('(taker IS NULL)', '(taker IS NOT NULL)'))
        union all
        select format('has the column %I of the type %I', a.attname, p.typname)
        from pg_attribute a join pg_type p on p.oid = a.atttypid
        where a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
            and p.typnamespace <> 'pg_catalog'::regnamespace
        union all
        select format('has a default of the column %I', a.attname)
        from pg_attrdef d join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
        where d.adrelid = t.oid
            and pg_get_expr(d.adbin, d.adrelid) not in ('now()', 'clock_timestamp()', 'pg_current_xact_id()')
    ) y where not t.trusted
) x order by 1 limit 1";

/// Says that this process takes for a store. Anybody may take advisory locks and see which ones are held, so the number is
/// a new one each time, and nobody can hold it beforehand.
pub(super) const PRESENT: &str =
    "select pg_try_advisory_lock((hashtext($1)::bigint << 32) | floor(random() * 4294967296)::bigint)";

/// One process at a time takes for a store: a copy of a store's file has the same name. Each says that it is there before it looks
/// for others. What sessions hold that may not take anyway says nothing.
pub(super) const ALONE: &str = "select not exists (
    select from pg_locks l join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'advisory' and l.granted and l.objsubid = 1
        and l.classid = (hashtext($1)::bigint & 4294967295)::oid and l.pid <> pg_backend_pid()
        and l.database = (select oid from pg_database where datname = current_database())
        and pg_has_role(a.usesysid, 'starbridge_taker', 'member'))";

/// Ends the connection of a node whose part this one took over: that one may stand still and be present for ever. Its starts
/// are refused by the store, and rows that it took are found by the next look for [`TAKEN`]. Nodes are the same role; a
/// session of another one this role may not end.
pub(super) const SUCCEED: &str = "select pg_terminate_backend(l.pid)
    from pg_locks l join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'advisory' and l.objsubid = 1 and l.classid = (hashtext($1)::bigint & 4294967295)::oid
        and l.pid <> pg_backend_pid() and a.usename = session_user
        and l.database = (select oid from pg_database where datname = current_database())";

/// What was taken for this store before and is not finished.
pub(super) const TAKEN: &str = "select id::text, action, body::text, by from starbridge.outbox where taker = $1
    order by xid, number";

/// Takes new rows. All transactions older than the oldest that writes now have ended, so their rows are seen by this
/// snapshot: if all that was found is taken, the next look can begin at that one, or at the last row, where there may be more.
/// Nothing is locked that somebody else takes, only waited for: a row that another server took, and gave back as it died, would
/// else be behind the place where the next look begins. The update names ids in an array, and asks for `taker` in words that
/// no index knows: a plan that was made while the table was empty would else compare each row that waits with each of these.
pub(super) const TAKE: &str = "
with look as materialized (select pg_snapshot_xmin(pg_current_snapshot()) as oldest),
found as materialized (
    select o.id, o.xid, sum(o.bytes::bigint) over (order by o.xid, o.number) - o.bytes as before
    from (
        select n.id, n.xid, n.number, n.bytes from starbridge.outbox n
        where n.taker is null and n.xid >= $1::text::xid8 order by n.xid, n.number limit $3::bigint
    ) o
),
taken as (
    update starbridge.outbox o set taker = $2
    where o.id = any (array(select f.id from found f where f.before < $4::bigint)) and coalesce(o.taker, '') = ''
    returning o.id, o.xid, o.number, o.action, o.body, o.by
)
select case when (select count(*) from found) < $3::bigint then look.oldest
        else least(look.oldest, (select xid from found order by xid desc limit 1)) end::text,
    (select count(*) from found), t.id::text, t.action, t.body::text, t.by
from look left join taken t on true order by t.xid, t.number";

/// It looks by id: an index of takers has those of all rows that were deleted since the last vacuum, and a plan that was made while the
/// table was empty would use it.
pub(super) const DONE: &str =
    "delete from starbridge.outbox where id = any ($1::text[]::uuid[]) and coalesce(taker, '') = $2";

pub(super) const REFUSE: &str = "
with gone as (
    delete from starbridge.outbox o
    where o.id = any ($1::text[]::uuid[]) and coalesce(o.taker, '') = $2 returning o.id, o.action, o.body, o.by, o.time
)
insert into starbridge.outbox_refused (id, action, body, by, time, code, reason)
select g.id, g.action, g.body, g.by, g.time, r.code, r.reason
from gone g join unnest($1::text[]::uuid[], $3::text[], $4::text[]) r(id, code, reason) on r.id = g.id";

/// Deletes the oldest refused rows, a page of them at a time, where there are more than are kept.
pub(super) const FORGET: &str = "
delete from starbridge.outbox_refused where number in (
    select number from starbridge.outbox_refused
    where number <= (select number from starbridge.outbox_refused order by number desc offset $1 limit 1)
    order by number limit $2
)";

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
