//! The file of a program, and its working folder.

use crate::settings::{CommandSettings, Programs};
use starbridge_ports::Outcome;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

/// The folder of a connector. Its path is resolved only once, so that it always leads to the same
/// place.
#[derive(Debug)]
pub(crate) struct Folder {
    written: PathBuf,
    programs: Programs,
    variables: Vec<String>,
    resolved: OnceLock<PathBuf>,
}

/// A program that was found.
#[derive(Debug, PartialEq)]
pub(crate) struct Found {
    /// The file to run.
    pub program: PathBuf,
    /// The name that the program gets as its own (`argv[0]`).
    pub called: PathBuf,
}

impl Folder {
    pub(crate) fn of(settings: &CommandSettings) -> Self {
        let folder = Self {
            written: settings.folder.clone(),
            programs: settings.programs,
            variables: settings.variables.clone(),
            resolved: OnceLock::new(),
        };
        // A folder that does not exist yet may exist when it is needed.
        let _ = folder.path();
        folder
    }

    /// The resolved path of the folder.
    pub(crate) fn path(&self) -> Result<&Path, Outcome> {
        if let Some(resolved) = self.resolved.get() {
            return Ok(resolved);
        }
        let resolved = self.written.canonicalize().map_err(|error| {
            let folder = self.written.display();
            Outcome::not_sent(format!("the folder `{folder}` can't be used: {}", words(&error)))
        })?;
        Ok(self.resolved.get_or_init(|| resolved))
    }

    /// The program with this name.
    pub(crate) fn program(&self, name: &str) -> Result<Found, Outcome> {
        let folder = self.path()?;
        match self.programs {
            Programs::OfFolder => inside(folder, name),
            Programs::Any => {
                let program = match name.contains('/') {
                    true => folder.join(name),
                    false => PathBuf::from(name),
                };
                let called = program.clone();
                Ok(Found { program, called })
            }
        }
    }

    /// Whether a flow may set this variable. Variables that a loader, a shell or an interpreter reads could run files
    /// outside the folder, and no list of them is complete. So only listed variables may be set.
    pub(crate) fn admits_variable(&self, name: &str) -> Result<(), Outcome> {
        let listed = |pattern: &String| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == pattern,
        };
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let admitted = name.chars().all(plain) && self.variables.iter().any(listed);
        match self.programs {
            Programs::OfFolder if !admitted => Err(Outcome::not_sent(format!(
                "the variable `{name}` is not for a flow to set: list it in `commands.variables`"
            ))),
            _ => Ok(()),
        }
    }

    /// The folder in which a program works.
    pub(crate) fn working(&self, relative: Option<&str>) -> Result<PathBuf, Outcome> {
        let folder = self.path()?;
        let Some(relative) = relative else {
            return Ok(folder.to_path_buf());
        };
        let inside = folder.join(relative).canonicalize().ok();
        inside
            .filter(|path| path.starts_with(folder) && path.is_dir())
            .ok_or_else(|| Outcome::not_sent(format!("`cwd` `{relative}` is no folder inside the flow's own")))
    }
}

/// A program in the folder. Nothing outside is looked at, so that no flow learns which files exist
/// there.
fn inside(folder: &Path, name: &str) -> Result<Found, Outcome> {
    let refused = |why: &str| {
        let rule = "only executable files in `commands.folder` run, by their path in it";
        Err(Outcome::not_sent(format!("`{name}` {why}: {rule}")))
    };
    let path = Path::new(name);
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !path.components().all(plain) {
        return refused("leads out of the folder for programs");
    }
    let called = folder.join(path);
    let Ok(program) = called.canonicalize() else {
        return refused("is not in the folder for programs");
    };
    if !program.starts_with(folder) {
        return refused("leads out of the folder for programs");
    }
    let file = program.symlink_metadata();
    let runs = file.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    match runs {
        true => Ok(Found { program, called }),
        false => refused("is no executable file"),
    }
}

/// An operating system's error without its number.
pub(crate) fn words(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
