//! Output: results to stdout, everything else to stderr.

use crate::exit::Exit;
use anstream::AutoStream;
use serde::Serialize;
use starbridge_flow::value::Object;
use starbridge_flow::value::Value;
use starbridge_node::escaping::{escaped, escaped_but_colours, escaped_json, escaped_lines};
use starbridge_node::system::reason;
use std::io::{ErrorKind, IsTerminal, Write};

/// The two streams, and the wanted amount of output.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    json: bool,
    quiet: bool,
}

impl Output {
    /// `json`: results are wanted as JSON wherever there is a choice. `quiet`: no notes and no progress.
    pub fn new(json: bool, quiet: bool) -> Self {
        Self { json, quiet }
    }

    /// Whether results are wanted as JSON.
    pub fn json(self) -> bool {
        self.json
    }

    /// Whether only results and errors are wanted.
    pub fn quiet(self) -> bool {
        self.quiet
    }

    /// Writes a result to stdout unchanged. A reader that has gone read all it wanted; any other
    /// failure to write is a fault.
    pub fn result(self, text: &str) -> Result<(), Exit> {
        let mut out = std::io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(self.fail(
                Exit::Fault,
                &format!("can't write the result: {}", reason(&error)),
                None,
            )),
            _ => Ok(()),
        }
    }

    /// Writes a result for people to stdout, with colours only if they are shown and wanted, and
    /// without other control sequences.
    pub fn print(self, text: &str) -> Result<(), Exit> {
        let text = &escaped_but_colours(text);
        let choice = AutoStream::choice(&std::io::stdout());
        match choice {
            anstream::ColorChoice::Never => self.result(&anstream::adapter::strip_str(text).to_string()),
            _ => self.result(text),
        }
    }

    /// Writes a line to stderr, unless quiet is wanted. What others wrote in it can't end it.
    pub fn note(self, line: &str) {
        if !self.quiet {
            self.say(&format!("{}\n", escaped(line)));
        }
    }

    /// Writes text to stderr, with colours only if they are shown and wanted (`NO_COLOR`).
    pub fn say(self, text: &str) {
        // If stderr has no reader, the failure can't be reported.
        let _ = AutoStream::auto(std::io::stderr().lock()).write_all(escaped_but_colours(text).as_bytes());
    }

    /// Prints the error, and perhaps the advice. Returns the exit.
    pub fn fail(self, exit: Exit, message: &str, help: Option<&str>) -> Exit {
        self.fail_as(exit, exit.word(), message, help)
    }

    /// [`Self::fail`] with a code of the error's own, by which programs recognize it.
    pub fn fail_as(self, exit: Exit, code: &str, message: &str, help: Option<&str>) -> Exit {
        self.fail_with(exit, code, message, help, &Object::new())
    }

    /// [`Self::fail_as`] with more members for programs.
    pub fn fail_with(self, exit: Exit, code: &str, message: &str, help: Option<&str>, more: &Object) -> Exit {
        if self.json {
            let error = JsonError {
                code,
                message,
                help,
                more,
            };
            let line = serde_json::to_string(&Wrapped { error }).unwrap_or_default();
            self.say(&format!("{}\n", escaped_json(&line)));
            return exit;
        }
        const RED: &str = "\x1b[1m\x1b[91m";
        const CYAN: &str = "\x1b[1m\x1b[96m";
        let mut text = format!("{RED}error\x1b[0m: {}\n", escaped_lines(message));
        if let Some(help) = help {
            text += &format!("{CYAN}help\x1b[0m: {}\n", escaped_lines(help));
        }
        self.say(&text);
        exit
    }

    /// Whether stderr is a terminal on which lines can be redrawn.
    pub fn is_live(self) -> bool {
        std::io::stderr().is_terminal()
    }

    /// The width of text on stderr: that of the terminal, or one that reads well in a log.
    pub fn columns(self) -> usize {
        const LOG: usize = 140;
        let told = terminal_size::terminal_size_of(std::io::stderr());
        told.map_or(LOG, |(width, _)| usize::from(width.0).clamp(40, 200))
    }
}

/// An error, for programs.
#[derive(Serialize)]
struct JsonError<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
    #[serde(flatten)]
    more: &'a Object,
}

#[derive(Serialize)]
struct Wrapped<'a> {
    error: JsonError<'a>,
}

/// Writes a value as a result: on one line for programs, indented on a terminal.
pub fn finish_value(output: Output, value: &Value, outcome: Result<(), Exit>) -> Result<(), Exit> {
    if !std::io::stdout().is_terminal() {
        return finish(output, &value.to_json(), outcome);
    }
    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
    let lines: Vec<String> = pretty.lines().map(|line| escaped_json(line).to_string()).collect();
    output.result(&format!("{}\n", lines.join("\n")))?;
    outcome
}

/// Writes a result as a line of its own and passes the outcome on. On a terminal, control sequences
/// in it have no effect.
pub fn finish(output: Output, text: &str, outcome: Result<(), Exit>) -> Result<(), Exit> {
    let text = match std::io::stdout().is_terminal() {
        true => escaped_json(text),
        false => text.into(),
    };
    output.result(&format!("{text}\n"))?;
    outcome
}

/// Reports a wrong argument. Returns the exit for it.
pub fn bad(output: Output, message: &str, help: &str) -> Exit {
    output.fail(Exit::Bad, message, (!help.is_empty()).then_some(help))
}

/// Reports that the program could not do its work. Returns the exit for it.
pub fn fault(output: Output, message: &str, help: &str) -> Exit {
    output.fail(Exit::Fault, message, (!help.is_empty()).then_some(help))
}
