//! Reads `Retry-After`: seconds or a date.

use http::header::{DATE, HeaderMap, RETRY_AFTER};
use jiff::fmt::rfc2822::DateTimeParser;
use starbridge_flow::time::{Millis, Seconds};
use starbridge_ports::{Clock, outside_wait, outside_wait_of};

/// How long an answer asks the client to wait, at most a day. A date counts from the answer's own
/// `Date`, so that a wrong clock on either side does not matter; if there is none, from `clock`.
/// `None` if there is no header, it can't be read, or a date has nothing to count from.
pub(crate) fn asked(headers: &HeaderMap, clock: Option<&dyn Clock>) -> Option<Seconds> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Some(seconds) = outside_wait_of(text) {
        return Some(seconds);
    }
    let until = instant(text)?;
    let sent = headers.get(DATE).and_then(|date| instant(date.to_str().ok()?));
    let from = sent.or_else(|| clock.map(|clock| clock.now().0))?;
    let millis = u64::try_from(until.saturating_sub(from)).unwrap_or(0);
    Some(outside_wait(Seconds(Millis(millis).as_secs_rounded_up())))
}

/// The milliseconds since 1970 of an HTTP date, in any of its three forms.
fn instant(text: &str) -> Option<i64> {
    let parsed = DateTimeParser::new().parse_timestamp(text).ok();
    parsed
        .or_else(|| in_form("%A, %d-%b-%y %H:%M:%S GMT", text))
        .or_else(|| in_form("%a %b %e %H:%M:%S %Y", text))
        .map(jiff::Timestamp::as_millisecond)
}

fn in_form(form: &str, text: &str) -> Option<jiff::Timestamp> {
    let time = jiff::civil::DateTime::strptime(form, text).ok()?;
    Some(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::HeaderValue;
    use starbridge_flow::time::Timestamp;

    struct Fixed(i64);
    impl Clock for Fixed {
        fn now(&self) -> Timestamp {
            Timestamp(self.0)
        }
    }

    fn seconds(retry_after: &'static str, date: Option<&'static str>, clock: Option<i64>) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static(retry_after));
        if let Some(date) = date {
            headers.insert(DATE, HeaderValue::from_static(date));
        }
        let clock = clock.map(Fixed);
        asked(&headers, clock.as_ref().map(|clock| clock as &dyn Clock)).map(|asked| asked.0)
    }

    #[test]
    fn seconds_are_taken_up_to_a_day() {
        assert_eq!(seconds("120", None, None), Some(120));
        assert_eq!(seconds(" 0 ", None, None), Some(0));
        assert_eq!(seconds("99999999999999999999999", None, None), Some(86_400));
    }

    #[test]
    fn dates_count_from_the_answer_or_the_clock() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(seconds(date, Some("Sun, 06 Nov 1994 08:49:07 GMT"), None), Some(30));
        assert_eq!(seconds(date, Some("Sun, 06 Nov 1994 09:00:00 GMT"), None), Some(0));
        assert_eq!(
            seconds(date, None, Some(784_111_777_000 - 1_500)),
            Some(2),
            "rounded up"
        );
        assert_eq!(
            seconds("Sunday, 06-Nov-94 08:49:37 GMT", None, Some(784_111_770_000)),
            Some(7)
        );
        assert_eq!(
            seconds("Sun Nov  6 08:49:37 1994", None, Some(784_111_770_000)),
            Some(7)
        );
        assert_eq!(seconds(date, None, None), None);
        assert_eq!(seconds(date, None, Some(0)), Some(86_400), "24 years are not waited");
        assert_eq!(seconds("Thu, 30 Dec 9999 00:00:00 GMT", Some(date), None), Some(86_400));
    }

    #[test]
    fn rubbish_says_nothing() {
        for text in ["", "soon", "-1", "1.5", "1 h"] {
            assert_eq!(seconds(text, None, Some(0)), None, "{text}");
        }
    }
}
