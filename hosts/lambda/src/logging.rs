//! What is written while the function runs: a JSON object a line, with execution and step where there are any.

use crate::Failure;
use starbridge_node::config::Config;
use starbridge_node::escaping::JsonLines;
use tracing_subscriber::EnvFilter;

/// From here on what happens is written. A level that is none means the usual one.
pub fn begin(config: &Result<Config, Failure>) {
    let level = config.as_ref().map_or("info", |config| config.log.level.as_str());
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_writer(|| JsonLines(std::io::stdout()))
        .with_env_filter(filter);
    // A second log in one process says nothing; there is none.
    let _ = log.try_init();
}
