//! Flows.

use crate::audit;
use crate::codec::{Str, big};
use crate::fault::Failure;
use crate::record::{long_text, text};
use crate::session::{Param, Session};
use starbridge_flow::time::Timestamp;
use starbridge_ports::{AuditEntry, KeptFlow};
use tokio_postgres::Row;

pub(crate) async fn put(
    session: &Session,
    name: &str,
    definition: &str,
    hash: &str,
    now: Timestamp,
    entry: Option<&AuditEntry>,
) -> Result<(u64, bool), Failure> {
    let shown = "update flows set hidden = false where name = $1 and hidden";
    let unhidden = session.execute(shown, &[&Str(name)]).await? > 0;
    let asked = "select version, hash from flows where name = $1 order by version desc limit 1";
    let latest = session.first(asked, &[&Str(name)]).await?;
    let latest = latest.map(|row| (row.get::<_, i64>(0).unsigned_abs(), text(&row, 1)));
    let (version, new) = match latest {
        Some((version, same)) if same == *hash => (version, false),
        Some((version, _)) => (version + 1, true),
        None => (1, true),
    };
    let changed = entry.filter(|_| new || unhidden);
    audit::add(session, &changed.map(|entry| entry.clone().with("version", version))).await?;
    if new {
        let made =
            "insert into flows (name, version, hash, definition, created, hidden) values ($1, $2, $3, $4, $5, false)";
        let values: [Param<'_>; 5] = [&Str(name), &big(version), &Str(hash), &definition.as_bytes(), &now.0];
        session.execute(made, &values).await?;
    }
    Ok((version, new))
}

pub(crate) async fn hide(session: &Session, name: &str, entry: Option<&AuditEntry>) -> Result<bool, Failure> {
    let sql = "update flows set hidden = true where name = $1 and not hidden";
    let hidden = session.execute(sql, &[&Str(name)]).await? > 0;
    audit::add(session, entry.filter(|_| hidden)).await?;
    Ok(hidden)
}

pub(crate) async fn flows(session: &Session, only: Option<&str>) -> Result<Vec<KeptFlow>, Failure> {
    let all = "select name, version, hash, definition, created, hidden from flows";
    let found = match only {
        None => session.query(&format!("{all} order by name, version"), &[]).await?,
        Some(name) => {
            let sql = format!("{all} where name = $1 order by version");
            session.query(&sql, &[&Str(name)]).await?
        }
    };
    let flow = |row: &Row| -> Result<KeptFlow, Failure> {
        Ok(KeptFlow {
            name: text(row, 0),
            version: row.get::<_, i64>(1).unsigned_abs(),
            hash: text(row, 2),
            definition: long_text(row, 3)?,
            created: Timestamp(row.get(4)),
            hidden: row.get(5),
        })
    };
    found.iter().map(flow).collect()
}
