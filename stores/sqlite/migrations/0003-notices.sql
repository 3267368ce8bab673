-- What targets are still to be told, in the order it was appended. An execution may be cleared away before.
CREATE TABLE notices (
    place INTEGER PRIMARY KEY,
    target TEXT NOT NULL,
    execution TEXT NOT NULL,
    event INTEGER NOT NULL,
    due INTEGER NOT NULL,
    -- Whether it is the first kept of its execution for its target: the others wait for it.
    next INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (target, execution, event)
) STRICT;
CREATE INDEX notices_due ON notices (target, due, place) WHERE next = 1;
