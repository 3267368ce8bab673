//! The state of an open connection: its phase, the time since it began, and the deadline that
//! follows.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Instant;

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing has arrived yet.
    Silent,
    /// The head of a request has begun to arrive.
    Head,
    /// The body of a request arrives from a sender that has not shown a token yet.
    Unproved,
    /// A request is being answered.
    Answering,
    /// The last answer is sent, and nothing has arrived since.
    Idle,
}

const PHASES: [Phase; 5] = [
    Phase::Silent,
    Phase::Head,
    Phase::Unproved,
    Phase::Answering,
    Phase::Idle,
];

/// How long a connection may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For the head of a request.
    pub head: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// Without reading any of its answer, plus the time for the bytes that it reads.
    pub unread: Duration,
}

/// How many bytes a second of its answer a connection must read while the answer waits for it.
const MIN_BYTES_PER_SECOND: u64 = 4 * 1024;

/// The state of a connection. Only the task that serves the connection writes it; the one that accepts connections
/// reads it.
#[derive(Debug)]
pub struct Watch {
    /// The instant from which times count; the same for all connections of a server.
    epoch: Instant,
    phase: AtomicU8,
    /// The beginning of the phase, in milliseconds from the epoch.
    since: AtomicU64,
    /// When its answer began to wait to be read, in milliseconds from the epoch, plus one; 0: it does not wait.
    unread: AtomicU64,
    /// How many milliseconds its answer has waited before, less the time allowed for the bytes read
    /// since.
    behind: AtomicU64,
    /// Whether it ever sent a complete request.
    asked: AtomicBool,
    /// Whether the body of the last request was read to its end.
    body_read: AtomicBool,
    /// Tells it to make room.
    leave: Notify,
}

impl Watch {
    /// The state of a new connection.
    pub fn new(epoch: Instant) -> Arc<Self> {
        let watch = Self {
            epoch,
            phase: AtomicU8::new(Phase::Silent as u8),
            since: AtomicU64::new(0),
            unread: AtomicU64::new(0),
            behind: AtomicU64::new(0),
            asked: AtomicBool::new(false),
            body_read: AtomicBool::new(true),
            leave: Notify::new(),
        };
        watch.since.store(watch.now(), Ordering::Relaxed);
        Arc::new(watch)
    }

    /// The milliseconds since the epoch.
    pub fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The instant at this many milliseconds.
    pub fn instant(&self, millis: u64) -> Instant {
        self.epoch + Duration::from_millis(millis)
    }

    /// What the connection does.
    pub fn phase(&self) -> Phase {
        let phase = usize::from(self.phase.load(Ordering::Relaxed));
        PHASES
            .into_iter()
            .find(|known| *known as usize == phase)
            .unwrap_or(Phase::Answering)
    }

