-- Nothing was kept in these tables so far. Admission knows executions by their ids and keys by their names.
DROP TABLE waiters;
DROP TABLE slots;
DROP TABLE keys;
DROP TABLE dependencies;

-- Executions that wait to be admitted.
CREATE TABLE waiters (
    -- The number of the request.
    number INTEGER PRIMARY KEY,
    execution TEXT NOT NULL UNIQUE,
    -- The event under which it asked.
    event INTEGER NOT NULL,
    -- What it asked for; JSON.
    ask TEXT NOT NULL,
    -- Its dependencies that are open; JSON. Nothing if there are none.
    open TEXT,
    -- The key in whose line it stands.
    pool TEXT,
    key TEXT,
    -- The smallest goes first, then the smallest `ordered`.
    rank INTEGER NOT NULL,
    ordered INTEGER NOT NULL,
    requested INTEGER NOT NULL,
    moves INTEGER NOT NULL,
    claim INTEGER
) STRICT;
CREATE INDEX waiters_line ON waiters (pool, key, rank, ordered, number) WHERE key IS NOT NULL;
CREATE INDEX waiters_oldest ON waiters (pool, key, requested, number) WHERE key IS NOT NULL;
CREATE INDEX waiters_claims ON waiters (claim) WHERE claim IS NOT NULL;

-- Who holds a slot of which key.
CREATE TABLE slots (
    pool TEXT NOT NULL,
    key TEXT NOT NULL,
    execution TEXT NOT NULL,
    PRIMARY KEY (pool, key, execution)
) STRICT, WITHOUT ROWID;
CREATE INDEX slots_of_execution ON slots (execution);

-- What is known of keys, apart from their holders.
CREATE TABLE keys (
    pool TEXT NOT NULL,
    key TEXT NOT NULL,
    -- The limit of the definition, and the one that an operator set.
    defined INTEGER,
    "limit" INTEGER,
    set_by TEXT,
    -- Who paused it, and since when.
    paused_by TEXT,
    paused_since INTEGER,
    -- Whether its line is still to be looked at.
    stale INTEGER NOT NULL,
    PRIMARY KEY (pool, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX keys_stale ON keys (pool, key) WHERE stale = 1;

-- What waiters wait for to end, by the number of the waiter. `bound` is the id of the execution, once there is one.
CREATE TABLE dependencies (
    waiter INTEGER NOT NULL,
    -- Empty if `name` is an id.
    flow TEXT NOT NULL,
    name TEXT NOT NULL,
    bound TEXT,
    PRIMARY KEY (waiter, flow, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX dependencies_named ON dependencies (flow, name, waiter) WHERE bound IS NULL;
CREATE INDEX dependencies_bound ON dependencies (bound, waiter) WHERE bound IS NOT NULL;

-- The executions above waiters that wait for them.
CREATE TABLE waiter_ancestors (
    execution TEXT NOT NULL,
    waiter INTEGER NOT NULL,
    PRIMARY KEY (execution, waiter)
) STRICT, WITHOUT ROWID;
CREATE INDEX waiter_ancestors_of ON waiter_ancestors (waiter);
