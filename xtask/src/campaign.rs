//! The campaigns of `docs/reliability.md`.

use crate::process::{self, cargo};
use crate::services::install;
use crate::test_programs;
use starbridge_services::Kind;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

const RELEASE: &str = "--release";
/// The part of each campaign that is run before a change goes in.
pub const SLICES: [(&str, &[&str]); 11] = [
    ("attack", &["--slice", "--jobs", "3"]),
    ("crashes", &[]),
    ("simulate", &["--seeds", "600"]),
    ("leases", &["--count", "60000"]),
    ("admissions", &["--count", "6000"]),
    ("failing", &[]),
    ("torn", &["--count", "100"]),
    ("full-disk", &[]),
    ("kills", &["--count", "10"]),
    ("holds", &["--count", "3000"]),
    ("cluster", &["--seconds", "20"]),
];
pub const ALL: [&str; 12] = [
    "attack",
    "crashes",
    "simulate",
    "leases",
    "admissions",
    "planted",
    "failing",
    "torn",
    "full-disk",
    "kills",
    "holds",
    "cluster",
];

/// Runs a campaign; its arguments are its own.
pub fn command(campaign: &str, arguments: &[&str]) -> bool {
    run(campaign, arguments).is_ok()
}

/// Runs a campaign. An error says how it ended. With `--release` the program under test is a
/// release build, but the campaign's own part is not.
pub fn run(campaign: &str, arguments: &[&str]) -> Result<(), String> {
    let release = arguments.contains(&RELEASE);
    if release && needs_program(campaign) {
        let build = [
            "build",
            "--quiet",
            RELEASE,
            "--package",
            "starbridge-cli",
            "--bin",
            "starbridge",
            "--features",
            "redis",
        ];
        process::run(&mut cargo(&build))?;
    }
    build_for_tests(&["starbridge", "campaign", "functions"])?;
    let mut campaigns = process::program(program("campaign", false), &[campaign]);
    campaigns.args(arguments.iter().filter(|argument| **argument != RELEASE));
    if needs_program(campaign) {
        campaigns.arg("--program").arg(program("starbridge", release));
    }
    if campaign == "cluster" {
        campaigns.arg("--postgres").arg(install::program(Kind::Postgres)?);
        campaigns.arg("--faketime").arg(install::faketime()?);
    }
    if campaign == "kills" {
        campaigns.arg("--redis").arg(install::program(Kind::Redis)?);
    }
    if campaign == "attack" {
        campaigns = with_many_files(&campaigns);
    }
    process::run(&mut campaigns)
}

/// The command with as many open files as the system allows: an attacker needs a socket for each
/// unknown client.
fn with_many_files(command: &Command) -> Command {
    let mut raised = Command::new("sh");
    raised
        .args(["-c", "ulimit -Sn \"$(ulimit -Hn)\"; exec \"$0\" \"$@\""])
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null());
    if let Some(folder) = command.get_current_dir() {
        raised.current_dir(folder);
    }
    raised
}

/// The service that a campaign needs and that can't be had.
pub fn lacks(campaign: &str) -> Option<String> {
    let needed = match campaign {
        "cluster" => Kind::Postgres,
        "kills" => Kind::Redis,
        _ => return None,
    };
    install::program(needed).err()
}

fn needs_program(campaign: &str) -> bool {
    matches!(campaign, "attack" | "kills" | "full-disk" | "holds" | "cluster")
}

/// Runs the slice of a campaign. That of `kills` takes other examples each day: its seed is the number of the day.
pub fn run_slice(campaign: &str, arguments: &[&str]) -> Result<(), String> {
    if campaign != "kills" {
        return run(campaign, arguments);
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let day = (since.as_secs() / (24 * 60 * 60)).to_string();
    println!("kills: seed {day}");
    run(campaign, &[arguments, &["--seed", &day]].concat())
}

/// Builds programs as `cargo test --workspace --all-features` does, unless all is built.
pub fn build_for_tests(programs: &[&str]) -> Result<(), String> {
    if test_programs::are_built() {
        return Ok(());
    }
    let named = programs.iter().flat_map(|program| ["--bin", program]);
    process::run(build_of(&named.collect::<Vec<_>>()).arg("--quiet"))
}

/// The command that builds these targets with the features of `cargo test --workspace --all-features`: with others much would be
/// compiled a second time. An example is asked for, too, because only then the features count that tests need of dependencies.
pub fn build_of(targets: &[&str]) -> Command {
    let mut build = cargo(&["build", "--workspace", "--all-features", "--example", "shop"]);
    build.args(targets);
    build
}

/// The path of a program of this checkout after it was built.
pub fn program(name: &str, release: bool) -> PathBuf {
    let profile = if release { "release" } else { "debug" };
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    process::target().join(profile).join(name)
}
