//! The possible problems of a text before any language reads it.

use crate::diagnostics::{DiagnosticCode, Severity};

/// Which kind of problem a text has as JSON or YAML. A language gives each a code of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SyntaxCode {
    /// The text is not JSON.
    Syntax,
    /// A comment in JSON.
    Comment,
    /// A comma after the last item or member.
    TrailingComma,
    /// A key given twice.
    DuplicateKey,
    /// A number that data can't hold.
    NumberRange,
    /// Lists and objects that are nested deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    NestedTooDeep,
    /// More bytes than a definition may have.
    TooLarge,
    /// A text in a wrong encoding.
    Encoding,
    /// The text is not YAML.
    Yaml,
    /// A tag of YAML that means nothing here.
    YamlTag,
    /// Aliases of YAML that have no anchor or grow too large.
    YamlAlias,
    /// More than one document of YAML.
    YamlDocuments,
    /// A key that is not a string.
    YamlKey,
    /// An empty file.
    Empty,
}

impl SyntaxCode {
    /// Every kind.
    pub const ALL: [Self; 14] = [
        Self::Syntax,
        Self::Comment,
        Self::TrailingComma,
        Self::DuplicateKey,
        Self::NumberRange,
        Self::NestedTooDeep,
        Self::TooLarge,
        Self::Encoding,
        Self::Yaml,
        Self::YamlTag,
        Self::YamlAlias,
        Self::YamlDocuments,
        Self::YamlKey,
        Self::Empty,
    ];
}

impl DiagnosticCode for SyntaxCode {
    fn severity(self) -> Severity {
        match self {
            Self::YamlTag => Severity::Warning,
            _ => Severity::Error,
        }
    }
}
