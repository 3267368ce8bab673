//! Errors in expressions, which are paths and conditions, with their place.

use crate::string_literal::LiteralError;

/// An error in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// Where, in bytes from the start of the string, the root's name included.
    pub offset: usize,
    /// How many bytes are concerned; 0 at the end of the string.
    pub len: usize,
    /// The error.
    pub message: String,
    /// The advice.
    pub help: Option<String>,
}

impl ExpressionError {
    /// An error about this many bytes from `offset` on, without help.
    pub fn new(offset: usize, len: usize, message: impl Into<String>) -> Self {
        Self {
            offset,
            len,
            message: message.into(),
            help: None,
        }
    }

    /// [`Self::new`] for results that are passed up through many calls.
    pub fn boxed(offset: usize, len: usize, message: impl Into<String>) -> Box<Self> {
        Box::new(Self::new(offset, len, message))
    }

    /// This error with advice.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// This error with advice, in its box.
    pub fn with_help(mut self: Box<Self>, help: &str) -> Box<Self> {
        self.help = Some(help.to_owned());
        self
    }
}

impl std::fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ExpressionError {}

impl From<LiteralError> for ExpressionError {
    fn from(fault: LiteralError) -> Self {
        Self {
            help: fault.help.map(str::to_owned),
            ..Self::new(fault.offset, fault.len, fault.message)
        }
    }
}
