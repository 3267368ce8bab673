//! Limits for what comes before an answer.

/// The largest number of informational answers to one request.
pub(crate) const ANSWERS: usize = 1000;
/// The largest size of all their headers together, in bytes.
pub(crate) const BYTES: usize = 64 * 1024;

/// More came than is allowed.
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
