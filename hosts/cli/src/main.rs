//! The `starbridge` command.

use std::process::ExitCode;

/// A server allocates on several threads all the time. This allocator saves a tenth of the total
/// time (docs/performance.md).
#[cfg(feature = "server")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    starbridge_cli::run(std::env::args_os())
}
