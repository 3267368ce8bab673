-- Times are milliseconds since 1970. Texts for machines and long ones are bytes in UTF-8. In all other texts U+0000, which
-- PostgreSQL can't hold, is U+E000 followed by 0, and U+E000 itself is U+E000 followed by 1.

-- Version of the whole, number of shards: what never changes once the store is made.
create table meta (
    name text primary key,
    value text not null
);
insert into meta values ('store', 'starbridge'), ('shards', '256');

-- Each stay of a process: it is over once its writers are. A process that loses its connection makes another stay.
create table nodes (
    incarnation bigint generated always as identity primary key,
    name text not null,
    process uuid not null,
    address text,
    certificate text,
    version text not null,
    slot smallint,
    joined bigint not null
);

-- Who may append. Each append locks the row of its writer; whoever ends an incarnation waits for that.
create table writers (
    incarnation bigint not null,
    writer smallint not null,
    over boolean not null,
    primary key (incarnation, writer)
);

-- Who has which executions. The epoch grows with each change.
create table shards (
    shard smallint primary key,
    incarnation bigint,
    epoch bigint not null,
    -- The highest format that somebody wrote in it.
    format integer not null
);
insert into shards select shard, null, 0, 1 from generate_series(0, 255) as shard;

create table executions (
    -- In the order of their starts; never shown outside.
    number bigint primary key,
    id text collate "C" not null unique,
    shard smallint not null,
    flow text collate "C" not null,
    version bigint not null,
    -- Nothing where it is the id: such a name needs no entry in the index of names.
    name text collate "C",
    -- See `statuses`.
    status smallint not null,
    awake boolean not null,
    wake_at bigint,
    started bigint not null,
    -- When it was asked for, where it did not begin at once.
    requested bigint,
    ended bigint,
    -- JSON.
    labels text,
    parent_execution text collate "C",
    parent_event bigint,
    -- The execution that began its family, and how many wait for one another down to it.
    root text collate "C",
    depth integer not null,
    awaited boolean not null,
    error text,
    cause text,
    step text,
    -- How often a process came to its end while it had the execution, and since when and why nobody goes on with it.
    attempts integer not null,
    broken_since bigint,
    broken text,
    -- JSON: what could not be undone, and the execution and event a fork goes on from.
    failed_undo text,
    forked text,
    -- A second start of the flow with the same key is this execution.
    once_key text collate "C",
    priority smallint,
    order_time bigint,
    -- Whether somebody is to be told of its end.
    watched boolean not null,
    -- The format of its history, where that is not the first one.
    format integer,
    -- Why it is not moving, and what of: a key, a queue, a step, an execution. Nothing while it is awake.
    reason smallint,
    reason_of text collate "C",
    -- JSON: since when, by whom and why, while it is paused.
    paused text
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);

create unique index executions_named on executions (flow, name) where name is not null;
create unique index executions_once on executions (flow, once_key) where once_key is not null;
create index executions_of_flow on executions (flow, number);
-- Nearly all executions succeed: that list is nearly the list of all.
create index executions_status on executions (status, number) where status <> 4;
create index executions_awake on executions (number) where awake;
create index executions_wake on executions (wake_at, number) where wake_at is not null and not awake;
create index executions_ended on executions (ended, number) where ended is not null;
create index executions_broken on executions (number) where broken is not null;
create index executions_of_parent on executions (parent_execution, number) where parent_execution is not null;
create index executions_of_root on executions (root, number) where root is not null;
create index executions_reason on executions (reason, number) where reason is not null and ended is null;
create index executions_reason_of on executions (reason, reason_of, number) where reason is not null and ended is null;

-- The words for codes, for people.
create table statuses (
    status smallint primary key,
    name text not null
);

create table labels (
    label text collate "C" not null,
    value text collate "C" not null,
    number bigint not null,
    primary key (label, value, number)
);
create index labels_of on labels (number);

-- One row a turn: the number of its first event, how many there are, and the events as JSON.
create table turns (
    number bigint not null,
    first integer not null,
    events integer not null,
    time bigint not null,
    text bytea not null,
    primary key (number, first)
);

