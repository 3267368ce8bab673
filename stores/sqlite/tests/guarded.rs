//! Actions of other programs on the files of a store: they read them, open them a second time, cut
//! them, or remove some of them.
#![cfg(unix)]

mod set_up;

use set_up::start;
use starbridge_ports::{History, ShardSet, StoreError};
use starbridge_sqlite::{OpenError, Options, SqliteStore};
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

fn beside(path: &Path, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", path.display()))
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn allow(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn cut(path: &Path, bytes: u64) {
    OpenOptions::new()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(bytes)
        .unwrap();
}

#[test]
fn file_mode_is_for_the_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    assert!(store.is_new());
    store.append(&[start("a")]).unwrap();
    let copy = folder.path().join("copy.db");
    store.backup(&copy).unwrap();
    for file in ["", "-wal", "-shm", ".lock"].map(|ending| beside(&path, ending)) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    assert_eq!(mode(&copy), 0o600);
    assert_eq!(store.warnings(), <[String; 0]>::default());
    drop(store);
    assert!(!SqliteStore::open(&path).unwrap().is_new());
}

#[test]
fn file_mode_for_others_is_warned_about() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    drop(SqliteStore::open(&path).unwrap());
    allow(&path, 0o644);
    let store = SqliteStore::open(&path).unwrap();
    let [said] = store.warnings() else {
        panic!("{:?}", store.warnings());
    };
    assert!(said.contains("chmod 600") && said.contains("store.db-wal"), "{said}");
    assert_eq!(mode(&path), 0o644);
    drop(store);
    allow(&path, 0o600);
    for (of_folder, warnings) in [(0o777, 1), (0o1777, 0), (0o755, 0)] {
        allow(folder.path(), of_folder);
        let store = SqliteStore::open(&path).unwrap();
        assert_eq!(
            store.warnings().len(),
            warnings,
            "{of_folder:o}: {:?}",
            store.warnings()
        );
    }
}

#[test]
fn lock_holds_under_all_names_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    store.append(&[start("a")]).unwrap();
    std::fs::remove_file(beside(&path, ".lock")).unwrap();
    let (hard, soft) = (folder.path().join("hard.db"), folder.path().join("soft.db"));
    std::fs::hard_link(&path, &hard).unwrap();
    symlink(&path, &soft).unwrap();
    for name in [&path, &hard, &soft] {
        let refused = SqliteStore::open(name).unwrap_err();
        let mine = std::process::id();
        assert!(
            matches!(refused, OpenError::Taken { process: Some(process), .. } if process == mine),
            "{refused}"
        );
    }
    for made in ["store.db.lock", "hard.db.lock", "soft.db.lock", "hard.db-wal"] {
        assert!(!folder.path().join(made).exists(), "{made}");
    }
    assert_eq!(store.append(&[start("b")]).unwrap(), []);
}

/// The lock is a system lock on the file, so other processes see it too.
#[cfg(target_os = "linux")]
#[test]
fn lock_is_on_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    let other = File::open(&path).unwrap();
    assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
    drop(store);
    other.try_lock().unwrap();
    let refused = SqliteStore::open(&path).unwrap_err();
    assert!(
        refused.to_string().contains(&format!("process {}", std::process::id())),
        "{refused}"
    );
    drop(other);
    SqliteStore::open(&path).unwrap();
}

#[test]
fn foreign_file_gets_no_lock_file() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("null.db");
    symlink("/dev/null", &link).unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "a text that is longer than the head of a database: ".repeat(20)).unwrap();
    for path in [&link, &text] {
        let refused = SqliteStore::open(path).unwrap_err();
        assert!(matches!(refused, OpenError::Foreign { .. }), "{refused}");
    }
    let there = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(there, 2);
    assert!(!Path::new("/dev/null.lock").exists());
}

#[test]
fn lock_that_is_a_link_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("store.db"), folder.path().join("other"));
    let lock = beside(&path, ".lock");
    std::fs::write(&other, "precious").unwrap();
    type Link = fn(&Path, &Path);
    let soft: Link = |from, to| symlink(from, to).unwrap();
    let hard: Link = |from, to| std::fs::hard_link(from, to).unwrap();
    let dangling: Link = |from, to| symlink(from.with_extension("none"), to).unwrap();
    let same: Link = |from, to| std::fs::write(to, std::fs::read(from).unwrap()).unwrap();
    for link in [soft, hard, dangling, same] {
        link(&other, &lock);
        let refused = SqliteStore::open(&path).unwrap_err();
        assert!(matches!(refused, OpenError::NoLock { .. }), "{refused}");
        std::fs::remove_file(&lock).unwrap();
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "precious");
        assert!(!other.with_extension("none").exists());
    }
    // A lock file of an earlier version.
    std::fs::write(&lock, "4711\n").unwrap();
    SqliteStore::open(&path).unwrap();
}

