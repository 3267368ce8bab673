//! The audit list, and results of bulk jobs that are written with its entries.

use crate::fault::no_json;
use crate::page;
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{AuditEntry, AuditKind, AuditPage, AuditQuery, BulkItemId, BulkResult};

/// Adds entries.
pub(crate) fn add<'a>(
    connection: &Connection,
    entries: impl IntoIterator<Item = &'a AuditEntry>,
) -> rusqlite::Result<()> {
    for entry in entries {
        connection
            .prepare_cached(
                "INSERT INTO audit (time, by, action, kind, name, detail, request) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                entry.time.0,
                entry.by.as_str(),
                entry.action.as_str(),
                entry.kind.as_str(),
                entry.name.as_str(),
                serde_json::to_string(&entry.detail).unwrap_or_default(),
                entry.request.as_ref().map(Text::as_str),
            ])?;
        if let Some(item) = &entry.bulk {
            set_result(connection, item, &BulkResult::Done)?;
        }
    }
    Ok(())
}

/// Writes the result of an item that has none.
pub(crate) fn set_result(connection: &Connection, item: &BulkItemId, result: &BulkResult) -> rusqlite::Result<()> {
    let changed = connection
        .prepare_cached("UPDATE bulk_items SET result = ?3 WHERE job = ?1 AND n = ?2 AND result IS NULL")?
        .execute(params![item.job.as_str(), item.number, result.to_text()])?;
    if changed == 0 {
        return Ok(());
    }
    let sql = match result {
        BulkResult::Done => "UPDATE bulk_jobs SET done = done + 1 WHERE id = ?1",
        BulkResult::Skipped(_) => "UPDATE bulk_jobs SET skipped = skipped + 1 WHERE id = ?1",
        BulkResult::Failed(_) => "UPDATE bulk_jobs SET failed = failed + 1 WHERE id = ?1",
    };
    connection.prepare_cached(sql)?.execute([item.job.as_str()]).map(drop)
}

/// The page after this place.
pub(crate) fn list(connection: &Connection, query: &AuditQuery, before: Option<i64>) -> rusqlite::Result<AuditPage> {
    let (sql, values) = select(query, before);
    let mut items = connection
        .prepare_cached(&sql)?
        .query_map(params_from_iter(values), from_row)?
        .collect::<Result<Vec<_>, _>>()?;
    let next = page::cut(&mut items, query.limit, |(number, _)| *number);
    Ok(AuditPage { next, items })
}

/// The query. It asks for one row more, to know whether there is a next page. Entries of an object
/// or an operator are found by an index; otherwise entries are read from the newest on.
fn select(query: &AuditQuery, before: Option<i64>) -> (String, Vec<Value>) {
    let text = |text: &Text| Value::Text(text.as_str().to_owned());
    let leads = if query.name.is_some() { "+" } else { "" };
    let terms = [
        ("name =".to_owned(), query.name.as_ref().map(text)),
        (format!("{leads}by ="), query.by.as_ref().map(text)),
        ("action =".to_owned(), query.action.as_ref().map(text)),
        (
            "kind =".to_owned(),
            query.kind.map(|kind| Value::Text(kind.as_str().to_owned())),
        ),
        ("+time >=".to_owned(), query.from.map(|at| Value::Integer(at.0))),
        ("+time <".to_owned(), query.to.map(|at| Value::Integer(at.0))),
        ("number <".to_owned(), before.map(Value::Integer)),
    ];
    let (mut wanted, mut values) = (vec!["1".to_owned()], Vec::new());
    for (term, value) in terms {
        if let Some(value) = value {
            values.push(value);
            wanted.push(format!("{term} ?{}", values.len()));
        }
    }
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1);
    values.push(Value::Integer(limit));
    let sql = format!(
        "SELECT number, time, by, action, kind, name, detail, request FROM audit WHERE {} ORDER BY number DESC LIMIT ?{}",
        wanted.join(" AND "),
        values.len()
    );
    (sql, values)
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<(u64, AuditEntry)> {
    let text = |column: usize| -> rusqlite::Result<Text> { Ok(Text::from(row.get_ref(column)?.as_str()?)) };
    let detail = row.get_ref(6)?.as_str()?;
    let entry = AuditEntry {
        time: Timestamp(row.get(1)?),
        by: text(2)?,
        action: text(3)?,
        kind: AuditKind::parse(row.get_ref(4)?.as_str()?).unwrap_or_default(),
        name: text(5)?,
        detail: serde_json::from_str(detail).map_err(|error| no_json(6, error))?,
        request: row.get_ref(7)?.as_str_or_null()?.map(Text::from),
        bulk: None,
    };
    Ok((row.get(0)?, entry))
}

pub(crate) fn clear(connection: &Connection, before: Timestamp, limit: usize) -> rusqlite::Result<usize> {
    connection
        .prepare_cached(
            "DELETE FROM audit WHERE number IN (SELECT number FROM audit WHERE time < ?1 ORDER BY time, number LIMIT ?2)",
        )?
        .execute(params![before.0, i64::try_from(limit).unwrap_or(i64::MAX)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_plan_of_the_audit_list_sorts_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert!(crate::migrate::bring_up(&mut connection).is_ok());
        let any = AuditQuery::default;
        let by = AuditQuery {
            by: Some("a".into()),
            ..any()
        };
        let of = AuditQuery {
            name: Some("n".into()),
            ..by.clone()
        };
        let since = AuditQuery {
            from: Some(Timestamp(1)),
            ..any()
        };
        for (query, expected) in [
            (any(), "audit"),
            (since, "audit"),
            (by, "audit USING INDEX audit_by (by=?"),
            (of, "audit USING INDEX audit_of (name=?"),
        ] {
            let (sql, values) = select(&query, Some(7));
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let rows = statement.query_map(params_from_iter(values), |row| row.get::<_, String>(3));
            let plan = rows.unwrap().map(Result::unwrap).collect::<Vec<_>>().join("; ");
            assert!(
                plan.contains(expected) && !plan.contains("TEMP B-TREE"),
                "{query:?}: {plan}"
            );
        }
    }
}
