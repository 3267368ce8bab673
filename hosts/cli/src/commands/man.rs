//! `man`: manual pages.

use crate::arguments;
use crate::exit::Exit;
use crate::output::Output;
use clap::Args;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use starbridge_flow::diagnostics::nearest;
use starbridge_node::system::reason;
use std::fs;
use std::path::{Path, PathBuf};

/// Print a manual page
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  starbridge man | man -l -
  starbridge man queue set | man -l -
  starbridge man --dir ~/.local/share/man/man1")]
pub struct Options {
    /// The page of this command; without one the page of the whole program
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Vec<String>,

    /// Write the pages of the program and of each command into this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints or writes them.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let mut program = arguments::command();
    program.build();
    if let Some(folder) = &options.dir {
        return write(program, folder, output);
    }
    for name in &options.command {
        let Some(found) = program.find_subcommand(name) else {
            let names = program.get_subcommands().map(clap::Command::get_name);
            let help = nearest(name, names).map(|meant| format!("did you mean `{meant}`?"));
            return Err(output.fail(Exit::Bad, &format!("there is no command `{name}`"), help.as_deref()));
        };
        program = found.clone();
    }
    output.result(&page(program))
}

const VERSION: &str = concat!("starbridge ", env!("CARGO_PKG_VERSION"));

/// The meaning of every command's exit codes.
const EXITS: [(&str, &str); 5] = [
    ("0", "all went well"),
    ("1", "the flow ended unsuccessfully, or a check found something"),
    ("2", "bad usage, unreadable file, bad definition or input"),
    ("3", "operational fault"),
    ("130", "interrupted"),
];

/// The parts below a command's options: usage and further text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Below {
    examples: Vec<String>,
    exits: Vec<String>,
    rest: Vec<String>,
}

impl Below {
    fn read(text: &str) -> Self {
        let mut below = Self::default();
        for paragraph in text.split("\n\n") {
            let mut lines = paragraph.lines().map(str::to_owned);
            if paragraph.starts_with("Example") {
                below.examples.extend(lines.skip(1).map(|line| line.trim().to_owned()));
            } else if let Some(more) = paragraph.strip_prefix("Exit codes: as always; ") {
                below.exits.push(more.to_owned());
            } else if !paragraph.contains("Exit codes: 0") {
                below.rest.extend(&mut lines);
            }
        }
        below
    }
}

fn page(command: clap::Command) -> String {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let below = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let below = Below::read(&below);
    let has_commands = command.has_subcommands();
    let has_version = command.get_version().is_some();
    let mut text = Vec::new();
    let man = Man::new(command).title(name.to_uppercase()).source(VERSION);
    // Writing to memory does not fail.
    let _ = man.render_title(&mut text);
    let _ = man.render_name_section(&mut text);
    let _ = man.render_synopsis_section(&mut text);
    let _ = man.render_description_section(&mut text);
    let _ = man.render_options_section(&mut text);
    if has_commands {
        let _ = man.render_subcommands_section(&mut text);
    }
    let _ = sections(&below).to_writer(&mut text);
    if has_version {
        let _ = man.render_version_section(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    // Each part begins with it, but one is enough.
    match text.split_once(PREAMBLE) {
        Some((before, rest)) => format!("{before}{PREAMBLE}{}", rest.replace(PREAMBLE, "")),
        None => text.into_owned(),
    }
}

/// Makes pages use the quotation marks of programs, not those of texts.
const PREAMBLE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

fn sections(below: &Below) -> Roff {
    let mut roff = Roff::new();
    for line in &below.rest {
        roff.text([roman(line)]);
    }
    if !below.examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in &below.examples {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
    }
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in EXITS {
        roff.control("TP", []).text([bold(code)]).text([roman(meaning)]);
    }
    for line in &below.exits {
        roff.control("PP", []).text([roman(line)]);
    }
    roff
}

fn write(program: clap::Command, folder: &Path, output: Output) -> Result<(), Exit> {
    if folder.exists() && !folder.is_dir() {
        let message = format!("`{}` is no folder", folder.display());
        return Err(output.fail(Exit::Bad, &message, Some("name another one")));
    }
    let fault = |path: &Path, error: &std::io::Error| {
        let message = format!("can't write `{}`: {}", path.display(), reason(error));
        output.fail(Exit::Fault, &message, None)
    };
    fs::create_dir_all(folder).map_err(|error| fault(folder, &error))?;
    let mut open = vec![program];
    while let Some(command) = open.pop() {
        let nested: Vec<clap::Command> = command.get_subcommands().cloned().collect();
        open.extend(nested.into_iter().rev());
        let name = command.get_display_name().unwrap_or(command.get_name());
        let path = folder.join(format!("{name}.1"));
        fs::write(&path, page(command)).map_err(|error| fault(&path, &error))?;
        output.note(&format!("wrote {}", path.display()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_below_the_options_has_sections_of_its_own() {
        let below = Below::read("Examples:\n  a --b\n  c\n\nExit codes: as always; with --wait also 1.\n\nMore.");
        assert_eq!(below.examples, ["a --b", "c"]);
        assert_eq!(below.exits, ["with --wait also 1."]);
        assert_eq!(below.rest, ["More."]);
    }

    #[test]
    fn every_page_that_is_referred_to_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut program = arguments::command();
        program.build();
        write(program, folder.path(), Output::new(false, true)).unwrap();
        let pages: Vec<PathBuf> = fs::read_dir(folder.path())
            .unwrap()
            .map(|page| page.unwrap().path())
            .collect();
        assert!(pages.len() > 25, "{pages:?}");
        for page in &pages {
            let text = fs::read_to_string(page).unwrap().replace('\\', "");
            for (at, _) in text.match_indices("(1)") {
                let before = text.get(..at).unwrap();
                let from = before
                    .rfind(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                    .map_or(0, |from| from + 1);
                let name = before.get(from..).unwrap();
                assert!(
                    folder.path().join(format!("{name}.1")).exists(),
                    "{}: {name}",
                    page.display()
                );
            }
            assert!(
                text.contains("EXIT STATUS") && !text.contains("EXTRA"),
                "{}",
                page.display()
            );
        }
    }
}
