//! What regular expressions cost: one measure for those of paths and those of schemas.

/// What a class of characters adds to an expression's cost.
pub(crate) const CLASS: usize = 4;
/// What a class with a Unicode property adds.
pub(crate) const PROPERTY: usize = 40;

/// The steps of a walk through so many bytes with an expression of this cost.
pub(crate) fn walk(bytes: usize, cost: usize) -> usize {
    bytes.saturating_mul(1 + cost / 64) / 16
}
