//! How PostgreSQL goes about what it is asked: it says so in its log.

use crate::stand::Stand;
use std::collections::BTreeSet;

/// Makes a server write down each plan.
pub const SAID: [&str; 4] = [
    "-c",
    "session_preload_libraries=auto_explain",
    "-c",
    "auto_explain.log_min_duration=0",
];

/// Tables that grow with what runs.
const LARGE: [&str; 16] = [
    "executions",
    "turns",
    "labels",
    "checkpoints",
    "requests",
    "messages",
    "tasks",
    "dead_tasks",
    "logs",
    "notices",
    "waiters",
    "slots",
    "dependencies",
    "waiter_ancestors",
    "bulk_items",
    "audit",
];

/// What is asked once, when a store is opened, and what people ask for: these count all there is.
const WHOLE: [&str; 8] = [
    "select status, count(*) from executions group by status",
    "select sender, event, receiver, body from messages",
    "select queue, priority, count(*), min(round) from tasks",
    "select queue, count(*) from dead_tasks",
    "select target, count(*) from notices",
    "select count(*) from waiters",
    "select e.reason, count(*) from executions",
    "select distinct s.execution, coalesce(e.status",
];

/// A plan of a query, with its lines.
struct Plan<'a> {
    query: String,
    lines: Vec<&'a str>,
}

fn plans(log: &str) -> Vec<Plan<'_>> {
    let mut plans: Vec<Plan<'_>> = Vec::new();
    let mut within = false;
    for line in log.lines() {
        let Some(line) = line.strip_prefix('\t') else {
            within = line.ends_with("plan:");
            continue;
        };
        if !within {
            continue;
        }
        match line.strip_prefix("Query Text: ") {
            Some(query) => plans.push(Plan {
                query: query.to_owned(),
                lines: Vec::new(),
            }),
            None => {
                if let Some(plan) = plans.last_mut() {
                    match plan.lines.is_empty() && !line.contains("(cost=") {
                        true => plan.query = format!("{} {}", plan.query, line.trim()),
                        false => plan.lines.push(line),
                    }
                }
            }
        }
    }
    plans
}

/// The table that a line of a plan reads, and the index along which, if there is one.
fn read(line: &str) -> Option<(&str, Option<&str>)> {
    let scan = line.find("Scan")?;
    let (_, table) = line.get(scan..)?.split_once(" on ")?;
    let index = line.split_once(" using ").and_then(|(_, rest)| rest.split(' ').next());
    Some((table.split(' ').next()?, index))
}

/// What reads a whole table although nobody wants all of it.
fn wrong(plan: &Plan<'_>, partial: &BTreeSet<String>) -> bool {
    // Whoever wants the first few along an index reads no more than those.
    if plan.lines.iter().any(|line| line.contains("Limit  (cost=")) {
        return false;
    }
    plan.lines.iter().enumerate().any(|(at, line)| {
        let Some((table, index)) = read(line).filter(|_| !line.contains("Bitmap")) else {
            return false;
        };
        let further = plan.lines.iter().skip(at + 1);
        let bounded = further
            .take_while(|line| !line.contains("(cost="))
            .any(|line| line.contains("Index Cond:"));
        LARGE.contains(&table) && !bounded && index.is_none_or(|index| !partial.contains(index))
    })
}

/// Nothing that was asked of this server reads a whole table that may be large, whichever plan is kept: all were made while the
/// tables were nearly empty.
pub fn are_those_of_full_tables(stand: &Stand) {
    let partial = stand.sql(
        "select distinct c.relname from pg_index i join pg_class c on c.oid = i.indexrelid where i.indpred is not null",
    );
    let partial: BTreeSet<String> = partial.lines().map(str::to_owned).collect();
    let log = std::fs::read_to_string(stand.service.folder().join("log")).unwrap();
    let plans = plans(&log);
    assert!(plans.len() > 1_000, "{} plans were written down", plans.len());
    let wrong: BTreeSet<String> = plans
        .iter()
        .filter(|plan| !WHOLE.iter().any(|whole| plan.query.starts_with(whole)) && wrong(plan, &partial))
        .map(|plan| format!("{}\n{}", plan.query, plan.lines.join("\n")))
        .collect();
    let wrong: Vec<String> = wrong.into_iter().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_plan_that_reads_a_whole_table_is_seen() {
    let log = "2026 LOG:  duration: 0.1 ms  plan:\n\tQuery Text: select 1\n\t\tfrom turns\n\tSeq Scan on turns t  (cost=1..2 rows=1 width=3)\n\
        2026 LOG:  duration: 0.1 ms  plan:\n\tQuery Text: select 2\n\tIndex Scan using turns_pkey on turns  (cost=1)\n\t  Index Cond: (number = 1)\n\
        2026 LOG:  duration: 0.1 ms  plan:\n\tQuery Text: select 3\n\tSort  (cost=2)\n\t  ->  Index Scan using turns_pkey on turns t  (cost=1)\n\t        Filter: x\n\
        2026 LOG:  duration: 0.1 ms  plan:\n\tQuery Text: select 4\n\tIndex Only Scan using few on turns t  (cost=1)\n\
        2026 LOG:  other\n\tQuery Text: select 5\n\tSeq Scan on turns  (cost=1)\n";
    let few = BTreeSet::from(["few".to_owned()]);
    let seen: Vec<String> = plans(log)
        .into_iter()
        .filter(|plan| wrong(plan, &few))
        .map(|plan| plan.query)
        .collect();
    assert_eq!(seen, ["select 1 from turns", "select 3"]);
}