-- Executions that were cleared away, but for turns that are still to be deleted: those of a long history go little by little.
create table cleared (
    number bigint primary key
);

-- The latest one of an execution.
create table checkpoints (
    number bigint primary key,
    event integer not null,
    state bytea not null
);

-- How executions begin or go on that wait to.
create table requests (
    number bigint primary key,
    kind text not null,
    text bytea not null
);

-- Sent and not dealt with, in the order they were sent.
create table messages (
    receiver text collate "C" not null,
    sender text collate "C" not null,
    event bigint not null,
    place bigint not null,
    body bytea not null,
    primary key (receiver, sender, event)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index messages_placed on messages (place);

-- Tasks in queues, by their execution and call.
create table tasks (
    number bigint not null,
    call integer not null,
    queue text collate "C" not null,
    -- 9 first.
    priority smallint not null,
    round bigint not null,
    ordered bigint not null,
    since bigint not null,
    wait_until bigint,
    timeout_ms bigint,
    heartbeat_ms bigint,
    message bytea not null,
    -- Who has it, since when, and how often it must be heard of.
    worker text,
    held bigint,
    lease_ms bigint,
    primary key (number, call)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index tasks_waiting on tasks (queue, priority desc, round, ordered, number, call) where worker is null;
create index tasks_overdue on tasks (wait_until, number, call) where wait_until is not null and worker is null;
create index tasks_held on tasks (number, call) where worker is not null;

-- Tasks that failed for good.
create table dead_tasks (
    number bigint not null,
    call integer not null,
    queue text collate "C" not null,
    step text not null,
    attempt integer not null,
    error text not null,
    cause text not null,
    time bigint not null,
    primary key (number, call)
);
create index dead_tasks_of_queue on dead_tasks (queue, number, call);

-- The end of what programs said, by the event that ended the attempt.
create table logs (
    number bigint not null,
    event integer not null,
    stream text not null,
    text bytea not null,
    primary key (number, event, stream)
);

-- What targets are still to be told. An execution may be cleared away before.
create table notices (
    target text collate "C" not null,
    execution text collate "C" not null,
    event bigint not null,
    due bigint not null,
    -- Whether it is the first kept of its execution for its target: the others wait for it.
    next boolean not null,
    failures integer not null,
    text bytea not null,
    primary key (target, execution, event)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index notices_due on notices (target, due, execution) where next;
create index notices_of on notices (execution);

-- Executions that wait to be admitted.
create table waiters (
    -- The number of the request.
    number bigint primary key,
    execution text collate "C" not null unique,
    -- The event under which it asked.
    event bigint not null,
    -- What it asked for, and its dependencies that are open; JSON.
    ask bytea not null,
    open bytea,
    -- The key in whose line it stands.
    pool text collate "C",
    key text collate "C",
    -- The smallest goes first, then the smallest `ordered`.
    rank smallint not null,
    ordered bigint not null,
    requested bigint not null,
    moves integer not null,
    claim bigint
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index waiters_line on waiters (pool, key, rank, ordered, number) where key is not null;
create index waiters_oldest on waiters (pool, key, requested, number) where key is not null;
create index waiters_claims on waiters (claim) where claim is not null;

-- Who holds a slot of which key.
create table slots (
    pool text collate "C" not null,
    key text collate "C" not null,
    execution text collate "C" not null,
    primary key (pool, key, execution)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index slots_of_execution on slots (execution);

-- What is known of keys, apart from their holders.
create table keys (
    pool text collate "C" not null,
    key text collate "C" not null,
    -- The limit of the definition, and the one that an operator set.
    defined bigint,
    set_to bigint,
    set_by text,
    -- Who paused it, and since when.
    paused_by text,
    paused_since bigint,
    -- Whether its line is still to be looked at.
    stale boolean not null,
    primary key (pool, key)
);
create index keys_stale on keys (pool, key) where stale;

-- What waiters wait for to end, by the number of the waiter. `bound` is the id of the execution, once there is one.
create table dependencies (
    waiter bigint not null,
    -- Empty if `name` is an id.
    flow text collate "C" not null,
    name text collate "C" not null,
    bound text collate "C",
    primary key (waiter, flow, name)
);
create index dependencies_named on dependencies (flow, name, waiter) where bound is null;
create index dependencies_unbound on dependencies (waiter) where bound is null;
create index dependencies_bound on dependencies (bound, waiter) where bound is not null;

-- The executions above waiters that wait for them.
create table waiter_ancestors (
    execution text collate "C" not null,
    waiter bigint not null,
    primary key (execution, waiter)
);
create index waiter_ancestors_of on waiter_ancestors (waiter);

create table bulk_jobs (
    place bigint generated always as identity primary key,
    id text collate "C" not null unique,
    action text not null,
    -- JSON, like the filter.
    arguments bytea not null,
    filter bytea not null,
    by text not null,
    created bigint not null,
    -- 0 collecting, 1 running, 2 suspended, 3 done, 4 cancelled.
    state smallint not null,
    items bigint not null default 0,
    done bigint not null default 0,
    skipped bigint not null default 0,
    failed bigint not null default 0,
    -- Items a second at most.
    rate bigint,
    ended bigint
);
create index bulk_jobs_open on bulk_jobs (place) where state < 3;

create table bulk_items (
    job text collate "C" not null,
    n bigint not null,
    execution text collate "C" not null,
    -- Nothing until it is dealt with.
    result text collate "C",
    primary key (job, n)
);
create index bulk_items_open on bulk_items (job, n) where result is null;

-- What operators did, in the order in which it was done. It is only added to, and shortened from the front.
create table audit (
    number bigint generated always as identity primary key,
    time bigint not null,
    by text collate "C" not null,
    action text collate "C" not null,
    -- What it was done to: execution, flow, queue, schedule.
    kind text collate "C" not null,
    name text collate "C" not null,
    -- JSON, an object.
    detail bytea not null,
    request text
);
create index audit_time on audit (time, number);
create index audit_by on audit (by, number);
create index audit_of on audit (name, number);

create table flows (
    name text collate "C" not null,
    version bigint not null,
    hash text not null,
    definition bytea not null,
    created bigint not null,
    hidden boolean not null,
    primary key (name, version)
);

create table shelf (
    kind text collate "C" not null,
    name text collate "C" not null,
    text bytea not null,
    primary key (kind, name)
);

create view executions_readable as
select e.id, e.flow, e.version, coalesce(e.name, e.id) as name, s.name as status, e.awake,
    to_timestamp(e.wake_at / 1000.0) as wake_at, to_timestamp(e.started / 1000.0) as started,
    to_timestamp(e.ended / 1000.0) as ended, e.labels, e.parent_execution, e.parent_event, e.error, e.cause, e.step, e.number
from executions as e left join statuses as s on s.status = e.status;

create view tasks_readable as
select t.queue, e.id as execution, t.call, e.flow, t.priority, t.round, to_timestamp(t.since / 1000.0) as since,
    t.worker, to_timestamp(t.held / 1000.0) as held, convert_from(t.message, 'UTF8') as message
from tasks as t join executions as e on e.number = t.number;

-- Turns have short names for types and members of details.
create table event_types (
    short text primary key,
    name text not null
);
create table detail_members (
    short text primary key,
    name text not null
);

-- Every event. Ask for one execution: `select * from events where execution = '…'`.
create view events as
select e.id as execution, t.first + v.place - 1 as event,
    coalesce((v.value ->> 'c')::bigint, t.first + v.place - 2) as caused_by, to_timestamp(t.time / 1000.0) as time,
    coalesce(v.value -> 's', '""') as step, v.value -> 'p' as path,
    coalesce((select name from event_types where short = v.value ->> 'y'), v.value ->> 'y') as type,
    v.value -> 'd' as detail, v.value -> 'r' as rollback
from executions as e
    join turns as t on t.number = e.number
    cross join json_array_elements(convert_from(t.text, 'UTF8')::json) with ordinality as v (value, place);
