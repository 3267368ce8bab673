//! Reading what the API answers, and writing it for people.

use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Value;

/// A text that a value has at a key; empty where there is none.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A number that a value has at a key.
pub(crate) fn number(value: &Value, key: &str) -> Option<u64> {
    value.get(key)?.as_number()?.as_u64()
}

/// A number in words; a dash where there is none.
pub(crate) fn count(value: &Value, key: &str) -> String {
    number(value, key).map_or_else(|| "–".to_owned(), |number| number.to_string())
}

/// Whether a value says true at a key.
pub(crate) fn is_set(value: &Value, key: &str) -> bool {
    matches!(value.get(key), Some(Value::Bool(true)))
}

/// The items of a list.
pub(crate) fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    let items = value.get(key).and_then(Value::as_array);
    items.map_or(&[], |items| items.values())
}

/// `next` of a page, as text.
pub(crate) fn next(page: &Value) -> Option<String> {
    match page.get("next")? {
        Value::String(next) => Some(next.to_string()),
        Value::Number(next) => Some(next.to_string()),
        _ => None,
    }
}

/// A time that a value has at a key.
pub(crate) fn time(value: &Value, key: &str) -> Option<Timestamp> {
    Timestamp::parse(text(value, key))
}

/// How long something took for people: `316 ms`, `4 min 12 s`.
pub(crate) fn span(from: Option<Timestamp>, to: Option<Timestamp>) -> String {
    match (from, to) {
        (Some(from), Some(to)) => duration(to.since(from)),
        _ => "–".to_owned(),
    }
}

pub(crate) fn duration(span: Millis) -> String {
    let (seconds, millis) = (span.0 / 1_000, span.0 % 1_000);
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{seconds}.{} s", millis / 100),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// A text as one part of an address.
pub fn path_part(text: &str) -> String {
    let mut part = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            part.push(char::from(byte));
        } else {
            part.push_str(&format!("%{byte:02X}"));
        }
    }
    part
}

/// A value as JSON in lines, at most so many bytes of it. What is too large is not written at all.
pub(crate) fn pretty(value: &Value, most: usize) -> String {
    if value.json_len() > 8 * most {
        return format!("… {} B", value.json_len());
    }
    let mut out = String::new();
    write(value, 0, most, &mut out);
    if out.len() > most {
        let end = out.floor_char_boundary(most);
        out.truncate(end);
        out.push_str("\n…");
    }
    out
}

fn write(value: &Value, depth: usize, most: usize, out: &mut String) {
    if out.len() > most {
        return;
    }
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    match value {
        Value::Object(object) if !object.is_empty() => {
            out.push('{');
            for (index, (key, value)) in object.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                out.push_str(&Value::from(key.clone()).to_json());
                out.push_str(": ");
                write(value, depth + 1, most, out);
            }
            line(out, depth);
            out.push('}');
        }
        Value::Array(array) if !array.is_empty() => {
            out.push('[');
            for (index, value) in array.values().iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                write(value, depth + 1, most, out);
            }
            line(out, depth);
            out.push(']');
        }
        other => out.push_str(&other.to_json()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_addresses_lead_nowhere_else() {
        assert_eq!(path_part("order-7"), "order-7");
        assert_eq!(path_part("../x?y#z"), "..%2Fx%3Fy%23z");
        assert_eq!(path_part("星"), "%E6%98%9F");
    }

    #[test]
    fn durations_have_two_units_at_most() {
        for (millis, shown) in [
            (316, "316 ms"),
            (5_310, "5.3 s"),
            (252_000, "4 min 12 s"),
            (8_024_000, "2 h 13 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(duration(Millis(millis)), shown);
        }
    }

    #[test]
    fn json_is_cut_and_says_so() {
        let value = Value::read_bounded(br#"{"a": [1, {"b": "x"}], "c": {}}"#, 1 << 20).unwrap();
        assert_eq!(
            pretty(&value, 1_000),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x\"\n    }\n  ],\n  \"c\": {}\n}"
        );
        assert!(pretty(&value, 10).ends_with('…'));
        assert_eq!(pretty(&value, 1), "… 26 B");
    }
}
