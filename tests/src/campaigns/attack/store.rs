//! The files of the store, in the hands of others.

use super::server::{Ground, Server, Setup, pause};
use super::{Seen, Try};
use serde_json::json;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

pub(super) const TRIES: &[Try] = &[
    Try::quick(
        "store/modes",
        "what a server makes under umask 022",
        "0600, each file",
        |ground| Box::pin(modes(ground)),
    ),
    Try::quick(
        "store/second-without-lock",
        "a second server, NAME.lock deleted",
        "refused; the first goes on",
        |ground| Box::pin(second(ground, Way::LockDeleted)),
    ),
    Try::quick(
        "store/second-by-link",
        "a second server through a hard link elsewhere",
        "refused; the first goes on",
        |ground| Box::pin(second(ground, Way::HardLink)),
    ),
    Try::slow(
        "store/second-by-symlink",
        "a second server through a symlink, NAME.lock deleted",
        "refused; the first goes on",
        |ground| Box::pin(second(ground, Way::Symlink)),
    ),
    Try::quick(
        "store/log-truncated",
        "the log is cut to 0 while it runs",
        "no start is acknowledged after it; exit 3",
        |ground| Box::pin(truncated(ground, "-wal")),
    ),
    Try::quick(
        "store/file-truncated",
        "the file is cut to 0 while it runs",
        "no start is acknowledged after it; exit 3",
        |ground| Box::pin(truncated(ground, "")),
    ),
    Try::quick(
        "store/file-gone",
        "killed; the file is deleted, the log is left",
        "the next start is refused, the log untouched",
        |ground| Box::pin(gone(ground, "")),
    ),
    Try::quick(
        "store/log-gone",
        "killed; the log is deleted, the file is left",
        "the next start is refused, the file untouched",
        |ground| Box::pin(gone(ground, "-wal")),
    ),
    Try::quick(
        "store/new",
        "a start without a store, and one with",
        "only the first says `new store`",
        |ground| Box::pin(new(ground)),
    ),
    Try::quick(
        "store/no-store",
        "`store.path` is a text; its lock is a symlink to one",
        "refused; no lock beside it; the link's target as it was",
        |ground| Box::pin(no_store(ground)),
    ),
];

const REFUSED: Duration = Duration::from_secs(5);

async fn with_starts(ground: &Ground, setup: Setup) -> Result<Server, String> {
    let server = ground.server_with(setup).await?;
    server.flow("f", &json!([{"type": "pass", "name": "a"}])).await?;
    for _ in 0..20 {
        server.start("f", &json!({})).await?;
    }
    Ok(server)
}

async fn modes(ground: Ground) -> Result<Seen, String> {
    let setup = Setup {
        before: "umask 022;",
        ..Setup::default()
    };
    let server = with_starts(&ground, setup).await?;
    let mut wrong = Vec::new();
    let mut seen = 0;
    for suffix in ["", "-wal", "-shm", ".lock"] {
        if let Ok(file) = std::fs::metadata(server.file(suffix)) {
            seen += 1;
            let mode = file.permissions().mode() & 0o777;
            wrong.extend((mode & 0o077 != 0).then(|| format!("x.db{suffix} has {mode:04o}")));
        }
    }
    Ok(Seen::unless(&wrong, format!("{seen} files for their owner only")))
}

#[derive(Clone, Copy)]
enum Way {
    LockDeleted,
    HardLink,
    Symlink,
}

async fn second(ground: Ground, way: Way) -> Result<Seen, String> {
    let first = with_starts(&ground, Setup::default()).await?;
    let name = match way {
        Way::LockDeleted => "x",
        Way::HardLink | Way::Symlink => "elsewhere/y",
    };
    let other = ground.path("elsewhere");
    let link = other.join("y.db");
    let made = std::fs::create_dir(&other).and_then(|()| match way {
        Way::LockDeleted => Ok(()),
        Way::HardLink => std::fs::hard_link(first.file(""), &link),
        Way::Symlink => symlink(first.file(""), &link),
    });
    made.map_err(|error| error.to_string())?;
    if !matches!(way, Way::HardLink) {
        // There may be none.
        drop(std::fs::remove_file(first.file(".lock")));
    }
    let mut late = ground.begin(&Setup::default(), name)?;
    let ended = late.wait(REFUSED).await?;
    let goes_on = first.start("f", &json!({})).await;
    let text = match ended {
        None => "both run".to_owned(),
        Some(status) => format!("{status}: {}", late.last_words()),
    };
    Ok(Seen::new(
        ended.is_some_and(|status| !status.success()) && goes_on.is_ok(),
        text,
    ))
}

