//! How long somebody outside may ask to be left alone (section "errors"): nobody can put an execution to sleep for as long as they
//! like.

use starbridge_flow::limits::RETRY_AFTER_SECONDS;

/// The seconds somebody asks to wait, as far as that is heeded.
pub fn outside_wait(seconds: u64) -> u64 {
    seconds.min(RETRY_AFTER_SECONDS)
}

/// The same from text; nothing where it is no whole number, however long one.
pub fn outside_wait_of(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // Digits that make no number are too many of them.
    digits.then(|| outside_wait(text.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_a_day_at_most() {
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
            assert_eq!(outside_wait_of(text), seconds, "{text}");
        }
    }
}