/// After any cut, nothing is acknowledged, now or at the next start, until an operator accepts the
/// loss.
#[test]
fn truncated_store_takes_nothing_more() {
    type Left = fn(u64) -> u64;
    let cases: [(&str, Left); 4] = [
        ("-wal", |_| 0),
        ("-wal", |bytes| bytes / 2),
        ("-wal", |bytes| bytes - 1),
        ("", |bytes| bytes - 1),
    ];
    for (which, left) in cases {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        drop(SqliteStore::open(&path).unwrap());
        let store = SqliteStore::open(&path).unwrap();
        store.append(&[start("a"), start("b")]).unwrap();
        let file = beside(&path, which);
        let bytes = std::fs::metadata(&file).unwrap().len();
        cut(&file, left(bytes));
        for id in ["c", "d"] {
            let refused = store.append(&[start(id)]);
            assert!(
                matches!(&refused, Err(StoreError::Corrupt(why)) if why.contains("became shorter")),
                "{which}: {refused:?}"
            );
        }
        drop(store);
        // The files are unchanged, so that they can be examined.
        assert_eq!(std::fs::metadata(&file).unwrap().len(), left(bytes));
        let refused = SqliteStore::open(&path).unwrap_err();
        assert!(matches!(refused, OpenError::LostLog { .. }), "{which}: {refused}");
        assert!(refused.to_string().contains("--accept-lost-log"), "{refused}");
        if which.is_empty() {
            continue;
        }
        let options = Options {
            accept_lost_log: true,
            ..Options::default()
        };
        let store = SqliteStore::open_with(&path, &options).unwrap();
        assert_eq!(store.append(&[start("e")]).unwrap(), []);
        drop(store);
        assert_eq!(
            SqliteStore::open(&path)
                .unwrap()
                .load("e")
                .unwrap()
                .unwrap()
                .turns
                .len(),
            1
        );
    }
}

/// Cut between the last commit and the end: the rest of the log is not moved into the file.
#[test]
fn truncated_wal_is_noticed_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    store.append(&[start("a"), start("b")]).unwrap();
    let before = std::fs::read(&path).unwrap();
    let log = beside(&path, "-wal");
    cut(&log, std::fs::metadata(&log).unwrap().len() / 2);
    drop(store);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert!(matches!(SqliteStore::open(&path), Err(OpenError::LostLog { .. })));
}

/// A reader of the part that was cut sees it first.
#[test]
fn truncated_wal_is_noticed_by_readers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    drop(SqliteStore::open(&path).unwrap());
    let store = SqliteStore::open(&path).unwrap();
    store.append(&[start("a")]).unwrap();
    cut(&beside(&path, "-wal"), 0);
    let cut = |why: &StoreError| matches!(why, StoreError::Corrupt(why) if why.contains("became shorter"));
    assert!(cut(&store.load("a").unwrap_err()));
    assert!(cut(&store.append(&[start("b")]).unwrap_err()));
}

/// Another program may move the log into the file, and may thereby empty the log.
#[test]
fn checkpointed_wal_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    store.append(&[start("a")]).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    assert_eq!(std::fs::metadata(beside(&path, "-wal")).unwrap().len(), 0);
    for id in ["b", "c"] {
        assert_eq!(store.append(&[start(id)]).unwrap(), []);
    }
    other.execute_batch("VACUUM").unwrap();
    assert_eq!(store.append(&[start("d")]).unwrap(), []);
    drop(other);
    drop(store);
    assert_eq!(
        SqliteStore::open(&path).unwrap().awake(&ShardSet::ALL).unwrap(),
        ["a", "b", "c", "d"]
    );
}

/// SQLite would delete the log.
#[test]
fn wal_without_its_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let log = beside(&path, "-wal");
    std::fs::write(&log, "all that is left").unwrap();
    for empty in [false, true] {
        if empty {
            std::fs::write(&path, "").unwrap();
        }
        let refused = SqliteStore::open(&path).unwrap_err();
        assert!(matches!(refused, OpenError::OnlyLog { .. }), "{refused}");
        assert_eq!(path.exists(), empty);
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "all that is left");
    }
}

/// A copy has no log, regardless of the record about the original's log.
#[test]
fn copy_in_the_place_of_a_store_opens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let copy = folder.path().join("copy.db");
    let store = SqliteStore::open(&path).unwrap();
    store.append(&[start("a")]).unwrap();
    store.backup(&copy).unwrap();
    let log = beside(&path, "-wal");
    cut(&log, 0);
    store.append(&[start("b")]).unwrap_err();
    drop(store);
    SqliteStore::open(&path).unwrap_err();
    for ending in ["", "-wal", "-shm"] {
        // The index may be gone after the last connection.
        let _ = std::fs::rename(beside(&path, ending), folder.path().join(format!("old{ending}")));
    }
    std::fs::copy(&copy, &path).unwrap();
    assert_eq!(SqliteStore::open(&path).unwrap().awake(&ShardSet::ALL).unwrap(), ["a"]);
}
