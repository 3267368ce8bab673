-- Tasks in queues. `place` is the execution's number times 2^24 and the number of the call.
CREATE TABLE tasks (
    place INTEGER PRIMARY KEY,
    queue TEXT NOT NULL,
    -- 9 first.
    priority INTEGER NOT NULL,
    round INTEGER NOT NULL,
    -- When the execution began.
    ordered INTEGER NOT NULL,
    since INTEGER NOT NULL,
    wait_until INTEGER,
    timeout_ms INTEGER,
    heartbeat_ms INTEGER,
    message TEXT NOT NULL,
    -- Who has it, since when, and how often it must be heard of.
    worker TEXT,
    held INTEGER,
    lease_ms INTEGER
) STRICT;
-- What is to be taken next.
CREATE INDEX tasks_waiting ON tasks (queue, priority DESC, round, ordered, place) WHERE worker IS NULL;
-- What has waited too long.
CREATE INDEX tasks_overdue ON tasks (wait_until) WHERE wait_until IS NOT NULL AND worker IS NULL;
-- What somebody has, for a start.
CREATE INDEX tasks_held ON tasks (place) WHERE worker IS NOT NULL;

-- Tasks that failed for good, by the same places.
CREATE TABLE dead_tasks (
    place INTEGER PRIMARY KEY,
    queue TEXT NOT NULL,
    step TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    error TEXT NOT NULL,
    cause TEXT NOT NULL,
    time INTEGER NOT NULL
) STRICT;
CREATE INDEX dead_tasks_of_queue ON dead_tasks (queue, place);

CREATE VIEW tasks_readable AS
SELECT t.queue, e.id AS execution, t.place & 16777215 AS call, e.flow, t.priority, t.round,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.since / 1000.0, 'unixepoch') AS since,
    t.worker, strftime('%Y-%m-%dT%H:%M:%fZ', t.held / 1000.0, 'unixepoch') AS held, t.message
FROM tasks AS t JOIN executions AS e ON e.number = t.place >> 24;
