//! The tables as plain rows, for a copy from or into another kind of store.

use crate::codec::{Read, Whole};
use crate::fault::Failure;
use crate::session::{Owned, Param, Session};
use crate::wait::wait;
use crate::write::Work;
use starbridge_ports::{Cell, CellKind, Row, RowSink, RowSource, StoreError, Table};
use std::cell::RefCell;
use tokio_postgres::Row as Found;

/// So many rows are read at once.
const BATCH_ROWS: usize = 1_000;

pub(crate) async fn count(session: &Session, table: &Table) -> Result<u64, Failure> {
    let row = session
        .only(&format!("select count(*) from {}", table.name), &[])
        .await?;
    Ok(row.get::<_, i64>(0).unsigned_abs())
}

/// Gives all rows to the sink, from one state of the store.
pub(crate) async fn each(session: &Session, table: &Table, sink: &RefCell<&mut RowSink<'_>>) -> Result<(), Failure> {
    session.run("begin isolation level repeatable read read only").await?;
    let given = give(session, table, sink).await;
    session.run("rollback").await?;
    given
}

async fn give(session: &Session, table: &Table, sink: &RefCell<&mut RowSink<'_>>) -> Result<(), Failure> {
    let columns: Vec<String> = table.columns.iter().map(|(name, kind)| read_as(name, *kind)).collect();
    // The jobs are in the order in which they were made.
    let order = if table.name == "bulk_jobs" {
        " order by place"
    } else {
        ""
    };
    let sql = format!(
        "declare all_rows no scroll cursor for select {} from {}{order}",
        columns.join(", "),
        table.name
    );
    session.run(&sql).await?;
    loop {
        let found = session.query_now(&format!("fetch {BATCH_ROWS} from all_rows")).await?;
        let is_last = found.len() < BATCH_ROWS;
        let rows: Result<Vec<Row>, Failure> = found.iter().map(|row| cells(table, row)).collect();
        let rows = rows?;
        if !rows.is_empty() {
            (*sink.borrow_mut())(table, rows)?;
        }
        if is_last {
            return Ok(());
        }
    }
}

fn read_as(name: &str, kind: CellKind) -> String {
    match kind {
        CellKind::Number => format!("\"{name}\"::bigint"),
        CellKind::Flag => format!("\"{name}\"::integer::bigint"),
        CellKind::Text | CellKind::LongText | CellKind::Bytes => format!("\"{name}\""),
    }
}

fn cells(table: &Table, row: &Found) -> Result<Row, Failure> {
    let cells = table.columns.iter().enumerate().map(|(at, (name, kind))| {
        let cell = match kind {
            CellKind::Number | CellKind::Flag => row.try_get::<_, Option<i64>>(at)?.map(Cell::Number),
            CellKind::Text => row.try_get::<_, Option<Read>>(at)?.map(|text| Cell::Text(text.0)),
            CellKind::LongText => match row.try_get::<_, Option<Vec<u8>>>(at)?.map(String::from_utf8) {
                None => None,
                Some(Ok(text)) => Some(Cell::Text(text)),
                Some(Err(error)) => return Err(Failure::corrupt(&format!("`{}.{name}`", table.name), &error)),
            },
            CellKind::Bytes => row.try_get::<_, Option<Vec<u8>>>(at)?.map(Cell::Bytes),
        };
        Ok(cell.unwrap_or(Cell::Null))
    });
    cells.collect()
}

/// Writes all rows of a source within the transaction of this work.
pub(crate) async fn fill(work: &mut Work<'_>, source: &RefCell<&mut RowSource<'_>>) -> Result<(), Failure> {
    let session = work.session;
    let failed = RefCell::new(None);
    let fed = (*source.borrow_mut())(&mut |table, rows| {
        wait(insert(session, table, &rows)).map_err(|failure| {
            let said = StoreError::Unavailable("a row can't be written".to_owned());
            *failed.borrow_mut() = Some(failure);
            said
        })
    });
    if let Some(failure) = failed.into_inner() {
        return Err(failure);
    }
    fed?;
    // Numbers that the database gives go on after those that were given.
    session
        .run(
            "select setval(pg_get_serial_sequence('audit', 'number'), coalesce((select max(number) from audit), 0) + 1, false)",
        )
        .await?;
    Ok(())
}

async fn insert(session: &Session, table: &Table, rows: &[Row]) -> Result<(), Failure> {
    let names: Vec<String> = table.columns.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let (mut values, mut arrays): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    for (name, kind) in table.columns {
        values.push(match kind {
            CellKind::Flag => format!("\"{name}\" <> 0"),
            _ => format!("\"{name}\""),
        });
        arrays.push(match kind {
            CellKind::Number | CellKind::Flag => "bigint[]",
            CellKind::Text => "text[]",
            CellKind::LongText | CellKind::Bytes => "bytea[]",
        });
    }
    let arrays = arrays.iter().enumerate();
    let arrays: Vec<String> = arrays.map(|(at, kind)| format!("${}::{kind}", at + 1)).collect();
    let sql = format!(
        "insert into {} ({names}) overriding system value select {} from unnest({}) as given ({names})",
        table.name,
        values.join(", "),
        arrays.join(", "),
        names = names.join(", ")
    );
    let columns = table.columns.iter().enumerate();
    let columns: Vec<Owned<'_>> = columns.map(|(at, (_, kind))| column(rows, at, *kind)).collect();
    let params: Vec<Param<'_>> = columns.iter().map(|column| &**column as Param<'_>).collect();
    session.execute(&sql, &params).await?;
    Ok(())
}

fn column(rows: &[Row], at: usize, kind: CellKind) -> Owned<'_> {
    let cells = rows.iter().map(|row| row.get(at).unwrap_or(&Cell::Null));
    match kind {
        CellKind::Number | CellKind::Flag => {
            let numbers = cells.map(|cell| match cell {
                Cell::Number(number) => Some(*number),
                _ => None,
            });
            Box::new(numbers.collect::<Vec<Option<i64>>>())
        }
        CellKind::Text => {
            let texts = cells.map(|cell| match cell {
                Cell::Text(text) => Some(Whole(text.clone())),
                _ => None,
            });
            Box::new(texts.collect::<Vec<Option<Whole>>>())
        }
        CellKind::LongText | CellKind::Bytes => {
            let bytes = cells.map(|cell| match cell {
                Cell::Text(text) => Some(text.as_bytes()),
                Cell::Bytes(bytes) => Some(bytes.as_slice()),
                _ => None,
            });
            Box::new(bytes.collect::<Vec<Option<&[u8]>>>())
        }
    }
}
