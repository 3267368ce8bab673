//! A process with all that it started, as `/proc` has them. Elsewhere than on Linux only the process itself is known.

use std::collections::BTreeMap;
use std::process::Command;

/// Kills this process and its descendants. Returns a line for each: its number and its command line, parents first.
pub fn kill(process: u32) -> Vec<String> {
    let mut lines = Vec::new();
    let mut numbers = Vec::new();
    for number in members(process) {
        lines.push(format!("{number} {}", command_line(number)));
        numbers.push(number.to_string());
    }
    // Some may have ended meanwhile.
    drop(Command::new("kill").arg("-KILL").args(numbers).output());
    lines
}

/// The process and its descendants, parents before their children.
fn members(process: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let number = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        if let Some((number, parent)) = number.and_then(|number| Some((number, parent(number)?))) {
            children.entry(parent).or_default().push(number);
        }
    }
    let mut members = vec![process];
    let mut next = 0;
    while let Some(member) = members.get(next) {
        members.extend(children.remove(member).into_iter().flatten());
        next += 1;
    }
    members
}

/// `/proc/N/stat` has the number, the name in parentheses, the state and the parent (`proc_pid_stat(5)`).
fn parent(process: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

fn command_line(process: u32) -> String {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    line.chars().take(200).collect()
}
