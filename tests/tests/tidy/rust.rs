//! As much of Rust as tidiness needs: where code is code, and where functions begin and end.

/// The source with blanks in place of comments, strings and characters; lines stay where they are.
pub fn code(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < chars.len() {
        let end = at + length_of_text(&chars, at);
        if end > at {
            out.extend(chars[at..end].iter().map(|&c| if c == '\n' { c } else { ' ' }));
            at = end;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

/// How many characters from here on are a comment, a string or a character; 0: none.
fn length_of_text(chars: &[char], at: usize) -> usize {
    let next = |ahead: usize| chars.get(at + ahead).copied().unwrap_or('\0');
    let word_before = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    match (chars[at], next(1)) {
        ('/', '/') => chars[at..].iter().take_while(|&&c| c != '\n').count(),
        ('/', '*') => block_comment(&chars[at..]),
        ('"', _) => quoted(&chars[at..], '"'),
        ('r', '"' | '#') if !word_before => raw(&chars[at + 1..]).map_or(0, |length| length + 1),
        ('b', 'r') if !word_before => raw(&chars[at + 2..]).map_or(0, |length| length + 2),
        // A lifetime has no second quote where a character has one.
        ('\'', '\\') => quoted(&chars[at..], '\''),
        ('\'', _) if next(2) == '\'' => 3,
        _ => 0,
    }
}

fn block_comment(chars: &[char]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => depth += 1,
            ('*', Some('/')) => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            break;
        }
    }
    at.min(chars.len())
}

fn quoted(chars: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// The length of `#…"…"#…`, if one is here.
fn raw(chars: &[char]) -> Option<usize> {
    let hashes = chars.iter().take_while(|&&c| c == '#').count();
    if chars.get(hashes) != Some(&'"') {
        return None;
    }
    let closes =
        |at: usize| chars[at] == '"' && chars[at + 1..].iter().take(hashes).filter(|&&c| c == '#').count() == hashes;
    let end = (hashes + 1..chars.len()).find(|&at| closes(at))?;
    Some(end + 1 + hashes)
}

/// A function: its name, its first line from 1, and how many lines it has.
#[derive(Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line where it begins.
    pub line: usize,
    /// Its lines, from `fn` to the last brace.
    pub lines: usize,
}

/// The functions that have a body, from code without comments and strings.
pub fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + 3..];
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if let Some(end) = body_end(rest).filter(|_| !name.is_empty()) {
            found.push(Function {
                name,
                line: code[..at].lines().count().max(1),
                lines: rest[..end].lines().count(),
            });
        }
    }
    found
}

/// The end of the body of a function whose name is here; nothing, if it has no body.
fn body_end(rest: &str) -> Option<usize> {
    let (mut round, mut curly) = (0_i32, 0_i32);
    for (at, c) in rest.char_indices() {
        match c {
            '(' | '[' => round += 1,
            ')' | ']' => round -= 1,
            ';' if round == 0 && curly == 0 => return None,
            '{' => curly += 1,
            '}' => {
                curly -= 1;
                if curly == 0 && round == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[test]
fn comments_strings_and_characters_are_no_code() {
    for (source, expected) in [
        ("a // b\nc", "a     \nc"),
        ("a /* b /* c */ d */ e", "a                   e"),
        (r#"f("x\"y{", 'a')"#, r#"f(       ,    )"#),
        (r##"r#"a"b"# + br"x" + bar"##, "         +       + bar"),
        (r"'\'' '\u{41}' &'a str", "              &'a str"),
        ("r#type", "r#type"),
    ] {
        assert_eq!(code(source), expected, "{source}");
    }
}

#[test]
fn functions_are_found_with_their_lines() {
    let source = "trait T {\n    fn a(&self);\n    fn b(x: [u8; 2]) {}\n}\npub const fn c<F: Fn(u8)>()\nwhere\n    F: Sized,\n{\n    if x { y }\n}\ntype X = fn (u8);\n";
    let of = |name: &str, line, lines| Function {
        name: name.to_owned(),
        line,
        lines,
    };
    assert_eq!(functions(&code(source)), [of("b", 3, 1), of("c", 5, 6)]);
}
