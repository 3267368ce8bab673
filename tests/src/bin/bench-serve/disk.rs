//! The time that the disk itself takes to flush.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Median time of writing 4 KiB to a growing file and flushing it.
pub fn flush(folder: &Path) -> std::io::Result<Duration> {
    flush_every(folder, Duration::ZERO)
}

/// The same with a pause before each, as of a machine that is idle in between.
#[expect(clippy::disallowed_methods, reason = "the pause is what is asked for")]
pub fn flush_every(folder: &Path, pause: Duration) -> std::io::Result<Duration> {
    let path = folder.join("flush");
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    let page = [7u8; 4096];
    let mut times = Vec::new();
    for _ in 0..500 {
        std::thread::sleep(pause);
        let begun = Instant::now();
        file.write_all(&page)?;
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    std::fs::remove_file(path)?;
    times.sort();
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}
