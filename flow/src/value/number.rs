//! Numbers: exact integers if they fit, otherwise doubles; compared by value.

use serde_json::Number;
use std::cmp::Ordering;

/// The number of digits of an unsigned integer.
fn digits(value: u64) -> usize {
    value.checked_ilog10().unwrap_or(0) as usize + 1
}

/// The length of a number's JSON text.
pub(super) fn json_len(number: &Number) -> usize {
    if let Some(value) = number.as_u64() {
        digits(value)
    } else if let Some(value) = number.as_i64() {
        digits(value.unsigned_abs()) + 1
    } else {
        number.to_string().len()
    }
}

/// Any integer of the language, wide enough for both signs.
fn integer(number: &Number) -> Option<i128> {
    number
        .as_u64()
        .map(i128::from)
        .or_else(|| number.as_i64().map(i128::from))
}

/// Orders two numbers by value; an integer is never rounded to a double.
pub fn compare(a: &Number, b: &Number) -> Option<Ordering> {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        (None, None) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        (Some(a), None) => integer_to_double(a, b.as_f64()?),
        (None, Some(b)) => integer_to_double(b, a.as_f64()?).map(Ordering::reverse),
    }
}

fn integer_to_double(a: i128, b: f64) -> Option<Ordering> {
    if b.is_nan() {
        return None;
    }
    // Beyond ±2⁶⁴ no integer of the language can equal the double; within that range, its whole
    // part is exact in i128.
    if b >= 18_446_744_073_709_551_616.0 {
        return Some(Ordering::Less);
    }
    if b < -18_446_744_073_709_551_616.0 {
        return Some(Ordering::Greater);
    }
    let whole = b.floor();
    Some(
        a.cmp(&(whole as i128))
            .then(if b > whole { Ordering::Less } else { Ordering::Equal }),
    )
}

/// Whether two numbers have the same value, as `1`, `1.0` and `1e0` do.
pub fn equal(a: &Number, b: &Number) -> bool {
    compare(a, b) == Some(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn integers_are_not_rounded() {
        let exact = number("9007199254740993");
        let rounded = number("9007199254740992.0");
        assert_eq!(compare(&exact, &rounded), Some(Ordering::Greater));
        assert_eq!(compare(&rounded, &exact), Some(Ordering::Less));
        assert!(equal(&number("1"), &number("1.0")));
        assert!(equal(&number("-0.0"), &number("0")));
        assert_eq!(compare(&number("-1.5"), &number("-1")), Some(Ordering::Less));
        assert_eq!(
            compare(&number("18446744073709551615"), &number("1.8446744073709552e19")),
            Some(Ordering::Less)
        );
    }

    #[test]
    fn lengths_are_those_of_the_text() {
        for text in [
            "0",
            "9",
            "10",
            "-1",
            "-9223372036854775808",
            "18446744073709551615",
            "1.5",
            "1e300",
        ] {
            let number = number(text);
            assert_eq!(json_len(&number), number.to_string().len());
        }
    }
}
