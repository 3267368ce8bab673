-- Lists of the children of an execution, and of its whole family, the newest first.
CREATE INDEX executions_of_parent ON executions (parent_execution) WHERE parent_execution IS NOT NULL;
CREATE INDEX executions_of_root ON executions (root) WHERE root IS NOT NULL;

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
