//! Limits for the data before an answer.

/// The largest number of informational answers to one request.
pub(crate) const MAX_ANSWERS: usize = 1000;
/// The largest size of all their headers together, in bytes.
pub(crate) const MAX_BYTES: usize = 64 * 1024;

/// More came before the answer than is allowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TooManyAnswers;

impl std::fmt::Display for TooManyAnswers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "more than {MAX_ANSWERS} informational answers (1xx), or {} KiB of them, came before the answer",
            MAX_BYTES / 1024
        )
    }
}

impl std::error::Error for TooManyAnswers {}
