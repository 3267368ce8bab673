//! Errors of the command line, in the style of all other errors.

use crate::arguments;
use crate::exit::Exit;
use crate::output::Output;
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};

/// What the parser suggests in place of a mistake.
const SUGGESTIONS: [ContextKind; 3] = [
    ContextKind::SuggestedArg,
    ContextKind::SuggestedSubcommand,
    ContextKind::SuggestedValue,
];

/// Commands as other tools call them, and what does the same here.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (
        &["deploy", "publish", "register", "upload", "apply", "push", "create"],
        "`starbridge flow put FILE` gives a server a flow",
    ),
    (
        &["run", "execute", "invoke", "launch", "trigger"],
        "`starbridge exec FILE` runs a flow here, `starbridge start FLOW` starts one at a server",
    ),
    (
        &["retry", "rerun", "restart"],
        "`starbridge redrive EXECUTION` goes on where an execution failed",
    ),
    (
        &["cancel", "kill", "terminate", "abort"],
        "`starbridge stop EXECUTION` stops an execution",
    ),
    (
        &["ps", "ls", "executions", "runs"],
        "`starbridge list` lists the executions",
    ),
    (&["lint", "check"], "`starbridge validate FILE` checks a flow"),
    (
        &["describe", "inspect"],
        "`starbridge show EXECUTION` shows an execution",
    ),
    (
        &["signal", "complete"],
        "`starbridge callback TOKEN succeed` reports the end of a call",
    ),
];

/// What does the same as a command of another tool.
fn done_elsewhere(command: &str, unknown: &str) -> Option<&'static str> {
    let (_, way) = ELSEWHERE.iter().find(|(words, _)| words.contains(&unknown))?;
    let at_top = !command.contains(' ');
    // Below `flow` the word is about a definition, too.
    (at_top || (command.ends_with(" flow") && way.contains("flow put"))).then_some(*way)
}

fn is_suggestion(kind: ContextKind) -> bool {
    SUGGESTIONS.contains(&kind)
}

/// Prints it. Help and versions that the user asked for go to stdout.
pub fn say(stopped: &clap::Error, arguments: &[OsString]) -> Result<(), Exit> {
    let json = arguments.iter().any(|word| word == "--json");
    let output = Output::new(json, false);
    if !stopped.use_stderr() {
        // A reader that has gone read all it wanted.
        let _ = stopped.print();
        return Ok(());
    }
    if stopped.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && !json {
        let _ = stopped.print();
        return Err(Exit::Bad);
    }
    if let Some(command) = command_of_option(stopped, arguments) {
        let option = text(stopped, ContextKind::InvalidArg);
        let message = format!("`{option}` stands before the command it belongs to");
        let help = format!("`{command} {option} …`; `{command} --help` shows how");
        return Err(output.fail(Exit::Bad, &message, Some(&help)));
    }
    Err(output.fail(Exit::Bad, &message(stopped), Some(&help(stopped, arguments))))
}

/// The error.
fn message(stopped: &clap::Error) -> String {
    let argument = text(stopped, ContextKind::InvalidArg);
    let value = text(stopped, ContextKind::InvalidValue);
    match stopped.kind() {
        ErrorKind::UnknownArgument if !argument.starts_with('-') => format!("`{argument}` is one argument too many"),
        ErrorKind::UnknownArgument => format!("there is no option `{argument}`"),
        ErrorKind::InvalidSubcommand => {
            format!(
                "there is no command `{}`",
                text(stopped, ContextKind::InvalidSubcommand)
            )
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "a command is missing".to_owned()
        }
        ErrorKind::InvalidValue if value.is_empty() => format!("`{argument}` needs a value"),
        ErrorKind::InvalidValue => format!("`{value}` is no value of `{argument}`"),
        ErrorKind::ValueValidation => {
            let number = stopped.source().and_then(|why| why.downcast_ref::<ParseIntError>());
            let whole =
                number.is_some_and(|why| matches!(why.kind(), IntErrorKind::InvalidDigit | IntErrorKind::Empty));
            let why = match stopped.source() {
                Some(_) if whole => ": a whole number is expected".to_owned(),
                Some(why) => format!(": {why}"),
                None => String::new(),
            };
            format!("`{value}` is no value of `{argument}`{why}")
        }
        ErrorKind::MissingRequiredArgument => format!("{} must be given", all(stopped, ContextKind::InvalidArg)),
        ErrorKind::ArgumentConflict => {
            let other = all(stopped, ContextKind::PriorArg);
            match other == format!("`{argument}`") {
                true => format!("`{argument}` can be given only once"),
                false => format!("`{argument}` can't be given together with {other}"),
            }
        }
        _ => {
            let text = stopped.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            first.trim_start_matches("error: ").replace('\'', "`")
        }
    }
}

