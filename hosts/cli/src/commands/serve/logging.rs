//! What is written while a server runs: structured, to stderr.

use crate::exit::Exit;
use crate::output::{Output, bad};
use starbridge_kit::config::{LogConfig, LogFormat};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// From here on what happens is written as the configuration says.
pub fn begin(config: &LogConfig, output: Output) -> Result<(), Exit> {
    let filter = EnvFilter::try_new(&config.level).map_err(|error| {
        let help = "for example `info`, or `info,starbridge_runtime=debug`";
        bad(output, &format!("`log.level`: {error}"), help)
    })?;
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colours);
    // A second log in one process says nothing; there is none.
    let _ = match config.format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().try_init(),
    };
    Ok(())
}
