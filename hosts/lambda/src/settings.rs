//! The settings of the function: `starbridge.toml` in its package, overridden by its environment.

#![allow(clippy::disallowed_methods, reason = "this is where environment and package come in")]

use crate::Failure;
use starbridge_node::config::Config;
use starbridge_node::node::PutError;
use std::path::{Path, PathBuf};

/// Where Lambda puts the package.
const PACKAGE: &str = "/var/task";
/// The configuration file in the package.
const FILE: &str = "starbridge.toml";

/// The folder of the package.
pub fn package() -> PathBuf {
    std::env::var_os("LAMBDA_TASK_ROOT").map_or_else(|| Path::new(PACKAGE).to_owned(), PathBuf::from)
}

/// Reads the configuration.
///
/// # Errors
///
/// [`Failure`] if it is wrong. Each event is answered with it, so that the error is noticed.
pub fn read() -> Result<Config, Failure> {
    let file = package().join(FILE);
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::new("BadConfiguration", format!("{}: {error}", file.display()))),
    };
    Config::read(&text, std::env::vars()).map_err(|error| Failure::new("BadConfiguration", error.trim_end()))
}

/// The endings of files with definitions.
const KINDS: [&str; 3] = ["json", "yaml", "yml"];

/// The definitions in a folder of the package, each with the name of its file; none if there is no such folder.
pub(crate) fn flows_in(folder: &Path) -> Result<Vec<(String, String)>, Failure> {
    let unreadable = |path: &Path, error: &std::io::Error| {
        Failure::new("BadFlow", format!("can't read `{}`: {error}", path.display()))
    };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(folder, &error)),
    };
    let mut flows = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| unreadable(folder, &error))?.path();
        let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        // Tests of flows are in the same folder.
        if !KINDS.contains(&kind) || name.ends_with(".test") {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
        flows.push((name.to_owned(), text));
    }
    flows.sort();
    Ok(flows)
}

/// What is wrong with a definition, for people.
pub(crate) fn why_not_put(error: &PutError) -> String {
    match error {
        PutError::Name => "this is no name of a flow".to_owned(),
        PutError::NotSupported(what) => format!("the flow has {what}, which needs a server that runs all the time"),
        PutError::Limits(found) => {
            let (flow, limit) = &found.other;
            format!(
                "the flow `{flow}` gives the pool `{}` the limit {limit}, not {}",
                found.pool, found.limit
            )
        }
        PutError::Store(error) => error.to_string(),
        PutError::Bad { diagnostics, source } => {
            let lines = diagnostics.iter().map(|diagnostic| {
                let place = source.line_column(diagnostic.span.start);
                format!(
                    "{}:{}: {:?}: {}",
                    place.line, place.column, diagnostic.code, diagnostic.message
                )
            });
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}
