-- Lists of the children of an execution, and of its whole family, the newest first.
CREATE INDEX executions_of_parent ON executions (parent_execution) WHERE parent_execution IS NOT NULL;
CREATE INDEX executions_of_root ON executions (root) WHERE root IS NOT NULL;
