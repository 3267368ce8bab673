//! The imports of a source file from other files of its crate: its `use` items and the paths in its
//! code.
//!
//! Methods that are called through a value leave no path, so they are not seen.

use super::rust;
use std::collections::BTreeSet;

/// A path or a module, name by name, from the root of the crate.
pub type Names = Vec<String>;

/// One name that a `use` brings in.
#[derive(Debug, PartialEq)]
pub struct Import {
    /// The imported path; nothing, if it is of another crate.
    pub path: Option<Names>,
    /// The name it has here; `*` for all names of a module.
    pub name: String,
    /// Whether it is handed on with `pub`.
    pub public: bool,
}

/// One file, read.
#[derive(Debug, Default)]
pub struct Module {
    /// The modules with files of their own that it declares.
    pub children: BTreeSet<String>,
    /// Its imports.
    pub imports: Vec<Import>,
    /// Paths in its code, outside of `use`, that stay in the crate.
    pub paths: Vec<Names>,
    /// Names of what it defines itself.
    pub defines: BTreeSet<String>,
    /// All words of its code outside of `use`.
    pub words: BTreeSet<String>,
}

/// A path as it was written, and in which module.
struct Written {
    within: Names,
    path: Names,
}

/// Reads the file of a module. Modules of tests inside of it do not count.
pub fn read(module: &[String], source: &str) -> Module {
    let code = rust::code(source);
    let tokens = tokens(&code);
    let mut found = Module::default();
    let mut uses: Vec<(Written, String, bool)> = Vec::new();
    let mut paths: Vec<Written> = Vec::new();
    let mut inside: Vec<(String, usize)> = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    while at < tokens.len() {
        let next = |ahead: usize| tokens.get(at + ahead).copied().unwrap_or_default();
        let before = at.checked_sub(1).map_or("", |before| tokens[before]);
        let within = || {
            let inner = inside.iter().map(|(name, _)| name.clone());
            module.iter().cloned().chain(inner).collect::<Names>()
        };
        match tokens[at] {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                inside.retain(|(_, opened)| *opened < depth + 1);
            }
            "mod" if next(2) == ";" => _ = found.children.insert(next(1).to_owned()),
            "mod" if next(2) == "{" && is_for_tests(&tokens[..at]) => at = end_of_block(&tokens, at + 2),
            "mod" if next(2) == "{" => {
                found.defines.insert(next(1).to_owned());
                inside.push((next(1).to_owned(), depth + 1));
                depth += 1;
                at += 2;
            }
            "use" if next(1) != "<" => {
                let public = matches!(before, "pub" | ")");
                let end = (at..tokens.len())
                    .find(|&end| tokens[end] == ";")
                    .unwrap_or(tokens.len());
                for (path, name) in leaves(&tokens[at + 1..end]) {
                    uses.push((Written { within: within(), path }, name, public));
                }
                at = end;
            }
            word if is_word(word) => {
                found.words.insert(word.to_owned());
                if is_definition(before) {
                    found.defines.insert(word.to_owned());
                }
                if next(1) == "::" && !matches!(before, "::" | ".") {
                    let path = path_from(&tokens[at..]);
                    at += 2 * (path.len() - 1);
                    found.words.extend(path.iter().cloned());
                    paths.push(Written { within: within(), path });
                }
            }
            _ => {}
        }
        at += 1;
    }
    settle(found, module, uses, paths)
}

/// Makes paths from the root of the crate of the paths that were written.
fn settle(mut found: Module, module: &[String], uses: Vec<(Written, String, bool)>, paths: Vec<Written>) -> Module {
    for (written, name, public) in uses {
        let path = from_root(&written, &found.children, module);
        found.imports.push(Import { path, name, public });
    }
    for written in paths {
        let first = &written.path[0];
        let path = from_root(&written, &found.children, module).or_else(|| {
            let import = found.imports.iter().find(|import| import.name == *first)?;
            let rest = written.path[1..].iter().cloned();
            Some(import.path.clone()?.into_iter().chain(rest).collect())
        });
        found.paths.extend(path);
    }
    found
}

/// The path from the root of the crate; nothing, if it leads to another crate or is of a name that is known here only.
fn from_root(written: &Written, children: &BTreeSet<String>, module: &[String]) -> Option<Names> {
    let Written { within, path } = written;
    let (mut base, mut rest) = match path[0].as_str() {
        "crate" => (Vec::new(), &path[1..]),
        "self" => (within.clone(), &path[1..]),
        "super" => (within.clone(), &path[..]),
        child if children.contains(child) => (module.to_vec(), &path[..]),
        _ => return None,
    };
    while rest.first().is_some_and(|name| name == "super") {
        base.pop()?;
        rest = &rest[1..];
    }
    base.extend(rest.iter().cloned());
    Some(base)
}

