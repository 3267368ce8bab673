//! How much may come before an answer, and that more came.

/// Informational answers to one request.
pub(crate) const ANSWERS: usize = 1000;
/// Bytes of the headers of all of them.
pub(crate) const BYTES: usize = 64 * 1024;

/// More came than may.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TooMany;

impl std::fmt::Display for TooMany {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "more than {ANSWERS} informational answers (1xx), or {} KiB of them, came before the answer",
            BYTES / 1024
        )
    }
}

impl std::error::Error for TooMany {}
