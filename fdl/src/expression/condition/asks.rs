//! The questions that a condition asks of its data, for checks that have no data.

use super::Condition;
use super::lexer::{Comparison, TokenKind, tokens};
use super::parser::Expression;
use crate::path::Query;
use crate::value::Value;

/// One question of a condition.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask<'c> {
    /// Whether a path finds `true`.
    True(Place, &'c Query),
    /// A comparison.
    Compare(Side<'c>, Comparison, Side<'c>),
}

/// A side of a comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side<'c> {
    Path(Place, &'c Query),
    Constant(&'c Value),
    /// A condition, which is true or false.
    Condition,
}

/// The number of a path in its condition.
pub(crate) type Place = usize;

impl Condition {
    /// Its questions in the order of the text; those inside a side come before their comparison.
    pub(crate) fn asks(&self) -> Vec<Ask<'_>> {
        let mut asks = Vec::new();
        collect(&self.expression, &mut 0, &mut asks);
        asks
    }

    /// Its paths with their places.
    pub(crate) fn paths(&self) -> Vec<(Place, &Query)> {
        let of = |side| match side {
            Side::Path(place, query) => Some((place, query)),
            _ => None,
        };
        let mut paths = Vec::new();
        for ask in self.asks() {
            match ask {
                Ask::True(place, query) => paths.push((place, query)),
                Ask::Compare(left, _, right) => paths.extend([left, right].into_iter().filter_map(of)),
            }
        }
        paths
    }

    /// Where one of its paths stands: offset and length in bytes.
    pub(crate) fn place(&self, place: Place) -> (usize, usize) {
        let tokens = tokens(&self.text).unwrap_or_default();
        let mut paths = tokens.iter().filter(|token| matches!(token.kind, TokenKind::Path(_)));
        paths
            .nth(place)
            .map_or((0, self.text.len()), |token| (token.offset, token.len))
    }
}

// The parser bounds the depth of nested expressions.
fn collect<'c>(expression: &'c Expression, paths: &mut Place, asks: &mut Vec<Ask<'c>>) {
    match expression {
        Expression::Constant(_) => {}
        Expression::Path(path) => {
            asks.push(Ask::True(*paths, path));
            *paths += 1;
        }
        Expression::Not(inside) => collect(inside, paths, asks),
        Expression::All(parts) | Expression::Any(parts) => parts.iter().for_each(|part| collect(part, paths, asks)),
        Expression::Compare(left, comparison, right) => {
            let left = side(left, paths, asks);
            let right = side(right, paths, asks);
            asks.push(Ask::Compare(left, *comparison, right));
        }
    }
}

fn side<'c>(expression: &'c Expression, paths: &mut Place, asks: &mut Vec<Ask<'c>>) -> Side<'c> {
    match expression {
        Expression::Constant(value) => Side::Constant(value),
        Expression::Path(path) => {
            *paths += 1;
            Side::Path(*paths - 1, path)
        }
        condition => {
            collect(condition, paths, asks);
            Side::Condition
        }
    }
}
