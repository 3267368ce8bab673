-- A child is known by its parent, the execution that began its family, and how many executions wait for one another down to it.
-- The list of all that came before it grew with each level: `ancestors` is empty from now on.
ALTER TABLE executions ADD COLUMN root TEXT;
ALTER TABLE executions ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;
UPDATE executions SET root = ancestors ->> '$[#-1]', depth = CASE awaited WHEN 1 THEN json_array_length(ancestors) ELSE 0 END,
    ancestors = NULL
WHERE ancestors IS NOT NULL;
