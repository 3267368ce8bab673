//! Migrating a store to the current format: numbered SQL files, each run once, all in one transaction.

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use starbridge_flow::fnv::fnv1a_64;
use starbridge_machine::history::{SHORT_KEYS, SHORT_TYPES};
use starbridge_ports::STATUS_CODES;

/// The steps from an empty file to the current format, in order. A released one is never changed:
/// the store keeps its checksum.
const MIGRATIONS: [&str; 12] = [
    include_str!("../migrations/0001-first.sql"),
    include_str!("../migrations/0002-queues.sql"),
    include_str!("../migrations/0003-notices.sql"),
    include_str!("../migrations/0004-origins.sql"),
    include_str!("../migrations/0005-broken.sql"),
    include_str!("../migrations/0006-shown.sql"),
    include_str!("../migrations/0007-order.sql"),
    include_str!("../migrations/0008-paused.sql"),
    include_str!("../migrations/0009-admission.sql"),
    include_str!("../migrations/0010-reasons.sql"),
    include_str!("../migrations/0011-one-index-each.sql"),
    include_str!("../migrations/0012-owners.sql"),
];

/// Identifies the file as ours: "Stbr".
pub(crate) const APPLICATION_ID: i32 = 0x5374_6272;

pub(crate) enum MigrateError {
    Sqlite(rusqlite::Error),
    Newer { found: u32, known: u32 },
    Altered(u32),
}

impl From<rusqlite::Error> for MigrateError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

pub(crate) fn bring_up(connection: &mut Connection) -> Result<(), MigrateError> {
    bring_up_by(connection, &MIGRATIONS)
}

fn bring_up_by(connection: &mut Connection, migrations: &[&str]) -> Result<(), MigrateError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: u32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
    if found > known {
        return Err(MigrateError::Newer { found, known });
    }
    transaction.execute_batch(
        "CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, checksum TEXT NOT NULL, time INTEGER NOT NULL) STRICT",
    )?;
    for (number, sql) in (1..).zip(migrations) {
        let checksum = checksum(sql);
        if number <= found {
            let kept: Option<String> = transaction
                .query_row("SELECT checksum FROM migrations WHERE number = ?1", [number], |row| {
                    row.get(0)
                })
                .optional()?;
            if kept.is_none_or(|kept| kept != checksum) {
                return Err(MigrateError::Altered(number));
            }
            continue;
        }
        transaction.execute_batch(sql)?;
        transaction.execute(
            "INSERT INTO migrations VALUES (?1, ?2, CAST(unixepoch('subsec') * 1000 AS INTEGER))",
            (number, checksum),
        )?;
    }
    if found < known {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", known)?;
    }
    name_codes(&transaction)?;
    transaction.commit()?;
    Ok(())
}

/// Fills the tables from which the views take the words for codes. A later version may have more
/// codes than the version that created the store.
fn name_codes(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    for (code, status) in (0_i64..).zip(STATUS_CODES) {
        transaction.execute(
            "INSERT INTO statuses (status, name) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            (code, status.as_str()),
        )?;
    }
    let names = [
        (
            "INSERT INTO event_types VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            SHORT_TYPES,
        ),
        (
            "INSERT INTO detail_members VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            SHORT_KEYS,
        ),
    ];
    for (sql, table) in names {
        let mut statement = transaction.prepare(sql)?;
        for (long, short) in table {
            statement.execute([short, long])?;
        }
    }
    Ok(())
}

