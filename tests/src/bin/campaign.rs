//! Runs a campaign and prints its figures.

use starbridge_tests::campaigns::{
    Findings, admissions, attack, cluster, crashes, failing, full_disk, holds, kills, leases, planted, simulation, torn,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: campaign attack --program FILE [--only NAME] [--slice] [--jobs N] | --list
       campaign crashes [--full]
       campaign kills --program FILE [--redis FILE] [--count N] [--seed S] [--example NAME]
       campaign cluster --program FILE --postgres FILE [--faketime FILE] [--seconds N] [--seed S]
       campaign simulate [--seeds N] [--seed S]
       campaign planted
       campaign failing [--full]
       campaign torn [--count N] [--seed S]
       campaign leases [--count N] [--seed S]
       campaign admissions [--count N] [--seed S]
       campaign full-disk --program FILE
       campaign holds --program FILE [--count N] [--seed S]
       campaign holder --server URL --log FILE [--seed S]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("attack", rest)) = arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return run_attack(rest);
    }
    let done = match arguments.split_first() {
        Some((campaign, rest)) => options(rest).and_then(|options| run(campaign, &options)),
        None => Err("a campaign is missing".to_owned()),
    };
    match done {
        Ok(findings) => {
            println!("{findings}");
            ExitCode::from(u8::from(!findings.problems.is_empty()))
        }
        Err(problem) => {
            eprintln!("error: {problem}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

type Options = BTreeMap<String, String>;

/// `--name value`, `--name=value` and `--name` alone, which is `true`.
fn options(arguments: &[String]) -> Result<Options, String> {
    let mut options = Options::new();
    let mut left = arguments.iter().peekable();
    while let Some(argument) = left.next() {
        let name = argument
            .strip_prefix("--")
            .ok_or_else(|| format!("`{argument}` is no option"))?;
        if let Some((name, value)) = name.split_once('=') {
            options.insert(name.to_owned(), value.to_owned());
            continue;
        }
        let value = left.next_if(|next| !next.starts_with("--"));
        options.insert(name.to_owned(), value.cloned().unwrap_or_else(|| "true".to_owned()));
    }
    Ok(options)
}

fn number(options: &Options, name: &str, usual: u64) -> Result<u64, String> {
    match options.get(name) {
        None => Ok(usual),
        Some(value) => value
            .parse()
            .map_err(|_| format!("`--{name}` is a number, not `{value}`")),
    }
}

fn run(campaign: &str, options: &Options) -> Result<Findings, String> {
    match campaign {
        "crashes" if options.contains_key("full") => Ok(crashes::run(crashes::Options::FULL)),
        "crashes" => Ok(crashes::run(crashes::Options::SLICE)),
        "simulate" => run_simulations(options),
        "planted" => Ok(run_planted()),
        "failing" => {
            let step = if options.contains_key("full") { 1 } else { 5 };
            Ok(runtime()?.block_on(failing::run(step)))
        }
        "torn" => Ok(torn::run(number(options, "count", 300)?, number(options, "seed", 1)?)),
        "full-disk" => {
            let program = options.get("program").ok_or("`--program` is missing")?;
            runtime()?.block_on(full_disk::run(Path::new(program)))
        }
        "leases" => match options.contains_key("seed") {
            true => Ok(leases::simulate(number(options, "seed", 1)?, None)),
            false => Ok(leases::run(1, number(options, "count", 1_000_000)?)),
        },
        "admissions" => match options.contains_key("seed") {
            true => Ok(admissions::simulate(number(options, "seed", 1)?, None)),
            false => Ok(admissions::run(1, number(options, "count", 1_000_000)?)),
        },
        "kills" => run_kills(options),
        "holds" => run_holds(options),
        "cluster" => run_cluster(options),
        "holder" => run_holder(options),
        other => Err(format!("there is no campaign `{other}`")),
    }
}

fn run_kills(options: &Options) -> Result<Findings, String> {
    let program = options.get("program").ok_or("`--program` is missing")?;
    let settings = kills::Options {
        program: PathBuf::from(program),
        redis: options.get("redis").map(PathBuf::from),
        kills: u32::try_from(number(options, "count", 200)?).unwrap_or(u32::MAX),
        seed: number(options, "seed", 1)?,
        example: options.get("example").cloned(),
    };
    runtime()?.block_on(kills::run(&settings))
}

fn run_cluster(options: &Options) -> Result<Findings, String> {
    let file = |name: &str| {
        let file = options.get(name).ok_or_else(|| format!("`--{name}` is missing"));
        file.map(PathBuf::from)
    };
    let settings = cluster::Options {
        program: file("program")?,
        postgres: file("postgres")?,
        faketime: options.get("faketime").map(PathBuf::from),
        seconds: number(options, "seconds", 480)?,
        seed: number(options, "seed", 1)?,
    };
    runtime()?.block_on(cluster::run(&settings))
}

fn run_holds(options: &Options) -> Result<Findings, String> {
    let program = options.get("program").ok_or("`--program` is missing")?;
    let settings = holds::Options {
        program: PathBuf::from(program),
        count: number(options, "count", 100_000)?,
        seed: number(options, "seed", 1)?,
    };
    runtime()?.block_on(holds::run(&settings))
}

/// A worker of that campaign; it works until it is killed.
fn run_holder(options: &Options) -> Result<Findings, String> {
    let server = options.get("server").ok_or("`--server` is missing")?;
    let log = options.get("log").ok_or("`--log` is missing")?;
    let working = holds::hold(server, Path::new(log), number(options, "seed", 1)?);
    runtime()?.block_on(working).map(|()| Findings::default())
}

/// A table of its own: what was tried, what is allowed, what was seen.
fn run_attack(arguments: &[String]) -> ExitCode {
    match attack(arguments) {
        Ok((passed, failed)) => {
            // If nobody reads the output, the exit code gives the result.
            drop(attack::say(&format!("{passed} passed, {failed} failed")));
            ExitCode::from(u8::from(failed > 0))
        }
        Err(problem) => {
            eprintln!("error: {problem}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn attack(arguments: &[String]) -> Result<(usize, usize), String> {
    const KNOWN: [&str; 5] = ["program", "only", "slice", "jobs", "list"];
    let options = options(arguments)?;
    if let Some(other) = options.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        return Err(format!("`attack` has no option `--{other}`"));
    }
    if options.contains_key("list") {
        attack::say("| try | what is done | bound | |\n|---|---|---|---|")?;
        for row in attack::list() {
            attack::say(&format!("| {} |", row.join(" | ")))?;
        }
        return Ok((0, 0));
    }
    let program = options.get("program").ok_or("`--program` is missing")?;
    let settings = attack::Options {
        program: PathBuf::from(program),
        only: options.get("only").cloned(),
        slice: options.contains_key("slice"),
        jobs: number(&options, "jobs", 1)?,
    };
    runtime()?.block_on(attack::run(&settings))
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Runtime::new().map_err(|error| error.to_string())
}

/// One seed where it is given, else so many from 1 on.
fn run_simulations(options: &Options) -> Result<Findings, String> {
    if options.contains_key("seed") {
        return Ok(simulation::run(number(options, "seed", 1)?, 1));
    }
    Ok(simulation::run(1, number(options, "seeds", 2_000)?))
}

fn run_planted() -> Findings {
    let (caught, findings) = planted::run();
    println!("| planted | found at seed | by |\n|---|---|---|");
    for found in caught {
        println!("| {} | {} | {} |", found.bug.as_str(), found.seed, found.problem);
    }
    println!();
    findings
}
