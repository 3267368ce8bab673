//! Bulk jobs and their items.

use crate::audit;
use crate::codec::{Str, big, code, rows};
use crate::fault::Failure;
use crate::record::{bytes_json, optional_text, text, time};
use crate::session::{Param, Sent, Session, column};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{
    AuditEntry, BulkItem, BulkItemId, BulkItems, BulkJob, BulkPage, BulkResult, BulkState, OpenJob, StoreError,
};
use tokio_postgres::Row;

const COLUMNS: &str = "id, action, arguments, filter, by, created, state, items, done, skipped, failed, rate, ended";

pub(crate) async fn put(
    session: &Session,
    job: &BulkJob,
    executions: &[Text],
    entry: Option<&AuditEntry>,
) -> Result<(), Failure> {
    let json = |object| serde_json::to_vec(object).unwrap_or_default();
    let made = "insert into bulk_jobs (id, action, arguments, filter, by, created, state, rate)
        values ($1, $2, $3, $4, $5, $6, $7, $8)";
    let values: [Param<'_>; 8] = [
        &Str(&job.id),
        &Str(&job.action),
        &json(&job.arguments),
        &json(&job.filter),
        &Str(&job.by),
        &job.created.0,
        &code(job.state.code()),
        &job.rate.map(i64::from),
    ];
    session.execute(made, &values).await?;
    insert(session, &job.id, 1, executions).await?;
    audit::add(session, entry).await
}

async fn insert(session: &Session, job: &str, first: u64, executions: &[Text]) -> Result<(), Failure> {
    let sent = Sent::new(
        "insert into bulk_items (job, n, execution)
            select $1, $2 + place - 1, execution from unnest($3::text[]) with ordinality as i (execution, place)",
        vec![
            Box::new(Str(job)),
            Box::new(big(first)),
            column(executions, |execution| crate::codec::Whole(execution.to_string())),
        ],
    );
    let count = Sent::new(
        "update bulk_jobs set items = $2 where id = $1",
        vec![Box::new(Str(job)), Box::new(big(first - 1 + executions.len() as u64))],
    );
    Ok(session.execute_all(&[sent, count]).await?)
}

pub(crate) async fn add_items(
    session: &Session,
    job: &str,
    first: u64,
    executions: &[Text],
    last: bool,
) -> Result<bool, Failure> {
    let collecting = code(BulkState::Collecting.code());
    if first == 1 {
        // The process ended while it collected.
        let sql = "delete from bulk_items where job = (select id from bulk_jobs where id = $1 and state = $2)";
        session.execute(sql, &[&Str(job), &collecting]).await?;
    }
    let to = code(
        if last {
            BulkState::Running
        } else {
            BulkState::Collecting
        }
        .code(),
    );
    let sql = "update bulk_jobs set state = $3 where id = $1 and state = $2";
    if session.execute(sql, &[&Str(job), &collecting, &to]).await? == 0 {
        return Ok(false);
    }
    insert(session, job, first, executions).await?;
    Ok(true)
}

pub(crate) async fn job(session: &Session, job: &str) -> Result<Option<BulkJob>, Failure> {
    let sql = format!("select {COLUMNS} from bulk_jobs where id = $1");
    let row = session.first(&sql, &[&Str(job)]).await?;
    row.map(|row| from_row(&row)).transpose()
}

/// The place of the last job that a page showed, in the order in which jobs were made.
pub(crate) fn place(cursor: Option<&str>) -> Result<i64, StoreError> {
    cursor.map_or(Ok(i64::MAX), |cursor| cursor.parse().map_err(|_| StoreError::BadCursor))
}

pub(crate) async fn jobs(session: &Session, before: i64, limit: usize) -> Result<BulkPage, Failure> {
    let sql = format!("select {COLUMNS}, place from bulk_jobs where place < $1 order by place desc limit $2");
    let found = session.query(&sql, &[&before, &rows(limit).saturating_add(1)]).await?;
    let shown = found.get(..found.len().min(limit)).unwrap_or_default();
    let next = shown.last().filter(|_| found.len() > limit);
    Ok(BulkPage {
        next: next.map(|row| Text::from(row.get::<_, i64>(13).to_string())),
        items: shown.iter().map(from_row).collect::<Result<_, _>>()?,
    })
}

