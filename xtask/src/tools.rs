//! Tools that are installed, or can be installed in a minute or two.

use crate::process::{self, program, succeeds_within};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Whether the compiler can build for that target; it is installed if that is possible quickly.
pub fn has_target(target: &str) -> bool {
    let installed = || {
        let folder = process::output(&mut program("rustc", &["--print", "target-libdir", "--target", target]));
        folder.is_some_and(|folder| Path::new(&folder).is_dir())
    };
    installed()
        || (succeeds_within(
            &mut program("rustup", &["target", "add", target]),
            Duration::from_secs(120),
        ) && installed())
}

/// The path of a program: on `PATH`, or among those installed here.
pub fn path_of(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(&path)
        .chain([own_programs()])
        .map(|folder| folder.join(&name))
        .find(|file| file.is_file())
}

/// The folder of programs that are installed only for this checkout.
fn own_programs() -> PathBuf {
    process::target().join("tools/bin")
}
