//! `explain`: the page of a diagnostic.

use crate::exit::Exit;
use crate::output::Output;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Args, Command};
use serde::Serialize;
use starbridge_fdl::diagnostics::{Code, nearest};
use std::ffi::OsStr;
use std::fmt::Write;

/// Explain a diagnostic: what it says, why, an example, and what to write instead
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  starbridge explain FDL0102
  starbridge explain")]
pub struct Options {
    /// The diagnostic, such as FDL0102, fdl102 or 102; without one all are listed
    #[arg(value_name = "CODE", value_parser = Codes, hide_possible_values = true)]
    code: Option<String>,
}

/// Accepts any word, and gives shells the existing codes.
#[derive(Clone)]
struct Codes;

impl TypedValueParser for Codes {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let value = |code: &Code| PossibleValue::new(code.as_str()).help(code.title());
        Some(Box::new(Code::ALL.iter().map(value)))
    }
}

#[derive(Serialize)]
struct Entry {
    code: &'static str,
    severity: &'static str,
    title: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<&'static str>,
}

/// Prints the page, or the list of all codes.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let Some(word) = &options.code else {
        return output.result(&list(output.json()));
    };
    let Some(code) = code_of(word) else {
        let all = "`starbridge explain` lists all codes";
        let help = near(word).map_or(all.to_owned(), |code| format!("did you mean `{code}`? {all}"));
        return Err(output.fail(Exit::Bad, &format!("there is no diagnostic `{word}`"), Some(&help)));
    };
    if output.json() {
        return output.result(&line_of_json(&entry(code, Some(code.page()))));
    }
    output.result(code.page())
}

fn entry(code: Code, page: Option<&'static str>) -> Entry {
    Entry {
        code: code.as_str(),
        severity: code.severity().as_str(),
        title: code.title(),
        page,
    }
}

fn line_of_json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string(value).unwrap_or_default();
    text.push('\n');
    text
}

fn list(json: bool) -> String {
    if json {
        let entries: Vec<Entry> = Code::ALL.iter().map(|&code| entry(code, None)).collect();
        return line_of_json(&entries);
    }
    let mut text = String::new();
    for code in Code::ALL {
        let _ = writeln!(text, "{code}  {:7}  {}", code.severity().as_str(), code.title());
    }
    text
}

/// The code of a word, which may lack letters and leading zeros.
fn code_of(word: &str) -> Option<Code> {
    Code::parse(&normalized(word))
}

/// A number that differs from every code by more than this is not a typing mistake.
const FAR: u16 = 100;

/// The code nearest to an unknown one: by its number, or else by its letters.
fn near(word: &str) -> Option<Code> {
    let number = |text: &str| text.strip_prefix("FDL").and_then(|digits| digits.parse::<u16>().ok());
    let word = normalized(word);
    match number(&word) {
        Some(wanted) => {
            let distance = |code: &&Code| number(code.as_str()).unwrap_or(0).abs_diff(wanted);
            let near = |code: &&Code| distance(code) < FAR;
            Code::ALL.iter().min_by_key(distance).filter(near).copied()
        }
        None => nearest(&word, Code::ALL.iter().map(|code| code.as_str())).and_then(Code::parse),
    }
}

fn normalized(word: &str) -> String {
    let word = word
        .trim()
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_ascii_uppercase();
    let digits = word.strip_prefix("FDL").unwrap_or(&word).trim_start_matches(['-', '_']);
    match digits.parse::<u16>() {
        Ok(number) => format!("FDL{number:04}"),
        Err(_) => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_zeros_may_be_left_out() {
        for word in ["FDL0012", "fdl12", "12", "0012", "[FDL0012]", " fdl-12"] {
            assert_eq!(code_of(word), Some(Code::YamlDocuments), "{word}");
        }
        for word in ["", "FDL", "FDL9999", "1.2", "-12x", "99999999", "+"] {
            assert_eq!(code_of(word), None, "{word}");
        }
    }
}
