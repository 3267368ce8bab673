//! Services that some tests need: their programs, the suites that need them, and copies for work by hand.

pub mod install;

use crate::campaign;
use crate::lambda;
use crate::process::{cargo, run_seeing};
use crate::stage::{Outcome, Tally};
use crate::test_programs;
use starbridge_services::{Kind, Service};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The test of the path engine that needs the suite of its RFC.
pub const JSONPATH_TEST: &str = "jsonpath-suite";

/// The part of the cases that all hosts run.
const HOSTS_PART: &str = "STARBRIDGE_HOSTS_PART";

/// Set if the function of Lambda under test is the one that is shipped.
const SHIPPED: &str = "STARBRIDGE_TEST_SHIPPED";

/// A test target of its own, which plain `cargo test` leaves alone.
pub struct Suite {
    /// The stage's name.
    pub name: &'static str,
    /// The test target.
    pub target: &'static str,
    needs: &'static [Kind],
    /// The programs that it runs.
    programs: &'static [&'static str],
    extra: Extra,
}

/// What a suite needs besides services.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extra {
    Nothing,
    /// It looks at pages in a browser.
    Browser,
    /// It runs the clients of `examples/outbox`, also through a pooler.
    Shops,
    /// It shows another time to programs, and a pooler before the database.
    Database,
}

/// The suites that need services, a stage each.
pub const SUITES: [Suite; 13] = [
    Suite {
        name: "services",
        target: "services-service",
        needs: &Kind::ALL,
        programs: &[],
        extra: Extra::Nothing,
    },
    Suite {
        name: "redis",
        target: "redis-service",
        needs: &[Kind::Redis],
        programs: &[],
        extra: Extra::Nothing,
    },
    Suite {
        name: "postgres",
        target: "postgres-service",
        needs: &[Kind::Postgres],
        programs: &["starbridge"],
        extra: Extra::Database,
    },
    Suite {
        name: "outbox",
        target: "outbox-service",
        needs: &[Kind::Postgres],
        programs: &[],
        extra: Extra::Nothing,
    },
    Suite {
        name: "shops",
        target: "shops-service",
        needs: &[Kind::Postgres],
        programs: &[],
        extra: Extra::Shops,
    },
    Suite {
        name: "sqs",
        target: "sqs-service",
        needs: &[Kind::Ministack, Kind::Moto],
        programs: &[],
        extra: Extra::Nothing,
    },
    Suite {
        name: "dynamodb",
        target: "dynamodb-service",
        needs: &[Kind::Ministack, Kind::Moto],
        programs: &[],
        extra: Extra::Nothing,
    },
    Suite {
        name: "lambda",
        target: "lambda-service",
        needs: &[Kind::Ministack],
        programs: &[],
        extra: Extra::Nothing,
    },
    Suite {
        name: "aws",
        target: "aws-service",
        needs: &[Kind::Ministack],
        programs: &[],
        extra: Extra::Nothing,
    },
    Suite {
        name: "parcel",
        target: "parcel-service",
        needs: &[Kind::Ministack, Kind::Redis],
        programs: &[],
        extra: Extra::Nothing,
    },
    Suite {
        name: "bootstrap",
        target: "bootstrap-service",
        needs: &[Kind::Ministack, Kind::Rie],
        programs: &["starbridge", "bootstrap"],
        extra: Extra::Nothing,
    },
    Suite {
        name: "hosts",
        target: "hosts-service",
        needs: &[Kind::Rie],
        programs: &["starbridge", "bootstrap"],
        extra: Extra::Nothing,
    },
    Suite {
        name: "console",
        target: "console-service",
        needs: &[],
        programs: &[],
        extra: Extra::Browser,
    },
];

/// Runs a suite, and installs its services first. It is skipped if they can't be installed.
pub fn run(suite: &Suite, tally: &mut Tally) -> Outcome {
    let mut command = test(suite.target);
    for &kind in suite.needs {
        match install::program(kind) {
            Ok(program) => _ = command.env(kind.variable(), program),
            Err(missing) => return Outcome::Skipped(missing),
        }
    }
    if let Err(missing) = add(suite.extra, &mut command) {
        return Outcome::Skipped(missing);
    }
    if !suite.programs.is_empty()
        && let Err(problem) = name_programs(&mut command, suite.programs)
    {
        return Outcome::Failed(problem);
    }
    run_seeing(&mut command, |line| tally.see(line)).into()
}

