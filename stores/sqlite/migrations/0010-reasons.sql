-- Each index costs with each task. The reasons stand beside the statuses, whose index is written with an execution anyway.
DROP INDEX executions_reason;
DROP INDEX executions_reason_of;
DROP INDEX executions_status;
UPDATE executions SET reason = NULL, reason_of = NULL WHERE ended IS NOT NULL AND reason IS NOT NULL;
-- Lists by status and reason. Nearly all executions succeed: that list is nearly the list of all.
CREATE INDEX executions_status ON executions (status, reason) WHERE status <> 4;