    fn enter(&self, phase: Phase) {
        self.since.store(self.now(), Ordering::Relaxed);
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// A request has arrived; `body`: with a body that is still to be read.
    pub fn asked(&self, body: bool) {
        self.body_read.store(!body, Ordering::Relaxed);
        self.asked.store(true, Ordering::Relaxed);
        self.behind.store(0, Ordering::Relaxed);
        self.phase.store(Phase::Answering as u8, Ordering::Relaxed);
    }

    /// Whether the body of the request is arriving from an unknown sender.
    pub fn unproved(&self, yes: bool) {
        self.asked.store(!yes, Ordering::Relaxed);
        self.enter(if yes { Phase::Unproved } else { Phase::Answering });
    }

    /// The body of the request was read to its end.
    pub fn body_read(&self) {
        self.body_read.store(true, Ordering::Relaxed);
    }

    /// Whether nothing of the request is left unread.
    pub fn is_body_read(&self) -> bool {
        self.body_read.load(Ordering::Relaxed)
    }

    /// The answer is sent.
    pub fn answered(&self) {
        self.enter(Phase::Idle);
    }

    /// How important the connection is, if it may be closed to make room: the smallest value is
    /// closed first: one that never asked, then the one that has been quiet longest. `None` while
    /// it is being answered or has been quiet for less than `quiet`.
    pub fn spare(&self, quiet: Duration) -> Option<(bool, u64)> {
        let since = self.since.load(Ordering::Relaxed);
        let spare = self.phase() != Phase::Answering && self.instant(since).elapsed() >= quiet;
        spare.then(|| (self.asked.load(Ordering::Relaxed), since))
    }

    /// Asks it to close.
    pub fn leave(&self) {
        self.leave.notify_one();
    }

    /// Waits until it is asked to close.
    pub async fn told_to_leave(&self) {
        self.leave.notified().await;
    }

    /// The time at which it has taken too long if nothing happens, in milliseconds from the epoch.
    pub fn deadline(&self, patience: &Patience) -> Option<u64> {
        let after = |since: u64, long: Duration| since.saturating_add(long.as_millis() as u64);
        let since = self.since.load(Ordering::Relaxed);
        let own = match self.phase() {
            Phase::Silent | Phase::Head => Some(after(since, patience.head)),
            Phase::Idle => Some(after(since, patience.idle)),
            // Bodies have limits of their own, and the time to make an answer has none.
            Phase::Unproved | Phase::Answering => None,
        };
        match self.unread.load(Ordering::Relaxed) {
            0 => own,
            since => {
                let behind = Duration::from_millis(self.behind.load(Ordering::Relaxed));
                let late = after(since - 1, patience.unread.saturating_sub(behind));
                Some(late.min(own.unwrap_or(u64::MAX)))
            }
        }
    }

    fn came(&self) {
        if matches!(self.phase(), Phase::Silent | Phase::Idle) {
            self.enter(Phase::Head);
        }
    }

    fn wrote(&self, done: &Poll<std::io::Result<usize>>) {
        match done {
            Poll::Pending if self.unread.load(Ordering::Relaxed) == 0 => {
                self.unread.store(self.now().saturating_add(1), Ordering::Relaxed);
            }
            Poll::Pending => {}
            Poll::Ready(taken) => {
                let (unread, behind) = (
                    self.unread.swap(0, Ordering::Relaxed),
                    self.behind.load(Ordering::Relaxed),
                );
                if (unread, behind) != (0, 0) {
                    let waited = unread
                        .checked_sub(1)
                        .map_or(0, |since| self.now().saturating_sub(since));
                    let bytes = taken.as_ref().map_or(0, |bytes| *bytes as u64);
                    let behind = (behind + waited).saturating_sub(bytes * 1000 / MIN_BYTES_PER_SECOND);
                    self.behind.store(behind, Ordering::Relaxed);
                }
            }
        }
    }
}

/// A stream of a connection that is watched.
pub struct Watched {
    stream: TcpStream,
    watch: Arc<Watch>,
}

impl Watched {
    /// Watches a stream.
    pub fn new(stream: TcpStream, watch: Arc<Watch>) -> Self {
        Self { stream, watch }
    }

    /// The stream itself.
    pub fn into_inner(self) -> TcpStream {
        self.stream
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.watch.came();
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch.wrote(&wrote);
        wrote
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.watch.wrote(&wrote);
        wrote
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        head: Duration::from_secs(10),
        idle: Duration::from_secs(60),
        unread: Duration::from_secs(30),
    };

    /// Whether a connection is late if it reads `bytes` bytes, `waited` milliseconds after they
    /// could not be written.
    fn is_late(watch: &Watch, bytes: usize, waited: u64) -> bool {
        watch.wrote(&Poll::Pending);
        let began = watch.now().saturating_sub(waited);
        watch.unread.store(began + 1, Ordering::Relaxed);
        let late = watch
            .deadline(&PATIENCE)
            .is_some_and(|deadline| deadline <= watch.now());
        watch.wrote(&Poll::Ready(Ok(bytes)));
        late
    }

    fn answering() -> Arc<Watch> {
        let epoch = Instant::now().checked_sub(Duration::from_secs(60)).unwrap();
        let watch = Watch::new(epoch);
        watch.asked(false);
        watch
    }

    #[test]
    fn who_takes_a_little_now_and_then_is_late_in_the_end() {
        let watch = answering();
        // Data that it read at once does not count for later.
        assert!(!is_late(&watch, 3_000_000, 0));
        let late = (0..100).position(|_| is_late(&watch, 64, 2_000));
        assert_eq!(late, Some(15));
        // With its next request it starts again.
        watch.asked(false);
        assert!(!is_late(&watch, 64, 29_000));
    }

    #[test]
    fn who_takes_enough_is_never_late() {
        let watch = answering();
        assert!(!(0..1_000).any(|_| is_late(&watch, 100_000, 20_000)));
        assert!(is_late(&watch, 100_000, 30_000));
    }
}