pub(crate) async fn to_run(session: &Session) -> Result<Vec<OpenJob>, Failure> {
    // The index has the states below 3.
    let sql = "select id, state, rate from bulk_jobs where state < 3 and state < $1 order by place";
    let found = session.query(sql, &[&code(BulkState::Suspended.code())]).await?;
    let open = |row: &Row| OpenJob {
        id: text(row, 0),
        state: state_of(row, 1),
        rate: rate_of(row, 2),
    };
    Ok(found.iter().map(open).collect())
}

pub(crate) async fn items(
    session: &Session,
    job: &str,
    which: BulkItems,
    after: u64,
    limit: usize,
) -> Result<Vec<BulkItem>, Failure> {
    let (wanted, word) = match which {
        BulkItems::All => ("$4 = ''", ""),
        BulkItems::Open => ("$4 = '' and result is null", ""),
        BulkItems::With(word) => ("(result = $4 or starts_with(result, $4 || ' '))", word),
    };
    let sql = format!(
        "select n, execution, result from bulk_items where job = $1 and n > $2 and {} order by n limit $3",
        wanted.replace("$4", "$4::text")
    );
    let found = session
        .query(&sql, &[&Str(job), &big(after), &rows(limit), &word])
        .await?;
    let item = |row: &Row| BulkItem {
        number: row.get::<_, i64>(0).unsigned_abs(),
        execution: text(row, 1),
        result: optional_text(row, 2).and_then(|result| BulkResult::parse(&result)),
    };
    Ok(found.iter().map(item).collect())
}

pub(crate) async fn set_results(session: &Session, results: &[(BulkItemId, BulkResult)]) -> Result<(), Failure> {
    let sent: Vec<Sent<'_>> = audit::results(results.iter().map(|(item, result)| (item, result.clone())))
        .into_iter()
        .collect();
    Ok(session.execute_all(&sent).await?)
}

pub(crate) async fn change(
    session: &Session,
    job: &str,
    from: &[BulkState],
    to: BulkState,
    now: Timestamp,
    entry: Option<&AuditEntry>,
) -> Result<bool, Failure> {
    let from: Vec<i16> = from.iter().map(|state| code(state.code())).collect();
    let ended = to.is_over().then_some(now.0);
    let sql = "update bulk_jobs set state = $3, ended = $4 where id = $1 and state = any($2::smallint[])";
    let changed = session
        .execute(sql, &[&Str(job), &from, &code(to.code()), &ended])
        .await?
        > 0;
    if changed {
        audit::add(session, entry).await?;
    }
    Ok(changed)
}

pub(crate) async fn clear(session: &Session, before: Timestamp, limit: usize) -> Result<usize, Failure> {
    let mut cleared = 0;
    while cleared < limit {
        let asked = "select id from bulk_jobs where ended < $1 order by place limit 1";
        let Some(row) = session.first(asked, &[&before.0]).await? else {
            break;
        };
        let (job, left) = (text(&row, 0), limit - cleared);
        let sql = "delete from bulk_items where job = $1
            and n in (select n from bulk_items where job = $1 order by n limit $2)";
        let items = session.execute(sql, &[&Str(&job), &rows(left)]).await?;
        let items = usize::try_from(items).unwrap_or(usize::MAX);
        cleared += items;
        if items < left {
            let gone = session
                .execute("delete from bulk_jobs where id = $1", &[&Str(&job)])
                .await?;
            cleared += usize::try_from(gone).unwrap_or_default();
        }
    }
    Ok(cleared)
}

fn state_of(row: &Row, column: usize) -> BulkState {
    let code = usize::try_from(row.get::<_, i16>(column)).unwrap_or_default();
    BulkState::ALL.get(code).copied().unwrap_or_default()
}

fn rate_of(row: &Row, column: usize) -> Option<u32> {
    row.get::<_, Option<i64>>(column)
        .and_then(|rate| u32::try_from(rate).ok())
}

fn from_row(row: &Row) -> Result<BulkJob, Failure> {
    let number = |column: usize| row.get::<_, i64>(column).unsigned_abs();
    Ok(BulkJob {
        id: text(row, 0),
        action: text(row, 1),
        arguments: bytes_json(row, 2)?,
        filter: bytes_json(row, 3)?,
        by: text(row, 4),
        created: Timestamp(row.get(5)),
        state: state_of(row, 6),
        items: number(7),
        done: number(8),
        skipped: number(9),
        failed: number(10),
        rate: rate_of(row, 11),
        ended: time(row, 12),
    })
}
