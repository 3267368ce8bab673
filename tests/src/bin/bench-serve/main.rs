//! A server under load, with the flush on: flows of ten `pass` steps, flows of ten HTTP tasks, a foreach, sleepers, timers,
//! recovery, long histories, and beside them the disk's own flush.
//!
//! `cargo build --release && cargo run --release -p starbridge-tests --bin bench-serve [-- NAME…]`

mod disk;
mod growth;
mod load;
mod notices;
mod queues;
mod scenes;
mod server;

use std::process::ExitCode;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(scenes::run(&wanted)),
        Err(error) => Err(error.to_string()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
