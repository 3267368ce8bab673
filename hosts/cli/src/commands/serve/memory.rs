//! Memory that is free goes back to the system, also when nothing is asked of the server any more.

use std::hint::black_box;
use std::time::Duration;

/// How often the allocator is reminded. It keeps what is free for a second first.
const PAUSE: Duration = Duration::from_millis(500);
/// Bytes of a block that is none of the small ones the allocator keeps for the next who asks.
const BLOCK_BYTES: usize = 4 << 20;

/// Has free memory given back for as long as the server runs. The allocator sees to what has been free for long enough whenever a
/// large block is freed, and only then: after a burst of large requests, what they took would stay until the next.
pub async fn give_back() {
    loop {
        tokio::time::sleep(PAUSE).await;
        // Nothing is written to it, so it costs no memory.
        drop(black_box(Vec::<u8>::with_capacity(BLOCK_BYTES)));
    }
}
