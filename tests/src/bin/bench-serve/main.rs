//! A server under load, with the flush on: flows of ten `pass` steps, flows of ten HTTP tasks, a foreach, sleepers, timers,
//! recovery, long histories, admission and operating, pages of the console, and beside them the disk's own flush.
//!
//! `cargo build --release && cargo run --release -p starbridge-tests --bin bench-serve [-- [--full] [--postgres] NAME…]`. With `--full`
//! admission and operating are as large as their goals are written; with `--postgres` the store is in a private PostgreSQL, and
//! the command has to be built with `--features postgres`.

mod admission;
mod before;
mod browser;
mod clearing;
mod console;
mod crowd;
mod database;
mod disk;
mod growth;
mod load;
mod notices;
mod operating;
mod pace;
mod queues;
mod scenes;
mod server;
mod sizes;
mod snapshot;

use sizes::Sizes;
use std::process::ExitCode;

const FLAGS: [&str; 2] = ["--full", "--postgres"];

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some(clearing::SERVE) {
        let store = words.next().unwrap_or_default();
        let served = runtime.map_err(|error| error.to_string());
        let served = served.and_then(|runtime| runtime.block_on(clearing::serve(store.as_ref())));
        return match served {
            Ok(()) => ExitCode::SUCCESS,
            Err(message) => {
                eprintln!("{message}");
                ExitCode::FAILURE
            }
        };
    }
    let (flags, wanted): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|word| word.starts_with('-'));
    let full = flags.iter().any(|flag| flag == "--full");
    if let Some(unknown) = flags.iter().find(|flag| !FLAGS.contains(&flag.as_str())) {
        eprintln!("`{unknown}` is not known: there are {}", FLAGS.join(", "));
        return ExitCode::FAILURE;
    }
    if flags.iter().any(|flag| flag == FLAGS[1])
        && let Err(problem) = database::begin()
    {
        eprintln!("{problem}");
        return ExitCode::FAILURE;
    }
    let done = match runtime {
        Ok(runtime) => runtime.block_on(scenes::run(&wanted, Sizes { full })),
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
