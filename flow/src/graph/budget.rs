//! The cost limit of evaluation: a count that is the same on every host, never a time.

use super::{Fault, FaultKind};
use crate::diagnostics::quoted;
use crate::limits::Limits;
use crate::value::Value;
use std::cell::Cell;

/// The steps for putting one value into a result. A result takes memory; a value that is only
/// looked at takes none.
const STEPS_PER_KEPT_VALUE: usize = 4;
/// Bytes of text or JSON that are compared, counted or copied for one step.
const BYTES_PER_STEP: usize = 64;

/// The steps that the paths, conditions and templates of one place may take together (section "limits"). Keys and indices
/// by themselves cost nothing: their number is that of the definition's text.
#[derive(Debug)]
pub struct Budget {
    given: usize,
    left: Cell<usize>,
    bytes: usize,
    /// The bytes that the texts of templates may have together, and the bytes that are left.
    text_bytes: usize,
    texts_left: Cell<usize>,
}

/// There are no steps left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted;

impl Budget {
    /// The budget of a place that looks into data of this many bytes. Costs that grow only with the
    /// data always fit.
    pub fn new(limits: &Limits, data_bytes: usize) -> Self {
        let given = limits.evaluation_steps.saturating_add(data_bytes);
        let text_bytes = limits.collection_bytes.saturating_add(limits.step_data_bytes);
        Self {
            given,
            left: Cell::new(given),
            // Each place checks its own limit more closely; this limit only prevents writing far
            // larger texts.
            bytes: text_bytes.saturating_add(limits.collection_bytes),
            text_bytes,
            texts_left: Cell::new(text_bytes),
        }
    }

    /// A budget for a repeated evaluation that already fitted its own budget: folding never fails.
    pub fn unlimited() -> Self {
        Self {
            given: usize::MAX,
            left: Cell::new(usize::MAX),
            bytes: usize::MAX,
            text_bytes: usize::MAX,
            texts_left: Cell::new(usize::MAX),
        }
    }

    /// Steps taken so far.
    pub fn spent(&self) -> usize {
        self.given - self.left.get()
    }

    /// Steps that may still be taken.
    pub(super) fn left(&self) -> usize {
        self.left.get()
    }

    /// Takes this many steps, or all that are left if they are too few.
    ///
    /// # Errors
    ///
    /// [`Exhausted`] if fewer steps are left.
    #[inline]
    pub fn take(&self, steps: usize) -> Result<(), Exhausted> {
        let left = self.left.get().checked_sub(steps);
        self.left.set(left.unwrap_or(0));
        left.map(drop).ok_or(Exhausted)
    }

    /// Takes the steps for values that are kept.
    ///
    /// # Errors
    ///
    /// [`Exhausted`] if fewer steps are left.
    pub fn keep(&self, values: usize) -> Result<(), Exhausted> {
        self.take(values.saturating_mul(STEPS_PER_KEPT_VALUE))
    }

    /// Takes the steps for walking through a text.
    ///
    /// # Errors
    ///
    /// [`Exhausted`] if fewer steps are left.
    pub fn read(&self, bytes: usize) -> Result<(), Exhausted> {
        self.take(bytes / BYTES_PER_STEP)
    }

    /// Takes the steps for comparing two values. The size of the smaller one counts.
    ///
    /// # Errors
    ///
    /// [`Exhausted`] if fewer steps are left.
    pub fn compare(&self, left: &Value, right: &Value) -> Result<(), Exhausted> {
        match (left, right) {
            (Value::String(a), Value::String(b)) => self.read(a.json_len().min(b.json_len())),
            (Value::Array(a), Value::Array(b)) => self.take(nodes(a.json_len().min(b.json_len()))),
            (Value::Object(a), Value::Object(b)) => self.take(nodes(a.json_len().min(b.json_len()))),
            _ => Ok(()),
        }
    }

    /// Takes the steps for comparing a value with each value of a list.
    ///
    /// # Errors
    ///
    /// [`Exhausted`] if fewer steps are left.
    pub fn compare_each(&self, value: &Value, items: &[Value], json_len: usize) -> Result<(), Exhausted> {
        let each = match value {
            Value::String(text) => text.json_len() / BYTES_PER_STEP,
            Value::Array(_) | Value::Object(_) => nodes(value.json_len()),
            _ => 0,
        };
        let all = items.len().saturating_mul(each).min(nodes(json_len));
        self.take(items.len().saturating_add(all))
    }

    /// The fault of an evaluation that takes too many steps.
    pub fn exceeded(&self, what: &str) -> Fault {
        let cause = format!(
            "evaluating {} takes more than the limit of {} steps for data of this size",
            quoted(what),
            self.given
        );
        Fault::new(FaultKind::Limit, cause)
    }

    /// The result of a search for `what`, or the fault.
    ///
    /// # Errors
    ///
    /// The fault of [`Budget::exceeded`] if `found` is [`Exhausted`].
    pub fn within<T>(&self, what: &str, found: Result<T, Exhausted>) -> Result<T, Fault> {
        found.map_err(|Exhausted| self.exceeded(what))
    }

    /// Takes the bytes of a text that is about to be written. All texts of the place count
    /// together: each takes its own memory, while a value that is passed on takes none.
    ///
    /// # Errors
    ///
    /// A fault if the texts of the place together exceed their limit.
    pub fn write(&self, bytes: usize) -> Result<(), Fault> {
        let left = self.texts_left.get().checked_sub(bytes);
        self.texts_left.set(left.unwrap_or(0));
        left.map(drop).ok_or_else(|| {
            let cause = format!(
                "templates make texts of more than {} bytes together, which is the limit",
                self.text_bytes
            );
            Fault::new(FaultKind::TooLarge, cause)
        })
    }

    /// Checks that an output is within its size limit.
    ///
    /// # Errors
    ///
    /// A fault if the output is larger than its limit.
    pub fn check_made(&self, bytes: usize) -> Result<(), Fault> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let cause = format!("what is made has {bytes} bytes, more than the limit of {}", self.bytes);
        Err(Fault::new(FaultKind::TooLarge, cause))
    }
}

/// The maximum number of values in this many bytes of JSON: a value with its comma takes at least
/// two bytes, a typical one far more.
fn nodes(json_len: usize) -> usize {
    json_len / 4
}
