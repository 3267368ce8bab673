//! A session: files, commands, and their output.
//!
//! Text before the first block is a comment. A block is a line `=== WORD …` and the lines below it:
//!
//! - `file NAME`: a file with this text; `bytes NAME`: one in which `\xFF` is that byte;
//! - `copy PATH NAME`: a copy of a file or folder of the repository;
//! - `run [NAME=VALUE…] starbridge WORD…`: a command, with words in quotes as in shells, and no
//!   other expansion; `stdin` after it: its input;
//! - `exit N`, `stdout`, `stderr`: its result; an empty stream is left out;
//! - `serve starbridge serve WORD…`: a server on a port of its own, which later commands ask; `begin starbridge WORD…`:
//!   a command that goes on meanwhile; `end SIGNAL`: ends the one that was started last, `end SIGNAL server` the
//!   server, `end 0` waits for its end;
//! - `take WORD NAME`: waits for that file; its text is `[WORD]` from then on;
//! - `sql NAME`: statements that change a store;
//! - `shows NAME`: the text of a file by then; `gone NAME`: it is not there.

use super::live::{self, Live};
use std::fmt;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

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
    Serve(String),
    Begin(String),
    End(Box<Run>),
    Take { name: String, file: String },
    Sql { name: String, text: String },
    Shows { name: String, text: String },
    Gone { name: String },
}

/// A command and its result, or the result of a command that was ended by a signal.
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
                Some(Block::Run(run) | Block::End(run)) => Some(run),
                _ => None,
            };
            match (word, last_run) {
                ("file", _) => blocks.push(Block::File { name, text: body }),
                ("sql", _) => blocks.push(Block::Sql { name, text: body }),
                ("bytes", _) => blocks.push(Block::Bytes { name, text: body }),
                ("copy" | "take", _) => {
                    let (one, two) = rest.split_once(' ').ok_or(format!("`{word}` needs two names"))?;
                    let (one, two) = (one.to_owned(), two.to_owned());
                    blocks.push(match word {
                        "copy" => Block::Copy { from: one, to: two },
                        _ => Block::Take { name: one, file: two },
                    });
                }
                ("run", _) => blocks.push(Block::Run(Box::new(Run::of(name)))),
                ("end", _) => blocks.push(Block::End(Box::new(Run::of(name)))),
                ("serve", _) => blocks.push(Block::Serve(name)),
                ("begin", _) => blocks.push(Block::Begin(name)),
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

    /// Plays the session in an empty folder and records the output.
    pub fn play(&mut self, place: &Path, root: &Path) -> Result<(), String> {
        let mut live = Live::default();
        for block in &mut self.blocks {
            match block {
                Block::File { name, text } => write(&place.join(name), text.as_bytes())?,
                Block::Bytes { name, text } => write(&place.join(name), &unescaped(text.trim_end()))?,
                Block::Copy { from, to } => copy(&root.join(from), &place.join(to))?,
                Block::Sql { name, text } => rusqlite::Connection::open(place.join(name))
                    .and_then(|store| store.execute_batch(text))
                    .map_err(|error| error.to_string())?,
                Block::Run(run) => run.play(place, &mut live)?,
                Block::Serve(line) => live.serve(line, place)?,
                Block::Begin(line) => live.begin(line, place)?,
                Block::Take { name, file } => live.take(name, &place.join(file))?,
                Block::End(run) => {
                    let over = live.end(&run.line)?;
                    run.exit = over.exit;
                    run.take_down(&over.stdout, &over.stderr, place, &mut live);
                }
                Block::Shows { name, text } => {
                    let path = place.join(&name);
                    let now = fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
                    *text = live.named(&steady(&now, place));
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
    fn of(line: String) -> Self {
        Self {
            line,
            ..Self::default()
        }
    }

    fn play(&mut self, place: &Path, live: &mut Live) -> Result<(), String> {
        let mut child = live
            .command(&self.line, place)?
            .stdin(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that does not read may end first.
            let _ = stdin.write_all(self.stdin.as_deref().unwrap_or_default().as_bytes());
        }
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        self.exit = live::exit(output.status);
        let [stdout, stderr] =
            [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        self.take_down(&stdout, &stderr, place, live);
        Ok(())
    }

    fn take_down(&mut self, stdout: &str, stderr: &str, place: &Path, live: &mut Live) {
        self.stdout = live.named(&steady(stdout, place));
        self.stderr = live.named(&steady(stderr, place));
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.comment)?;
        for block in &self.blocks {
            match block {
                Block::File { name, text } => write!(f, "=== file {name}\n{text}")?,
                Block::Bytes { name, text } => write!(f, "=== bytes {name}\n{text}")?,
                Block::Sql { name, text } => write!(f, "=== sql {name}\n{text}")?,
                Block::Copy { from, to } => writeln!(f, "=== copy {from} {to}")?,
                Block::Run(run) => run.show("run", f)?,
                Block::End(run) => run.show("end", f)?,
                Block::Serve(line) => writeln!(f, "=== serve {line}")?,
                Block::Begin(line) => writeln!(f, "=== begin {line}")?,
                Block::Take { name, file } => writeln!(f, "=== take {name} {file}")?,
                Block::Shows { name, text } => write!(f, "=== shows {name}\n{text}")?,
                Block::Gone { name } => writeln!(f, "=== gone {name}")?,
            }
        }
        Ok(())
    }
}

impl Run {
    fn show(&self, word: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "=== {word} {}", self.line)?;
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

/// The text without values that change from run to run, with visible escapes.
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
        .map(|line| {
            ["in ", "after ", "· ", "("]
                .iter()
                .fold(line.to_owned(), |line, word| untimed(&line, word))
        })
        .collect::<String>();
    if !text.is_empty() && !text.ends_with('\n') {
        text += NO_BREAK;
        text.push('\n');
    }
    text
}

/// A line in which times after a word, such as `in 1.2 s` and `(34 ms)`, read `in [TIME]` and `([TIME])`.
fn untimed(line: &str, word: &str) -> String {
    let mut done = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(word) {
        let (before, after) = rest.split_at(at + word.len());
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
pub fn words(line: &str) -> Result<Vec<String>, String> {
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

/// Writes a file, and makes it executable if it names its interpreter.
fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, bytes))
        .and_then(|()| match bytes.starts_with(b"#!") {
            true => fs::set_permissions(path, fs::Permissions::from_mode(0o755)),
            false => Ok(()),
        })
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
