//! The streams of a program, each with a limit.

use starbridge_ports::{LOG_BYTES, LogTail};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;

/// How many bytes of stderr are looked at when the program has ended, from the end.
const STDERR_BYTES: usize = LOG_BYTES;
/// How many bytes are read at once.
const CHUNK_BYTES: usize = 8_192;

/// More was printed than the limit allows.
pub(crate) struct OutputTooLong;

/// Gives the program its input and closes the stream. It is not an error if the program does not
/// read it.
pub(crate) async fn feed(stdin: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(input).await;
    }
}

/// A stream, and the bytes read from it.
pub(crate) struct Reading<S> {
    stream: Option<S>,
    chunk: Vec<u8>,
    /// The bytes that are kept.
    pub bytes: Vec<u8>,
    keep: Keep,
}

enum Keep {
    /// Everything, up to this many bytes.
    Whole(usize),
    /// Only the end of the stream. All of it goes to the log.
    Tail(LogTail),
}

impl<S: AsyncRead + Unpin> Reading<S> {
    /// Reads a whole stream, up to a limit.
    pub(crate) fn whole(stream: Option<S>, limit: usize) -> Self {
        Self::of(stream, Keep::Whole(limit))
    }

    /// Keeps the end of a stream, which is a program's log.
    pub(crate) fn tail(stream: Option<S>, log: &LogTail) -> Self {
        Self::of(stream, Keep::Tail(log.clone()))
    }

    fn of(stream: Option<S>, keep: Keep) -> Self {
        Self {
            stream,
            chunk: Vec::with_capacity(CHUNK_BYTES),
            bytes: Vec::new(),
            keep,
        }
    }

    /// Whether the stream has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.stream.is_none()
    }

    /// Waits for more bytes or for the end. If the future is dropped, nothing is lost.
    pub(crate) async fn more(&mut self) -> Result<(), OutputTooLong> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        self.chunk.clear();
        match stream.read_buf(&mut self.chunk).await {
            Ok(1..) => {}
            // A pipe that breaks has ended.
            Ok(0) | Err(_) => self.stream = None,
        }
        self.bytes.extend_from_slice(&self.chunk);
        match &self.keep {
            Keep::Whole(limit) if self.bytes.len() > *limit => Err(OutputTooLong),
            Keep::Whole(_) => Ok(()),
            Keep::Tail(log) => {
                log.add(&self.chunk);
                let surplus = self.bytes.len().saturating_sub(STDERR_BYTES);
                self.bytes.drain(..surplus);
                Ok(())
            }
        }
    }
}
