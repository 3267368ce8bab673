-- Starting flows in your own transaction: the functions that write the outbox, and the tables behind them.
-- It can be run again: what is there stays, and older functions are replaced. PostgreSQL 13 or later.

begin;
-- Whoever made a schema before must not be called by what an administrator runs here.
set local search_path = pg_catalog, pg_temp;

do $$
declare
    space oid := (select oid from pg_catalog.pg_namespace where nspname = 'starbridge');
    found integer;
    what text;
begin
    if current_setting('server_encoding') <> 'UTF8' then
        raise exception 'this database has the encoding %, and an outbox needs UTF8: its rows are JSON',
            current_setting('server_encoding')
            using hint = 'Use a database that was made with `create database NAME encoding ''UTF8'' template template0`.';
    end if;
    -- Before anything in the schema is used: triggers, rules and functions of somebody else would run with the rights of whoever
    -- installs, and later with those of whoever starts flows.
    select format('%s belongs to the role %I', o.what, r.rolname) into what
    from (
        select 0 as place, 'the schema starbridge' as what, nspowner as owner from pg_namespace where oid = space
        union all
        select 1, format('%s starbridge.%I', case relkind when 'S' then 'the sequence' when 'v' then 'the view'
            else 'the table' end, relname), relowner
        from pg_class where relnamespace = space and relkind not in ('i', 'I', 't')
        union all
        select 2, format('the function starbridge.%I', proname), proowner from pg_proc where pronamespace = space
        union all
        select 3, format('the type starbridge.%I', typname), typowner from pg_type where typnamespace = space
        union all
        select 4, format('the operator starbridge.%s', oprname), oprowner from pg_operator where oprnamespace = space
    ) o join pg_roles r on r.oid = o.owner
    where not r.rolsuper and r.rolname <> current_user
    order by o.place, o.what limit 1;
    if what is null then
        select format('%s has the right `create` in the schema starbridge',
            case a.grantee when 0 then 'every role' else format('the role %I', r.rolname) end) into what
        from pg_namespace n cross join aclexplode(n.nspacl) a left join pg_roles r on r.oid = a.grantee
        where n.oid = space and a.privilege_type = 'CREATE' and a.grantee <> n.nspowner
            and r.rolsuper is not true and r.rolname is distinct from current_user
        order by 1 limit 1;
    end if;
    if what is null then
        select format('the table starbridge.%I has the %s %I', c.relname, x.kind, x.name) into what
        from pg_class c join (
            select tgrelid as of, 'trigger' as kind, tgname as name from pg_trigger where not tgisinternal
            union all
            select ev_class, 'rule', rulename from pg_rewrite
        ) x on x.of = c.oid
        where c.relnamespace = space and c.relname in ('outbox', 'outbox_format', 'outbox_refused')
        order by 1 limit 1;
    end if;
    if what is not null then
        raise exception '%: nothing is installed, because it could act with the rights of %', what, current_user
            using errcode = 'object_not_in_prerequisite_state', hint = 'Install into another database, or as the role that owns'
                ' the schema and all in it, or drop what is not needed: `drop schema starbridge cascade`.';
    end if;
    if to_regclass('starbridge.outbox_format') is not null then
        execute 'select max(version) from starbridge.outbox_format' into found;
        if found > 1 then
            raise exception 'the outbox of this database has version %, and this program knows versions up to 1', found
                using hint = 'Install with the later version of the program, or leave it as it is.';
        end if;
    end if;
    if not exists (select from pg_catalog.pg_roles where rolname = 'starbridge_client') then
        create role starbridge_client nologin;
    end if;
    if not exists (select from pg_catalog.pg_roles where rolname = 'starbridge_taker') then
        create role starbridge_taker nologin;
    end if;
    if space is null then
        create schema starbridge;
    end if;
end
$$;

create table if not exists starbridge.outbox_format (
    version integer primary key,
    time timestamptz not null default now()
);

-- A row is there if its transaction committed. It is deleted when what it asks for is durable.
create table if not exists starbridge.outbox (
    id uuid primary key,
    -- The transaction that wrote it: the same for its savepoints.
    xid xid8 not null default pg_current_xact_id(),
    number bigint generated always as identity,
    action text not null,
    body jsonb not null,
    bytes integer not null,
    by text not null,
    time timestamptz not null default clock_timestamp(),
    -- The store whose server takes it. No other server carries it out.
    taker text
);

-- Rows that nobody has taken, by transaction: whoever looks begins at the oldest one that may still commit.
create index if not exists outbox_new on starbridge.outbox (xid, number) where taker is null;
create index if not exists outbox_taken on starbridge.outbox (taker) where taker is not null;

create table if not exists starbridge.outbox_refused (
    number bigint generated always as identity primary key,
    id uuid not null unique,
    action text not null,
    body jsonb not null,
    by text not null,
    time timestamptz not null,
    refused timestamptz not null default clock_timestamp(),
    code text not null,
    reason text not null
);

