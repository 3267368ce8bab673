//! How long a receiver outside may delay the next call (section "errors"). The limit keeps it from
//! putting an execution to sleep for any time it likes.

use starbridge_flow::limits::MAX_RETRY_AFTER;
use starbridge_flow::time::Seconds;

/// How much of the requested time the execution really waits.
pub fn outside_wait(asked: Seconds) -> Seconds {
    asked.min(MAX_RETRY_AFTER)
}

/// Reads requested seconds from text, with the same limit; `None` if the text is not a whole number of any length.
pub fn outside_wait_of(text: &str) -> Option<Seconds> {
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // Digits that do not fit into a number mean too many seconds.
    digits.then(|| outside_wait(Seconds(text.parse().unwrap_or(u64::MAX))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_from_outside_is_a_day_at_most() {
        for (text, seconds) in [
            ("0", Some(0)),
            (" 7 ", Some(7)),
            ("86400", Some(86_400)),
            ("86401", Some(86_400)),
            ("40000000", Some(86_400)),
            ("99999999999999999999", Some(86_400)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("+1", None),
            ("soon", None),
        ] {
            assert_eq!(outside_wait_of(text), seconds.map(Seconds), "{text}");
        }
    }
}
