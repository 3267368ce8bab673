//! The languages inside strings: paths, mappings, templates, conditions, service parameters.

mod condition;
#[cfg(test)]
mod cost;
mod mapping;
mod params;
mod path;
mod resource;
#[cfg(test)]
#[allow(dead_code, reason = "shared with what is below the language")]
#[path = "../../flow/src/sample.rs"]
mod sample;
mod settings;
mod template;

pub use condition::Condition;
pub(crate) use condition::{Ask, Comparison, Side};
pub use mapping::{Mapping, MappingSource, Mappings};
pub use params::{ParamError, Params};
pub use path::{Path, PathRoot, ValueAt};
pub use resource::{NotInResource, ResourceName};
pub use settings::{RetryNumber, Setting, SettingPaths};
pub use starbridge_flow::expression_error::ExpressionError;
pub use template::{Template, TemplateError};
