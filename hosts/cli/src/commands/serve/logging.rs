//! What is written while a server runs: structured, to stderr; and traces, where a collector is named.

#[cfg(feature = "otel")]
mod traces;

use crate::exit::Exit;
use crate::output::{Output, bad};
use starbridge_kit::config::{LogConfig, LogFormat};
use std::io::IsTerminal;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// What has to be sent off before the process ends.
pub struct Logging {
    #[cfg(feature = "otel")]
    _traces: Option<traces::Traces>,
}

type Layers = Vec<Box<dyn Layer<Registry> + Send + Sync>>;

/// From here on what happens is written as the configuration says.
pub fn begin(config: &LogConfig, output: Output) -> Result<Logging, Exit> {
    let unknown = |why: String| {
        let help = "for example `info`, or `info,starbridge_runtime=debug`";
        bad(output, &format!("`log.level`: {why}"), help)
    };
    // A word that is no level would be taken for a part of the program, and all the rest would be silent.
    let words = config.level.split(',').map(str::trim);
    let mut plain = words.filter(|word| !word.contains(['=', '[', ':']));
    if let Some(word) = plain.find(|word| word.parse::<LevelFilter>().is_err()) {
        return Err(unknown(format!("`{word}` is no level")));
    }
    let filter = EnvFilter::try_new(&config.level).map_err(|error| unknown(error.to_string()))?;
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let log = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(colours);
    let log = match config.format {
        LogFormat::Text => log.with_filter(filter).boxed(),
        LogFormat::Json => log.json().with_filter(filter).boxed(),
    };
    #[cfg_attr(not(feature = "otel"), expect(unused_mut, reason = "traces are a second layer"))]
    let mut layers: Layers = vec![log];
    #[cfg(feature = "otel")]
    let traces = traces::begin(&mut layers).map_err(|error| {
        let help = "OTEL_EXPORTER_OTLP_ENDPOINT names a collector, for example http://localhost:4318";
        bad(output, &format!("traces can't be sent: {error}"), help)
    })?;
    // A second log in one process says nothing; there is none.
    let _ = tracing_subscriber::registry().with(layers).try_init();
    Ok(Logging {
        #[cfg(feature = "otel")]
        _traces: traces,
    })
}
