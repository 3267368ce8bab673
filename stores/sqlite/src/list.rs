//! Lists of executions, the newest first.

use crate::page;
use crate::record::{COLUMNS, SUCCEEDED_CODE, from_row};
use crate::ways::{Way, in_family, ways};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::Status;
use starbridge_ports::{ExecutionRecord, Listed, Page, Query, STATUS_CODES, WaitingReason};
use std::borrow::Cow;
use std::time::{Duration, Instant};

pub(crate) fn named(connection: &Connection, flow: &str, name: &str) -> rusqlite::Result<Option<Text>> {
    for sql in [
        "SELECT id FROM executions WHERE flow = ?1 AND name = ?2",
        "SELECT id FROM executions WHERE id = ?2 AND flow = ?1 AND name IS NULL",
    ] {
        let found = connection
            .prepare_cached(sql)?
            .query_row([flow, name], |row| Ok(Text::from(row.get_ref(0)?.as_str()?)))
            .optional()?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

pub(crate) fn keyed(connection: &Connection, flow: &str, once_key: &str) -> rusqlite::Result<Option<Text>> {
    connection
        .prepare_cached("SELECT id FROM executions WHERE flow = ?1 AND once_key = ?2")?
        .query_row([flow, once_key], |row| Ok(Text::from(row.get_ref(0)?.as_str()?)))
        .optional()
}

pub(crate) fn counts(connection: &Connection) -> rusqlite::Result<Vec<(Status, u64)>> {
    let counts: Vec<(usize, u64)> = connection
        .prepare_cached("SELECT status, executions FROM statuses WHERE executions > 0 ORDER BY status")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let known = |(code, count): (usize, u64)| STATUS_CODES.get(code).map(|&status| (status, count));
    Ok(counts.into_iter().filter_map(known).collect())
}

/// The page after this place.
pub(crate) fn list(connection: &Connection, query: &Query, before: Option<i64>) -> rusqlite::Result<Page> {
    let begun = Instant::now();
    list_while(connection, query, before, || begun.elapsed() < LONGEST)
}

/// The page after this place. Where no index leads to what is asked for, the next part is looked at only while `goes_on` says so.
fn list_while(
    connection: &Connection,
    query: &Query,
    before: Option<i64>,
    goes_on: impl Fn() -> bool,
) -> rusqlite::Result<Page> {
    let Some(query) = &rarest_first(connection, query)? else {
        return Ok(Page::default());
    };
    let few = match (&query.flow, &query.name) {
        (Some(flow), Some(name)) => few_named(connection, flow, name)?,
        _ => None,
    };
    let leads = few.is_some() || in_family(query) || query.broken || query.reasons == [WaitingReason::Running];
    let reads = is_without_index(query) || query.reason_of.is_some();
    let parts = match reads && !leads {
        true => parts(connection, before)?,
        false => vec![(None, before)],
    };
    let (mut found, mut looked) = (Vec::new(), None);
    for part in parts {
        search(connection, query, part, few.as_deref(), &mut found)?;
        looked = part.0;
        if found.len() > query.limit || !goes_on() {
            break;
        }
    }
    newest_first(&mut found);
    let last = page::cut(&mut found, query.limit, |(number, _, _)| *number);
    // What lies further back is looked at for the next page.
    let (next, looked) = match (last, looked) {
        (None, Some(number)) => (Some(number.to_string().into()), requested(connection, number)?),
        (last, _) => (last, None),
    };
    let items = found.into_iter().map(|(_, id, record)| Listed { id, record });
    Ok(Page {
        items: items.collect(),
        next,
        looked,
    })
}

/// Adds what is found between two numbers, until there is one more than a page has.
fn search(
    connection: &Connection,
    query: &Query,
    (mut least, before): (Option<i64>, Option<i64>),
    few: Option<&[i64]>,
    found: &mut Vec<(i64, Text, ExecutionRecord)>,
) -> rusqlite::Result<()> {
    for way in ways(query, few.is_some()) {
        let (sql, values) = select(query, &way, (least, before), few);
        let mut statement = connection.prepare_cached(&sql)?;
        let rows = statement.query_map(params_from_iter(values), from_row)?;
        for row in rows {
            found.push(row?);
        }
        // What is older than a full page is not on it, whichever way leads there.
        if found.len() > query.limit {
            newest_first(found);
            found.truncate(query.limit.saturating_add(1));
            least = found.last().map(|(number, _, _)| *number);
        }
    }
    Ok(())
}

/// When the first execution from this number on was requested.
fn requested(connection: &Connection, number: i64) -> rusqlite::Result<Option<Timestamp>> {
    connection
        .prepare_cached(
            "SELECT coalesce(requested, started) FROM executions WHERE number >= ?1 ORDER BY number LIMIT 1",
        )?
        .query_row([number], |row| row.get(0).map(Timestamp))
        .optional()
}

fn newest_first(found: &mut [(i64, Text, ExecutionRecord)]) {
    found.sort_by_key(|(number, _, _)| std::cmp::Reverse(*number));
}

/// So many executions are looked at for one page at most, where no index leads to those that are asked for.
const LOOKED: i64 = 50_000;
/// So many of them are looked at, before the time is.
const PART: i64 = 5_000;
/// After this time no further part is looked at: beside other work of the machine, each takes longer.
const LONGEST: Duration = Duration::from_millis(20);

/// Whether the executions that are asked for may be few among many that have to be read for them.
fn is_without_index(query: &Query) -> bool {
    let by_start = query.from.is_some() || query.to.is_some();
    query.asks_of_ends() || by_start || query.name.is_some() || query.statuses.contains(&Status::Succeeded)
}

/// The parts that are looked at one after the other: the number from which on, and the one before which. `None`: from the first, up to
/// the last.
fn parts(connection: &Connection, before: Option<i64>) -> rusqlite::Result<Vec<(Option<i64>, Option<i64>)>> {
    let newest = match before {
        Some(before) => before,
        None => connection
            .prepare_cached("SELECT coalesce(max(number), 0) + 1 FROM executions")?
            .query_row([], |row| row.get(0))?,
    };
    let first: i64 = connection
        .prepare_cached("SELECT coalesce(min(number), 0) FROM executions")?
        .query_row([], |row| row.get(0))?;
    let mut parts = Vec::new();
    let mut end = before;
    for number in 1..=LOOKED / PART {
        let least = Some(newest.saturating_sub(number * PART)).filter(|least| *least > first);
        parts.push((least, end));
        if least.is_none() {
            break;
        }
        end = least;
    }
    Ok(parts)
}

/// Entries of a label that are counted to find the rarest one.
const COUNTED: i64 = 1_000;

/// The query with its rarest label first, because the first one leads; `None` if no execution has
/// one of the labels.
fn rarest_first<'q>(connection: &Connection, query: &'q Query) -> rusqlite::Result<Option<Cow<'q, Query>>> {
    let mut counted = Vec::with_capacity(query.labels.len());
    for label in &query.labels {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM labels WHERE label = ?1 AND value = ?2 LIMIT ?3)";
        let count: i64 = connection
            .prepare_cached(sql)?
            .query_row(params![label.0.as_str(), label.1.as_str(), COUNTED], |row| row.get(0))?;
        if count == 0 {
            return Ok(None);
        }
        counted.push((count, label));
    }
    if counted.is_sorted_by_key(|(count, _)| *count) {
        return Ok(Some(Cow::Borrowed(query)));
    }
    counted.sort_by_key(|(count, _)| *count);
    Ok(Some(Cow::Owned(Query {
        labels: counted.into_iter().map(|(_, label)| label.clone()).collect(),
        ..query.clone()
    })))
}

