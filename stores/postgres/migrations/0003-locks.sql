-- Who may update this table is taken at its word when it says with a lock that it has the store. Programs of earlier formats
-- look for one number that anybody could lock.
comment on table writers is 'who writes: a lock counts only of a role that may update this';
