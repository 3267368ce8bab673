//! The folder in which tests keep their files while they run. In memory, if there is enough: the copies of databases that tests
//! start are thousands of small files, and a disk takes half the processor for them.

use crate::process;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system in memory, on Linux.
const MEMORY: &str = "/dev/shm";
const NAME: &str = "starbridge-test-";
/// What must be free there, in KiB: four times what all stages were seen to need at once.
const FREE: u64 = 4 << 20;

/// A folder that is deleted with this value.
#[derive(Debug)]
pub struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// A new folder in memory; `None` if there is not enough, or if no program may run from there.
    pub fn in_memory() -> Option<Self> {
        clear(Path::new(MEMORY));
        if free(MEMORY)? < FREE {
            return None;
        }
        let folder = Path::new(MEMORY).join(format!("{NAME}{}", std::process::id()));
        std::fs::create_dir(&folder).ok()?;
        let scratch = Self { folder };
        scratch.runs_programs().then_some(scratch)
    }

    /// Tells a program to keep its files there.
    pub fn give<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("TMPDIR", &self.folder)
    }

    fn runs_programs(&self) -> bool {
        let program = self.folder.join("program");
        // Some systems have no `true` at this place; then the disk is used.
        let copied = std::fs::copy("/bin/true", &program);
        let runs = copied.is_ok() && Command::new(&program).status().is_ok_and(|status| status.success());
        drop(std::fs::remove_file(&program));
        runs
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

/// Deletes the folders of runs that were killed.
fn clear(memory: &Path) {
    for entry in std::fs::read_dir(memory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name
            .to_str()
            .and_then(|name| name.strip_prefix(NAME)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            drop(std::fs::remove_dir_all(entry.path()));
        }
    }
}

/// KiB that are free in this file system.
fn free(path: &str) -> Option<u64> {
    let printed = process::output(&mut process::program("df", &["-k", "--output=avail", path]))?;
    printed.lines().last()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_left_is_deleted_and_nothing_else() {
        let memory = std::env::temp_dir().join(format!("starbridge-scratch-{}", std::process::id()));
        let own = format!("{NAME}{}", std::process::id());
        // No process has this number: it is above the largest one that Linux gives.
        let left = format!("{NAME}{}", u32::MAX);
        for name in [&own, &left, &format!("{NAME}notes"), &"other".to_owned()] {
            std::fs::create_dir_all(memory.join(name)).unwrap();
        }
        clear(&memory);
        let mut names: Vec<_> = std::fs::read_dir(&memory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        std::fs::remove_dir_all(&memory).unwrap();
        assert_eq!(names, ["other".to_owned(), own, format!("{NAME}notes")]);
    }
}