/// If at most this many executions match a prefix of a name, they are looked up. Otherwise the
/// newest executions of the flow are read.
const FEW_NAMED: usize = 1_000;

/// The numbers of the executions of a flow whose names have this prefix, if they are few. A long prefix is quickly
/// looked up; with a short one, the newest matches are soon found by reading.
fn few_named(connection: &Connection, flow: &str, name: &str) -> rusqlite::Result<Option<Vec<i64>>> {
    let mut numbers = Vec::new();
    for sql in [
        "SELECT number, name, 1 FROM executions WHERE flow = ?1 AND name >= ?2 ORDER BY name",
        "SELECT number, id, flow = ?1 AND name IS NULL FROM executions WHERE id >= ?2 ORDER BY id",
    ] {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([flow, name])?;
        let mut looked = 0;
        while let Some(row) = rows.next()? {
            if !row.get_ref(1)?.as_str()?.starts_with(name) {
                break;
            }
            looked += 1;
            if looked > FEW_NAMED {
                return Ok(None);
            }
            if row.get(2)? {
                numbers.push(row.get(0)?);
            }
        }
    }
    Ok(Some(numbers))
}

/// One of the queries. It asks for one row more, to know whether there is a next page.
fn select(
    query: &Query,
    way: &Way,
    (least, before): (Option<i64>, Option<i64>),
    few: Option<&[i64]>,
) -> (String, Vec<Value>) {
    let mut terms = Terms::default();
    let few_lead = few.is_some() || in_family(query);
    let leads = few_lead || query.reasons == [WaitingReason::Running];
    let (from, number) = if query.labels.is_empty() || in_family(query) {
        ("executions AS e", "e.number")
    } else {
        (
            "labels AS l CROSS JOIN executions AS e ON e.number = l.number",
            "l.number",
        )
    };
    terms.add_labels(query);
    if let Some(flow) = &query.flow {
        let flow = terms.text(flow);
        // With one status its index is best; otherwise the numbers are better than everything else.
        let plus = if leads || way.reason.is_some() { "+" } else { "" };
        terms.add(format!("{plus}e.flow = {flow}"));
    }
    match (way.statuses.as_slice(), way.reason) {
        ([], _) => {}
        ([one], Some(reason)) => {
            let reason = terms.value(reason.map_or(Value::Null, |reason| Value::Integer(reason.number().into())));
            terms.add(format!(
                "e.status = {one} AND e.status <> {SUCCEEDED_CODE} AND e.reason IS {reason}"
            ));
        }
        (many, _) => {
            let many: Vec<String> = many.iter().map(usize::to_string).collect();
            terms.add(format!("+e.status IN ({})", many.join(", ")));
        }
    }
    terms.add_reasons(query, way, few_lead);
    if query.broken {
        // If few match, start with them, regardless of the other conditions.
        let plus = if leads { "+" } else { "" };
        terms.add(format!("{plus}e.broken IS NOT NULL"));
    }
    terms.add_family(query, few.is_some());
    if let Some(few) = few {
        let few: Vec<String> = few.iter().map(i64::to_string).collect();
        let few = terms.value(Value::Text(format!("[{}]", few.join(","))));
        terms.add(format!("e.number IN (SELECT value FROM json_each({few}))"));
    } else if let Some(name) = &query.name {
        let name = terms.text(name);
        terms.add(format!("substr(coalesce(e.name, e.id), 1, length({name})) = {name}"));
    }
    terms.add_times(query);
    for (at, sign) in [(least, ">="), (before, "<")] {
        if let Some(at) = at {
            let at = terms.number(at);
            terms.add(format!("{number} {sign} {at}"));
        }
    }
    let limit = terms.number(i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1));
    let columns: Vec<String> = COLUMNS.split(", ").map(|column| format!("e.{column}")).collect();
    let sql = format!(
        "SELECT {} FROM {from} WHERE {} ORDER BY {number} DESC LIMIT {limit}",
        columns.join(", "),
        terms.all.join(" AND ")
    );
    (sql, terms.values)
}

