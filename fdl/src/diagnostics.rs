//! Diagnostics of a definition. All languages share the form of a diagnostic; the codes belong to
//! this language.

mod code;

pub use code::Code;
pub use starbridge_flow::diagnostics::{
    Fix, Label, Nearest, QUOTED_CHARS, Severity, changes, nearest, nearest_alone, quoted, shortened,
};

/// One problem of a definition.
pub type Diagnostic = starbridge_flow::diagnostics::Diagnostic<Code>;
