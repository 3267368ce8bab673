//! Lists of a server, shown as tables.

use super::Client;
use crate::exit::Exit;
use crate::output::finish;
use crate::table::table;
use clap::Args;
use starbridge_flow::value::Object;

/// The largest number of entries on a page of the server.
const PAGE_ITEMS: u64 = 1_000;
/// The number of entries shown by default.
const DEFAULT_LIMIT: u64 = 100;

/// How much of a list is shown.
#[derive(Clone, Copy, Debug, Args)]
pub struct ListLimit {
    /// So many at most; otherwise 100
    #[arg(long, value_name = "N", conflicts_with = "all", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// All of them
    #[arg(long)]
    all: bool,
}

/// A list that comes in pages.
pub struct Paged<'a> {
    pub path: &'a [&'a str],
    pub query: &'a [(&'a str, String)],
    pub heads: &'a [&'a str],
    /// The hint if the server has further pages.
    pub more: &'a str,
    /// The flow whose entries are wanted. It may be one that the server does not have.
    pub flow: Option<&'a str>,
}

impl Paged<'_> {
    /// Shows it: a table, or the server's pages, one per line.
    pub fn show(&self, client: &Client, most: ListLimit, row: impl Fn(&Object) -> Vec<String>) -> Result<(), Exit> {
        let output = client.output();
        let mut left = match most.all {
            true => u64::MAX,
            false => most.limit.unwrap_or(DEFAULT_LIMIT),
        };
        let mut rows = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let mut query = self.query.to_vec();
            query.push(("limit", left.min(PAGE_ITEMS).to_string()));
            query.extend(cursor.map(|cursor| ("cursor", cursor)));
            let answer = client.get(self.path, &query)?;
            let (items, next) = answer.page();
            if output.json() {
                output.result(&format!("{}\n", answer.text))?;
            }
            left = left.saturating_sub(items.len() as u64);
            rows.extend(items.iter().map(&row));
            cursor = next;
            if cursor.is_none() || left == 0 {
                break;
            }
        }
        if output.json() {
            return Ok(());
        }
        if rows.is_empty() {
            output.note("there are none");
            if let Some(unknown) = self.flow.and_then(|flow| client.unknown_flow(flow)) {
                output.note(&unknown);
            }
            return Ok(());
        }
        output.print(&table(self.heads, &rows))?;
        if cursor.is_some() {
            output.note(self.more);
        }
        Ok(())
    }
}

/// Shows a whole list: a table, or the server's pages, one per line; `none` if it is empty.
pub fn whole(
    client: &Client,
    path: &[&str],
    none: &str,
    heads: &[&str],
    row: impl Fn(&Object) -> Vec<String>,
) -> Result<(), Exit> {
    let output = client.output();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut query = Vec::new();
    loop {
        let answer = client.get(path, &query)?;
        if output.json() {
            finish(output, &answer.text, Ok(()))?;
        }
        let (items, next) = answer.page();
        rows.extend(items.iter().map(&row));
        match next {
            Some(next) => query = vec![("cursor", next)],
            None => break,
        }
    }
    if output.json() {
        return Ok(());
    }
    if rows.is_empty() {
        output.note(none);
        return Ok(());
    }
    output.print(&table(heads, &rows))
}