/// What is awake has no reason in its row: it would be written and deleted with each turn that waits. The statuses are those of
/// what has not begun and has no reason in its row either.
pub(crate) const AWAKE: &str = "e.reason IS NULL AND e.ended IS NULL AND e.status NOT IN (0, 11, 12)";
const _: () = assert!(matches!(
    (STATUS_CODES[0], STATUS_CODES[11], STATUS_CODES[12]),
    (Status::New, Status::Blocked, Status::Queued)
));

/// The conditions of a query, with their values.
struct Terms {
    all: Vec<String>,
    values: Vec<Value>,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            all: vec!["1".to_owned()],
            values: Vec::new(),
        }
    }
}

impl Terms {
    fn add(&mut self, term: String) {
        self.all.push(term);
    }

    fn text(&mut self, text: &Text) -> String {
        self.value(Value::Text(text.as_str().to_owned()))
    }

    fn number(&mut self, number: i64) -> String {
        self.value(Value::Integer(number))
    }

    /// Adds a value and returns its placeholder in the query.
    fn value(&mut self, value: Value) -> String {
        self.values.push(value);
        format!("?{}", self.values.len())
    }

    /// When they were asked for, and how they ended.
    fn add_times(&mut self, query: &Query) {
        let asked = "coalesce(e.requested, e.started)";
        let times = [
            (query.from, asked, ">="),
            (query.to, asked, "<"),
            (query.ended_from, "+e.ended", ">="),
            (query.ended_to, "+e.ended", "<"),
        ];
        for (at, what, sign) in times {
            if let Some(at) = at {
                let at = self.number(at.0);
                self.add(format!("{what} {sign} {at}"));
            }
        }
        for (text, what) in [(&query.error, "+e.error"), (&query.step, "+e.step")] {
            if let Some(text) = text {
                let text = self.text(text);
                self.add(format!("{what} = {text}"));
            }
        }
    }

