//! The audit list, and results of bulk jobs that are written with its entries.

use crate::codec::{Str, Whole, big, rows};
use crate::fault::Failure;
use crate::record::{bytes_json, optional_text, text};
use crate::session::{Owned, Param, Sent, Session, column};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{AuditEntry, AuditKind, AuditPage, AuditQuery, BulkItemId, BulkResult};
use std::collections::BTreeMap;
use tokio_postgres::Row;

/// Adds entries.
pub(crate) async fn add<'a>(
    session: &Session,
    entries: impl IntoIterator<Item = &'a AuditEntry>,
) -> Result<(), Failure> {
    let entries: Vec<&AuditEntry> = entries.into_iter().collect();
    let mut sent = Vec::new();
    send(&mut sent, &entries);
    Ok(session.execute_all(&sent).await?)
}

/// Statements that add entries.
pub(crate) fn send<'s>(sent: &mut Vec<Sent<'s>>, entries: &'s [&'s AuditEntry]) {
    if entries.is_empty() {
        return;
    }
    sent.push(Sent::new(
        "insert into audit (time, by, action, kind, name, detail, request)
            select time, by, action, kind, name, detail, request
            from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::text[]) with ordinality
                as a (time, by, action, kind, name, detail, request, place)
            order by place",
        vec![
            column(entries, |entry| entry.time.0),
            column(entries, |entry| Str(entry.by.as_str())),
            column(entries, |entry| Str(entry.action.as_str())),
            column(entries, |entry| entry.kind.as_str()),
            column(entries, |entry| Str(entry.name.as_str())),
            column(entries, |entry| serde_json::to_vec(&entry.detail).unwrap_or_default()),
            column(entries, |entry| entry.request.as_ref().map(|request| Str(request.as_str()))),
        ],
    ));
    let items = entries.iter().filter_map(|entry| entry.bulk.as_ref());
    sent.extend(results(items.map(|item| (item, BulkResult::Done))));
}

/// Writes the results of items that have none, and counts them; of several for one item the first.
pub(crate) fn results<'s>(all: impl Iterator<Item = (&'s BulkItemId, BulkResult)>) -> Option<Sent<'s>> {
    let mut first: BTreeMap<(&'s str, u64), String> = BTreeMap::new();
    for (item, result) in all {
        first
            .entry((item.job.as_str(), item.number))
            .or_insert_with(|| result.to_text());
    }
    if first.is_empty() {
        return None;
    }
    let rows: Vec<((&'s str, u64), String)> = first.into_iter().collect();
    Some(Sent::new(
        "with changed as (
                update bulk_items i set result = w.result from unnest($1::text[], $2::bigint[], $3::text[]) as w (job, n, result)
                where i.job = w.job and i.n = w.n and i.result is null returning i.job, i.result),
            counted as (
                select job, count(*) filter (where result = 'done') as done,
                    count(*) filter (where starts_with(result, 'skipped')) as skipped,
                    count(*) filter (where starts_with(result, 'failed')) as failed
                from changed group by job)
            update bulk_jobs j set done = j.done + c.done, skipped = j.skipped + c.skipped, failed = j.failed + c.failed
            from counted c where j.id = c.job",
        vec![
            column(&rows, |row| Str(row.0.0)),
            column(&rows, |row| big(row.0.1)),
            column(&rows, |row| Whole(row.1.clone())),
        ],
    ))
}

/// The page after this place.
pub(crate) async fn list(session: &Session, query: &AuditQuery, before: Option<i64>) -> Result<AuditPage, Failure> {
    let (sql, values) = select(query, before);
    let values: Vec<Param<'_>> = values.iter().map(|value| &**value as Param<'_>).collect();
    let found = session.query(&sql, &values).await?;
    let mut items = found.iter().map(from_row).collect::<Result<Vec<_>, _>>()?;
    let more = items.len() > query.limit;
    items.truncate(query.limit);
    let next = items.last().filter(|_| more);
    Ok(AuditPage {
        next: next.map(|(number, _)| Text::from(number.to_string())),
        items,
    })
}

/// The query. It asks for one row more, to know whether there is a next page.
fn select(query: &AuditQuery, before: Option<i64>) -> (String, Vec<Owned<'_>>) {
    let text = |text: &Text| -> Owned<'static> { Box::new(Whole(text.to_string())) };
    let number = |number: i64| -> Owned<'static> { Box::new(number) };
    let terms = [
        ("name =", query.name.as_ref().map(text)),
        ("by =", query.by.as_ref().map(text)),
        ("action =", query.action.as_ref().map(text)),
        (
            "kind =",
            query.kind.map(|kind| -> Owned<'static> { Box::new(kind.as_str()) }),
        ),
        ("time >=", query.from.map(|at| number(at.0))),
        ("time <", query.to.map(|at| number(at.0))),
        ("number <", before.map(number)),
    ];
    let (mut wanted, mut values) = (vec!["true".to_owned()], Vec::new());
    for (term, value) in terms {
        if let Some(value) = value {
            values.push(value);
            wanted.push(format!("{term} ${}", values.len()));
        }
    }
    values.push(number(rows(query.limit).saturating_add(1)));
    let sql = format!(
        "select number, time, by, action, kind, name, detail, request from audit where {} order by number desc limit ${}",
        wanted.join(" and "),
        values.len()
    );
    (sql, values)
}

fn from_row(row: &Row) -> Result<(u64, AuditEntry), Failure> {
    let entry = AuditEntry {
        time: Timestamp(row.get(1)),
        by: text(row, 2),
        action: text(row, 3),
        kind: AuditKind::parse(row.get(4)).unwrap_or_default(),
        name: text(row, 5),
        detail: bytes_json(row, 6)?,
        request: optional_text(row, 7),
        bulk: None,
    };
    Ok((row.get::<_, i64>(0).unsigned_abs(), entry))
}

pub(crate) async fn clear(session: &Session, before: Timestamp, limit: usize) -> Result<usize, Failure> {
    let sql = "delete from audit where number in
        (select number from audit where time < $1 order by time, number limit $2)";
    let gone = session.execute(sql, &[&before.0, &rows(limit)]).await?;
    Ok(usize::try_from(gone).unwrap_or(usize::MAX))
}
