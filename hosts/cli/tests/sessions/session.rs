//! A session: files, commands, and what they say.
//!
//! Text before the first block is a comment. A block is a line `=== WORD …` and the lines below it:
//!
//! - `file NAME`: a file with this text; `bytes NAME`: one in which `\xFF` is that byte;
//! - `copy PATH NAME`: a copy of a file or folder of the repository;
//! - `run [NAME=VALUE…] starbridge WORD…`: a command, words in quotes as shells have them, no other expansion;
//!   `stdin` after it: what it reads;
//! - `exit N`, `stdout`, `stderr`: what came of it; a stream that stayed empty is left out;
//! - `shows NAME`: the text of a file by then; `gone NAME`: it is not there.

use std::fmt;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Stands where a text does not end with a line break.
const NO_BREAK: &str = "[no line break]";

#[derive(Debug)]
pub struct Session {
    comment: String,
    blocks: Vec<Block>,
}

#[derive(Debug)]
enum Block {
    File { name: String, text: String },
    Bytes { name: String, text: String },
    Copy { from: String, to: String },
    Run(Box<Run>),
    Shows { name: String, text: String },
    Gone { name: String },
}

#[derive(Debug, Default)]
struct Run {
    line: String,
    stdin: Option<String>,
    exit: String,
    stdout: String,
    stderr: String,
}

impl Session {
    /// Reads a session.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split("=== ");
        let comment = parts.next().unwrap_or_default().to_owned();
        let mut blocks: Vec<Block> = Vec::new();
        for part in parts {
            let (head, body) = part.split_once('\n').unwrap_or((part, ""));
            let (word, rest) = head.split_once(' ').unwrap_or((head, ""));
            let (name, body) = (rest.to_owned(), body.to_owned());
            let last_run = match blocks.last_mut() {
                Some(Block::Run(run)) => Some(run),
                _ => None,
            };
            match (word, last_run) {
                ("file", _) => blocks.push(Block::File { name, text: body }),
                ("bytes", _) => blocks.push(Block::Bytes { name, text: body }),
                ("copy", _) => {
                    let (from, to) = rest.split_once(' ').ok_or("`copy` needs two names")?;
                    blocks.push(Block::Copy {
                        from: from.to_owned(),
                        to: to.to_owned(),
                    });
                }
                ("run", _) => blocks.push(Block::Run(Box::new(Run {
                    line: name,
                    ..Run::default()
                }))),
                ("shows", _) => blocks.push(Block::Shows { name, text: body }),
                ("gone", _) => blocks.push(Block::Gone { name }),
                ("stdin", Some(run)) => run.stdin = Some(body),
                ("exit", Some(run)) => run.exit = name,
                ("stdout", Some(run)) => run.stdout = body,
                ("stderr", Some(run)) => run.stderr = body,
                _ => return Err(format!("`=== {head}` can't stand here")),
            }
        }
        Ok(Self { comment, blocks })
    }

    /// Plays the session in an empty folder and takes down what is said.
    pub fn play(&mut self, place: &Path, root: &Path) -> Result<(), String> {
        for block in &mut self.blocks {
            match block {
                Block::File { name, text } => write(&place.join(name), text.as_bytes())?,
                Block::Bytes { name, text } => write(&place.join(name), &unescaped(text.trim_end()))?,
                Block::Copy { from, to } => copy(&root.join(from), &place.join(to))?,
                Block::Run(run) => run.play(place)?,
                Block::Shows { name, text } => {
                    let path = place.join(&name);
                    let now = fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
                    *text = steady(&now, place);
                }
                Block::Gone { name } if place.join(&name).symlink_metadata().is_ok() => {
                    return Err(format!("`{name}` is there"));
                }
                Block::Gone { .. } => {}
            }
        }
        Ok(())
    }
}

