-- What decides when an execution may run, and what operators do.

ALTER TABLE executions DROP COLUMN start_at;
ALTER TABLE executions DROP COLUMN after;
ALTER TABLE executions DROP COLUMN keys;
-- When it was asked for, where it did not begin at once.
ALTER TABLE executions ADD COLUMN requested INTEGER;
-- A second start of the flow with the same key is this execution.
ALTER TABLE executions ADD COLUMN once_key TEXT;
-- Whether somebody is to be told of its end.
ALTER TABLE executions ADD COLUMN watched INTEGER NOT NULL DEFAULT 0;
-- The format of its history, where that is not the first one.
ALTER TABLE executions ADD COLUMN format INTEGER;
-- Why it is not moving, and what of: a key, a queue, a step, an execution.
ALTER TABLE executions ADD COLUMN reason INTEGER;
ALTER TABLE executions ADD COLUMN reason_of TEXT;

CREATE UNIQUE INDEX executions_once ON executions (flow, once_key) WHERE once_key IS NOT NULL;
CREATE INDEX executions_of_parent ON executions (parent_execution) WHERE parent_execution IS NOT NULL;
CREATE INDEX executions_of_root ON executions (root) WHERE root IS NOT NULL;
CREATE INDEX executions_reason ON executions (reason) WHERE reason IS NOT NULL AND ended IS NULL;
CREATE INDEX executions_reason_of ON executions (reason, reason_of) WHERE reason IS NOT NULL AND ended IS NULL;

-- Starts, redrives and forks that are not carried out yet, by the number of their execution.
CREATE TABLE requests (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    -- The status to go back to, of an execution that has ended before.
    former INTEGER
) STRICT;

-- Executions that wait to be admitted.
CREATE TABLE waiters (
    number INTEGER PRIMARY KEY,
    -- 0 blocked, 1 queued, 2 paused.
    state INTEGER NOT NULL,
    -- The key in whose line it stands.
    parked_at INTEGER,
    -- 9 first; then the smaller `ordered`.
    priority INTEGER NOT NULL,
    ordered INTEGER NOT NULL,
    requested INTEGER NOT NULL,
    -- How many of its dependencies are open.
    missing INTEGER NOT NULL DEFAULT 0,
    moves INTEGER NOT NULL DEFAULT 0,
    claim INTEGER
) STRICT;
CREATE INDEX waiters_line ON waiters (parked_at, priority DESC, ordered, number);
CREATE INDEX waiters_oldest ON waiters (parked_at, requested);
CREATE INDEX waiters_claims ON waiters (claim) WHERE claim IS NOT NULL;

-- Who holds a place of which key.
CREATE TABLE slots (
    key INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (key, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX slots_of_execution ON slots (number);

CREATE TABLE keys (
    id INTEGER PRIMARY KEY,
    pool TEXT NOT NULL,
    key TEXT NOT NULL,
    "limit" INTEGER NOT NULL,
    -- Who set the limit; nothing where it is that of a definition.
    set_by TEXT,
    -- Whether its line is to be looked at.
    stale INTEGER NOT NULL DEFAULT 0,
    UNIQUE (pool, key)
) STRICT;
CREATE INDEX keys_stale ON keys (id) WHERE stale = 1;

-- What waiters wait for to end.
CREATE TABLE dependencies (
    waiter INTEGER NOT NULL,
    flow TEXT NOT NULL,
    -- A name or an id.
    name TEXT NOT NULL,
    -- Whether any end will do.
    any_end INTEGER NOT NULL DEFAULT 0,
    -- The id of the execution, once there is one.
    bound TEXT,
    PRIMARY KEY (waiter, flow, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX dependencies_named ON dependencies (flow, name);
CREATE INDEX dependencies_bound ON dependencies (bound) WHERE bound IS NOT NULL;

CREATE TABLE bulk_jobs (
    id TEXT PRIMARY KEY,
    action TEXT NOT NULL,
    -- JSON, like the filter.
    arguments TEXT NOT NULL,
    filter TEXT NOT NULL,
    by TEXT NOT NULL,
    created INTEGER NOT NULL,
    -- 0 collecting, 1 running, 2 suspended, 3 done, 4 cancelled.
    state INTEGER NOT NULL,
    items INTEGER NOT NULL DEFAULT 0,
    done INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    -- Items a second at most.
    rate INTEGER,
    ended INTEGER
) STRICT;
CREATE INDEX bulk_jobs_created ON bulk_jobs (created);
CREATE INDEX bulk_jobs_open ON bulk_jobs (state) WHERE state < 3;

CREATE TABLE bulk_items (
    job TEXT NOT NULL,
    n INTEGER NOT NULL,
    execution TEXT NOT NULL,
    -- Nothing until it is dealt with.
    result TEXT,
    PRIMARY KEY (job, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX bulk_items_open ON bulk_items (job, n) WHERE result IS NULL;

-- What operators did, in the order in which it was done. It is only added to, and shortened from the front.
CREATE TABLE audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    time INTEGER NOT NULL,
    by TEXT NOT NULL,
    action TEXT NOT NULL,
    -- What it was done to: execution, flow, queue, schedule.
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    -- JSON, an object.
    detail TEXT NOT NULL,
    request TEXT
) STRICT;
CREATE INDEX audit_time ON audit (time);
CREATE INDEX audit_by ON audit (by);
CREATE INDEX audit_of ON audit (name);

-- The end of what programs said, by the number of their execution and the event that ended the attempt.
CREATE TABLE logs (
    number INTEGER NOT NULL,
    event INTEGER NOT NULL,
    stream TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (number, event, stream)
) STRICT;

-- An execution may say several things after one event: `part` numbers them.
CREATE TABLE messages_in_parts (
    place INTEGER PRIMARY KEY,
    receiver TEXT NOT NULL,
    sender TEXT NOT NULL,
    event INTEGER NOT NULL,
    part INTEGER NOT NULL DEFAULT 0,
    body TEXT NOT NULL,
    UNIQUE (receiver, sender, event, part)
) STRICT;
INSERT INTO messages_in_parts (place, receiver, sender, event, body)
SELECT place, receiver, sender, event, body FROM messages;
DROP TABLE messages;
ALTER TABLE messages_in_parts RENAME TO messages;
