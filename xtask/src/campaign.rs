//! The campaigns of `docs/reliability.md`.

use crate::process::{self, cargo};
use std::path::PathBuf;

/// Of each campaign, how much is run before a change goes in.
pub const SLICES: [(&str, &[&str]); 8] = [
    ("crashes", &[]),
    ("simulate", &["--seeds", "1000"]),
    ("leases", &["--count", "100000"]),
    ("failing", &[]),
    ("torn", &["--count", "100"]),
    ("full-disk", &[]),
    ("kills", &["--count", "10"]),
    ("holds", &["--count", "3000"]),
];
/// All of them.
pub const ALL: [&str; 9] = [
    "crashes",
    "simulate",
    "leases",
    "planted",
    "failing",
    "torn",
    "full-disk",
    "kills",
    "holds",
];

/// Runs a campaign; its arguments are its own.
pub fn command(campaign: &str, arguments: &[&str]) -> bool {
    run(campaign, arguments).is_ok()
}

/// The same. An error says how it ended.
pub fn run(campaign: &str, arguments: &[&str]) -> Result<(), String> {
    let mut build = cargo(&["build", "--quiet", "--package", "starbridge-cli", "--bin", "starbridge"]);
    if needs_program(campaign) {
        process::run(&mut build)?;
    }
    let mut campaigns = cargo(&[
        "run",
        "--quiet",
        "--package",
        "starbridge-tests",
        "--bin",
        "campaign",
        "--",
    ]);
    campaigns.arg(campaign).args(arguments);
    if needs_program(campaign) {
        campaigns.arg("--program").arg(program());
    }
    process::run(&mut campaigns)
}

fn needs_program(campaign: &str) -> bool {
    matches!(campaign, "kills" | "full-disk" | "holds")
}

fn program() -> PathBuf {
    let name = format!("starbridge{}", std::env::consts::EXE_SUFFIX);
    process::target().join("debug").join(name)
}
