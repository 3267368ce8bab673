//! The tables as plain rows, for a copy into another kind of store.

use crate::write::Work;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};
use starbridge_ports::{Cell, Row, RowSink, RowSource, StoreError, Table};

/// So many rows are given to a sink at once.
const BATCH_ROWS: usize = 1_000;

/// Executions and events in one number: `place` is the number of the execution, shifted, and that of the event.
const EVENT_BITS: u32 = 24;
const EVENT_MASK: i64 = (1 << EVENT_BITS) - 1;

/// How a column that the tables of this store do not have under its name is read.
fn expression(table: &Table, column: &str) -> String {
    match (table.name, column) {
        ("turns" | "tasks" | "dead_tasks", "number") => format!("place >> {EVENT_BITS}"),
        ("turns", "first") | ("tasks" | "dead_tasks", "call") => format!("place & {EVENT_MASK}"),
        ("keys", "set_to") => "\"limit\"".to_owned(),
        _ => format!("\"{column}\""),
    }
}

pub(crate) fn count(connection: &Connection, table: &Table) -> rusqlite::Result<u64> {
    let sql = format!("SELECT count(*) FROM {}", table.name);
    connection.query_row(&sql, [], |row| row.get(0))
}

/// Gives all rows to the sink. The inner error is what the sink said.
pub(crate) fn each(
    connection: &Connection,
    table: &Table,
    sink: &mut RowSink<'_>,
) -> rusqlite::Result<Result<(), StoreError>> {
    let columns: Vec<String> = table.columns.iter().map(|(name, _)| expression(table, name)).collect();
    // The jobs have no number of their own: their rows are in the order in which they were made.
    let order = if table.name == "bulk_jobs" {
        " ORDER BY rowid"
    } else {
        ""
    };
    let sql = format!("SELECT {} FROM {}{order}", columns.join(", "), table.name);
    let mut statement = connection.prepare(&sql)?;
    let mut found = statement.query([])?;
    let mut batch: Vec<Row> = Vec::new();
    while let Some(row) = found.next()? {
        let cells = (0..table.columns.len()).map(|at| Ok(cell(row.get_ref(at)?)));
        batch.push(cells.collect::<rusqlite::Result<_>>()?);
        if batch.len() == BATCH_ROWS
            && let Err(error) = sink(table, std::mem::take(&mut batch))
        {
            return Ok(Err(error));
        }
    }
    Ok(if batch.is_empty() { Ok(()) } else { sink(table, batch) })
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null | ValueRef::Real(_) => Cell::Null,
        ValueRef::Integer(number) => Cell::Number(number),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
    }
}

/// Writes all rows of a source. The inner error is what the source said.
pub(crate) fn fill(work: &mut Work<'_>, source: &mut RowSource<'_>) -> rusqlite::Result<Result<(), StoreError>> {
    let connection = work.connection;
    let mut failed = None;
    let fed = source(&mut |table, rows| {
        insert(connection, table, rows).map_err(|error| {
            let said = StoreError::Unavailable(error.to_string());
            failed = Some(error);
            said
        })
    });
    if let Some(error) = failed {
        return Err(error);
    }
    if fed.is_ok() {
        connection.execute_batch(
            "UPDATE statuses SET executions = (SELECT count(*) FROM executions AS e WHERE e.status = statuses.status)",
        )?;
    }
    Ok(fed)
}

fn insert(connection: &Connection, table: &Table, rows: Vec<Row>) -> rusqlite::Result<()> {
    let is_placed = matches!(table.name, "turns" | "tasks" | "dead_tasks");
    let mut names: Vec<String> = table.columns.iter().map(|(name, _)| expression(table, name)).collect();
    let mut places: Vec<String> = (1..=names.len()).map(|at| format!("?{at}")).collect();
    if is_placed {
        names.splice(..2, ["place".to_owned()]);
        places.splice(..2, [format!("(?1 << {EVENT_BITS}) | ?2")]);
    }
    let sql = format!(
        "INSERT INTO {} ({}) VALUES ({})",
        table.name,
        names.join(", "),
        places.join(", ")
    );
    let mut statement = connection.prepare_cached(&sql)?;
    for row in rows {
        statement.execute(params_from_iter(row.into_iter().map(value)))?;
    }
    Ok(())
}

fn value(cell: Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Number(number) => Value::Integer(number),
        Cell::Text(text) => Value::Text(text),
        Cell::Bytes(bytes) => Value::Blob(bytes),
    }
}
