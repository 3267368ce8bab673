-- How often a process came to its end while it had the execution, and since when and why nobody goes on with it.
ALTER TABLE executions ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN broken_since INTEGER;
ALTER TABLE executions ADD COLUMN broken TEXT;
CREATE INDEX executions_broken ON executions (number) WHERE broken IS NOT NULL;
