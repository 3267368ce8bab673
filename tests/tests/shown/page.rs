//! The instructions of a page: files to write and commands to run, in their order.
//!
//! A fence `console` has commands and, below each, what it prints. A fence whose first line ends in a name with a dot
//! (```` ```json order.json ````) is that file. Parts that readers do not need are in a comment:
//! `<!-- console` or `<!-- file NAME` in one line, the lines, and `-->`.

/// A command of a page and what it shows below it.
pub struct Shown {
    pub command: String,
    pub output: String,
}

/// One thing to do.
pub enum Part {
    File { name: String, text: String },
    Command(Shown),
}

/// The kind of the lines that are being read.
enum Inside {
    Nothing,
    Console,
    File,
    Other,
}

/// Reads a page.
pub fn parts(page: &str) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::new();
    let mut inside = Inside::Nothing;
    let mut goes_on = false;
    for line in page.lines() {
        match inside {
            Inside::Nothing => inside = opened(line, &mut all),
            _ if line.starts_with("```") || line == "-->" => inside = Inside::Nothing,
            Inside::Console => console(line, &mut all, &mut goes_on),
            Inside::File => {
                if let Some(Part::File { text, .. }) = all.last_mut() {
                    text.push_str(line);
                    text.push('\n');
                }
            }
            Inside::Other => {}
        }
    }
    all
}

/// The part that a line outside of fences and comments begins.
fn opened(line: &str, all: &mut Vec<Part>) -> Inside {
    let mut file = |name: &str| {
        all.push(Part::File {
            name: name.to_owned(),
            text: String::new(),
        });
        Inside::File
    };
    if line == "```console" || line == "<!-- console" {
        Inside::Console
    } else if let Some(name) = line.strip_prefix("<!-- file ") {
        file(name)
    } else if let Some(info) = line.strip_prefix("```") {
        let name = info.split_whitespace().skip(1).last();
        name.filter(|name| name.contains('.')).map_or(Inside::Other, file)
    } else {
        Inside::Nothing
    }
}

/// A line of a console: a command, the rest of one, or what one prints.
fn console(line: &str, all: &mut Vec<Part>, goes_on: &mut bool) {
    if !*goes_on && !line.starts_with("$ ") {
        let Some(Part::Command(last)) = all.last_mut() else {
            panic!("output before the first command: {line}");
        };
        last.output.push_str(line);
        last.output.push('\n');
        return;
    }
    let text = line.strip_prefix("$ ").unwrap_or(line).trim();
    let part = text.strip_suffix('\\').unwrap_or(text);
    match all.last_mut() {
        Some(Part::Command(last)) if *goes_on => last.command.push_str(part),
        _ => all.push(Part::Command(Shown {
            command: part.to_owned(),
            output: String::new(),
        })),
    }
    *goes_on = text.ends_with('\\');
}

/// Words as a shell has them; single quotes only.
pub fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Whether a command printed what the page shows.
pub fn fits(shown: &str, printed: &str) -> bool {
    let fits = |(shown, printed): (&str, &str)| {
        let mut parts = shown.split('…');
        let spaced = |text: &str| {
            text.split(' ')
                .filter(|word| !word.is_empty())
                .collect::<Vec<_>>()
                .join(" ")
        };
        if !shown.contains('…') {
            return shown == printed;
        }
        let printed = spaced(printed);
        let mut rest = match printed.strip_prefix(&spaced(parts.next().unwrap_or_default())) {
            Some(rest) => rest,
            None => return false,
        };
        for part in parts {
            let part = spaced(part);
            match rest.find(&part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        true
    };
    shown.lines().count() == printed.lines().count() && shown.lines().zip(printed.lines()).all(fits)
}
