//! Reading histories, and which executions to load.

use crate::codec::{Str, big, rows, some_shards};
use crate::fault::Failure;
use crate::record::{self, COLUMNS, bytes_json, long_text, text};
use crate::session::{Param, Session};
use rustc_hash::FxHashMap;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{
    ADMISSION, AttemptLog, Message, MessageId, Receivers, ShardSet, StoredHistory, Turn, TurnHead, TurnPage,
};
use tokio_postgres::Row;

/// Everything is asked at once, in one state of the store. `shortcut`: from the last checkpoint on. The answers are in the order
/// of the ids.
pub(crate) async fn load(
    session: &Session,
    executions: &[&str],
    shortcut: bool,
) -> Result<Vec<Result<Option<StoredHistory>, Failure>>, Failure> {
    let record = format!("select {COLUMNS} from executions e where e.id = any($1)");
    let checkpoints = "select e.number, c.event, c.state from executions e join checkpoints c on c.number = e.number
        where $2 and e.id = any($1)";
    let turns =
        "select t.first, t.events, t.time, t.text, e.number from executions e join turns t on t.number = e.number
        where e.id = any($1) and t.first > case when $2
            then coalesce((select c.event from checkpoints c where c.number = e.number), 0) else 0 end
        order by t.number, t.first";
    let requests =
        "select e.number, r.text from executions e join requests r on r.number = e.number where e.id = any($1)";
    let ids: Vec<Str<'_>> = executions.iter().map(|id| Str(id)).collect();
    let one: [Param<'_>; 1] = [&ids];
    let two: [Param<'_>; 2] = [&ids, &shortcut];
    let asked: [(&str, &[Param<'_>]); 4] = [(&record, &one), (checkpoints, &two), (turns, &two), (requests, &one)];
    let mut answers = session.query_one_state(&asked).await?.into_iter();
    let mut answer = || answers.next().unwrap_or_default();
    let (records, checkpoints, turns, requests) = (answer(), answer(), answer(), answer());
    let mut found = Found::default();
    for row in &checkpoints {
        found.of(row, 0).checkpoint = Some((event_at(row, 1), row.get(2)));
    }
    for row in &turns {
        found.of(row, 4).turns.push(turn(row));
    }
    for row in &requests {
        found.of(row, 0).request = Some(long_text(row, 1));
    }
    let mut histories: FxHashMap<Text, Result<StoredHistory, Failure>> = FxHashMap::default();
    for row in &records {
        histories.insert(text(row, 1), found.history(row));
    }
    let all = executions.iter().map(|id| histories.remove(*id).transpose());
    Ok(all.collect())
}

pub(crate) async fn one(session: &Session, execution: &str, shortcut: bool) -> Result<Option<StoredHistory>, Failure> {
    let loaded = load(session, &[execution], shortcut).await?.pop();
    loaded.unwrap_or(Ok(None))
}

/// What was found of some executions, by their numbers.
#[derive(Default)]
struct Found(FxHashMap<i64, Parts>);

#[derive(Default)]
struct Parts {
    checkpoint: Option<(EventId, Vec<u8>)>,
    turns: Vec<Result<Turn, Failure>>,
    request: Option<Result<String, Failure>>,
}

impl Found {
    fn of(&mut self, row: &Row, column: usize) -> &mut Parts {
        self.0.entry(row.get(column)).or_default()
    }

    /// The history of the execution of this row.
    fn history(&mut self, row: &Row) -> Result<StoredHistory, Failure> {
        let (number, _, record) = record::from_row(row)?;
        let Parts {
            checkpoint,
            turns,
            request,
        } = self.0.remove(&number).unwrap_or_default();
        let request = request.filter(|_| record.status.is_before_start());
        Ok(StoredHistory {
            request: request.transpose()?,
            checkpoint,
            turns: turns.into_iter().collect::<Result<_, _>>()?,
            messages: Vec::new(),
            record,
        })
    }
}

pub(crate) fn event_at(row: &Row, column: usize) -> EventId {
    EventId(u64::from(row.get::<_, i32>(column).unsigned_abs()))
}

fn turn(row: &Row) -> Result<Turn, Failure> {
    Ok(Turn {
        first: event_at(row, 0),
        events: row.get::<_, i32>(1).unsigned_abs(),
        time: Timestamp(row.get(2)),
        text: long_text(row, 3)?,
    })
}

pub(crate) async fn parent_of(session: &Session, execution: &str) -> Result<Option<Text>, Failure> {
    let asked = "select parent_execution from executions where id = $1 and parent_execution is not null";
    let row = session.first(asked, &[&Str(execution)]).await?;
    Ok(row.map(|row| text(&row, 0)))
}

pub(crate) async fn awake(session: &Session, shards: &ShardSet) -> Result<Vec<Text>, Failure> {
    let asked =
        "select id from executions where awake and ($1::smallint[] is null or shard = any ($1)) order by number";
    let mut ids: Vec<Text> = session
        .query(asked, &[&some_shards(shards)])
        .await?
        .iter()
        .map(|row| text(row, 0))
        .collect();
    ids.sort();
    Ok(ids)
}

pub(crate) async fn due(
    session: &Session,
    shards: &ShardSet,
    before: Timestamp,
    limit: usize,
) -> Result<Vec<(Timestamp, Text)>, Failure> {
    let asked = "select wake_at, id from executions where wake_at is not null and not awake and wake_at < $1
        and ($3::smallint[] is null or shard = any ($3)) order by wake_at, number limit $2";
    let values: [Param<'_>; 3] = [&before.0, &rows(limit), &some_shards(shards)];
    let found = session.query(asked, &values).await?;
    Ok(found.iter().map(|row| (Timestamp(row.get(0)), text(row, 1))).collect())
}

/// The messages to these receivers. The database leaves out those whose receiver shows its shard, and the others are looked at here.
pub(crate) async fn messages(session: &Session, to: &Receivers) -> Result<Vec<Message>, Failure> {
    let (of, shards) = match to {
        Receivers::All => ("", None),
        Receivers::Admission => ("where receiver = $1", None),
        Receivers::Executions(shards) => ("where receiver <> $1", shown_shards(shards)),
    };
    let shown = match shards {
        Some(_) => format!("and {}", in_shown_shards("receiver", 2)),
        None => String::new(),
    };
    let sql = format!("select sender, event, receiver, body from messages {of} {shown} order by place");
    let mut values: Vec<Param<'_>> = Vec::new();
    let receiver = Str(ADMISSION);
    if *to != Receivers::All {
        values.push(&receiver);
    }
    if shards.is_some() {
        values.push(&shards);
    }
    let mut messages = Vec::new();
    for row in session.query(&sql, &values).await? {
        if to.have(&text(&row, 2)) {
            messages.push(message(&row)?);
        }
    }
    Ok(messages)
}

/// A condition on a column of ids: those that are UUIDs have one of the shards in parameter `place`, see [`shown_shards`]. The
/// shard of any other id is a hash, which the database does not know.
pub(crate) fn in_shown_shards(column: &str, place: usize) -> String {
    format!("({column} !~ '^[0-9a-f-]{{36}}$' or right({column}, 2) = any (${place}))")
}

/// A set of shards as ids show them, where not all are wanted.
pub(crate) fn shown_shards(shards: &ShardSet) -> Option<Vec<String>> {
    (!shards.is_all()).then(|| shards.iter().map(|shard| format!("{shard:02x}")).collect())
}

/// The first messages to admission.
pub(crate) async fn first_messages(session: &Session, limit: usize) -> Result<Vec<Message>, Failure> {
    let sql = "select sender, event, receiver, body from messages where receiver = $1 order by place limit $2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let found = session.query(sql, &[&Str(ADMISSION), &limit]).await?;
    found.iter().map(message).collect()
}

/// The messages of an execution to admission.
pub(crate) async fn messages_of(session: &Session, execution: &str) -> Result<Vec<Message>, Failure> {
    let sql = "select sender, event, receiver, body from messages where receiver = $1 and sender = $2 order by event";
    let found = session.query(sql, &[&Str(ADMISSION), &Str(execution)]).await?;
    found.iter().map(message).collect()
}

fn message(row: &Row) -> Result<Message, Failure> {
    let id = MessageId {
        from: text(row, 0),
        event: EventId(row.get::<_, i64>(1).unsigned_abs()),
        to: text(row, 2),
    };
    Ok(Message {
        id,
        body: bytes_json(row, 3)?,
    })
}

pub(crate) async fn is_pending(session: &Session, message: &MessageId) -> Result<bool, Failure> {
    let asked = "select 1 from messages where receiver = $1 and sender = $2 and event = $3";
    let values: [Param<'_>; 3] = [&Str(&message.to), &Str(&message.from), &big(message.event.0)];
    Ok(session.first(asked, &values).await?.is_some())
}

const TURN_BEFORE: &str = "select t.first, t.events, t.time, t.text from turns t
    where t.number = (select number from executions where id = $1) and t.first <= $2 order by t.first desc limit 1";

/// The last turn that begins at this event or before it.
async fn turn_before(session: &Session, execution: &str, event: i32) -> Result<Option<Turn>, Failure> {
    let row = session.first(TURN_BEFORE, &[&Str(execution), &event]).await?;
    row.map(|row| turn(&row)).transpose()
}

fn small(event: u64) -> i32 {
    i32::try_from(event).unwrap_or(i32::MAX)
}

pub(crate) async fn turn_of(session: &Session, execution: &str, event: EventId) -> Result<Option<Turn>, Failure> {
    let turn = turn_before(session, execution, small(event.0)).await?;
    Ok(turn.filter(|turn| event <= turn.last()))
}

pub(crate) async fn last_turn(session: &Session, execution: &str) -> Result<Option<Turn>, Failure> {
    turn_before(session, execution, i32::MAX).await
}

pub(crate) async fn logs(
    session: &Session,
    execution: &str,
    from: EventId,
    limit: usize,
) -> Result<Vec<AttemptLog>, Failure> {
    let asked = "select l.event, l.text from logs l where l.number = (select number from executions where id = $1)
        and l.event >= $2 and l.stream = 'stderr' order by l.event limit $3";
    let found = session
        .query(asked, &[&Str(execution), &small(from.0), &rows(limit)])
        .await?;
    let log = |row: &Row| -> Result<AttemptLog, Failure> {
        Ok(AttemptLog {
            event: event_at(row, 0),
            text: long_text(row, 1)?,
        })
    };
    found.iter().map(log).collect()
}

/// Heads that are read at once.
const HEADS: i64 = 256;

/// The texts are asked for when it is known how large they are.
pub(crate) async fn turns(
    session: &Session,
    execution: &str,
    from: EventId,
    events: u32,
    backwards: bool,
) -> Result<Vec<Turn>, Failure> {
    let mut page = TurnPage::new(from, events, backwards).bounded();
    let heads = turn_heads(session, execution, from, events, backwards).await?;
    let taken: Vec<TurnHead> = heads.into_iter().take_while(|head| page.takes(head)).collect();
    let firsts = || taken.iter().map(|head| head.first.0);
    let (Some(low), Some(high)) = (firsts().min(), firsts().max()) else {
        return Ok(Vec::new());
    };
    let asked = "select t.first, t.events, t.time, t.text from turns t
        where t.number = (select number from executions where id = $1) and t.first between $2 and $3 order by t.first";
    let found = session
        .query(asked, &[&Str(execution), &small(low), &small(high)])
        .await?;
    let mut turns = found.iter().map(turn).collect::<Result<Vec<_>, _>>()?;
    if backwards {
        turns.reverse();
    }
    Ok(turns)
}

/// The length of a text is known without it.
pub(crate) async fn turn_heads(
    session: &Session,
    execution: &str,
    from: EventId,
    events: u32,
    backwards: bool,
) -> Result<Vec<TurnHead>, Failure> {
    let asked = if backwards {
        "select t.first, t.events, t.time, octet_length(t.text) from turns t
            where t.number = (select number from executions where id = $1) and t.first <= $2 order by t.first desc limit $3"
    } else {
        // From the turn that begins at the event or before it.
        "select t.first, t.events, t.time, octet_length(t.text) from turns t, executions e
            where e.id = $1 and t.number = e.number
                and t.first >= coalesce((select max(b.first) from turns b where b.number = e.number and b.first <= $2), $2)
            order by t.first limit $3"
    };
    let mut page = TurnPage::new(from, events, backwards);
    let (mut found, mut place) = (Vec::new(), small(from.0.max(u64::from(backwards))));
    let most = HEADS.min(i64::from(events));
    while page.wants_more() {
        let part = session.query(asked, &[&Str(execution), &place, &most]).await?;
        for row in &part {
            let head = turn_head(row);
            // The last turn of all may end before the event.
            if (!backwards && head.last() < from) || !page.takes(&head) {
                return Ok(found);
            }
            place = match backwards {
                true => small(head.first.0) - 1,
                false => small(head.last().0 + 1),
            };
            found.push(head);
        }
        if i64::try_from(part.len()).unwrap_or(i64::MAX) < most {
            break;
        }
    }
    Ok(found)
}

fn turn_head(row: &Row) -> TurnHead {
    TurnHead {
        first: event_at(row, 0),
        events: row.get::<_, i32>(1).unsigned_abs(),
        time: Timestamp(row.get(2)),
        bytes: usize::try_from(row.get::<_, i32>(3)).unwrap_or_default(),
    }
}