    fn add_reasons(&mut self, query: &Query, way: &Way, few_lead: bool) {
        if query.reasons.is_empty() {
            return;
        }
        if let Some(of) = &query.reason_of {
            let of = self.text(of);
            self.add(format!("+e.reason_of = {of}"));
        }
        if way.reason.is_some() {
            return;
        }
        if query.reasons == [WaitingReason::Running] {
            let plus = if few_lead { "+" } else { "" };
            return self.add(format!("{plus}e.awake = 1 AND {AWAKE}"));
        }
        let numbers: Vec<String> = query.reasons.iter().map(|reason| reason.number().to_string()).collect();
        self.add(format!("+e.reason IN ({}) AND e.ended IS NULL", numbers.join(", ")));
    }

    /// The parent comes first, because an execution has fewer children than its family has members.
    fn add_family(&mut self, query: &Query, few: bool) {
        let plus = |leads: bool| if leads { "" } else { "+" };
        if let Some(parent) = &query.parent {
            let parent = self.text(parent);
            self.add(format!("{}e.parent_execution = {parent}", plus(!few)));
        }
        if let Some(root) = &query.root {
            let root = self.text(root);
            self.add(format!("{}e.root = {root}", plus(!few && query.parent.is_none())));
        }
    }

    /// The first label leads, because its entries are in the order of numbers. In a family, its
    /// members lead.
    fn add_labels(&mut self, query: &Query) {
        for (position, (label, value)) in query.labels.iter().enumerate() {
            let (label, value) = (self.text(label), self.text(value));
            self.add(if position == 0 && !in_family(query) {
                format!("l.label = {label} AND l.value = {value}")
            } else {
                format!(
                    "EXISTS (SELECT 1 FROM labels AS m WHERE m.label = {label} AND m.value = {value} AND m.number = e.number)"
                )
            });
        }
    }
}

#[cfg(test)]
mod plans;

#[cfg(test)]
mod tests {
    use super::*;

