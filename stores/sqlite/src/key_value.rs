//! Small texts by kind and name.

use crate::audit;
use rusqlite::{Connection, OptionalExtension};
use starbridge_ports::AuditEntry;

pub(crate) fn put_value(
    connection: &Connection,
    kind: &str,
    name: &str,
    text: &str,
    entry: Option<&AuditEntry>,
) -> rusqlite::Result<()> {
    audit::add(connection, entry)?;
    connection
        .prepare_cached("INSERT OR REPLACE INTO shelf VALUES (?1, ?2, ?3)")?
        .execute([kind, name, text])
        .map(drop)
}

pub(crate) fn put_new_value(connection: &Connection, kind: &str, name: &str, text: &str) -> rusqlite::Result<String> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO shelf VALUES (?1, ?2, ?3)")?
        .execute([kind, name, text])?;
    Ok(get_value(connection, kind, name)?.unwrap_or_default())
}

pub(crate) fn get_value(connection: &Connection, kind: &str, name: &str) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT text FROM shelf WHERE kind = ?1 AND name = ?2")?
        .query_row([kind, name], |row| row.get(0))
        .optional()
}

pub(crate) fn list_values(connection: &Connection, kind: &str) -> rusqlite::Result<Vec<(String, String)>> {
    connection
        .prepare_cached("SELECT name, text FROM shelf WHERE kind = ?1 ORDER BY name")?
        .query_map([kind], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

pub(crate) fn delete_value(
    connection: &Connection,
    kind: &str,
    name: &str,
    entry: Option<&AuditEntry>,
) -> rusqlite::Result<bool> {
    let gone = connection
        .prepare_cached("DELETE FROM shelf WHERE kind = ?1 AND name = ?2")?
        .execute([kind, name])?;
    audit::add(connection, entry.filter(|_| gone > 0))?;
    Ok(gone > 0)
}
