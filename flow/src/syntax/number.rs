//! Numbers in texts.

use crate::value::Number;

/// Whether a text is a number in JSON's form.
pub(super) fn is_json(text: &str) -> bool {
    let mut rest = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let whole = digits(&mut rest);
    if whole.is_empty() || (whole.len() > 1 && whole.starts_with(b"0")) {
        return false;
    }
    if let [b'.', after @ ..] = rest {
        rest = after;
        if digits(&mut rest).is_empty() {
            return false;
        }
    }
    if let [b'e' | b'E', after @ ..] = rest {
        rest = after
            .strip_prefix(b"+")
            .or_else(|| after.strip_prefix(b"-"))
            .unwrap_or(after);
        return !digits(&mut rest).is_empty() && rest.is_empty();
    }
    rest.is_empty()
}

/// Removes the leading digits.
fn digits<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, after) = rest.split_at_checked(count).unwrap_or_default();
    *rest = after;
    digits
}

/// The value of a number that [`is_json`]; `None` if no double can hold it. Integers beyond 64 bits
/// become doubles.
pub(super) fn value(text: &str) -> Option<Number> {
    let (negative, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if magnitude.len() <= 18 && magnitude.bytes().all(|byte| byte.is_ascii_digit()) && text != "-0" {
        let value = magnitude
            .bytes()
            .fold(0, |value, byte| value * 10 + i64::from(byte - b'0'));
        return Some(if negative {
            (-value).into()
        } else {
            value.unsigned_abs().into()
        });
    }
    text.parse().ok()
}

/// The JSON form of a decimal number in a freer form: with `+`, leading zeros, no digits before or
/// after the point, or `_` between digits.
pub(super) fn as_json(text: &str) -> Option<String> {
    let text: String = text.chars().filter(|&letter| letter != '_').collect();
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(&text)),
    };
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    if whole.is_empty() && fraction.is_none_or(str::is_empty) {
        return None;
    }
    let or_zero = |digits| match digits {
        "" => "0",
        digits => digits,
    };
    let mut json = format!("{sign}{}", or_zero(whole.trim_start_matches('0')));
    if let Some(fraction) = fraction {
        json.push('.');
        json.push_str(or_zero(fraction));
    }
    json.push_str(exponent);
    is_json(&json).then_some(json)
}

/// The value of an integer with the prefix `0x` or `0o`, as decimal digits; `None` if it is not
/// such an integer or has more than 128 bits.
pub(super) fn other_radix(text: &str) -> Option<String> {
    let (digits, radix) = match (text.strip_prefix("0x"), text.strip_prefix("0o")) {
        (Some(digits), _) => (digits, 16),
        (_, Some(digits)) => (digits, 8),
        _ => return None,
    };
    let plain = !digits.starts_with('+');
    let value = u128::from_str_radix(digits, radix).ok().filter(|_| plain)?;
    Some(value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_writes_numbers_so() {
        for text in [
            "0",
            "-0",
            "10",
            "-1.5",
            "1e5",
            "1E+05",
            "0.0e-0",
            "123456789012345678901234567890",
        ] {
            assert!(is_json(text), "{text}");
            let expected: Number = serde_json::from_str(text).unwrap();
            assert_eq!(value(text), Some(expected), "{text}");
        }
        for text in [
            "", "-", "+1", "01", "-01", ".5", "5.", "1e", "1e+", "0x1", "1_0", "1.e5", "--1", "1e5.5", "1a",
        ] {
            assert!(!is_json(text), "{text}");
        }
        assert_eq!(value("1e999"), None);
        assert_eq!(value("999999999999999999"), Some(999_999_999_999_999_999_u64.into()));
        assert_eq!(value("18446744073709551615"), Some(u64::MAX.into()));
        assert_eq!(value("-9223372036854775808"), Some(i64::MIN.into()));
    }

    #[test]
    fn freer_numbers_become_json() {
        for (free, json) in [
            ("+1", Some("1")),
            ("007", Some("7")),
            ("-00", Some("-0")),
            (".5", Some("0.5")),
            ("-.5e3", Some("-0.5e3")),
            ("5.", Some("5.0")),
            ("1_000", Some("1000")),
            (".", None),
            ("+", None),
            ("1e", None),
            ("1-2", None),
            ("--1", None),
            ("1.2.3", None),
        ] {
            assert_eq!(as_json(free).as_deref(), json, "{free}");
        }
        assert_eq!(other_radix("0x1F").as_deref(), Some("31"));
        assert_eq!(other_radix("0o17").as_deref(), Some("15"));
        for none in ["0x", "0xg", "0o8", "0x+1", "17", "0b1"] {
            assert_eq!(other_radix(none), None, "{none}");
        }
    }
}
