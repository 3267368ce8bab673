//! Where words go: results to stdout, all else to stderr.

use crate::exit::Exit;
use anstream::AutoStream;
use serde::Serialize;
use starbridge_flow::value::Value;
use starbridge_node::escaping::{escaped_but_colours, escaped_json, escaped_lines};
use starbridge_node::system::reason;
use std::io::{ErrorKind, IsTerminal, Write};

/// The two streams, and how much is to be said on them.
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

    /// Writes a result to stdout as it stands. A reader that went away has read all it wanted; any other failure to
    /// write is a fault.
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

    /// Writes a result for people to stdout; colours only where they are shown and not refused, and nothing else a terminal
    /// would obey.
    pub fn print(self, text: &str) -> Result<(), Exit> {
        let text = &escaped_but_colours(text);
        let choice = AutoStream::choice(&std::io::stdout());
        match choice {
            anstream::ColorChoice::Never => self.result(&anstream::adapter::strip_str(text).to_string()),
            _ => self.result(text),
        }
    }

    /// Writes a line to stderr, unless quiet is wanted.
    pub fn note(self, line: &str) {
        if !self.quiet {
            self.say(&format!("{line}\n"));
        }
    }

    /// Writes text to stderr; colours only where they are shown and not refused (`NO_COLOR`).
    pub fn say(self, text: &str) {
        // Nobody is left to tell that nobody listens.
        let _ = AutoStream::auto(std::io::stderr().lock()).write_all(escaped_but_colours(text).as_bytes());
    }

    /// Says what went wrong, and maybe what to do, and gives back the exit it is to lead to.
    pub fn fail(self, exit: Exit, message: &str, help: Option<&str>) -> Exit {
        self.fail_as(exit, exit.word(), message, help)
    }

    /// The same of something that has a word of its own, which programs can tell it by.
    pub fn fail_as(self, exit: Exit, code: &str, message: &str, help: Option<&str>) -> Exit {
        if self.json {
            let error = JsonError { code, message, help };
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

    /// Whether stderr is a terminal on which lines can be drawn over.
    pub fn is_live(self) -> bool {
        std::io::stderr().is_terminal()
    }

    /// Columns that text on stderr may take: those of the terminal, or a width that reads well in a log.
    pub fn columns(self) -> usize {
        const LOG: usize = 140;
        let told = terminal_size::terminal_size_of(std::io::stderr());
        told.map_or(LOG, |(width, _)| usize::from(width.0).clamp(40, 200))
    }
}

/// What went wrong, for programs.
#[derive(Serialize)]
struct JsonError<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
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

/// Writes a result as a line of its own and passes the outcome on. On a terminal nothing in it is obeyed.
pub fn finish(output: Output, text: &str, outcome: Result<(), Exit>) -> Result<(), Exit> {
    let text = match std::io::stdout().is_terminal() {
        true => escaped_json(text),
        false => text.into(),
    };
    output.result(&format!("{text}\n"))?;
    outcome
}

/// Says that something was given wrongly, and gives back the exit for it.
pub fn bad(output: Output, message: &str, help: &str) -> Exit {
    output.fail(Exit::Bad, message, (!help.is_empty()).then_some(help))
}

/// Says that the program could not do its work, and gives back the exit for it.
pub fn fault(output: Output, message: &str, help: &str) -> Exit {
    output.fail(Exit::Fault, message, (!help.is_empty()).then_some(help))
}
