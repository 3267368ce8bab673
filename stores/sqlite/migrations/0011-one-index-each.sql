-- Each index that a commit changes is a page in the log. A task of a queue is always in one index: first among those that
-- wait (no `held`), then among those that are held.
DROP INDEX tasks_waiting;
DROP INDEX tasks_held;
CREATE INDEX tasks_line ON tasks (held, queue, priority DESC, round, ordered);
-- An execution that sleeps has a time to wake (and no `ended`), one that has ended has the time of its end.
DROP INDEX executions_wake;
DROP INDEX executions_ended;
CREATE INDEX executions_times ON executions (ended, wake_at) WHERE ended IS NOT NULL OR wake_at IS NOT NULL;
