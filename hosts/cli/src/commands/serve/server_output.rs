//! A server's messages about itself: lines for people, or, if the log is JSON, ordinary lines of
//! the log.

use crate::exit::Exit;
use crate::output::{Output, fault};
use starbridge_node::config::LogFormat;

/// The form of the messages.
#[derive(Clone, Copy, Debug)]
pub struct ServerOutput {
    output: Output,
    json: bool,
}

impl ServerOutput {
    /// The form of the log.
    pub fn of(format: LogFormat, output: Output) -> Self {
        Self {
            output,
            json: format == LogFormat::Json,
        }
    }

    /// Prints a message.
    pub fn say(self, words: &str) {
        match self.json {
            true => tracing::info!("{words}"),
            false => self.output.note(words),
        }
    }

    /// Prints why the server can't start, or why it ended, and what to do.
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