async fn truncated(ground: Ground, suffix: &str) -> Result<Seen, String> {
    let mut server = with_starts(&ground, Setup::default()).await?;
    let file = std::fs::OpenOptions::new().write(true).open(server.file(suffix));
    file.and_then(|file| file.set_len(0))
        .map_err(|error| error.to_string())?;
    let mut taken = 0;
    for _ in 0..10 {
        let start = server.request("POST", "/v1/flows/f/executions").body("{\"input\":{}}");
        let answer = server.send(&start.patience(Duration::from_secs(5))).await;
        taken += usize::from(answer.status == 201);
        pause(20).await;
    }
    let ended = server.wait(REFUSED).await?;
    let code = ended.and_then(|status| status.code());
    let text = format!("{taken} acknowledged after it, ended {code:?}: {}", server.last_words());
    Ok(Seen::new(taken == 0 && code == Some(3), text))
}

/// The content of a file.
fn content(file: &Path) -> Vec<u8> {
    std::fs::read(file).unwrap_or_default()
}

async fn gone(ground: Ground, suffix: &str) -> Result<Seen, String> {
    let mut server = with_starts(&ground, Setup::default()).await?;
    server.kill();
    std::fs::remove_file(server.file(suffix)).map_err(|error| error.to_string())?;
    let other = server.file(if suffix.is_empty() { "-wal" } else { "" });
    let before = content(&other);
    let again = server.again().await;
    let ended = server.ended()?;
    server.kill();
    let untouched = content(&other) == before;
    let text = match &again {
        Ok(()) => format!("it starts; what was left is untouched: {untouched}"),
        Err(refused) => format!("{refused}; what was left is untouched: {untouched}"),
    };
    let refused = ended.is_some_and(|status| !status.success());
    Ok(Seen::new(refused && untouched, text))
}

async fn new(ground: Ground) -> Result<Seen, String> {
    let mut server = ground.server().await?;
    let first = server.log().to_lowercase().matches("new store").count();
    server.signal("TERM")?;
    server.wait(Duration::from_secs(8)).await?;
    server.again().await?;
    let both = server.log().to_lowercase().matches("new store").count();
    Ok(Seen::new(
        first >= 1 && both == first,
        format!("said {first} times at first, {} times then", both - first),
    ))
}

async fn no_store(ground: Ground) -> Result<Seen, String> {
    let words = b"these are the words of somebody else, and no store at all\n".repeat(100);
    let (text, target) = (ground.path("plain.db"), ground.path("target"));
    let written = std::fs::write(&text, &words).and_then(|()| std::fs::write(&target, &words));
    written.map_err(|error| error.to_string())?;
    let mut wrong = Vec::new();
    let mut server = ground.begin(&Setup::default(), "plain")?;
    match server.wait(REFUSED).await? {
        Some(status) if !status.success() => {}
        _ => wrong.push("a text is taken for a store".to_owned()),
    }
    server.kill();
    wrong.extend(
        server
            .file(".lock")
            .exists()
            .then(|| "a lock stands beside it".to_owned()),
    );
    symlink(&target, ground.path("linked.db.lock")).map_err(|error| error.to_string())?;
    let mut server = ground.begin(&Setup::default(), "linked")?;
    // Whether it starts is up to it.
    server.wait(Duration::from_secs(1)).await?;
    wrong.extend((content(&target) != words).then(|| "the target of the lock's link is overwritten".to_owned()));
    wrong.extend((content(&text) != words).then(|| "the text is overwritten".to_owned()));
    Ok(Seen::unless(&wrong, "refused, and all is as it was"))
}
