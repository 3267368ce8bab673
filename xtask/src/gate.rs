//! All checks before a change goes in; those that fail soonest come first.

use crate::campaign;
use crate::fuzz;
use crate::process::{self, cargo, program, run_seeing, succeeds_within};
use crate::services;
use crate::stage::{Outcome, Run, Tally};
use crate::tools;
use std::time::Duration;

/// Seconds of fuzzing for each target.
const FUZZING: u64 = 8;
/// How long fetching the advisories may take.
const ADVISORIES: Duration = Duration::from_secs(60);

/// Runs all stages, or only the named ones. Returns whether all passed.
pub fn run(keep_going: bool, only: &[&str]) -> bool {
    let mut stages = Run::new(keep_going, only);
    stages.stage("formatting", |_| formatting());
    stages.stage("clippy", |_| clippy());
    stages.stage("tests", |tally| tests(keep_going, tally));
    stages.stage("jsonpath", jsonpath);
    for (name, arguments) in campaign::SLICES {
        stages.stage(name, |_| match campaign::lacks(name) {
            Some(missing) => Outcome::Skipped(missing),
            None => campaign::run_slice(name, arguments).into(),
        });
    }
    stages.stage("wasm32", |_| wasm32());
    stages.stage("dependencies", |_| dependencies());
    stages.stage("advisories", |_| advisories());
    stages.stage("fuzzing", |_| fuzzing());
    for suite in &services::SUITES {
        stages.stage(suite.name, |tally| services::run(suite, keep_going, tally));
    }
    let well = stages.finish();
    let Tally { passed, failed } = stages.tally();
    let skipped = stages.skipped();
    match skipped.is_empty() {
        true => println!("{passed} passed, {failed} failed"),
        false => println!("{passed} passed, {failed} failed, skipped: {}", skipped.join(", ")),
    }
    well
}

fn formatting() -> Outcome {
    let workspace = process::run(&mut cargo(&["fmt", "--all", "--check"]));
    let targets = process::run(&mut cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]));
    workspace.and(targets).into()
}

fn clippy() -> Outcome {
    let all = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ];
    process::run(&mut cargo(&all)).and_then(|()| services::clippy()).into()
}

fn tests(keep_going: bool, tally: &mut Tally) -> Outcome {
    let mut command = cargo(&["test", "--workspace", "--all-features"]);
    if keep_going {
        command.arg("--no-fail-fast");
    }
    run_seeing(&mut command, |line| tally.see(line)).into()
}

/// The path engine on the suite of its RFC, which is fetched first.
fn jsonpath(tally: &mut Tally) -> Outcome {
    let suite = match services::install::jsonpath_suite() {
        Ok(suite) => suite,
        Err(missing) => return Outcome::Skipped(missing),
    };
    let test = [
        "test",
        "--workspace",
        "--all-features",
        "--test",
        services::JSONPATH_TEST,
    ];
    let mut command = cargo(&test);
    command.env("STARBRIDGE_JSONPATH_SUITE", suite);
    run_seeing(&mut command, |line| tally.see(line)).into()
}

/// The language and the machine compile for a target without clock, files and network.
fn wasm32() -> Outcome {
    const TARGET: &str = "wasm32-unknown-unknown";
    if !tools::has_target(TARGET) {
        return Outcome::Skipped(format!("the target {TARGET} is not installed and can't be had"));
    }
    let check = ["check", "--target", TARGET, "--lib"];
    let packages = ["--package", "starbridge-fdl", "--package", "starbridge-machine"];
    process::run(cargo(&check).args(packages)).into()
}

/// Licences, bans and sources, which need no network once everything is built.
fn dependencies() -> Outcome {
    match services::install::cargo_deny() {
        Ok(deny) => process::run(&mut program(
            deny,
            &["--offline", "check", "bans", "licenses", "sources"],
        ))
        .into(),
        Err(missing) => Outcome::Skipped(missing),
    }
}

/// Known problems of dependencies, if the database of advisories can be reached.
fn advisories() -> Outcome {
    let deny = match services::install::cargo_deny() {
        Ok(deny) => deny,
        Err(missing) => return Outcome::Skipped(missing),
    };
    if !succeeds_within(&mut program(&deny, &["fetch", "db"]), ADVISORIES) {
        return Outcome::Skipped("the database of advisories can't be reached".to_owned());
    }
    process::run(&mut program(deny, &["check", "advisories"])).into()
}

fn fuzzing() -> Outcome {
    match fuzz::Fuzzer::found() {
        Ok(fuzzer) => fuzzer.run(&fuzz::targets(), FUZZING).into(),
        Err(missing) => Outcome::Skipped(missing),
    }
}
