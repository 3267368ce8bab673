//! "Did you mean", within a budget, so that a text full of mistakes does not take long to check.

use super::Checker;
use super::cursor::Cursor;
use crate::diagnostics::{Diagnostic, Nearest, nearest_alone};

/// How many words are compared in one check before suggestions end.
pub(super) const MAX_COMPARISONS: usize = 30_000;
/// Bytes of a word of the usual length.
const USUAL_WORD_BYTES: usize = 16;
/// The maximum weight of a word, in words of the usual length. Longer words are not compared at
/// all.
const MAX_WORD_WEIGHT: usize = 4;

impl Checker<'_> {
    /// The candidate nearest to a word. `count` is the maximum number of `candidates`.
    pub(super) fn near<'c, C>(&self, word: &str, count: usize, candidates: impl FnOnce() -> C) -> Option<Nearest<'c>>
    where
        C: IntoIterator<Item = &'c str>,
    {
        // The time to compare two words grows with the square of their length.
        let weight = (word.len() / USUAL_WORD_BYTES).clamp(1, MAX_WORD_WEIGHT).pow(2);
        let left = self.comparisons.get().checked_sub(count.saturating_mul(weight))?;
        self.comparisons.set(left);
        nearest_alone(word, candidates())
    }

    /// The nearest of a few words.
    pub(super) fn near_word<'c>(&self, word: &str, words: &[&'c str]) -> Option<Nearest<'c>> {
        self.near(word, words.len(), || words.iter().copied())
    }

    /// Makes a suggestion uncertain: the name refers to another place, and either of the two may be
    /// misspelt.
    pub(super) fn perhaps(near: Nearest<'_>) -> Nearest<'_> {
        Nearest { alone: false, ..near }
    }

    /// Offers to write `near` in place of the text at `cursor`.
    pub(super) fn did_you_mean(&self, found: Diagnostic, cursor: &Cursor<'_>, near: Nearest<'_>) -> Diagnostic {
        let Nearest { word, alone } = near;
        let (title, replacement) = (
            format!("change it to `{word}`"),
            self.quoted_like(cursor.node.span, word),
        );
        found
            .help(format!("did you mean `{word}`?"))
            .fixed_by(title, cursor.node.span, replacement, alone)
    }
}
