//! The workers' logs: a line for each action, written at the moment of the action.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Something a worker did. Times are microseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Did {
    /// It was handed a task: when it had asked, when the answer came, and the lease in microseconds.
    Held {
        step: String,
        asked: u64,
        came: u64,
        lease: u64,
    },
    /// A heartbeat that was sent then was answered so.
    Beat { sent: u64, status: u16 },
    /// It is about to report.
    Reports { at: u64 },
    /// A report that was sent then was answered so; whether it reported success.
    Reported {
        sent: u64,
        came: u64,
        status: u16,
        well: bool,
    },
}

/// A line: the worker, the call, the action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) key: String,
    pub(super) did: Did,
}

impl Line {
    fn write(&self) -> String {
        let key = &self.key;
        match &self.did {
            Did::Held {
                step,
                asked,
                came,
                lease,
            } => format!("held {key} {step} {asked} {came} {lease}\n"),
            Did::Beat { sent, status } => format!("beat {key} {sent} {status}\n"),
            Did::Reports { at } => format!("reports {key} {at}\n"),
            Did::Reported {
                sent,
                came,
                status,
                well,
            } => {
                format!("reported {key} {sent} {came} {status} {}\n", u8::from(*well))
            }
        }
    }

    /// Nothing, if a worker was killed in the middle of a line.
    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        let status = |at: usize| words.get(at)?.parse::<u16>().ok();
        let did = match *words.first()? {
            "held" => Did::Held {
                step: (*words.get(2)?).to_owned(),
                asked: number(3)?,
                came: number(4)?,
                lease: number(5)?,
            },
            "beat" => Did::Beat {
                sent: number(2)?,
                status: status(3)?,
            },
            "reports" => Did::Reports { at: number(2)? },
            "reported" => Did::Reported {
                sent: number(2)?,
                came: number(3)?,
                status: status(4)?,
                well: number(5)? == 1,
            },
            _ => return None,
        };
        Some(Self {
            key: (*words.get(1)?).to_owned(),
            did,
        })
    }
}

/// Now, in microseconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// The file of a worker's log.
pub(super) fn file(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("holder-{number}.log"))
}

/// A worker's own log.
pub(super) struct Log(File);

impl Log {
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        OpenOptions::new().create(true).append(true).open(path).map(Self)
    }

    /// Writes lines at once: what is written outlives the process.
    pub(super) fn write(&self, lines: &[Line]) -> std::io::Result<()> {
        let text: String = lines.iter().map(Line::write).collect();
        (&self.0).write_all(text.as_bytes())
    }
}

/// The lines of all workers, each worker's in order.
pub(super) fn read(folder: &Path, workers: u64) -> Vec<Vec<Line>> {
    let texts = (0..workers).map(|number| std::fs::read_to_string(file(folder, number)).unwrap_or_default());
    texts
        .map(|text| {
            let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
            whole.filter_map(Line::read).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let line = |did: Did| Line {
            key: "e-1/4".to_owned(),
            did,
        };
        let lines = [
            line(Did::Held {
                step: "e-1/2".to_owned(),
                asked: 1,
                came: 2,
                lease: 3,
            }),
            line(Did::Beat { sent: 4, status: 204 }),
            line(Did::Reports { at: 5 }),
            line(Did::Reported {
                sent: 5,
                came: 6,
                status: 410,
                well: true,
            }),
        ];
        let path = file(folder.path(), 0);
        Log::open(&path).unwrap().write(&lines).unwrap();
        std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + "held e-1").unwrap();
        assert_eq!(read(folder.path(), 1), [lines.to_vec()]);
    }
}
