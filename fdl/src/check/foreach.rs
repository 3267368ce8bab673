//! `foreach` steps.

use super::Checker;
use super::fields;
use super::outline::Slot;
use super::spot::Cursor;
use crate::diagnostics::Code;
use crate::graph::{Amount, Foreach, StepId, StepKind, Tolerance};
use crate::path::Query;
use crate::value::Text;
use std::sync::Arc;

/// How many iterations run at once where the flow does not say.
const CONCURRENCY: u64 = 100;

impl Checker<'_> {
    /// A foreach's own fields.
    pub(super) fn foreach(&self, spot: &Cursor<'_>, id: StepId) -> Option<StepKind> {
        let mapping = spot.member("iterationMapping").and_then(|field| self.iteration(&field));
        let concurrency = spot.member("concurrency").and_then(|field| self.concurrency(&field));
        let tolerance = spot.member("tolerance").and_then(|field| self.tolerance(&field));
        let list = self.steps(spot, id, Slot::Steps);
        let (collection, item, index) = mapping?;
        Some(StepKind::Foreach(Foreach {
            collection: Arc::new(collection),
            item,
            index,
            list: list?,
            concurrency: Amount::Fixed(concurrency.unwrap_or(CONCURRENCY)),
            tolerance,
        }))
    }

    fn iteration(&self, spot: &Cursor<'_>) -> Option<(Query, Text, Option<Text>)> {
        if !self.shaped(spot, &fields::ITERATION, &[]) {
            return None;
        }
        let collection = spot.member("collection").and_then(|field| {
            let text = self.text(&field)?;
            self.query(&field, &text)
        });
        let item = spot.member("item").and_then(|field| self.filled(&field));
        let index_spot = spot.member("index");
        let index = index_spot.and_then(|field| self.filled(&field));
        if let (Some(index), Some(name), Some(spot)) = (&index, &item, &index_spot)
            && index == name
        {
            let found = spot.problem(Code::ItemIsIndex, format!("`item` and `index` are both `{name}`"));
            self.report(found.help("an iteration sees both in its input, so they need two names"));
        }
        Some((collection?, item?, index))
    }

    fn tolerance(&self, spot: &Cursor<'_>) -> Option<Tolerance> {
        if !self.shaped(spot, &fields::TOLERANCE, &[]) {
            return None;
        }
        match self.one_of(spot, &["count", "percent"], true)? {
            ("count", count) => self.whole(&count, 0..=u64::MAX).map(Tolerance::Count),
            (_, percent) => self.number(&percent, 0.0..=100.0).map(Tolerance::Percent),
        }
    }
}
