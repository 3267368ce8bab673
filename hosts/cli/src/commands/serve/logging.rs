//! The structured log of a server, on stderr, and its traces, if a collector is named.

#[cfg(feature = "otel")]
mod traces;

use crate::exit::Exit;
use crate::output::{Output, bad};
use starbridge_node::config::{LogConfig, LogFormat};
use starbridge_node::escaping::{JsonLines, escaped};
use std::io::{IsTerminal, Write};
use tracing::Subscriber;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::debug_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// Data that must be sent before the process ends.
pub struct Logging {
    #[cfg(feature = "otel")]
    _traces: Option<traces::Traces>,
}

type Layers = Vec<Box<dyn Layer<Registry> + Send + Sync>>;

/// Lines for people. Names and causes of errors come from outside, at every level, so no field can
/// end its line.
fn text<S, W>(writer: impl Fn() -> W + Send + Sync + 'static, colours: bool) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Write + 'static,
{
    let fields = debug_fn(|to, field, value| {
        let value = format!("{value:?}");
        let value = escaped(&value);
        match field.name() {
            "message" => write!(to, "{value}"),
            name if to.has_ansi_escapes() => write!(to, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m{value}"),
            name => write!(to, "{name}={value}"),
        }
    });
    tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(colours)
        .fmt_fields(fields.delimited(" "))
}

/// JSON objects for programs.
fn json<S, W>(writer: impl Fn() -> W + Send + Sync + 'static) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Write + 'static,
{
    let lines = move || JsonLines(writer());
    tracing_subscriber::fmt::layer()
        .with_writer(lines)
        .with_ansi(false)
        .json()
}

/// Whether spans are sent to a collector.
pub fn sends_traces() -> bool {
    #[cfg(feature = "otel")]
    return traces::collector_is_named();
    #[cfg(not(feature = "otel"))]
    false
}

/// Starts logging as the configuration says.
pub fn begin(config: &LogConfig, output: Output) -> Result<Logging, Exit> {
    let unknown = |why: String| {
        let help = "for example `info`, or `info,starbridge_runtime=debug`";
        bad(output, &format!("`log.level`: {why}"), help)
    };
    // A word that is not a level would be taken for a part of the program, and everything else
    // would be silent.
    let words = config.level.split(',').map(str::trim);
    let mut plain = words.filter(|word| !word.contains(['=', '[', ':']));
    if let Some(word) = plain.find(|word| word.parse::<LevelFilter>().is_err()) {
        return Err(unknown(format!("`{word}` is no level")));
    }
    let filter = EnvFilter::try_new(&config.level).map_err(|error| unknown(error.to_string()))?;
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let log = match config.format {
        LogFormat::Text => text(std::io::stderr, colours).with_filter(filter).boxed(),
        LogFormat::Json => json(std::io::stderr).with_filter(filter).boxed(),
    };
    #[cfg_attr(not(feature = "otel"), expect(unused_mut, reason = "traces are a second layer"))]
    let mut layers: Layers = vec![log];
    #[cfg(feature = "otel")]
    let traces = traces::begin(&mut layers).map_err(|error| {
        let help = "OTEL_EXPORTER_OTLP_ENDPOINT names a collector, for example http://localhost:4318";
        bad(output, &format!("traces can't be sent: {error}"), help)
    })?;
    // A second log in one process has no effect, and there is none.
    let _ = tracing_subscriber::registry().with(layers).try_init();
    Ok(Logging {
        #[cfg(feature = "otel")]
        _traces: traces,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use starbridge_node::escaping::is_control;
    use std::sync::{Arc, Mutex};

    /// The written lines, kept for the test.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Kept {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    const BAD: &str = "Bad\x1b[31m\nINFO fake line\r\u{9b}2J\u{202e}\u{2028}";

    fn say() {
        let span = tracing::info_span!("turn", of = %BAD);
        let _within = span.enter();
        tracing::debug!(error = %BAD, quoted = BAD, count = 7, "an attempt failed");
        tracing::error!("{BAD}");
    }

    #[test]
    fn what_others_wrote_ends_no_line() {
        let kept = Kept::default();
        let writer = kept.clone();
        let log = tracing_subscriber::registry().with(text(move || writer.clone(), false));
        tracing::subscriber::with_default(log, say);
        let text = kept.text();
        assert_eq!(text.lines().count(), 2, "{text:?}");
        assert!(!text.contains(|c| is_control(c) && c != '\n'), "{text:?}");
        let first = text.lines().next().unwrap();
        assert!(
            first.contains("an attempt failed error=Bad\\u{1b}[31m\\nINFO fake line"),
            "{first}"
        );
        assert!(first.ends_with("count=7"), "{first}");
    }

    #[test]
    fn colours_are_only_ours() {
        let kept = Kept::default();
        let writer = kept.clone();
        let log = tracing_subscriber::registry().with(text(move || writer.clone(), true));
        tracing::subscriber::with_default(log, say);
        let text = kept.text();
        assert!(text.contains("\x1b[3merror\x1b[0m"), "{text:?}");
        assert!(!text.contains("\x1b[31m\n") && !text.contains("Bad\x1b"), "{text:?}");
        assert_eq!(text.lines().count(), 2, "{text:?}");
    }

    #[test]
    fn objects_are_one_a_line() {
        let kept = Kept::default();
        let writer = kept.clone();
        let log = tracing_subscriber::registry().with(json(move || writer.clone()));
        tracing::subscriber::with_default(log, say);
        let text = kept.text();
        assert!(!text.contains(|c| is_control(c) && c != '\n'), "{text:?}");
        let objects: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(objects[0]["fields"]["error"], BAD);
        assert_eq!(objects[1]["fields"]["message"], BAD);
    }
}
