//! What goes into a program and comes out of it, each side bounded.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;

/// Bytes of stderr that are kept, from the end: two thousand characters, however they are written.
const KEPT: usize = 8_000;

/// More was printed than the limit allows.
pub(crate) struct TooMuch;

/// Gives the program its input and closes. One that does not read it is fine.
pub(crate) async fn feed(stdin: Option<ChildStdin>, input: String) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(input.as_bytes()).await;
    }
}

/// Reads to the end, or to the byte after the limit.
pub(crate) async fn whole(stream: Option<impl AsyncRead + Unpin>, limit: usize) -> Result<Vec<u8>, TooMuch> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        // A pipe that breaks has ended.
        let _ = stream.take(most).read_to_end(&mut bytes).await;
    }
    if bytes.len() > limit { Err(TooMuch) } else { Ok(bytes) }
}

/// The end of what comes, however much that is.
pub(crate) async fn tail(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut tail = Vec::new();
    if let Some(mut stream) = stream {
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut chunk).await {
            tail.extend(chunk.iter().take(count));
            let surplus = tail.len().saturating_sub(KEPT);
            tail.drain(..surplus);
        }
    }
    tail
}
