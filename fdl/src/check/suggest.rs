//! "Did you mean", within a budget: a text full of mistakes must not take long to check.

use super::Checker;
use super::spot::Cursor;
use crate::diagnostics::{Diagnostic, nearest};

/// How many words are compared in one check before suggestions end.
pub(super) const COMPARISONS: usize = 30_000;
/// Bytes of a word of the usual length.
const LETTERS: usize = 16;
/// How many times as long a word counts at most: longer ones are not compared at all.
const WEIGHT: usize = 4;

impl Checker<'_> {
    /// The candidate nearest to a word. `count` says how many `candidates` there are at most.
    pub(super) fn near<'c, C>(&self, word: &str, count: usize, candidates: impl FnOnce() -> C) -> Option<&'c str>
    where
        C: IntoIterator<Item = &'c str>,
    {
        // What comparing two words takes grows with the square of their length.
        let weight = (word.len() / LETTERS).clamp(1, WEIGHT).pow(2);
        let left = self.comparisons.get().checked_sub(count.saturating_mul(weight))?;
        self.comparisons.set(left);
        nearest(word, candidates())
    }

    /// The same among a few words.
    pub(super) fn near_word<'c>(&self, word: &str, words: &[&'c str]) -> Option<&'c str> {
        self.near(word, words.len(), || words.iter().copied())
    }

    /// Offers to write `near` in place of the text at `spot`.
    pub(super) fn did_you_mean(&self, found: Diagnostic, spot: &Cursor<'_>, near: &str) -> Diagnostic {
        found.help(format!("did you mean `{near}`?")).fix(
            format!("change it to `{near}`"),
            spot.node.span,
            self.quoted_like(spot.node.span, near),
        )
    }
}
