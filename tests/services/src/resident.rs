//! The memory of a program that another process has started.

use std::path::Path;
use std::process::Command;

/// The bytes of memory of the process whose command line begins with this path; 0, where there is none.
pub fn resident(program: &Path) -> u64 {
    let pattern = format!("^{}", program.display());
    let found = Command::new("pgrep").args(["-f", &pattern]).output();
    let found = found.map(|found| String::from_utf8_lossy(&found.stdout).trim().to_owned());
    let status = found.and_then(|id| std::fs::read_to_string(format!("/proc/{id}/status")));
    let status = status.unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}
