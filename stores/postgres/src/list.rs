//! Lists of executions, the newest first.

use crate::codec::{Str, Whole, rows};
use crate::fault::Failure;
use crate::record::{COLUMNS, from_row, text};
use crate::session::{Owned, Param, Session};
use starbridge_flow::value::Text;
use starbridge_ports::{Listed, Page, Query, StoreError, WaitingReason, code_of};

pub(crate) async fn named(session: &Session, flow: &str, name: &str) -> Result<Option<Text>, Failure> {
    let asked = "select id from executions where flow = $1 and name = $2
        union all select id from executions where id = $2 and flow = $1 and name is null limit 1";
    let row = session.first(asked, &[&Str(flow), &Str(name)]).await?;
    Ok(row.map(|row| text(&row, 0)))
}

pub(crate) async fn keyed(session: &Session, flow: &str, once_key: &str) -> Result<Option<Text>, Failure> {
    let asked = "select id from executions where flow = $1 and once_key = $2";
    let row = session.first(asked, &[&Str(flow), &Str(once_key)]).await?;
    Ok(row.map(|row| text(&row, 0)))
}

/// Where a page begins. A cursor is the number of the last row shown.
pub(crate) fn place(cursor: Option<&Text>) -> Result<Option<i64>, StoreError> {
    let number = |cursor: &Text| {
        let number = cursor.parse::<u64>().ok().and_then(|number| i64::try_from(number).ok());
        number.ok_or(StoreError::BadCursor)
    };
    cursor.map(number).transpose()
}

/// The page after this place.
pub(crate) async fn list(session: &Session, query: &Query, before: Option<i64>) -> Result<Page, Failure> {
    let (sql, values) = select(query, before);
    let values: Vec<Param<'_>> = values.iter().map(|value| &**value as Param<'_>).collect();
    let found = session.query(&sql, &values).await?;
    let mut found = found.iter().map(from_row).collect::<Result<Vec<_>, _>>()?;
    let more = found.len() > query.limit;
    found.truncate(query.limit);
    let next = found
        .last()
        .filter(|_| more)
        .map(|(number, _, _)| Text::from(number.to_string()));
    let items = found.into_iter().map(|(_, id, record)| Listed { id, record });
    Ok(Page {
        items: items.collect(),
        next,
        looked: None,
    })
}

/// The conditions of a query, with their values.
#[derive(Default)]
struct Terms<'a> {
    all: Vec<String>,
    values: Vec<Owned<'a>>,
}

impl<'a> Terms<'a> {
    /// Adds a value and returns its placeholder in the query.
    fn value(&mut self, value: Owned<'a>) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    /// When they were asked for, and when they ended.
    fn add_times(&mut self, query: &Query) {
        let asked = "coalesce(e.requested, e.started)";
        for (at, of, how) in [
            (query.from, asked, ">="),
            (query.to, asked, "<"),
            (query.ended_from, "e.ended", ">="),
            (query.ended_to, "e.ended", "<"),
        ] {
            if let Some(at) = at {
                self.is(of, how, Box::new(at.0));
            }
        }
    }

    fn is(&mut self, column: &str, how: &str, value: Owned<'a>) {
        let value = self.value(value);
        self.all.push(format!("{column} {how} {value}"));
    }
}

/// What is awake has no reason in its row: it would be written with each turn that waits. The statuses are those of what has not
/// begun.
pub(crate) const RUNNING: &str = "e.awake and e.reason is null and e.ended is null and e.status not in (0, 11, 12)";

fn reasons(reasons: &[WaitingReason]) -> String {
    let stored = reasons.iter().filter(|reason| **reason != WaitingReason::Running);
    let stored: Vec<String> = stored.map(|reason| reason.number().to_string()).collect();
    let stored = (!stored.is_empty()).then(|| format!("e.reason in ({}) and e.ended is null", stored.join(", ")));
    let running = reasons.contains(&WaitingReason::Running).then(|| RUNNING.to_owned());
    let ways: Vec<String> = stored.into_iter().chain(running).collect();
    format!("({})", ways.join(" or "))
}

/// The query. It asks for one row more, to know whether there is a next page.
fn select(query: &Query, before: Option<i64>) -> (String, Vec<Owned<'_>>) {
    let mut terms = Terms::default();
    let same = |text: &Text| -> Owned<'static> { Box::new(Whole(text.to_string())) };
    for (column, wanted) in [
        ("e.flow", &query.flow),
        ("e.parent_execution", &query.parent),
        ("e.root", &query.root),
        ("e.error", &query.error),
        ("e.step", &query.step),
    ] {
        if let Some(wanted) = wanted {
            terms.is(column, "=", same(wanted));
        }
    }
    // Literals, so that the index with the same condition serves them.
    let codes = |codes: Vec<String>| codes.join(", ");
    if !query.statuses.is_empty() {
        let mut statuses: Vec<usize> = query.statuses.iter().map(|status| code_of(*status)).collect();
        statuses.sort_unstable();
        statuses.dedup();
        let statuses = codes(statuses.iter().map(usize::to_string).collect());
        terms.all.push(format!("e.status in ({statuses})"));
    }
    if !query.reasons.is_empty() {
        terms.all.push(reasons(&query.reasons));
    }
    if let Some(of) = &query.reason_of {
        terms.is(
            "e.reason is not null and e.ended is null and e.reason_of",
            "=",
            same(of),
        );
    }
    if query.broken {
        terms.all.push("e.broken is not null".to_owned());
    }
    if let Some(name) = &query.name {
        let name = terms.value(same(name));
        terms.all.push(format!("starts_with(coalesce(e.name, e.id), {name})"));
    }
    for (label, wanted) in &query.labels {
        let (label, wanted) = (terms.value(same(label)), terms.value(same(wanted)));
        terms.all.push(format!(
            "exists (select 1 from labels l where l.label = {label} and l.value = {wanted} and l.number = e.number)"
        ));
    }
    terms.add_times(query);
    if let Some(before) = before {
        terms.is("e.number", "<", Box::new(before));
    }
    let limit = terms.value(Box::new(rows(query.limit).saturating_add(1)));
    let wanted = match terms.all.is_empty() {
        true => "true".to_owned(),
        false => terms.all.join(" and "),
    };
    let sql = format!("select {COLUMNS} from executions e where {wanted} order by e.number desc limit {limit}");
    (sql, terms.values)
}
