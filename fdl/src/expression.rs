//! What is written inside strings: paths, mappings, templates, conditions, service parameters.

mod condition;
mod mapping;
mod params;
mod path;
mod quoted;
#[cfg(test)]
mod sample;
mod template;

pub use condition::{Condition, ConditionError};
pub use mapping::{Mapping, MappingSource, Mappings};
pub use params::{ParamError, Params};
pub use path::{Path, PathError, PathRoot, Query};
pub use template::{Template, TemplateError};
