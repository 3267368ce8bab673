//! All checks before a change goes in. Those that fail soonest come first; then all is compiled once, and the other stages run side
//! by side.

use crate::campaign;
use crate::fuzz;
use crate::process::{self, cargo, program, run_seeing, succeeds_within};
use crate::scratch::Scratch;
use crate::services;
use crate::stage::{Ended, Outcome, Run, Tally};
use crate::test_programs;
use crate::tools;
use std::process::Command;
use std::time::Duration;

/// Seconds of fuzzing for each target.
const FUZZING: u64 = 8;
/// How long fetching the advisories may take.
const ADVISORIES: Duration = Duration::from_secs(60);

/// How long a stage may take. The longest takes a sixth of it on two quiet cores.
const STAGE_LIMIT: Duration = Duration::from_secs(30 * 60);

/// Stages at once. Most of them wait for processes that start and end more than they compute.
const AT_ONCE: usize = 2;
/// The stages that take longest: they begin first, so that none of them runs on alone at the end.
const LONGEST: [&str; 10] = [
    "tests",
    "fuzzing",
    "dynamodb",
    "bootstrap",
    "outbox",
    "postgres",
    "parcel",
    "kills",
    "hosts",
    "console",
];

/// Runs all stages, or only the named ones, one after the other. Returns whether all passed.
pub fn run(keep_going: bool, only: &[&str]) -> bool {
    let mut stages = Run::new(keep_going, only);
    stages.stage("formatting", |_| formatting());
    stages.stage("build", |_| match only {
        [] => build_and_install(),
        _ => build(),
    });
    if only.is_empty() {
        let scratch = Scratch::in_memory();
        stages.side_by_side(AT_ONCE, &names(), |name| alone(name, keep_going, scratch.as_ref()));
    } else {
        each(keep_going, &mut stages);
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

/// The stages that need nothing but what is built, one after the other.
fn each(keep_going: bool, stages: &mut Run) {
    stages.stage("tests", |tally| tests(keep_going, tally));
    stages.stage("doctests", doctests);
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
        stages.stage(suite.name, |tally| services::run(suite, tally));
    }
}

/// The names of these stages, the longest first.
fn names() -> Vec<&'static str> {
    let mut names = vec![
        "tests",
        "doctests",
        "jsonpath",
        "wasm32",
        "dependencies",
        "advisories",
        "fuzzing",
    ];
    names.extend(campaign::SLICES.map(|(name, _)| name));
    names.extend(services::SUITES.map(|suite| suite.name));
    let longest = |name: &str| LONGEST.iter().position(|long| *long == name).unwrap_or(LONGEST.len());
    names.sort_by_key(|name| longest(name));
    names
}

/// Runs one stage in a process of its own, with what `build` compiled and with its files in `scratch`, if there is one.
fn alone(name: &str, keep_going: bool, scratch: Option<&Scratch>) -> Ended {
    let mut command = program(campaign::program("xtask", false), &["test", "--only", name]);
    if keep_going {
        command.arg("--keep-going");
    }
    if let Some(scratch) = scratch {
        scratch.give(&mut command);
    }
    test_programs::say_built(&mut command);
    let log = process::target().join("tmp/stages").join(name).with_extension("log");
    Ended::of(
        name,
        process::run_logged(with_lints(&mut command), &log, STAGE_LIMIT),
        &log,
    )
}

fn formatting() -> Outcome {
    process::run(&mut cargo(&["fmt", "--all", "--check"])).into()
}

/// Compiles all that other stages run, with the linter in place of the compiler: what it warns of ends the stage, and nothing is
/// checked first and compiled then.
fn build() -> Outcome {
    const TEST: [&str; 4] = ["test", "--no-run", "--workspace", "--all-features"];
    let mut tests = cargo(&TEST);
    tests.args(["--tests", "--examples", "--benches"]);
    // Beside `--tests`, Cargo takes no other test by its name.
    let mut suites = cargo(&TEST);
    suites.args(["--test", services::JSONPATH_TEST]);
    for suite in &services::SUITES {
        suites.args(["--test", suite.target]);
    }
    let mut programs = campaign::build_of(&["--bins"]);
    test_programs::build([with_lints(&mut tests), with_lints(&mut suites)])
        .and_then(|()| process::run(with_lints(&mut programs)))
        .into()
}

/// Builds while the services of other stages are installed. A stage whose service can't be had says so itself.
fn build_and_install() -> Outcome {
    std::thread::scope(|scope| {
        scope.spawn(services::install::everything);
        build()
    })
}

/// Members of the workspace are compiled by the linter, whose warnings are errors. What is compiled so is another thing to
/// Cargo than what the plain compiler makes; dependencies are the same. Without tables of lines a hundred programs are half as large.
fn with_lints(command: &mut Command) -> &mut Command {
    command
        .env("CARGO_PROFILE_DEV_DEBUG", "none")
        .env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver")
        .env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings")
}

/// All tests that need no service.
fn tests(keep_going: bool, tally: &mut Tally) -> Outcome {
    if let Some(mut programs) = test_programs::built() {
        let is_suite = |name: &str| services::SUITES.iter().any(|suite| suite.target == name);
        programs.retain(|program| program.name != services::JSONPATH_TEST && !is_suite(&program.name));
        return test_programs::run(&programs, keep_going, tally);
    }
    let mut command = cargo(&["test", "--workspace", "--all-features", "--tests"]);
    if keep_going {
        command.arg("--no-fail-fast");
    }
    run_seeing(&mut command, |line| tally.see(line)).into()
}

/// The examples in the documentation of the crates.
fn doctests(tally: &mut Tally) -> Outcome {
    let mut command = cargo(&["test", "--workspace", "--all-features", "--doc"]);
    run_seeing(&mut command, |line| tally.see(line)).into()
}

/// The path engine on the suite of its RFC, which is fetched first.
fn jsonpath(tally: &mut Tally) -> Outcome {
    let suite = match services::install::jsonpath_suite() {
        Ok(suite) => suite,
        Err(missing) => return Outcome::Skipped(missing),
    };
    let mut command = services::test(services::JSONPATH_TEST);
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

/// Licences, bans and sources of all dependencies: those of other platforms, which nothing here compiles, are fetched first.
fn dependencies() -> Outcome {
    let deny = match services::install::cargo_deny() {
        Ok(deny) => deny,
        Err(missing) => return Outcome::Skipped(missing),
    };
    if let Err(problem) = process::run(&mut cargo(&["fetch", "--locked"])) {
        return Outcome::Failed(format!("the crates of other platforms can't be fetched: {problem}"));
    }
    process::run(&mut program(
        deny,
        &["--offline", "check", "bans", "licenses", "sources"],
    ))
    .into()
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
    fuzz::run(&fuzz::targets(), FUZZING).into()
}
