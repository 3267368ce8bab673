//! Benchmarks: those of the packages, and flows that this program runs, compared with bare HTTP
//! calls.

use crate::campaign;
use crate::lambda;
use crate::process::{self, cargo};
use crate::services::install;
use crate::stage::{Outcome, Run};
use starbridge_services::Kind;

/// Packages that may have benchmarks, with their folders.
const PACKAGES: [(&str, &str); 3] = [
    ("starbridge-fdl", "fdl"),
    ("starbridge-machine", "interpreter/machine"),
    ("starbridge-cli", "hosts/cli"),
];

/// `cargo xtask bench [-- ARGUMENT…]`; an error is a misuse.
pub fn command(arguments: &[&str]) -> Result<bool, String> {
    let passed_on = match arguments.split_first() {
        None => &[],
        Some((&"--", rest)) => rest,
        Some((other, _)) => {
            return Err(format!(
                "`bench` has no argument `{other}`; put `--` before those of the benchmarks"
            ));
        }
    };
    let mut stages = Run::new(true, &[]);
    for (package, folder) in PACKAGES {
        if process::root().join(folder).join("benches").is_dir() {
            stages.stage(package, |_| {
                let mut command = cargo(&["bench", "--package", package, "--bench", "*", "--"]);
                Outcome::from(process::run(command.args(passed_on)))
            });
        }
    }
    if process::root().join("tests/src/bin/bench-exec.rs").is_file() {
        stages.stage("bench-exec", |_| {
            let run = [
                "run",
                "--release",
                "--package",
                "starbridge-tests",
                "--bin",
                "bench-exec",
            ];
            process::run(&mut cargo(&run)).into()
        });
    }
    stages.stage("console", |_| console());
    stages.stage("sqs", |_| sqs());
    stages.stage("lambda", |_| invoking());
    Ok(stages.finish())
}

/// Invocations of the function under the emulator of Lambda's runtime.
fn invoking() -> Outcome {
    let emulator = match install::program(Kind::Rie) {
        Ok(program) => program,
        Err(missing) => return Outcome::Skipped(missing),
    };
    let program = match lambda::build(lambda::Choice::default()) {
        Ok(program) => program,
        Err(problem) => return Outcome::Failed(problem),
    };
    let mut bench = cargo(&["bench", "--package", "starbridge-lambda-host", "--bench", "invoking"]);
    bench
        .env(Kind::Rie.variable(), emulator)
        .env("STARBRIDGE_BOOTSTRAP", program);
    process::run(&mut bench).into()
}

/// Pages of the console over a large list and long histories, in a browser where there is one.
fn console() -> Outcome {
    let mut build = cargo(&[
        "build",
        "--release",
        "--package",
        "starbridge-cli",
        "--package",
        "starbridge-tests",
    ]);
    build.args(["--bin", "starbridge", "--bin", "bench-serve"]);
    let mut bench = process::program(campaign::program("bench-serve", true), &["--full", "console"]);
    match install::browser_driver() {
        Ok(driver) => _ = bench.env("STARBRIDGE_CHROMEDRIVER", driver),
        Err(missing) => eprintln!("{missing}"),
    }
    process::run(&mut build).and_then(|()| process::run(&mut bench)).into()
}

/// Messages to a stand-in for SQS: flows compared with the bare SDK.
fn sqs() -> Outcome {
    let stand_in = match install::program(Kind::Ministack) {
        Ok(program) => program,
        Err(missing) => return Outcome::Skipped(missing),
    };
    // Both together, with the server's profile, so that shared code is built once.
    let both = [
        "--package",
        "starbridge-cli",
        "--package",
        "starbridge-connector-sqs",
        "--features",
        "starbridge-cli/aws",
        "--bench",
        "sending",
    ];
    let mut build = cargo(&["build", "--release", "--bin", "starbridge"]);
    let mut bench = cargo(&["bench", "--profile", "release"]);
    bench.env(Kind::Ministack.variable(), stand_in);
    process::run(build.args(both))
        .and_then(|()| process::run(bench.args(both)))
        .into()
}
