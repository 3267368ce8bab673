-- Pauses, and why executions are not moving.

-- JSON: since when, by whom and why, while the execution is paused.
ALTER TABLE executions ADD COLUMN paused TEXT;

-- The reasons that records say, of what has not ended: 20 broken, 7 manual, 1 the time of the start.
UPDATE executions SET reason = CASE
    WHEN broken IS NOT NULL THEN 20
    WHEN status = 2 THEN 7
    WHEN status = 10 THEN 1
END
WHERE ended IS NULL AND (broken IS NOT NULL OR status IN (2, 10));
