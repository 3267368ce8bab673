//! The protocol of a supervisor: the task is a sequence of byte strings with their lengths, the answer is a line.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::Command;

/// A program to run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Task {
    pub program: PathBuf,
    /// The name that the program gets as its own (`argv[0]`).
    pub called: PathBuf,
    pub args: Vec<OsString>,
    /// All variables of the program.
    pub env: Vec<(OsString, OsString)>,
    /// The bytes of its stdin.
    pub input: Vec<u8>,
}

impl Task {
    /// The command, without its streams.
    pub(crate) fn command(&self) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(&self.program);
        command.arg0(&self.called).args(&self.args).env_clear();
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The task in the form in which it is sent.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut bytes, self.program.as_os_str());
        put(&mut bytes, self.called.as_os_str());
        put_count(&mut bytes, self.args.len());
        for arg in &self.args {
            put(&mut bytes, arg);
        }
        put_count(&mut bytes, self.env.len());
        for (name, value) in &self.env {
            put(&mut bytes, name);
            put(&mut bytes, value);
        }
        put(&mut bytes, OsStr::from_bytes(&self.input));
        bytes
    }

    /// Reads one task, and nothing after it.
    pub(crate) fn read(from: &mut impl Read) -> io::Result<Self> {
        let program = take(from)?.into();
        let called = take(from)?.into();
        let args = (0..take_count(from)?).map(|_| take(from)).collect::<io::Result<_>>()?;
        let pair = |from: &mut _| Ok((take(from)?, take(from)?));
        let env = (0..take_count(from)?).map(|_| pair(from)).collect::<io::Result<_>>()?;
        Ok(Self {
            program,
            called,
            args,
            env,
            input: take(from)?.into_vec(),
        })
    }
}

fn put_count(bytes: &mut Vec<u8>, count: usize) {
    bytes.extend((count as u64).to_le_bytes());
}

fn put(bytes: &mut Vec<u8>, text: &OsStr) {
    put_count(bytes, text.len());
    bytes.extend(text.as_bytes());
}

fn take_count(from: &mut impl Read) -> io::Result<u64> {
    let mut count = [0; 8];
    from.read_exact(&mut count)?;
    Ok(u64::from_le_bytes(count))
}

fn take(from: &mut impl Read) -> io::Result<OsString> {
    let length = take_count(from)?;
    let mut text = Vec::new();
    match from.take(length).read_to_end(&mut text)? as u64 == length {
        true => Ok(OsString::from_vec(text)),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum End {
    /// With this exit code.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
    /// It could not be started, for this reason.
    NotStarted(String),
    /// It ran, but its end was not observed.
    Lost(String),
}

impl End {
    /// The end in the form in which it is sent.
    pub(crate) fn write(&self) -> String {
        match self {
            Self::Code(code) => format!("code {code}\n"),
            Self::Signal(signal) => format!("signal {signal}\n"),
            Self::NotStarted(words) => format!("failed {}\n", words.replace('\n', " ")),
            Self::Lost(words) => format!("lost {}\n", words.replace('\n', " ")),
        }
    }

    /// Reads the end of a program; `None` if the line is not complete.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let (kind, rest) = line.strip_suffix('\n')?.split_once(' ')?;
        match kind {
            "code" => rest.parse().ok().map(Self::Code),
            "signal" => rest.parse().ok().map(Self::Signal),
            "failed" => Some(Self::NotStarted(rest.to_owned())),
            "lost" => Some(Self::Lost(rest.to_owned())),
            _ => None,
        }
    }

    /// The end for an exit status.
    pub(crate) fn of(status: std::process::ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt;
        match status.code() {
            Some(code) => Self::Code(code),
            None => Self::Signal(status.signal().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_read() {
        let task = Task {
            program: "/a b".into(),
            called: "/ä".into(),
            args: vec!["".into(), "x\ny".into(), OsString::from_vec(vec![0xff])],
            env: vec![("A".into(), "=b".into()), ("B".into(), "".into())],
            input: b"{\"a\":1}".to_vec(),
        };
        let mut sent = task.write();
        sent.extend(b"more");
        let mut from = sent.as_slice();
        assert_eq!(Task::read(&mut from).unwrap(), task);
        assert_eq!(from, b"more");
        assert!(Task::read(&mut task.write().split_last().unwrap().1).is_err());
        for end in [
            End::Code(3),
            End::Signal(9),
            End::NotStarted("no such file".to_owned()),
            End::Lost("no child".to_owned()),
        ] {
            assert_eq!(End::read(&end.write()), Some(end));
        }
        assert_eq!(End::read("code 3"), None);
    }
}
