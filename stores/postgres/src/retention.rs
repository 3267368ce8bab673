//! Deleting old executions, a few at a time.

use crate::codec::{Str, rows};
use crate::fault::Failure;
use crate::record::text;
use crate::session::{Sent, Session, column};
use crate::write::Work;
use starbridge_flow::time::Timestamp;
use std::collections::BTreeMap;

/// How many turns one call deletes at most: about a megabyte, which takes the writer some milliseconds.
const DELETE_BATCH: i64 = 1_000;

/// An execution that goes.
struct Gone {
    number: i64,
    id: starbridge_flow::value::Text,
    status: usize,
}

pub(crate) async fn clear(work: &mut Work<'_>, before: Timestamp, limit: usize) -> Result<usize, Failure> {
    let session = work.session;
    // What earlier calls left gets half of it, so that neither waits for the other for ever.
    let (turns, mut cleared) = delete_left(session, DELETE_BATCH / 2).await?;
    let mut budget = DELETE_BATCH - turns;
    let asked = "select number, id, status from executions where ended is not null and ended < $1
        order by ended, number limit $2";
    let found = session.query(asked, &[&before.0, &rows(limit)]).await?;
    let gone = found.iter().map(|row| Gone {
        number: row.get(0),
        id: text(row, 1),
        status: usize::try_from(row.get::<_, i16>(2)).unwrap_or_default(),
    });
    let gone: Vec<Gone> = gone.collect();
    let turns = turns_of(session, &gone).await?;
    let (mut whole, mut parts, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
    for one in &gone {
        if budget <= 0 {
            break;
        }
        let has = turns.get(&one.number).copied().unwrap_or_default();
        match has <= budget {
            true => whole.push(one.number),
            false => parts.push((one.number, budget)),
        }
        budget -= has;
        deleted.push(one);
        cleared += 1;
    }
    let mut sent = delete(&deleted);
    sent.push(Sent::new(
        "delete from turns where number = any($1::bigint[])",
        vec![Box::new(whole)],
    ));
    for (number, most) in parts {
        delete_most(&mut sent, number, most);
    }
    session.execute_all(&sent).await?;
    for one in deleted {
        work.heads.forget(&one.id);
        if let Some(count) = work.counts.get_mut(one.status) {
            *count -= 1;
        }
    }
    Ok(cleared)
}

/// How many turns executions have.
async fn turns_of(session: &Session, gone: &[Gone]) -> Result<BTreeMap<i64, i64>, Failure> {
    let numbers = column(gone, |one| one.number);
    let asked = "select number, count(*) from turns where number = any($1::bigint[]) group by number";
    let found = session.query(asked, &[&*numbers]).await?;
    Ok(found.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Deletes executions except their turns. Messages they sent belong to their receivers and stay.
fn delete<'s>(gone: &[&'s Gone]) -> Vec<Sent<'s>> {
    if gone.is_empty() {
        return Vec::new();
    }
    let of_numbers = [
        "delete from labels where number = any($1::bigint[])",
        "delete from tasks where number = any($1::bigint[])",
        "delete from dead_tasks where number = any($1::bigint[])",
        "delete from checkpoints where number = any($1::bigint[])",
        "delete from requests where number = any($1::bigint[])",
        "delete from logs where number = any($1::bigint[])",
        "delete from executions where number = any($1::bigint[])",
    ];
    let mut sent: Vec<Sent<'s>> = of_numbers
        .iter()
        .map(|sql| Sent::new(sql, vec![column(gone, |one| one.number)]))
        .collect();
    let ids: Vec<Str<'s>> = gone.iter().map(|one| Str(&one.id)).collect();
    sent.push(Sent::new(
        "delete from messages where receiver = any($1::text[])",
        vec![Box::new(ids)],
    ));
    sent
}

/// Deletes the first turns of an execution, and notes it if there are more.
fn delete_most(sent: &mut Vec<Sent<'_>>, number: i64, most: i64) {
    sent.push(Sent::new(
        "delete from turns where number = $1 and first in (select first from turns where number = $1 order by first limit $2)",
        vec![Box::new(number), Box::new(most)],
    ));
    sent.push(Sent::new(
        "insert into cleared select $1 where exists (select 1 from turns where number = $1) on conflict do nothing",
        vec![Box::new(number)],
    ));
}

/// Deletes an execution that has ended, and what targets are still to be told of it. Of a long history the rest goes with
/// later calls of [`clear`].
pub(crate) fn delete_one<'s>(sent: &mut Vec<Sent<'s>>, number: i64, id: &'s str) {
    for sql in [
        "delete from labels where number = $1",
        "delete from tasks where number = $1",
        "delete from dead_tasks where number = $1",
        "delete from checkpoints where number = $1",
        "delete from requests where number = $1",
        "delete from logs where number = $1",
        "delete from executions where number = $1",
    ] {
        sent.push(Sent::new(sql, vec![Box::new(number)]));
    }
    delete_most(sent, number, DELETE_BATCH);
    for sql in [
        "delete from messages where receiver = $1",
        "delete from notices where execution = $1",
    ] {
        sent.push(Sent::new(sql, vec![Box::new(Str(id))]));
    }
}

/// Deletes turns of executions that are already gone. Returns how many turns, and of how many executions.
async fn delete_left(session: &Session, most: i64) -> Result<(i64, usize), Failure> {
    let (mut deleted, mut executions) = (0, 0);
    while deleted < most {
        let Some(row) = session
            .first("select number from cleared order by number limit 1", &[])
            .await?
        else {
            break;
        };
        let number: i64 = row.get(0);
        executions += 1;
        let sql = "delete from turns where number = $1
            and first in (select first from turns where number = $1 order by first limit $2)";
        let gone = session.execute(sql, &[&number, &(most - deleted)]).await?;
        deleted += i64::try_from(gone).unwrap_or(i64::MAX);
        if deleted < most {
            session
                .execute("delete from cleared where number = $1", &[&number])
                .await?;
        }
    }
    Ok((deleted, executions))
}
