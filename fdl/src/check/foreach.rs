//! `foreach` steps.

use super::Checker;
use super::cursor::Cursor;
use super::fields;
use super::outline::Slot;
use crate::diagnostics::Code;
use crate::graph::{DEFAULT_CONCURRENCY, Foreach, NumberSource, StepId, StepKind, Tolerance};
use crate::path::Query;
use crate::value::Text;
use std::sync::Arc;

impl Checker<'_> {
    /// A foreach's own fields.
    pub(super) fn foreach(&self, cursor: &Cursor<'_>, id: StepId) -> Option<StepKind> {
        let mapping = cursor
            .member("iterationMapping")
            .and_then(|field| self.iteration(&field));
        let concurrency = cursor.member("concurrency").and_then(|field| self.concurrency(&field));
        let tolerance = cursor.member("tolerance").and_then(|field| self.tolerance(&field));
        let list = self.steps(cursor, id, Slot::Steps);
        let (collection, item, index) = mapping?;
        Some(StepKind::Foreach(Foreach {
            collection: Arc::new(collection),
            item,
            index,
            list: list?,
            concurrency: NumberSource::Fixed(concurrency.unwrap_or(DEFAULT_CONCURRENCY)),
            tolerance,
        }))
    }

    fn iteration(&self, cursor: &Cursor<'_>) -> Option<(Query, Text, Option<Text>)> {
        if !self.check_fields(cursor, &fields::ITERATION, &[]) {
            return None;
        }
        let collection = cursor.member("collection").and_then(|field| {
            let text = self.text(&field)?;
            self.query(&field, &text)
        });
        let item = cursor.member("item").and_then(|field| self.filled(&field));
        let index_spot = cursor.member("index");
        let index = index_spot.and_then(|field| self.filled(&field));
        if let (Some(index), Some(name), Some(cursor)) = (&index, &item, &index_spot)
            && index == name
        {
            let found = cursor.problem(Code::ItemIsIndex, format!("`item` and `index` are both `{name}`"));
            self.report(found.help("an iteration sees both in its input, so they need two names"));
        }
        Some((collection?, item?, index))
    }

    fn tolerance(&self, cursor: &Cursor<'_>) -> Option<Tolerance> {
        if !self.check_fields(cursor, &fields::TOLERANCE, &[]) {
            return None;
        }
        match self.one_of(cursor, &["count", "percent"], true)? {
            ("count", count) => self.whole(&count, 0..=u64::MAX).map(Tolerance::Count),
            (_, percent) => self.number(&percent, 0.0..=100.0).map(Tolerance::Percent),
        }
    }
}