impl Run {
    fn play(&mut self, place: &Path) -> Result<(), String> {
        let words = words(&self.line)?;
        let at = words.iter().position(|word| word == "starbridge");
        let (settings, arguments) = words.split_at(at.ok_or("only `starbridge` can be run")?);
        let settings = settings.iter().filter_map(|setting| setting.split_once('='));
        let mut child = Command::new(env!("CARGO_BIN_EXE_starbridge"))
            .args(arguments.iter().skip(1))
            .current_dir(place)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .envs(settings)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that does not read is free to go away first.
            let _ = stdin.write_all(self.stdin.as_deref().unwrap_or_default().as_bytes());
        }
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        self.exit = output
            .status
            .code()
            .map_or("by a signal".to_owned(), |code| code.to_string());
        self.stdout = steady(&String::from_utf8_lossy(&output.stdout), place);
        self.stderr = steady(&String::from_utf8_lossy(&output.stderr), place);
        Ok(())
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.comment)?;
        for block in &self.blocks {
            match block {
                Block::File { name, text } => write!(f, "=== file {name}\n{text}")?,
                Block::Bytes { name, text } => write!(f, "=== bytes {name}\n{text}")?,
                Block::Copy { from, to } => writeln!(f, "=== copy {from} {to}")?,
                Block::Run(run) => run.fmt(f)?,
                Block::Shows { name, text } => write!(f, "=== shows {name}\n{text}")?,
                Block::Gone { name } => writeln!(f, "=== gone {name}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "=== run {}", self.line)?;
        if let Some(stdin) = &self.stdin {
            write!(f, "=== stdin\n{stdin}")?;
        }
        writeln!(f, "=== exit {}", self.exit)?;
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                write!(f, "=== {name}\n{text}")?;
            }
        }
        Ok(())
    }
}

/// The text without what changes from run to run, escapes made visible.
fn steady(text: &str, place: &Path) -> String {
    let canonical = place.canonicalize().unwrap_or_default();
    let mut text = text
        .replace(&*canonical.to_string_lossy(), "[DIR]")
        .replace(&*place.to_string_lossy(), "[DIR]")
        .replace(
            concat!("starbridge ", env!("CARGO_PKG_VERSION")),
            "starbridge [VERSION]",
        )
        .replace(
            concat!("\"version\":\"", env!("CARGO_PKG_VERSION")),
            "\"version\":\"[VERSION]",
        )
        .replace('\x1b', "\\e")
        .split_inclusive('\n')
        .map(untimed)
        .collect::<String>();
    if !text.is_empty() && !text.ends_with('\n') {
        text += NO_BREAK;
        text.push('\n');
    }
    text
}

/// A line in which times such as `in 1.2 s` and `in 34 ms` read `in [TIME]`.
fn untimed(line: &str) -> String {
    let mut done = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("in ") {
        let (before, after) = rest.split_at(at + 3);
        done += before;
        rest = after;
        let number = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (digits, unit) = after.split_at(number);
        let unit_end = [" ms", " µs", " s", "ms", "µs", "s"].into_iter().find(|unit_name| {
            let follows = unit.strip_prefix(unit_name);
            follows.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
        });
        if let (false, Some(unit_name)) = (digits.is_empty(), unit_end) {
            done += "[TIME]";
            rest = &unit[unit_name.len()..];
        }
    }
    done + rest
}

/// The words of a line as a shell has them; of its expansions only quotes.
fn words(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    if quote.is_some() {
        Err(format!("an open quote in `{line}`"))
    } else {
        Ok(words)
    }
}

/// The bytes of a text in which `\xFF` is one of them.
fn unescaped(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).unwrap());
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, bytes))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if from.is_dir() {
        let entries = fs::read_dir(from).map_err(|error| format!("{}: {error}", from.display()))?;
        return entries
            .flatten()
            .try_for_each(|entry| copy(&entry.path(), &to.join(entry.file_name())));
    }
    let bytes = fs::read(from).map_err(|error| format!("{}: {error}", from.display()))?;
    write(to, &bytes)
}
