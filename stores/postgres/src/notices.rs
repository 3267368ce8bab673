//! Notices.

use crate::codec::{Str, big, rows};
use crate::fault::Failure;
use crate::load::{in_shown_shards, shown_shards};
use crate::queueing::counted;
use crate::record::{long_text, text};
use crate::session::{Param, Session};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{NextNotice, NoticeChange, ShardSet};
use tokio_postgres::Row;

/// An execution may be gone before its notices, so its shard follows from its id. Where the database does not know it, further
/// rows are asked for until there are enough.
pub(crate) async fn next(
    session: &Session,
    shards: &ShardSet,
    target: &str,
    limit: usize,
) -> Result<Vec<NextNotice>, Failure> {
    let shown = shown_shards(shards);
    let of = match shown {
        Some(_) => format!("and {}", in_shown_shards("execution", 5)),
        None => String::new(),
    };
    let asked = format!(
        "select execution, event, due, failures, text from notices where target = $1 and next
        and (due, execution) > ($3, $4) {of} order by due, execution limit $2"
    );
    let (target, most) = (Str(target), rows(limit));
    let mut notices: Vec<NextNotice> = Vec::new();
    let mut last = (i64::MIN, Text::default());
    loop {
        let execution = Str(&last.1);
        let mut values: Vec<Param<'_>> = vec![&target, &most, &last.0, &execution];
        if shown.is_some() {
            values.push(&shown);
        }
        let found = session.query(&asked, &values).await?;
        let wanted = found.iter().filter(|row| shards.has_execution(&text(row, 0)));
        for row in wanted.take(limit - notices.len()) {
            notices.push(notice(row)?);
        }
        match found.last() {
            Some(row) if notices.len() < limit && found.len() >= limit => last = (row.get(2), text(row, 0)),
            _ => return Ok(notices),
        }
    }
}

fn notice(row: &Row) -> Result<NextNotice, Failure> {
    Ok(NextNotice {
        execution: text(row, 0),
        event: EventId(row.get::<_, i64>(1).unsigned_abs()),
        due: Timestamp(row.get(2)),
        failures: row.get::<_, i32>(3).unsigned_abs(),
        text: long_text(row, 4)?,
    })
}

pub(crate) async fn change(session: &Session, changes: &[NoticeChange]) -> Result<(), Failure> {
    for change in changes {
        let key: [Param<'_>; 3] = [&Str(&change.target), &Str(&change.execution), &big(change.event.0)];
        match change.again {
            Some((due, failures)) => {
                let sql =
                    "update notices set due = $4, failures = $5 where target = $1 and execution = $2 and event = $3";
                let failures = i32::try_from(failures).unwrap_or(i32::MAX);
                session
                    .execute(sql, &[key[0], key[1], key[2], &due.0, &failures])
                    .await?;
            }
            None => remove(session, &key).await?,
        }
    }
    Ok(())
}

async fn remove(session: &Session, key: &[Param<'_>; 3]) -> Result<(), Failure> {
    let gone = "delete from notices where target = $1 and execution = $2 and event = $3";
    session.execute(gone, key).await?;
    let next = "update notices set next = true where target = $1 and execution = $2 and not next
        and event = (select min(event) from notices where target = $1 and execution = $2)";
    session.execute(next, &key[..2]).await?;
    Ok(())
}

/// Deletes notices in the order of the key, so that each call costs the same. If some of an execution's are left, the
/// next one is marked again.
pub(crate) async fn forget(session: &Session, target: &str, limit: usize) -> Result<usize, Failure> {
    let asked = "select execution, event from notices where target = $1 order by execution, event limit $2";
    let gone = session.query(asked, &[&Str(target), &rows(limit)]).await?;
    for row in &gone {
        let (execution, event) = (text(row, 0), row.get::<_, i64>(1));
        remove(session, &[&Str(target), &Str(&execution), &event]).await?;
    }
    Ok(gone.len())
}

pub(crate) async fn counts(session: &Session) -> Result<Vec<(Text, u64)>, Failure> {
    let asked = "select target, count(*) from notices group by target order by target";
    Ok(counted(&session.query(asked, &[]).await?))
}