/// The names that a `use` brings in, each with its path.
fn leaves(tokens: &[&str]) -> Vec<(Names, String)> {
    let mut found = Vec::new();
    let mut open: Vec<Names> = Vec::new();
    let mut path = Names::new();
    let mut alias: Option<String> = None;
    let mut is_leaf = false;
    let mut at = 0;
    while at <= tokens.len() {
        match tokens.get(at).copied().unwrap_or(",") {
            "::" if path.is_empty() => path.push(String::new()),
            "::" => {}
            "{" => {
                open.push(path.clone());
                is_leaf = false;
            }
            "as" => {
                at += 1;
                alias = tokens.get(at).map(|&alias| alias.to_owned());
            }
            end @ ("," | "}") => {
                if std::mem::take(&mut is_leaf) {
                    path.pop_if(|last| last == "self" && !open.is_empty());
                    let name = path.last().cloned().unwrap_or_default();
                    let name = alias.take().unwrap_or(name);
                    path.pop_if(|last| last == "*");
                    found.push((path, name));
                }
                path = match end {
                    "}" => open.pop(),
                    _ => open.last().cloned(),
                }
                .unwrap_or_default();
            }
            name => {
                path.push(name.to_owned());
                is_leaf = true;
            }
        }
        at += 1;
    }
    found.retain(|(path, _)| !path.is_empty());
    found
}

/// The path that begins the tokens.
fn path_from(tokens: &[&str]) -> Names {
    let mut path = vec![tokens[0].to_owned()];
    for pair in tokens[1..].chunks_exact(2) {
        if pair[0] != "::" || !is_word(pair[1]) {
            break;
        }
        path.push(pair[1].to_owned());
    }
    path
}

/// Whether the tokens end with `#[cfg(test)]`, with or without `pub` after it.
fn is_for_tests(before: &[&str]) -> bool {
    let before = before.strip_suffix(&["pub"]).unwrap_or(before);
    before.ends_with(&["#", "[", "cfg", "(", "test", ")", "]"])
}

/// The end of the block that opens at `at`.
fn end_of_block(tokens: &[&str], at: usize) -> usize {
    let mut depth = 0;
    for (end, token) in tokens.iter().enumerate().skip(at) {
        match *token {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return end;
        }
    }
    tokens.len()
}

/// Whether the next word is what is defined.
fn is_definition(word: &str) -> bool {
    let words = ["fn", "struct", "enum", "trait", "type", "const", "static", "union"];
    words.contains(&word)
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Words, `::`, and everything else sign by sign.
fn tokens(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let of_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            _ if of_word(first) => rest.find(|c| !of_word(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            first => first.len_utf8(),
        };
        found.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str) -> Names {
        path.split("::")
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn imports_are_read_with_their_paths_from_the_root() {
        let source = "mod child;\nuse crate::a::{self, b::C, d::*};\npub(crate) use super::e as f;\nuse child::G;\nuse std::fmt;\nuse ::h::I;\nfn j() -> impl Sized + use<> {}";
        let found = read(&names("x::y"), source);
        let expected = [
            (Some("a"), "a", false),
            (Some("a::b::C"), "C", false),
            (Some("a::d"), "*", false),
            (Some("x::e"), "f", true),
            (Some("x::y::child::G"), "G", false),
            (None, "fmt", false),
            (None, "I", false),
        ];
        let expected = expected.map(|(path, name, public)| Import {
            path: path.map(names),
            name: name.to_owned(),
            public,
        });
        assert_eq!(found.imports, expected);
    }

    #[test]
    fn paths_in_code_are_read_but_those_of_tests() {
        let source = "mod child;\nuse crate::a;\nfn f() { a::b(); super::C::new(); child::d(); std::mem::take(x); x.e::<u8>(); }\nmod inner { fn g() { super::h(); } }\n#[cfg(test)]\nmod tests { fn t() { crate::never(); } }\nfn k() -> crate::l {}";
        let found = read(&names("x"), source);
        assert_eq!(found.paths, ["a::b", "C::new", "x::child::d", "x::h", "l"].map(names));
        assert_eq!(found.defines, ["f", "g", "inner", "k"].map(str::to_owned).into());
    }
}
