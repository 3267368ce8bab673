//! Flows.

use crate::audit;
use rusqlite::{Connection, OptionalExtension, params};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{AuditEntry, KeptFlow};

pub(crate) fn put(
    connection: &Connection,
    name: &str,
    definition: &str,
    hash: &str,
    now: Timestamp,
    entry: Option<&AuditEntry>,
) -> rusqlite::Result<(u64, bool)> {
    let unhidden = connection.execute("UPDATE flows SET hidden = 0 WHERE name = ?1 AND hidden = 1", [name])? > 0;
    let latest: Option<(u64, String)> = connection
        .query_row(
            "SELECT version, hash FROM flows WHERE name = ?1 ORDER BY version DESC LIMIT 1",
            [name],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    let (version, new) = match latest {
        Some((version, same)) if same == hash => (version, false),
        Some((version, _)) => (version + 1, true),
        None => (1, true),
    };
    let changed = entry.filter(|_| new || unhidden);
    audit::add(connection, &changed.map(|entry| entry.clone().with("version", version)))?;
    if !new {
        return Ok((version, false));
    }
    connection.execute(
        "INSERT INTO flows (name, version, hash, definition, created, hidden) VALUES (?1, ?2, ?3, ?4, ?5, 0)",
        params![name, version, hash, definition, now.0],
    )?;
    Ok((version, true))
}

pub(crate) fn hide(connection: &Connection, name: &str, entry: Option<&AuditEntry>) -> rusqlite::Result<bool> {
    let hidden = connection.execute("UPDATE flows SET hidden = 1 WHERE name = ?1 AND hidden = 0", [name])?;
    audit::add(connection, entry.filter(|_| hidden > 0))?;
    Ok(hidden > 0)
}

pub(crate) fn flows(connection: &Connection) -> rusqlite::Result<Vec<KeptFlow>> {
    connection
        .prepare_cached("SELECT name, version, hash, definition, created, hidden FROM flows ORDER BY name, version")?
        .query_map([], |row| {
            Ok(KeptFlow {
                name: Text::from(row.get_ref(0)?.as_str()?),
                version: row.get(1)?,
                hash: Text::from(row.get_ref(2)?.as_str()?),
                definition: row.get(3)?,
                created: Timestamp(row.get(4)?),
                hidden: row.get(5)?,
            })
        })?
        .collect()
}
