//! Conditions: boolean expressions over a choice's input or a poll's result (section "conditions").

mod asks;
mod evaluate;
mod functions;
mod lexer;
mod parser;
#[cfg(test)]
mod tests;
mod unfound;

use crate::expression_error::ExpressionError;
use crate::graph::{self, Budget, Guard, Root};
use crate::value::Text;
pub(crate) use asks::{Ask, Side};
pub(crate) use lexer::Comparison;
use parser::Expression;

/// The maximum length of a condition, in bytes.
const MAX_CONDITION_BYTES: usize = 4096;

/// A parsed condition.
#[derive(Clone, Debug)]
pub struct Condition {
    text: Text,
    expression: Expression,
}

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    ///
    /// An [`ExpressionError`] with the place if the text is not a condition.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        if text.len() > MAX_CONDITION_BYTES {
            let message = format!(
                "a condition of {} bytes; {MAX_CONDITION_BYTES} are the most",
                text.len()
            );
            return Err(ExpressionError::new(0, text.len(), message));
        }
        Ok(Self {
            text: Text::from(text),
            expression: parser::parse(text)?,
        })
    }

    /// The condition as written.
    pub fn text(&self) -> &Text {
        &self.text
    }
}

impl Guard for Condition {
    fn holds(&self, data: Root<'_>, budget: &Budget) -> Result<bool, graph::Fault> {
        budget.within(&self.text, evaluate::holds(&self.expression, data, budget))
    }
}
