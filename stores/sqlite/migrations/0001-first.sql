-- Times are milliseconds since 1970. The views show them, and the histories, in a form for people.

-- Version of the whole, number of shards: what never changes once the store is made.
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('shards', '256');

CREATE TABLE executions (
    -- In the order of their starts; never shown outside.
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    shard INTEGER NOT NULL,
    flow TEXT NOT NULL,
    version INTEGER NOT NULL,
    -- Nothing where it is the id: such a name needs no entry in the index of names.
    name TEXT,
    -- See `statuses`.
    status INTEGER NOT NULL,
    awake INTEGER NOT NULL,
    wake_at INTEGER,
    started INTEGER NOT NULL,
    ended INTEGER,
    labels TEXT,
    parent_execution TEXT,
    parent_event INTEGER,
    -- JSON, like the labels.
    ancestors TEXT,
    awaited INTEGER NOT NULL,
    error TEXT,
    cause TEXT,
    step TEXT,
    -- Room for what decides when an execution is let in. Nothing writes these yet.
    priority INTEGER,
    order_time INTEGER,
    start_at INTEGER,
    after TEXT,
    keys TEXT
) STRICT;

-- Names are unique in their flow.
CREATE UNIQUE INDEX executions_named ON executions (flow, name) WHERE name IS NOT NULL;
-- Lists of one flow, the newest first.
CREATE INDEX executions_of_flow ON executions (flow);
-- Lists by status. Nearly all executions succeed: that list is nearly the list of all.
CREATE INDEX executions_status ON executions (status) WHERE status <> 4;
-- What a start takes up again.
CREATE INDEX executions_awake ON executions (number) WHERE awake = 1;
-- Whom to wake next.
CREATE INDEX executions_wake ON executions (wake_at) WHERE wake_at IS NOT NULL AND awake = 0;
-- What has been kept long enough.
CREATE INDEX executions_ended ON executions (ended) WHERE ended IS NOT NULL;

-- How many executions there are in each status.
CREATE TABLE statuses (
    status INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    executions INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE labels (
    label TEXT NOT NULL,
    value TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (label, value, number)
) STRICT, WITHOUT ROWID;

-- One row a turn, in the order they were appended: however many executions go on side by side, a batch writes few pages.
-- `place` is the execution's number times 2^24 and the number of the turn's first event: the index leads to an execution's
-- turns in order.
CREATE TABLE turns (
    row INTEGER PRIMARY KEY,
    place INTEGER NOT NULL,
    events INTEGER NOT NULL,
    time INTEGER NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX turns_placed ON turns (place);

-- Executions that were cleared away, but for turns that are still to be deleted: those of a long history go little by little.
CREATE TABLE cleared (
    number INTEGER PRIMARY KEY
) STRICT;

-- The latest one of an execution.
CREATE TABLE checkpoints (
    number INTEGER PRIMARY KEY,
    event INTEGER NOT NULL,
    state BLOB NOT NULL
) STRICT;

-- Sent and not dealt with, in the order they were sent.
CREATE TABLE messages (
    place INTEGER PRIMARY KEY,
    receiver TEXT NOT NULL,
    sender TEXT NOT NULL,
    event INTEGER NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (receiver, sender, event)
) STRICT;

CREATE TABLE flows (
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    hash TEXT NOT NULL,
    definition TEXT NOT NULL,
    created INTEGER NOT NULL,
    hidden INTEGER NOT NULL,
    PRIMARY KEY (name, version)
) STRICT;

CREATE TABLE shelf (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE VIEW executions_readable AS
SELECT e.id, e.flow, e.version, coalesce(e.name, e.id) AS name, s.name AS status, e.awake,
    strftime('%Y-%m-%dT%H:%M:%fZ', e.wake_at / 1000.0, 'unixepoch') AS wake_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', e.started / 1000.0, 'unixepoch') AS started,
    strftime('%Y-%m-%dT%H:%M:%fZ', e.ended / 1000.0, 'unixepoch') AS ended,
    e.labels, e.parent_execution, e.parent_event, e.error, e.cause, e.step, e.number
FROM executions AS e LEFT JOIN statuses AS s ON s.status = e.status;

-- Turns have short names for types and members of details.
CREATE TABLE event_types (
    short TEXT PRIMARY KEY,
    name TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE detail_members (
    short TEXT PRIMARY KEY,
    name TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Every event in the form that is exported. Ask for one execution: `SELECT * FROM events WHERE execution = '…'`.
CREATE VIEW events AS
SELECT e.id AS execution,
    (t.place & 16777215) + v.key AS event,
    coalesce(v.value ->> '$.c', (t.place & 16777215) + v.key - 1) AS caused_by,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.time / 1000.0, 'unixepoch') AS time,
    coalesce(v.value ->> '$.s', '') AS step,
    (SELECT json_group_array(json_object(
            'step', p.value ->> '$[0]',
            CASE p.value ->> '$[1]' WHEN 'b' THEN 'branch' WHEN 'i' THEN 'iteration' ELSE 'arm' END, p.value -> '$[2]'))
        FROM json_each(v.value, '$.p') AS p) AS path,
    coalesce((SELECT name FROM event_types WHERE short = v.value ->> '$.y'), v.value ->> '$.y') AS type,
    (SELECT json_group_object(
            coalesce((SELECT name FROM detail_members WHERE short = d.key), d.key), v.value -> d.fullkey)
        FROM json_each(v.value, '$.d') AS d) AS detail,
    coalesce(v.value ->> '$.r', 0) AS rollback
FROM executions AS e
    JOIN turns AS t ON t.place BETWEEN e.number << 24 AND (e.number << 24) + 16777215
    JOIN json_each(t.text) AS v;