/// Installs what a suite needs besides services, and names it. An error says what is missing.
fn add(extra: Extra, command: &mut Command) -> Result<(), String> {
    match extra {
        Extra::Nothing => {}
        Extra::Browser => {
            command.env("STARBRIDGE_CHROMEDRIVER", install::browser_driver()?);
            command.env("STARBRIDGE_FAKETIME", install::faketime()?);
            // Without the checker of accessibility the rest is still checked.
            match install::accessibility_checker() {
                Ok(checker) => _ = command.env("STARBRIDGE_AXE", checker),
                Err(missing) => eprintln!("{missing}"),
            }
        }
        Extra::Shops => _ = command.envs(clients()?),
        Extra::Database => {
            command.env("STARBRIDGE_FAKETIME", install::faketime()?);
            command.env("STARBRIDGE_POOLER", install::pooler()?);
        }
    }
    Ok(())
}

/// The command that runs this test target: its program if it is built, or Cargo.
pub fn test(target: &str) -> Command {
    let built = test_programs::built().unwrap_or_default();
    match built.iter().find(|program| program.name == target) {
        Some(program) => program.command(),
        None => cargo(&["test", "--workspace", "--all-features", "--test", target]),
    }
}

/// The variables for the clients of `examples/outbox`: they and the pooler are installed, and the one in Rust is built.
fn clients() -> Result<[(&'static str, PathBuf); 4], String> {
    let python = install::python_with_psycopg()?;
    let packages = install::node_with_pg()?;
    let pooler = install::pooler()?;
    campaign::build_for_tests(&[])?;
    Ok([
        ("STARBRIDGE_CLIENT_PYTHON", python),
        ("STARBRIDGE_CLIENT_NODE", packages),
        ("STARBRIDGE_CLIENT_RUST", campaign::program("examples/shop", false)),
        ("STARBRIDGE_POOLER", pooler),
    ])
}

/// Builds the programs of a suite, the command and the function of Lambda, and sets their paths. Of the cases for all hosts,
/// every fifth is run. With [`SHIPPED`] in the environment, the function is built as it is shipped,
/// which takes minutes.
fn name_programs(command: &mut Command, programs: &[&str]) -> Result<(), String> {
    campaign::build_for_tests(programs)?;
    command.env("STARBRIDGE_COMMAND", campaign::program("starbridge", false));
    if !programs.contains(&"bootstrap") {
        return Ok(());
    }
    let function = match std::env::var_os(SHIPPED) {
        Some(_) => lambda::build(lambda::Choice {
            s3: true,
            ..lambda::Choice::default()
        })?,
        None => campaign::program("bootstrap", false),
    };
    command.env("STARBRIDGE_BOOTSTRAP", function);
    if std::env::var_os(HOSTS_PART).is_none() {
        command.env(HOSTS_PART, "5");
    }
    Ok(())
}

/// `cargo xtask services [--only NAME]…`: copies that run until this is interrupted. An error is a misuse.
pub fn command(arguments: &[&str]) -> Result<bool, String> {
    let mut wanted = Vec::new();
    let mut rest = arguments.iter();
    while let Some(&argument) = rest.next() {
        if argument != "--only" {
            return Err(format!("`services` has no argument `{argument}`"));
        }
        let name = rest.next().copied().unwrap_or_default();
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        wanted.push(kind.ok_or_else(|| format!("`--only` needs one of {}", names()))?);
    }
    if wanted.is_empty() {
        // The emulator of Lambda's runtime is useless without a function.
        wanted = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Rie).collect();
    }
    let mut running = Vec::new();
    for kind in wanted {
        let started =
            install::program(kind).and_then(|program| Ok((Service::of_program(kind, &program, &[])?, program)));
        match started {
            Ok((service, program)) => {
                say(kind, &service, &program);
                running.push(service);
            }
            Err(problem) => eprintln!("# {problem}"),
        }
    }
    if running.is_empty() {
        return Ok(false);
    }
    eprintln!("# they run until this is interrupted");
    // Their guards end them when this process is gone.
    loop {
        std::thread::park();
    }
}

/// The variables that a shell needs to use a service and to run the tests that start their own
/// copies.
fn say(kind: Kind, service: &Service, program: &Path) {
    println!("export {}='{}'", kind.variable(), program.display());
    match kind {
        Kind::Redis => println!("export REDIS_URL={0} STARBRIDGE_REDIS_URL={0}", service.url()),
        Kind::Postgres => println!("export STARBRIDGE_STORE_URL='{}'", service.url()),
        Kind::Ministack => println!(
            "export AWS_ENDPOINT_URL={} AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_REGION=us-east-1",
            service.url()
        ),
        Kind::Moto => println!("# moto: {}", service.url()),
        Kind::Rie => {}
    }
}

fn names() -> String {
    Kind::ALL.map(Kind::name).join(", ")
}