/// The advice: what was probably meant, or what exists; and how to use the command.
fn help(stopped: &clap::Error, arguments: &[OsString]) -> String {
    let near = SUGGESTIONS
        .into_iter()
        .map(|kind| all(stopped, kind))
        .find(|near| !near.is_empty());
    let values = all(stopped, ContextKind::ValidValue);
    let usage = text(stopped, ContextKind::Usage);
    let usage = usage
        .trim()
        .trim_start_matches("Usage: ")
        .lines()
        .next()
        .unwrap_or_default();
    // What stands behind an unknown command says nothing about the command that is meant.
    let unknown = text(stopped, ContextKind::InvalidSubcommand);
    let words = arguments
        .iter()
        .position(|word| !unknown.is_empty() && *word == *unknown);
    let command = meant(arguments.get(..words.unwrap_or(arguments.len())).unwrap_or_default());
    let more = format!("`{command} --help` shows how");
    if let Some(way) = done_elsewhere(&command, &unknown) {
        return format!("{way}; {more}");
    }
    if command.ends_with("schedule put") && text(stopped, ContextKind::InvalidArg).starts_with("--every") {
        return format!("`--cron` says when: `--cron '*/10 * * * *'` starts every ten minutes; {more}");
    }
    if command.ends_with("flow put") && stopped.kind() == ErrorKind::UnknownArgument {
        return format!("`--name NAME` names the flow: `{command} --name order order.json`; {more}");
    }
    if stopped.kind() == ErrorKind::UnknownArgument
        && text(stopped, ContextKind::InvalidArg).contains(['{', '}', '[', ']'])
    {
        return format!(
            "a shell splits JSON at blanks: put it in single quotes, as in `--input '{{\"id\": 7}}'`; {more}"
        );
    }
    match (near, values.is_empty()) {
        (Some(near), _) => format!("did you mean {near}? {more}"),
        (None, false) => format!("it may be {values}; {more}"),
        (None, true) if usage.is_empty() => more,
        (None, true) => format!("`{usage}`; {more}"),
    }
}

/// The command that has an option which was placed before it, if that is the mistake.
fn command_of_option(stopped: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let option = text(stopped, ContextKind::InvalidArg);
    let long = option.strip_prefix("--")?;
    if stopped.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let place = words.iter().position(|word| {
        word.strip_prefix(option.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })?;
    let (name, command) = command_in(arguments);
    let last = name.split(' ').next_back()?;
    let behind = words.iter().skip(place).any(|word| *word == last);
    let has = command.get_arguments().any(|known| known.get_long() == Some(long));
    (behind && has).then_some(name)
}

/// The command that these words name.
fn meant(arguments: &[OsString]) -> String {
    command_in(arguments).0
}

/// The command that these words name, with its name.
fn command_in(arguments: &[OsString]) -> (String, Command) {
    let mut command = arguments::command();
    let mut name = command.get_name().to_owned();
    for word in arguments.iter().skip(1).filter_map(|word| word.to_str()) {
        let Some(found) = command.find_subcommand(word).cloned() else {
            continue;
        };
        name.push(' ');
        name.push_str(word);
        command = found;
    }
    (name, command)
}

fn text(stopped: &clap::Error, kind: ContextKind) -> String {
    match stopped.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::StyledStr(text)) => text.to_string(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        Some(ContextValue::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// All that is named there, each in backquotes.
fn all(stopped: &clap::Error, kind: ContextKind) -> String {
    let quoted = |text: &String| format!("`{text}`");
    match stopped.get(kind) {
        Some(ContextValue::String(text)) => quoted(text),
        // The parser puts the most similar suggestion last.
        Some(ContextValue::Strings(texts)) if is_suggestion(kind) => {
            texts.iter().rev().map(quoted).collect::<Vec<_>>().join(", ")
        }
        Some(ContextValue::Strings(texts)) => texts.iter().map(quoted).collect::<Vec<_>>().join(", "),
        _ => String::new(),
    }
}
