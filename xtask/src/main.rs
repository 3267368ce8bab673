//! The project's chores. `cargo xtask test` runs all checks before a change goes in.

mod bench;
mod campaign;
mod coverage;
mod fuzz;
mod gate;
mod lambda;
mod outbox;
mod process;
mod scratch;
mod services;
mod stage;
mod test_programs;
mod tools;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [--keep-going] [--only STAGE]…
                                    everything that is checked, or these stages: stops at the first that fails, or goes on
  fuzz [TARGET]… [--seconds N]      fuzzes these targets, or all, for 60 or N seconds each
  bench [-- ARGUMENT…]              all benchmarks; the arguments go to each (`--quick`)
  lambda [--arm64] [--s3]           the package of the function of AWS Lambda: deploy/bootstrap.zip
  services [--only NAME]…           services for tests by hand, until interrupted: redis, postgres, ministack, moto
  generate                          writes the generated files anew
  conformance [PART OF A NAME]      the conformance cases whose file or name contains it, or all
  attack [--only NAME] [--slice] [--jobs N] [--list] [--release]
                                    what a hostile neighbour tries against a real server: a table of try, bound, seen
  crashes [--full]                  a crash at each moment of each conformance case, and a second one on the way back
  simulate [--seeds N] [--seed S]   executions on shards with faults, in simulated time: seeds 1 to N, or this one
  leases [--count N] [--seed S]     queues, workers and leases with faults, in simulated time: so many holds, or this seed
  admissions [--count N] [--seed S] who may run, with faults, in simulated time: so many admissions, or this seed
  planted                           a table of bugs planted one at a time, and what found each
  failing [--full]                  a node over a store of which each operation fails once
  torn [--count N] [--seed S]       stores whose log is cut off or garbled
  full-disk                         a server on a disk that is full, where one can be mounted
  kills [--count N] [--seed S] [--example NAME]
                                    a server under load, killed 200 or N times, and those of examples, or of one
  cluster [--seconds N] [--seed S]  three nodes over PostgreSQL, of which something fails each second, for 480 or N seconds
  outbox [--count N] [--kills N]    100000 or N transactions that start flows; the server is killed 200 or N times, clients and databases too
  holds [--count N] [--seed S]      100000 or N tasks of a queue, with workers and servers killed at random
";

fn main() -> ExitCode {
    if let Some(compiled) = coverage::compile() {
        return compiled;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.split_first() {
        Some((&"test", rest)) => test(rest),
        Some((&"fuzz", rest)) => fuzz::command(rest),
        Some((&"bench", rest)) => bench::command(rest),
        Some((&"lambda", rest)) => lambda::command(rest),
        Some((&"outbox", rest)) => outbox::command(rest),
        Some((&"services", rest)) => services::command(rest),
        Some((&"generate", [])) => Ok(generate()),
        Some((&"conformance", rest)) => Ok(conformance(rest)),
        Some((name, rest)) if campaign::ALL.contains(name) => Ok(campaign::command(name, rest)),
        Some((&("help" | "--help" | "-h"), _)) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Some((other, _)) => Err(format!("`{}` is no command, or has too many arguments", other)),
        None => Err("a command is missing".to_owned()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(misuse) => {
            eprint!("error: {misuse}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn test(arguments: &[&str]) -> Result<bool, String> {
    let (mut keep_going, mut only) = (false, Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "--keep-going" => keep_going = true,
            "--only" => only.push(*arguments.next().ok_or("`--only` wants the name of a stage")?),
            other => return Err(format!("`test` has no argument `{other}`")),
        }
    }
    Ok(gate::run(keep_going, &only))
}

/// Writes the generated files, by running the test that checks that they are up to date.
fn generate() -> bool {
    let mut command = process::cargo(&[
        "test",
        "--package",
        "starbridge-tests",
        "--test",
        "tidy",
        "--",
        "generated",
    ]);
    process::run(command.env("UPDATE", "1")).is_ok()
}

fn conformance(wanted: &[&str]) -> bool {
    let mut command = process::cargo(&["test", "--package", "starbridge-tests", "--test", "conformance", "--"]);
    process::run(command.args(wanted)).is_ok()
}
