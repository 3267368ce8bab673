//! The log of the function: one JSON object a line, with execution and step if there are any.

use crate::Failure;
use starbridge_node::config::Config;
use starbridge_node::escaping::JsonLines;
use tracing_subscriber::EnvFilter;

/// Starts the log. If the level is wrong, the default applies.
pub fn begin(config: &Result<Config, Failure>) {
    let level = config.as_ref().map_or("info", |config| config.log.level.as_str());
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_writer(|| JsonLines(std::io::stdout()))
        .with_env_filter(filter);
    // A second log in one process would change nothing, and there is none.
    let _ = log.try_init();
}
