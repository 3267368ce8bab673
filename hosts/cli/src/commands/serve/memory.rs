//! Returns free memory to the system, even if the server gets no more requests.

use std::hint::black_box;
use std::time::Duration;

/// How often the allocator is triggered. It keeps free memory for a second first.
const PAUSE: Duration = Duration::from_millis(500);
/// The size of a block that is too large for the allocator to keep for the next request, in bytes.
const BLOCK_BYTES: usize = 4 << 20;

/// Makes the allocator return free memory for as long as the server runs. The allocator only
/// returns memory that has been free for long enough when a large block is freed. So after a burst
/// of large requests, their memory would stay until the next burst.
pub async fn give_back() {
    loop {
        tokio::time::sleep(PAUSE).await;
        // Nothing is written to it, so it costs no memory.
        drop(black_box(Vec::<u8>::with_capacity(BLOCK_BYTES)));
    }
}
