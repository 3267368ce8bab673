//! What a server says of itself: lines for people, or, where the log is JSON, lines of the log like all others.

use crate::exit::Exit;
use crate::output::{Output, fault};
use starbridge_node::config::LogFormat;

/// How it is said.
#[derive(Clone, Copy, Debug)]
pub struct Voice {
    output: Output,
    json: bool,
}

impl Voice {
    /// As the log is written.
    pub fn of(format: LogFormat, output: Output) -> Self {
        Self {
            output,
            json: format == LogFormat::Json,
        }
    }

    /// Says something.
    pub fn say(self, words: &str) {
        match self.json {
            true => tracing::info!("{words}"),
            false => self.output.note(words),
        }
    }

    /// Says why the server can't be, or came to its end, and what to do.
    pub fn fault(self, why: &str, help: &str) -> Exit {
        if !self.json {
            return fault(self.output, why, help);
        }
        match help {
            "" => tracing::error!("{why}"),
            help => tracing::error!(help, "{why}"),
        }
        Exit::Fault
    }
}
