//! `cargo xtask outbox`: transactions that start flows, with servers, clients and databases killed, and a witness that counts.

use crate::process::{self, cargo};
use crate::services::install;
use starbridge_services::Kind;

/// The test whose slice is run before a change goes in.
const CAMPAIGN: &str = "each_committed_row_starts_one_execution_however_servers_end";

/// Runs the campaign: `--count` transactions, `--kills` of the server. An error is a misuse.
pub fn command(arguments: &[&str]) -> Result<bool, String> {
    let (mut count, mut kills) = (100_000, 200);
    let mut rest = arguments.iter();
    while let Some(&argument) = rest.next() {
        let number = || {
            let text = rest.clone().next().copied().unwrap_or_default();
            let number = text.parse::<u32>().ok().filter(|number| *number > 0);
            number.ok_or_else(|| format!("`{argument}` needs a number from 1 on"))
        };
        match argument {
            "--count" => count = number()?,
            "--kills" => kills = number()?,
            other => return Err(format!("`outbox` has no argument `{other}`")),
        }
        rest.next();
    }
    let program = match install::program(Kind::Postgres) {
        Ok(program) => program,
        Err(missing) => {
            eprintln!("{missing}");
            return Ok(false);
        }
    };
    let mut command = cargo(&[
        "test",
        "--workspace",
        "--all-features",
        "--test",
        "outbox-service",
        "--",
    ]);
    command
        .args(["--nocapture", CAMPAIGN])
        .env(Kind::Postgres.variable(), program)
        .env("STARBRIDGE_OUTBOX_TRANSACTIONS", count.to_string())
        .env("STARBRIDGE_OUTBOX_KILLS", kills.to_string());
    Ok(process::run(&mut command).is_ok())
}
