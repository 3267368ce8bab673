//! JSON Schemas (draft 2020-12), evaluated only if the cost is known in advance.

mod cost;
mod outline;

use super::{Budget, Exhausted};
use crate::limits::Limits;
use crate::value::Value;
use outline::Outline;
use std::sync::Arc;

/// A compiled JSON Schema.
#[derive(Clone)]
pub struct Schema {
    validator: Arc<jsonschema::Validator>,
    outline: Arc<Outline>,
}

/// A place where a value does not fit its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaViolation {
    /// JSON pointer into the value.
    pub pointer: String,
    /// The error there.
    pub message: String,
}

/// Why a schema can't be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaError {
    /// It is not a JSON Schema.
    Wrong(String),
    /// Evaluating it costs too much. The text is the rest of a sentence about it.
    TooCostly(String),
}

impl Schema {
    /// The maximum number of violations that are reported for one value.
    const MAX_VIOLATIONS: usize = 20;

    /// Compiles a schema. One that takes too many steps even for the smallest value is refused: the
    /// cost is known before the evaluator sees the schema.
    ///
    /// # Errors
    ///
    /// A [`SchemaError`] if the value is not a JSON Schema, refers to another document or may cost too much.
    pub fn new(schema: &Value, limits: &Limits) -> Result<Self, SchemaError> {
        let schema = serde_json::Value::from(schema);
        let outline = Outline::of(&schema)?;
        let smallest = Budget::new(limits, 0);
        if cost::of(&outline, &Value::Null, &smallest).is_err() {
            return Err(SchemaError::TooCostly(format!(
                "takes more than the limit of {} steps for any value",
                limits.evaluation_steps
            )));
        }
        let patterns = jsonschema::PatternOptions::fancy_regex().backtrack_limit(outline::BACKTRACKS);
        let validator = jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .with_pattern_options(patterns)
            .build(&schema)
            .map_err(|error| SchemaError::Wrong(error.to_string()))?;
        if outline.is_unknown() {
            let why = "has a reference whose target can't be told";
            return Err(SchemaError::TooCostly(why.to_owned()));
        }
        Ok(Self {
            validator: Arc::new(validator),
            outline: Arc::new(outline),
        })
    }

    /// The places where the value does not fit; empty if it fits. A check that takes too many steps
    /// is not begun.
    ///
    /// # Errors
    ///
    /// [`Exhausted`] if the check takes more steps than are left.
    pub fn violations(&self, value: &Value, budget: &Budget) -> Result<Vec<SchemaViolation>, Exhausted> {
        let cost = cost::of(&self.outline, value, budget)?;
        budget.take(cost.whether)?;
        let value = serde_json::Value::from(value);
        if self.validator.is_valid(&value) {
            return Ok(Vec::new());
        }
        if budget.take(cost.where_not).is_err() {
            return Ok(vec![SchemaViolation {
                pointer: String::new(),
                message: "does not fit; to say where takes too many steps".to_owned(),
            }]);
        }
        let errors = self.validator.iter_errors(&value).take(Self::MAX_VIOLATIONS);
        Ok(errors
            .map(|error| SchemaViolation {
                pointer: error.instance_path().to_string(),
                message: error.to_string(),
            })
            .collect())
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Schema")
    }
}

#[cfg(test)]
mod tests;
