//! What is wrong with a definition. The form of a diagnostic is every language's; the codes are this one's.

mod code;

pub use code::Code;
pub use starbridge_flow::diagnostics::{
    Fix, Label, Nearest, QUOTED_CHARS, Severity, changes, nearest, nearest_alone, quoted, shortened,
};

/// One problem of a definition.
pub type Diagnostic = starbridge_flow::diagnostics::Diagnostic<Code>;
