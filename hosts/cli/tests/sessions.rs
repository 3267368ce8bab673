//! The command's output for its users: replays the sessions under `tests/cli/`. `UPDATE=1` records
//! the current output, `SESSION=word` selects the sessions whose names contain that word.

#[path = "sessions/away.rs"]
mod away;
#[path = "sessions/live.rs"]
mod live;
#[path = "sessions/session.rs"]
mod session;
#[path = "sessions/streams.rs"]
mod streams;

use session::{Session, words};
use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

#[test]
fn the_command_says_what_the_sessions_say() {
    let folder = root().join("tests/cli");
    let wanted = std::env::var("SESSION").unwrap_or_default();
    let update = std::env::var_os("UPDATE").is_some();
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "session"))
        .filter(|path| path.to_string_lossy().contains(&wanted))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "there is no session `{wanted}`");
    let files = &files;
    let share = |which: usize| -> Vec<String> {
        let mine = files.iter().skip(which).step_by(TOGETHER);
        mine.filter_map(|path| replay(path, update)).collect()
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let shares: Vec<_> = (0..TOGETHER).map(|which| scope.spawn(move || share(which))).collect();
        shares.into_iter().flat_map(|share| share.join().unwrap()).collect()
    });
    assert!(
        wrong.is_empty(),
        "{}\n(UPDATE=1 writes down what is said now)",
        wrong.join("\n")
    );
}

/// How many sessions are replayed at a time. They mostly wait.
const TOGETHER: usize = 3;

/// Replays a session. Returns how it differs, if it does.
fn replay(path: &Path, update: bool) -> Option<String> {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).unwrap();
    let mut session = Session::parse(&text).unwrap_or_else(|problem| panic!("{name}: {problem}"));
    let place = tempfile::tempdir().unwrap();
    session
        .play(place.path(), &root())
        .unwrap_or_else(|problem| panic!("{name}: {problem}"));
    let now = session.to_string();
    if now == text {
        return None;
    }
    if update {
        std::fs::write(path, &now).unwrap();
        return None;
    }
    Some(format!("{name}:\n{}", difference(&text, &now)))
}

/// The lines around the first difference.
fn difference(expected: &str, now: &str) -> String {
    const SHOWN: usize = 12;
    let same = expected.lines().zip(now.lines()).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(4);
    let part = |text: &str, mark: &str| -> String {
        let lines = text.lines().enumerate().skip(from).take(SHOWN);
        lines
            .map(|(at, line)| format!("{} {:4} {line}\n", if at < same { " " } else { mark }, at + 1))
            .collect()
    };
    format!("expected\n{}now\n{}", part(expected, "-"), part(now, "+"))
}