    /// A store with 3,000 entries of one label and three of another.
    fn labelled() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        crate::open::keep_statements(&connection).unwrap();
        assert!(crate::migrate::bring_up(&mut connection).is_ok());
        let fill = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 3000)";
        for (label, of) in [("common", "n"), ("rare", "n WHERE n > 2997")] {
            let sql = format!("INSERT INTO labels {fill} SELECT '{label}', 'yes', n FROM {of}");
            connection.execute(&sql, []).unwrap();
        }
        connection
    }

    fn with_labels(labels: &[&str]) -> Query {
        Query {
            labels: labels.iter().map(|label| ((*label).into(), "yes".into())).collect(),
            limit: 50,
            ..Query::default()
        }
    }

    #[test]
    fn the_rarest_label_leads_and_one_nobody_has_ends_the_search() {
        let connection = labelled();
        let labels = |asked: &[&str]| {
            let query = with_labels(asked);
            let found = rarest_first(&connection, &query).unwrap();
            found.map(|found| found.labels.iter().map(|label| label.0.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(
            labels(&["common", "rare"]),
            Some(vec!["rare".to_owned(), "common".to_owned()])
        );
        assert_eq!(
            labels(&["rare", "common"]),
            Some(vec!["rare".to_owned(), "common".to_owned()])
        );
        assert_eq!(labels(&[]), Some(Vec::new()));
        assert_eq!(labels(&["nobody"]), None);
        assert_eq!(labels(&["common", "nobody"]), None);
        assert_eq!(
            list(&connection, &with_labels(&["common", "nobody"]), None)
                .unwrap()
                .items,
            []
        );
    }

    #[test]
    fn a_list_by_label_reads_only_the_entries_of_that_label() {
        let connection = labelled();
        let steps = |label: &str| {
            let (sql, values) = select(&with_labels(&[label]), &Way::default(), (None, None), None);
            let mut statement = connection.prepare(&sql).unwrap();
            let rows = statement
                .query_map(params_from_iter(values), |_| Ok(()))
                .unwrap()
                .count();
            assert_eq!(rows, 0, "there are entries and no executions");
            statement.get_status(rusqlite::StatementStatus::VmStep)
        };
        let (nobody, rare, common) = (steps("nobody"), steps("rare"), steps("common"));
        assert!(rare < nobody + 100, "{nobody} steps for none, {rare} for three");
        assert!(common > rare * 20, "{rare} steps for three, {common} for 3,000");
    }

    #[test]
    fn what_no_index_leads_to_is_looked_for_in_parts() {
        let connection = labelled();
        let fill = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1000 FROM n WHERE n < 120000)";
        let sql = format!(
            "INSERT INTO executions (number, id, shard, flow, version, status, awake, started, awaited, ended, error) \
             {fill} SELECT n, 'id' || n, 0, 'f', 1, 3, 0, n, 0, n, CASE n WHEN 1 THEN 'Rare' ELSE 'Common' END FROM n"
        );
        connection.execute(&sql, []).unwrap();
        let any = || with_labels(&[]);
        let (mut error, mut to, mut name, mut succeeded) = (any(), any(), any(), any());
        error.error = Some("Rare".into());
        to.to = Some(Timestamp(2));
        (name.name, name.error) = (Some("i".into()), Some("Rare".into()));
        succeeded.statuses = vec![Status::Succeeded];
        for (query, expected) in [(error, 1), (to, 1), (name, 1), (succeeded, 0)] {
            let (mut pages, mut before, mut found, mut looked) = (0, None, 0, Vec::new());
            loop {
                let page = list_while(&connection, &query, before, || true).unwrap();
                (pages, found) = (pages + 1, found + page.items.len());
                looked.extend(page.looked);
                let Some(next) = page.next else { break };
                before = Some(next.parse().unwrap());
            }
            assert_eq!((pages, found), (3, expected), "{query:?}");
            assert_eq!(looked, [Timestamp(71_001), Timestamp(21_001)], "{query:?}");
        }
    }

    /// Each page looks at one part at least, so that the last one is reached however slow the machine is.
    #[test]
    fn a_page_whose_time_is_over_goes_on_with_the_next_part() {
        let connection = labelled();
        let fill = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 100 FROM n WHERE n < 12000)";
        let sql = format!(
            "INSERT INTO executions (number, id, shard, flow, version, status, awake, started, awaited, ended, error) \
             {fill} SELECT n, 'id' || n, 0, 'f', 1, 3, 0, n, 0, n, CASE n WHEN 1 THEN 'Rare' ELSE 'Common' END FROM n"
        );
        connection.execute(&sql, []).unwrap();
        let mut query = with_labels(&[]);
        query.error = Some("Rare".into());
        let (mut before, mut looked, mut found) = (None, Vec::new(), Vec::new());
        loop {
            let page = list_while(&connection, &query, before, || false).unwrap();
            looked.extend(page.looked);
            found.push(page.items.len());
            let Some(next) = page.next else { break };
            before = Some(next.parse().unwrap());
        }
        assert_eq!(looked, [Timestamp(7_101), Timestamp(2_101)]);
        assert_eq!(found, [0, 0, 1]);
        // A page that is full does not look further.
        query.error = Some("Common".into());
        query.limit = 1;
        let page = list_while(&connection, &query, None, || true).unwrap();
        assert_eq!((page.items.len(), page.next.is_some(), page.looked), (1, true, None));
    }
}