/// Detects accidental changes.
fn checksum(text: &str) -> String {
    format!("{:016x}", fnv1a_64(text.bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing;
    use starbridge_flow::time::Timestamp;
    use starbridge_ports::ShardSet;

    const FIRST: &str = "CREATE TABLE statuses (status INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE event_types (short TEXT PRIMARY KEY, name TEXT);
        CREATE TABLE detail_members (short TEXT PRIMARY KEY, name TEXT);
        CREATE TABLE one (a); INSERT INTO one VALUES (1);";

    fn numbers(connection: &Connection, sql: &str) -> Vec<i64> {
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    }

    #[test]
    fn migration_keeps_what_an_older_store_has() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert!(bring_up_by(&mut connection, &[FIRST]).is_ok());
        assert!(bring_up_by(&mut connection, &[FIRST, "ALTER TABLE one ADD COLUMN b DEFAULT 2"]).is_ok());
        assert_eq!(numbers(&connection, "SELECT a + b FROM one"), [3]);
        assert_eq!(numbers(&connection, "PRAGMA user_version"), [2]);
        assert_eq!(numbers(&connection, "SELECT number FROM migrations"), [1, 2]);
        assert!(matches!(
            bring_up_by(&mut connection, &[FIRST]),
            Err(MigrateError::Newer { found: 2, known: 1 })
        ));
    }

    #[test]
    fn migration_of_ancestors_to_root_and_depth() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert!(bring_up_by(&mut connection, &MIGRATIONS[..3]).is_ok());
        for (number, ancestors, awaited) in [
            (1, "NULL", 0),
            (2, r#"'["one"]'"#, 1),
            (3, r#"'["two","one"]'"#, 1),
            (4, r#"'["three","two","one"]'"#, 0),
        ] {
            let sql = format!(
                "INSERT INTO executions (number, id, shard, flow, version, status, awake, started, awaited, ancestors)
                 VALUES ({number}, 'id{number}', 0, 'f', 1, 1, 1, 0, {awaited}, {ancestors})"
            );
            connection.execute_batch(&sql).unwrap();
        }
        assert!(bring_up(&mut connection).is_ok());
        assert_eq!(
            numbers(&connection, "SELECT depth FROM executions ORDER BY number"),
            [0, 1, 2, 0]
        );
        let of_one = "SELECT number FROM executions WHERE root = 'one' AND ancestors IS NULL ORDER BY number";
        assert_eq!(numbers(&connection, of_one), [2, 3, 4]);
    }

    #[test]
    fn migration_to_order_keeps_executions_and_messages() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert!(bring_up_by(&mut connection, &MIGRATIONS[..6]).is_ok());
        let sql = "INSERT INTO executions (number, id, shard, flow, version, status, awake, started, awaited, priority, depth)
             VALUES (7, 'e', 0, 'f', 1, 1, 1, 5, 0, 3, 2);
             INSERT INTO messages (receiver, sender, event, body) VALUES ('e', 'p', 4, '1'), ('e', 'p', 9, '2')";
        connection.execute_batch(sql).unwrap();
        assert!(bring_up(&mut connection).is_ok());
        let one = "SELECT number + priority + depth FROM executions
             WHERE requested IS NULL AND once_key IS NULL AND watched = 0 AND format IS NULL AND reason IS NULL";
        assert_eq!(numbers(&connection, one), [12]);
        assert_eq!(
            numbers(&connection, "SELECT event FROM messages WHERE part = 0 ORDER BY place"),
            [4, 9]
        );
        for table in [
            "requests",
            "waiters",
            "slots",
            "keys",
            "dependencies",
            "bulk_jobs",
            "bulk_items",
            "audit",
            "logs",
        ] {
            assert_eq!(numbers(&connection, &format!("SELECT count(*) FROM {table}")), [0]);
        }
    }

    #[test]
    fn migration_to_pauses_knows_why_executions_wait() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert!(bring_up_by(&mut connection, &MIGRATIONS[..7]).is_ok());
        for (number, status, broken, ended) in [
            (1, 1, "NULL", "NULL"),
            (2, 2, "NULL", "NULL"),
            (3, 10, "NULL", "NULL"),
            (4, 2, "'why'", "NULL"),
            (5, 5, "NULL", "9"),
        ] {
            let sql = format!(
                "INSERT INTO executions (number, id, shard, flow, version, status, awake, started, awaited, depth, broken, ended)
                 VALUES ({number}, 'id{number}', 0, 'f', 1, {status}, 1, 0, 0, 0, {broken}, {ended})"
            );
            connection.execute_batch(&sql).unwrap();
        }
        assert!(bring_up(&mut connection).is_ok());
        let reasons = "SELECT coalesce(reason, 0) FROM executions ORDER BY number";
        assert_eq!(numbers(&connection, reasons), [0, 7, 1, 20, 0]);
        assert_eq!(
            numbers(&connection, "SELECT count(*) FROM executions WHERE paused IS NULL"),
            [5]
        );
    }

    #[test]
    fn migration_to_fewer_indexes_finds_the_same() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert!(bring_up_by(&mut connection, &MIGRATIONS[..10]).is_ok());
        for (number, awake, wake_at, ended) in [
            (1, 0, "70", "NULL"),
            (2, 0, "50", "NULL"),
            (3, 1, "NULL", "NULL"),
            (4, 0, "NULL", "9"),
        ] {
            let sql = format!(
                "INSERT INTO executions (number, id, shard, flow, version, status, awake, wake_at, started, awaited, depth, ended)
                 VALUES ({number}, 'id{number}', 0, 'f', 1, 1, {awake}, {wake_at}, 0, 0, 0, {ended});
                 INSERT INTO tasks (place, queue, priority, round, ordered, since, message)
                 VALUES (({number} << 24) | 2, 'q', {number}, 0, 0, 0, '');"
            );
            connection.execute_batch(&sql).unwrap();
        }
        let held =
            "UPDATE tasks SET worker = 'w', held = 3, lease_ms = 1 WHERE place IN ((3 << 24) | 2, (1 << 24) | 2)";
        connection.execute_batch(held).unwrap();
        assert!(bring_up(&mut connection).is_ok());
        let due = crate::load::due(&connection, &ShardSet::ALL, Timestamp(80), 10).unwrap();
        assert_eq!(due, [(Timestamp(50), "id2".into()), (Timestamp(70), "id1".into())]);
        let next = queueing::next(&connection, "q", 10).unwrap();
        assert_eq!(
            next.iter().map(|task| task.execution.as_str()).collect::<Vec<_>>(),
            ["id4", "id2"]
        );
        let leased = queueing::leased(&connection, &ShardSet::ALL).unwrap();
        assert_eq!(
            leased
                .iter()
                .map(|(task, _)| task.execution.as_str())
                .collect::<Vec<_>>(),
            ["id1", "id3"]
        );
    }

    #[test]
    fn migration_to_owners_begins_with_the_first_incarnation() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert!(bring_up_by(&mut connection, &MIGRATIONS[..11]).is_ok());
        assert!(bring_up(&mut connection).is_ok());
        assert_eq!(numbers(&connection, "SELECT last FROM incarnations"), [0]);
    }

    #[test]
    fn migration_that_fails_leaves_the_store_as_it_was() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert!(bring_up_by(&mut connection, &[FIRST]).is_ok());
        let steps = [FIRST, "UPDATE one SET a = 5", "NONSENSE"];
        assert!(matches!(
            bring_up_by(&mut connection, &steps),
            Err(MigrateError::Sqlite(_))
        ));
        assert_eq!(numbers(&connection, "SELECT a FROM one"), [1]);
        assert_eq!(numbers(&connection, "PRAGMA user_version"), [1]);
    }

    #[test]
    fn migration_that_was_changed_afterwards_is_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert!(bring_up_by(&mut connection, &[FIRST]).is_ok());
        let changed = format!("{FIRST} ");
        assert!(matches!(
            bring_up_by(&mut connection, &[&changed]),
            Err(MigrateError::Altered(1))
        ));
    }
}
