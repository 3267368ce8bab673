//! Conditions: boolean expressions over a choice's input or a poll's result (section "conditions").

mod asks;
mod evaluate;
mod functions;
mod lexer;
mod parser;
#[cfg(test)]
mod tests;
mod unfound;

use crate::graph::{self, Budget, Guard, Root};
use crate::path::PathError;
use crate::string_literal::Fault;
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

/// An error in a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionError {
    /// Where, in bytes from the start of the condition.
    pub offset: usize,
    /// How many bytes are concerned; 0 at the end of the condition.
    pub len: usize,
    /// The error.
    pub message: String,
    /// The advice.
    pub help: Option<String>,
}

impl ConditionError {
    fn new(offset: usize, len: usize, message: impl Into<String>) -> Self {
        Self {
            offset,
            len,
            message: message.into(),
            help: None,
        }
    }

    fn boxed(offset: usize, len: usize, message: impl Into<String>) -> Box<Self> {
        Box::new(Self::new(offset, len, message))
    }

    fn with_help(mut self: Box<Self>, help: &str) -> Box<Self> {
        self.help = Some(help.to_owned());
        self
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl std::fmt::Display for ConditionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConditionError {}

impl From<PathError> for ConditionError {
    fn from(error: PathError) -> Self {
        Self {
            help: error.help,
            ..Self::new(error.offset, error.len, error.message)
        }
    }
}

impl From<Fault> for ConditionError {
    fn from(fault: Fault) -> Self {
        Self {
            help: fault.help.map(str::to_owned),
            ..Self::new(fault.offset, fault.len, fault.message)
        }
    }
}

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    ///
    /// A [`ConditionError`] with the place if the text is not a condition.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        if text.len() > MAX_CONDITION_BYTES {
            let message = format!(
                "a condition of {} bytes; {MAX_CONDITION_BYTES} are the most",
                text.len()
            );
            return Err(ConditionError::new(0, text.len(), message));
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
