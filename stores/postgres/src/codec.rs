//! Texts and numbers as PostgreSQL has them.
//!
//! No text of PostgreSQL holds U+0000, and data may have it anywhere. So it stands there as two characters, of which the first
//! is one that nobody uses; that one stands as two, too.

use bytes::BytesMut;
use starbridge_ports::ShardSet;
use std::borrow::Cow;
use std::error::Error;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

const ESCAPE: char = '\u{e000}';

/// A text to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Str<'a>(pub &'a str);

/// A text to be written that nobody else has.
#[derive(Clone, Debug)]
pub(crate) struct Whole(pub String);

/// A text that was read.
#[derive(Debug)]
pub(crate) struct Read(pub String);

fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for each in text.chars() {
        match each {
            '\0' => escaped.extend([ESCAPE, '0']),
            ESCAPE => escaped.extend([ESCAPE, '1']),
            each => escaped.push(each),
        }
    }
    Cow::Owned(escaped)
}

fn unescaped(text: &str) -> String {
    if !text.contains(ESCAPE) {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(each) = rest.next() {
        match each {
            ESCAPE => plain.push(if rest.next() == Some('0') { '\0' } else { ESCAPE }),
            each => plain.push(each),
        }
    }
    plain
}

impl ToSql for Str<'_> {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        escaped(self.0).as_ref().to_sql(of, out)
    }

    fn accepts(of: &Type) -> bool {
        <&str as ToSql>::accepts(of)
    }

    to_sql_checked!();
}

impl ToSql for Whole {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        Str(&self.0).to_sql(of, out)
    }

    fn accepts(of: &Type) -> bool {
        <&str as ToSql>::accepts(of)
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Read {
    fn from_sql(of: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        <&str as FromSql>::from_sql(of, raw).map(|text| Self(unescaped(text)))
    }

    fn accepts(of: &Type) -> bool {
        <&str as FromSql>::accepts(of)
    }
}

/// A number that is never negative. Those that no `bigint` holds are the largest one.
pub(crate) fn big(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A limit of rows.
pub(crate) fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A set of shards, where not all are wanted.
pub(crate) fn some_shards(shards: &ShardSet) -> Option<Vec<i16>> {
    (!shards.is_all()).then(|| shards.iter().map(i16::from).collect())
}

/// The number of an event within a history.
pub(crate) fn event(number: u64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// A code, as tables have it.
pub(crate) fn code(number: usize) -> i16 {
    i16::try_from(number).unwrap_or(i16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_as_it_was_written() {
        for text in ["", "plain", "\0", "a\0b\u{e000}", "\u{e000}0", "\u{e000}\0\0\u{e000}1"] {
            let written = escaped(text);
            assert!(!written.contains('\0'), "{text:?}");
            assert_eq!(unescaped(&written), text);
        }
        assert!(matches!(escaped("plain"), Cow::Borrowed(_)));
    }
}