-- Writes a row, and wakes a server. A notification holds a lock of the whole database server until its transaction commits,
-- so only the transaction that gets the lock below sends one: a look each half second finds the others. It and the next one are
-- called only by the functions below, with their rights and their `search_path`: setting that again would take time.
create or replace function starbridge.outbox_add(id uuid, action text, body jsonb) returns void
language plpgsql as $$
declare
    size integer := octet_length(body::text);
begin
    -- A little more than the input: the other members.
    if size > 65 * 1024 * 1024 or current_setting('transaction_read_only') = 'on' then
        if size > 65 * 1024 * 1024 then
            raise exception 'the request has % bytes, more than an outbox takes (64 MiB)', size
                using errcode = 'program_limit_exceeded', hint = 'Keep large data elsewhere, and give its address.';
        end if;
        raise exception 'this transaction is read-only, and asking starbridge for something writes a row'
            using errcode = 'read_only_sql_transaction', hint = case when pg_is_in_recovery()
                then 'This is a standby: connect to the primary.' else 'Begin it with `begin read write`.' end;
    end if;
    insert into starbridge.outbox (id, action, body, bytes, by) values (id, action, body, size, session_user);
    if current_setting('starbridge.wake', true) is distinct from 'off'
        and pg_try_advisory_xact_lock(1937007986, 1) then
        perform pg_notify('starbridge_outbox', '');
    end if;
end
$$;

-- A UUID of version 7: the time in front, so that rows written together lie together.
create or replace function starbridge.outbox_id() returns uuid
language sql volatile as $$
    select (lpad(to_hex((date_part('epoch', clock_timestamp()) * 1000)::bigint), 12, '0') || '-7'
        || substr(gen_random_uuid()::text, 16))::uuid
$$;

-- Starts an execution of a flow if and only if this transaction commits. The members are those of a start over HTTP.
create or replace function starbridge.start_execution(
    flow text,
    input jsonb default '{}',
    name text default null,
    version bigint default null,
    labels jsonb default null,
    priority integer default null,
    order_time bigint default null,
    start_at timestamptz default null,
    delay_seconds bigint default null,
    start_deadline_seconds bigint default null,
    once_key text default null,
    after jsonb default null,
    traceparent text default null
) returns uuid
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
    made uuid;
    woken boolean;
    body jsonb;
