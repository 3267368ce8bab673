-- What targets are still to be told. An execution may be cleared away before.
CREATE TABLE notices (
    target TEXT NOT NULL,
    execution TEXT NOT NULL,
    event INTEGER NOT NULL,
    due INTEGER NOT NULL,
    -- Whether it is the first kept of its execution for its target: the others wait for it.
    next INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (target, execution, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX notices_due ON notices (target, due) WHERE next = 1;
