//! What is written inside strings: mappings, templates, conditions.

mod condition;
#[cfg(test)]
mod cost;
mod mapping;
#[cfg(test)]
#[path = "../../flow/src/sample.rs"]
mod sample;
mod template;

pub use condition::{Condition, ConditionError};
pub use mapping::{Mapping, MappingSource, Mappings};
pub use template::{Template, TemplateError};
