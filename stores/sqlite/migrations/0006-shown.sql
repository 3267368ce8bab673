-- What executions are shown with: JSON, where there is something.
-- What could not be undone: {"step", "error", "cause", "left"}.
ALTER TABLE executions ADD COLUMN failed_undo TEXT;
-- The execution and event a fork goes on from: {"execution", "event"}.
ALTER TABLE executions ADD COLUMN forked TEXT;
