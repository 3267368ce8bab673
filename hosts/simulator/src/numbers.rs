//! The spans of time in test files. A span that no run can have is refused where it is written: as a number of
//! milliseconds it would become another one, or no time at all.

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt::Formatter;
use std::marker::PhantomData;

/// The longest span: a hundred years.
const MOST_SECONDS: u64 = MOST_DAYS * 86_400;
const MOST_DAYS: u64 = 36_500;

/// A span of seconds that may have a fraction.
pub(super) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Fraction::deserialize(deserializer).map(|Fraction(span)| span)
}

/// A number of seconds, where it may be left out.
pub(super) fn maybe_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Ok(Option::deserialize(deserializer)?.map(|Fraction(span)| span))
}

/// A whole number of seconds, where it may be left out.
pub(super) fn maybe_whole_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::deserialize(deserializer)?.map(|Whole::<SecondsUnit>(span, _)| span))
}

/// A whole number of days, where it may be left out.
pub(super) fn days<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::deserialize(deserializer)?.map(|Whole::<DaysUnit>(span, _)| span))
}

struct Fraction(f64);

impl<'de> Deserialize<'de> for Fraction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_f64(FractionReader)
    }
}

struct FractionReader;

impl Visitor<'_> for FractionReader {
    type Value = Fraction;

    fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "seconds from 0 to {MOST_SECONDS}")
    }

    fn visit_f64<E: Error>(self, span: f64) -> Result<Fraction, E> {
        if (0.0..=MOST_SECONDS as f64).contains(&span) {
            return Ok(Fraction(span));
        }
        Err(E::invalid_value(Unexpected::Float(span), &self))
    }

    fn visit_u64<E: Error>(self, span: u64) -> Result<Fraction, E> {
        if span <= MOST_SECONDS {
            return Ok(Fraction(span as f64));
        }
        Err(E::invalid_value(Unexpected::Unsigned(span), &self))
    }

    fn visit_i64<E: Error>(self, span: i64) -> Result<Fraction, E> {
        match u64::try_from(span) {
            Ok(span) => self.visit_u64(span),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(span), &self)),
        }
    }
}

/// What a whole number counts.
trait Unit {
    const NAME: &str;
    const MOST: u64;
}

struct SecondsUnit;

impl Unit for SecondsUnit {
    const NAME: &str = "seconds";
    const MOST: u64 = MOST_SECONDS;
}

struct DaysUnit;

impl Unit for DaysUnit {
    const NAME: &str = "days";
    const MOST: u64 = MOST_DAYS;
}

struct Whole<U>(u64, PhantomData<U>);

impl<'de, U: Unit> Deserialize<'de> for Whole<U> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(WholeReader(PhantomData))
    }
}

struct WholeReader<U>(PhantomData<U>);

impl<U: Unit> Visitor<'_> for WholeReader<U> {
    type Value = Whole<U>;

    fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "whole {} from 0 to {}", U::NAME, U::MOST)
    }

    fn visit_u64<E: Error>(self, span: u64) -> Result<Whole<U>, E> {
        if span <= U::MOST {
            return Ok(Whole(span, PhantomData));
        }
        Err(E::invalid_value(Unexpected::Unsigned(span), &self))
    }

    fn visit_i64<E: Error>(self, span: i64) -> Result<Whole<U>, E> {
        match u64::try_from(span) {
            Ok(span) => self.visit_u64(span),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(span), &self)),
        }
    }

    fn visit_f64<E: Error>(self, span: f64) -> Result<Whole<U>, E> {
        Err(E::invalid_value(Unexpected::Float(span), &self))
    }
}

#[cfg(test)]
mod tests {
    use crate::TestFile;

    #[test]
    fn times_that_no_run_can_have_are_refused_with_their_place() {
        let of = |member: &str| {
            let text =
                format!("{{\"flow\": \"a.json\", \"limits\": {{}}, \"cases\": [\n  {{\"name\": \"a\", {member}}}]}}");
            let refused = TestFile::parse(&text).expect_err(member);
            assert_eq!(refused.line, 2, "{member}: {refused}");
            refused.message
        };
        let fraction = "seconds from 0 to 3153600000";
        for (member, found) in [
            (r#""stop": {"atSeconds": -1}"#, "integer `-1`"),
            (r#""stop": {"atSeconds": -0.25}"#, "floating point `-0.25`"),
            (
                r#""stop": {"atSeconds": 1000000000000000000}"#,
                "integer `1000000000000000000`",
            ),
            (r#""pause": {"atSeconds": 1e308}"#, "floating point `1e+308`"),
            (
                r#""pause": {"atSeconds": 0, "forSeconds": 3153600001}"#,
                "integer `3153600001`",
            ),
            (
                r#""mocks": {"s": [{"never": true, "delaySeconds": -5}]}"#,
                "integer `-5`",
            ),
            (r#""expect": {"elapsedSeconds": -5}"#, "integer `-5`"),
        ] {
            assert_eq!(of(member), format!("invalid value: {found}, expected {fraction}"));
        }
        let retry = |after: &str| {
            of(&format!(
                r#""mocks": {{"s": [{{"error": "E", "retryAfterSeconds": {after}}}]}}"#
            ))
        };
        for (after, found) in [
            ("-1", "integer `-1`"),
            ("0.5", "floating point `0.5`"),
            ("1e18", "floating point `1e+18`"),
        ] {
            assert_eq!(
                retry(after),
                format!("invalid value: {found}, expected whole {fraction}")
            );
        }
        assert!(of(r#""stop": {"atSeconds": 1e400}"#).contains("number out of range"));
        assert!(of(r#""stop": {"atSeconds": "soon"}"#).contains(fraction));
    }

    #[test]
    fn a_flow_that_is_neither_a_path_nor_a_definition_is_refused_with_what_it_may_be() {
        let refused = TestFile::parse("{\"cases\": [],\n \"flow\": 5}").expect_err("it is a number");
        assert_eq!(
            refused.to_string(),
            "line 2, column 10: invalid type: integer `5`, expected a flow: the path of its file, or the definition itself, an object"
        );
    }
}