begin
    -- The usual start: all is well, and it has nothing but a name. PostgreSQL makes each expression and each statement of a function
    -- ready anew in each transaction, which takes longer than to compute it: so here are two, which do what `outbox_id` and
    -- `outbox_add` do.
    if flow ~ '^[A-Za-z_][A-Za-z0-9_-]{0,127}$' and name ~ '^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$' is not false
        and jsonb_typeof(input) = 'object' and num_nonnulls(version, labels, priority, order_time, start_at,
            delay_seconds, start_deadline_seconds, once_key, after, traceparent) = 0
        and octet_length(input::text) <= 64 * 1024 * 1024 and current_setting('transaction_read_only') = 'off' then
        insert into starbridge.outbox as o (id, action, body, bytes, by) values (
            (lpad(to_hex((date_part('epoch', clock_timestamp()) * 1000)::bigint), 12, '0') || '-7'
                || substr(gen_random_uuid()::text, 16))::uuid,
            'start',
            case when name is null then jsonb_build_object('flow', flow, 'input', input)
                else jsonb_build_object('flow', flow, 'name', name, 'input', input) end,
            octet_length(input::text),
            session_user)
        returning o.id, case when current_setting('starbridge.wake', true) is distinct from 'off'
            and pg_try_advisory_xact_lock(1937007986, 1) then pg_notify('starbridge_outbox', '') is null end
        into made, woken;
        return made;
    end if;
    if flow is null or flow !~ '^[A-Za-z_][A-Za-z0-9_-]{0,127}$' then
        raise exception '% is no name of a flow', coalesce(quote_literal(left(flow, 200)), 'null')
            using errcode = 'invalid_parameter_value',
            hint = '1 to 128 of A-Z a-z 0-9 _ -, beginning with a letter or _.';
    end if;
    if name !~ '^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$' then
        raise exception '% is no name of an execution', quote_literal(left(name, 200))
            using errcode = 'invalid_parameter_value', hint = '1 to 128 of A-Z a-z 0-9 _ -, not beginning with -.';
    end if;
    if jsonb_typeof(coalesce(input, '{}')) <> 'object' then
        raise exception 'the input of `%` must be an object, not %', flow, jsonb_typeof(input)
            using errcode = 'invalid_parameter_value', hint = 'For example: ''{"id": 7}''.';
    end if;
    if jsonb_typeof(labels) <> 'object' then
        raise exception 'the labels must be an object of strings, not %', jsonb_typeof(labels)
            using errcode = 'invalid_parameter_value';
    end if;
    if jsonb_typeof(after) <> 'array' then
        raise exception '`after` must be a list, not %', jsonb_typeof(after) using errcode = 'invalid_parameter_value';
    end if;
    if priority not between 0 and 9 then
        raise exception 'the priority must be from 0 to 9, not %', priority using errcode = 'invalid_parameter_value';
    end if;
    if version < 0 or delay_seconds < 0 or start_deadline_seconds < 1 then
        raise exception '`version` and `delay_seconds` must be at least 0, `start_deadline_seconds` at least 1'
            using errcode = 'invalid_parameter_value';
    end if;
    if start_at is not null and delay_seconds is not null then
        raise exception '`start_at` and `delay_seconds` both say when it begins: give one of them'
            using errcode = 'invalid_parameter_value';
    end if;
    if once_key = '' or octet_length(once_key) > 256 then
        raise exception '`once_key` must have 1 to 256 bytes' using errcode = 'invalid_parameter_value';
    end if;
    if not isfinite(start_at) or start_at < '0001-01-01 00:00:00+00' or start_at >= '10000-01-01 00:00:00+00' then
        raise exception '`start_at` must be a time from the year 1 to 9999, not %', start_at
            using errcode = 'invalid_parameter_value', hint = 'To start at once, leave it out.';
    end if;
    -- The delay counts from now, however long the transaction and the way to a server take.
    start_at := coalesce(start_at, clock_timestamp() + delay_seconds * interval '1 second');
    body := jsonb_strip_nulls(jsonb_build_object(
        'flow', flow, 'name', name, 'version', version, 'priority', priority, 'orderTime', order_time,
        'startAt', to_char(start_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'startDeadlineSeconds', start_deadline_seconds, 'onceKey', once_key, 'traceparent', traceparent));
    body := body || jsonb_build_object('input', coalesce(input, '{}'));
    if labels is not null then
        body := body || jsonb_build_object('labels', labels);
    end if;
    if after is not null then
        body := body || jsonb_build_object('after', after);
    end if;
    made := starbridge.outbox_id();
    perform starbridge.outbox_add(made, 'start', body);
    return made;
end
$$;

-- Completes the call that has this task token, if and only if this transaction commits.
create or replace function starbridge.succeed(token text, output jsonb default '{}') returns uuid
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    made uuid := starbridge.outbox_id();
begin
    if coalesce(token, '') = '' or octet_length(token) > 4096 then
        raise exception 'the task token must have 1 to 4096 bytes' using errcode = 'invalid_parameter_value';
    end if;
    if jsonb_typeof(coalesce(output, '{}')) <> 'object' then
        raise exception 'the output must be an object, not %', jsonb_typeof(output)
            using errcode = 'invalid_parameter_value';
    end if;
    perform starbridge.outbox_add(made, 'succeed',
        jsonb_build_object('token', token, 'output', coalesce(output, '{}')));
    return made;
end
$$;

-- Fails the call that has this task token, if and only if this transaction commits.
create or replace function starbridge.fail(token text, error text, cause text default '') returns uuid
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    made uuid := starbridge.outbox_id();
begin
    if coalesce(token, '') = '' or octet_length(token) > 4096 then
        raise exception 'the task token must have 1 to 4096 bytes' using errcode = 'invalid_parameter_value';
    end if;
    if coalesce(error, '') = '' then
        raise exception 'the name of the error is missing' using errcode = 'invalid_parameter_value';
    end if;
    perform starbridge.outbox_add(made, 'fail',
        jsonb_build_object('token', token, 'error', error, 'cause', coalesce(cause, '')));
    return made;
end
$$;

-- Stops an execution, if and only if this transaction commits.
create or replace function starbridge.stop_execution(
    id uuid,
    cause text default '',
    error text default null,
    rollback boolean default false
) returns uuid
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
    made uuid := starbridge.outbox_id();
begin
    if id is null then
        raise exception 'the id of the execution is missing' using errcode = 'null_value_not_allowed';
    end if;
    perform starbridge.outbox_add(made, 'stop', jsonb_strip_nulls(jsonb_build_object('id', id, 'cause',
        coalesce(cause, ''), 'error', error, 'rollback', coalesce(rollback, false))));
    return made;
end
$$;

revoke all on function starbridge.outbox_add(uuid, text, jsonb), starbridge.outbox_id() from public;
revoke all on function
    starbridge.start_execution(text, jsonb, text, bigint, jsonb, integer, bigint, timestamptz, bigint, bigint, text,
        jsonb, text),
    starbridge.succeed(text, jsonb), starbridge.fail(text, text, text),
    starbridge.stop_execution(uuid, text, text, boolean) from public;

-- Who asks: every role that is granted this one. It sees no table.
grant usage on schema starbridge to starbridge_client, starbridge_taker;
grant execute on function
    starbridge.start_execution(text, jsonb, text, bigint, jsonb, integer, bigint, timestamptz, bigint, bigint, text,
        jsonb, text),
    starbridge.succeed(text, jsonb), starbridge.fail(text, text, text),
    starbridge.stop_execution(uuid, text, text, boolean) to starbridge_client;
-- Who takes: the role of the server.
grant select on starbridge.outbox_format to starbridge_taker;
grant select, update (taker), delete on starbridge.outbox to starbridge_taker;
grant select, insert, delete on starbridge.outbox_refused to starbridge_taker;

insert into starbridge.outbox_format (version) values (1) on conflict do nothing;

commit;
