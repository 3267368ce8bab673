//! The memory for the body of a report, counted before its value is read.

use super::body::{Charge, Sent};
use crate::problem::Answer;
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use starbridge_flow::limits::Limits;

/// How many bytes a report may have in addition to its data.
const ENVELOPE_BYTES: usize = 64 * 1024;
/// How many bytes any report may have beyond the data of a step.
const MAX_REPORT_BYTES: usize = 1024 * 1024;
/// The largest number of bytes that a byte of data takes in JSON: `\u0000`.
const ESCAPED: usize = 6;

/// How many bytes a report may have: all data that a step may have, in any notation, and data that is refused with a
/// named error.
pub fn largest_report(limits: &Limits) -> usize {
    let data = limits.step_data_bytes;
    (MAX_REPORT_BYTES + data).max(data.saturating_mul(ESCAPED).saturating_add(ENVELOPE_BYTES))
}

/// How many bytes a value takes at most for each byte of its text: `[[0],` is worst.
const VALUE: usize = 28;
/// How many bytes it takes at most for each sign that begins a value or a member, and for each quote.
const SIGN: usize = 96;
const QUOTE: usize = 8;

/// A request whose body has been read and counts, with the value that will be read from it.
///
/// # Errors
///
/// The problem `TooManyBodies` if there is no room for the value.
pub fn counted(parts: Parts, sent: Sent) -> Answer<(Request, Option<Charge>)> {
    let (bytes, mut charge) = sent.into_parts();
    if let Some(charge) = &mut charge {
        charge.set(bytes.len() + value_of(&bytes))?;
    }
    Ok((Request::from_parts(parts, Body::from(bytes)), charge))
}

/// How many bytes the value of a text takes in memory at most.
fn value_of(text: &[u8]) -> usize {
    let each = text.iter().map(|byte| match byte {
        b'[' | b'{' | b',' | b':' => SIGN,
        b'"' => QUOTE,
        _ => 1,
    });
    each.sum::<usize>().min(text.len().saturating_mul(VALUE))
}
