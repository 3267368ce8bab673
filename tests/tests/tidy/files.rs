//! The project's files.

use starbridge_tests::data;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One file of the project.
pub struct File {
    /// Its path from the root, with `/`.
    pub path: String,
    /// Its text; none, if it is no text.
    pub text: Option<String>,
}

/// All files that are kept, or will be: what git would take, or, without git, all but what is built.
pub fn all() -> Vec<File> {
    let root = data::root();
    let mut paths = by_git(&root).unwrap_or_else(|| by_walking(&root));
    paths.sort();
    paths
        .into_iter()
        .filter_map(|path| {
            let bytes = std::fs::read(root.join(&path)).ok()?;
            Some(File {
                path,
                text: String::from_utf8(bytes).ok(),
            })
        })
        .collect()
}

/// The files whose name ends so.
pub fn ending(ending: &str) -> Vec<File> {
    all().into_iter().filter(|file| file.path.ends_with(ending)).collect()
}

/// The Rust sources.
pub fn rust() -> Vec<File> {
    ending(".rs")
}

impl File {
    /// The text; empty, if it is no text.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }
}

fn by_git(root: &Path) -> Option<Vec<String>> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
    let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
    let listed = String::from_utf8(output.stdout).ok()?;
    let paths: Vec<String> = listed
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect();
    (output.status.success() && !paths.is_empty()).then_some(paths)
}

fn by_walking(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = vec![root.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(relative) = path.strip_prefix(root) else {
                continue;
            };
            let relative = relative.to_string_lossy().replace('\\', "/");
            if !path.is_dir() {
                found.push(relative);
            } else if !matches!(&*relative, "target" | ".git" | "fuzz/artifacts") {
                open.push(path);
            }
        }
    }
    found
}
