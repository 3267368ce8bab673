//! The arguments of the command line.

use crate::commands::{Command, GROUPS};
use crate::table::now;
use clap::builder::StyledStr;
use clap::{CommandFactory, Parser};
use starbridge_flow::duration;
use starbridge_flow::time::{Millis, Timestamp};
use std::fmt::Write;
use std::net::SocketAddr;

/// A hundred years in milliseconds: no execution was started earlier.
const MAX_SPAN: f64 = 3.156e12;

/// Runs flows: JSON or YAML files that say which tasks to call, in which order, and what to do when one fails
#[derive(Debug, Parser)]
#[command(name = "starbridge", version, disable_help_subcommand = true)]
#[command(after_help = "\
Example:
  starbridge init hello && starbridge validate hello

Results go to stdout, all else to stderr. Exit codes: 0 well; 1 the flow ended
unsuccessfully, or a check found something; 2 bad usage, unreadable file, bad
definition or input; 3 operational fault; 130 interrupted. With --json an error is
`{\"error\":{\"code\":…,\"message\":…}}` on stderr: the code tells what exit codes don't.")]
pub struct Arguments {
    /// Give results as JSON
    #[arg(long, global = true, display_order = 900)]
    pub json: bool,

    /// Say nothing but results and errors
    #[arg(long, short, global = true, display_order = 901)]
    pub quiet: bool,

    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// An address to listen on.
pub fn read_address(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse();
    address.map_err(|_| "an IP address and a port are expected, for example 127.0.0.1:7878".to_owned())
}

/// A time in the form that servers take. A written time stays unchanged; a span such as `2h` or
/// `-2h` means that long ago.
pub fn read_time(text: &str) -> Result<String, String> {
    if Timestamp::parse(text).is_some() {
        return Ok(text.to_owned());
    }
    let span = text.strip_prefix('-').unwrap_or(text);
    let millis = duration::seconds(span).and_then(|seconds| seconds.as_f64());
    let millis = millis
        .map(|seconds| (seconds * 1_000.0).round())
        .filter(|millis| *millis < MAX_SPAN);
    match millis {
        Some(millis) => Ok(now().minus(Millis(millis as u64)).to_string()),
        None => Err("a time such as 2026-01-31T09:00:00Z, or a span such as 2h, is expected".to_owned()),
    }
}

/// The whole command line for clap, with commands listed in groups.
pub fn command() -> clap::Command {
    let command = Arguments::command();
    let listing = listing(&command);
    command.help_template(StyledStr::from(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{listing}\x1b[1m\x1b[4mOptions:\x1b[0m\n{{options}}{{after-help}}"
    )))
}

/// The commands under the headings of their groups.
fn listing(command: &clap::Command) -> String {
    let mut text = String::new();
    let width = GROUPS
        .iter()
        .flat_map(|(_, names)| *names)
        .map(|name| name.len())
        .max()
        .unwrap_or(0);
    for (heading, names) in GROUPS {
        let _ = writeln!(text, "\x1b[1m\x1b[4m{heading}:\x1b[0m");
        for name in *names {
            let about = command
                .find_subcommand(name)
                .and_then(clap::Command::get_about)
                .cloned();
            let about = about.unwrap_or_default();
            let _ = writeln!(text, "  \x1b[1m{name:width$}\x1b[0m  {about}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_finds_nothing_to_complain_about() {
        command().debug_assert();
    }

    #[test]
    fn every_command_stands_in_one_group_and_shows_an_example() {
        let command = command();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let mut known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
        for command in command.get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example"), "{} shows no example", command.get_name());
            assert!(
                command.get_about().is_some(),
                "{} says nothing about itself",
                command.get_name()
            );
        }
    }
}
