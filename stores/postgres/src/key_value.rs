//! Small texts by kind and name.

use crate::audit;
use crate::codec::Str;
use crate::fault::Failure;
use crate::record::{long_text, text};
use crate::session::Session;
use starbridge_ports::AuditEntry;

pub(crate) async fn put_value(
    session: &Session,
    kind: &str,
    name: &str,
    text: &str,
    entry: Option<&AuditEntry>,
) -> Result<(), Failure> {
    audit::add(session, entry).await?;
    let sql = "insert into shelf values ($1, $2, $3) on conflict (kind, name) do update set text = excluded.text";
    session
        .execute(sql, &[&Str(kind), &Str(name), &text.as_bytes()])
        .await?;
    Ok(())
}

pub(crate) async fn put_new_value(session: &Session, kind: &str, name: &str, text: &str) -> Result<String, Failure> {
    let sql = "insert into shelf values ($1, $2, $3) on conflict do nothing";
    session
        .execute(sql, &[&Str(kind), &Str(name), &text.as_bytes()])
        .await?;
    Ok(get_value(session, kind, name).await?.unwrap_or_default())
}

pub(crate) async fn get_value(session: &Session, kind: &str, name: &str) -> Result<Option<String>, Failure> {
    let asked = "select text from shelf where kind = $1 and name = $2";
    let row = session.first(asked, &[&Str(kind), &Str(name)]).await?;
    row.map(|row| long_text(&row, 0)).transpose()
}

pub(crate) async fn list_values(session: &Session, kind: &str) -> Result<Vec<(String, String)>, Failure> {
    let asked = "select name, text from shelf where kind = $1 order by name";
    let found = session.query(asked, &[&Str(kind)]).await?;
    found
        .iter()
        .map(|row| Ok((text(row, 0).to_string(), long_text(row, 1)?)))
        .collect()
}

pub(crate) async fn delete_value(
    session: &Session,
    kind: &str,
    name: &str,
    entry: Option<&AuditEntry>,
) -> Result<bool, Failure> {
    let sql = "delete from shelf where kind = $1 and name = $2";
    let gone = session.execute(sql, &[&Str(kind), &Str(name)]).await? > 0;
    audit::add(session, entry.filter(|_| gone)).await?;
    Ok(gone)
}
