-- The number of the last incarnation, which no later one may have: epochs begin with it. Who has which shard is known to the
-- process that has the file, and to nobody after it.
CREATE TABLE incarnations (last INTEGER NOT NULL) STRICT;
INSERT INTO incarnations VALUES (0);
