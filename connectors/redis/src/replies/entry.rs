//! Entries of a stream in the form in which Redis sends them, and the reports in them.

use redis::Value;
use starbridge_flow::value::{Object, Value as Json};
use starbridge_ports::ReplyMessage;

/// An entry. It has no fields if it was deleted while a consumer had it.
#[derive(Debug, PartialEq)]
pub(crate) struct Entry {
    pub id: String,
    fields: Option<Vec<(String, Vec<u8>)>>,
}

/// The entries in an answer to XREADGROUP about one stream.
pub(crate) fn of_reading(answer: &Value) -> Vec<Entry> {
    let streams = items(answer);
    let stream = streams.first().map(items).unwrap_or_default();
    stream.get(1).map(entries).unwrap_or_default()
}

/// The entries in an answer to XAUTOCLAIM, and where the next claim begins.
pub(crate) fn of_claiming(answer: &Value) -> (String, Vec<Entry>) {
    let parts = items(answer);
    let next = parts.first().map(text).unwrap_or_default();
    (next, parts.get(1).map(entries).unwrap_or_default())
}

fn entries(list: &Value) -> Vec<Entry> {
    let entries = items(list).iter().filter_map(|entry| {
        let [id, fields] = items(entry) else {
            // Before version 7, Redis sends nil in place of an entry that was deleted.
            return None;
        };
        let fields = match fields {
            Value::Nil => None,
            fields => Some(pairs(fields)),
        };
        Some(Entry { id: text(id), fields })
    });
    entries.collect()
}

fn pairs(fields: &Value) -> Vec<(String, Vec<u8>)> {
    let pairs = items(fields).chunks_exact(2).filter_map(|pair| match pair {
        [name, value] => Some((text(name), bytes(value))),
        _ => None,
    });
    pairs.collect()
}

fn items(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        _ => &[],
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::BulkString(bytes) => bytes.clone(),
        Value::SimpleString(text) => text.clone().into_bytes(),
        Value::Int(number) => number.to_string().into_bytes(),
        _ => Vec::new(),
    }
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(&bytes(value)).into_owned()
}

impl Entry {
    /// The report in the entry; `None` if the entry was deleted.
    pub(crate) fn into_message(self) -> Option<ReplyMessage> {
        let fields = self.fields?;
        let field = |name: &str| {
            let found = fields.iter().find(|(field, _)| field == name);
            found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
        };
        let body = field("body").unwrap_or_else(|| of_fields(field));
        Some(ReplyMessage { handle: self.id, body })
    }
}

/// A report made from fields. An `output` that is not JSON stays text, and reading the report refuses it.
fn of_fields(field: impl Fn(&str) -> Option<String>) -> String {
    let mut report = Object::new();
    for name in ["token", "error", "cause"] {
        if let Some(value) = field(name) {
            report.insert(name.into(), value.as_str().into());
        }
    }
    if let Some(output) = field("output") {
        let parsed = serde_json::from_str(&output).unwrap_or_else(|_| Json::from(output.as_str()));
        report.insert("output".into(), parsed);
    }
    if let Some(word) = field("heartbeat") {
        let yes = matches!(word.as_str(), "1" | "true" | "yes");
        report.insert("heartbeat".into(), yes.into());
    }
    Json::from(report).to_json()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn entry(id: &str, fields: &[(&str, &str)]) -> Value {
        let fields = fields.iter().flat_map(|(name, value)| [bulk(name), bulk(value)]);
        Value::Array(vec![bulk(id), Value::Array(fields.collect())])
    }

    fn body(fields: &[(&str, &str)]) -> String {
        let entries = entries(&Value::Array(vec![entry("1-0", fields)]));
        let message = entries.into_iter().next().and_then(Entry::into_message);
        message.unwrap().body
    }

    #[test]
    fn reports_come_whole_or_in_fields() {
        assert_eq!(body(&[("x", "y"), ("body", "{\"token\":1")]), "{\"token\":1");
        assert_eq!(
            body(&[("output", "{\"n\":[1]}"), ("token", "t")]),
            r#"{"token":"t","output":{"n":[1]}}"#
        );
        assert_eq!(
            body(&[("token", "t"), ("error", "E"), ("cause", "because \"x\"")]),
            r#"{"token":"t","error":"E","cause":"because \"x\""}"#
        );
        assert_eq!(
            body(&[("token", "t"), ("heartbeat", "1")]),
            r#"{"token":"t","heartbeat":true}"#
        );
        assert_eq!(
            body(&[("token", "t"), ("output", "{oh")]),
            r#"{"token":"t","output":"{oh"}"#
        );
        assert_eq!(body(&[("other", "x")]), "{}");
    }

    #[test]
    fn what_was_deleted_is_told_apart() {
        let gone = Value::Array(vec![bulk("5-1"), Value::Nil]);
        let stream = Value::Array(vec![bulk("replies"), Value::Array(vec![gone, entry("6-0", &[])])]);
        let read = of_reading(&Value::Array(vec![stream]));
        assert_eq!(
            read.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(),
            ["5-1", "6-0"]
        );
        let messages: Vec<_> = read.into_iter().map(Entry::into_message).collect();
        assert!(messages[0].is_none() && messages[1].is_some());
        assert_eq!(of_reading(&Value::Nil), []);
    }

    #[test]
    fn a_claim_says_where_the_next_begins() {
        let old = Value::Array(vec![bulk("7-0"), Value::Array(vec![Value::Nil, entry("6-0", &[])])]);
        let (next, claimed) = of_claiming(&old);
        assert_eq!((next.as_str(), claimed.len()), ("7-0", 1));
    }
}
