//! A server under load that is killed again and again. A witness is outside the server: the
//! functions that flows call. It knows what left the server and what the server acknowledged. At
//! the end, the histories are compared with that.

mod audit;
mod cases;
mod examples;
mod ledger;
mod load;
mod operators;
mod process;
mod told;
mod witness;

use super::{Chance, Findings};
pub(super) use audit::{all, audit as audit_server, hold_against, wait_for_ends};
pub(super) use load::{FLOWS, Load, definition, put_flows};
use operators::Operators;
pub(super) use process::{Place, Process};
use std::path::PathBuf;
use std::time::{Duration, Instant};
pub(super) use witness::Witness;

/// The settings of a campaign.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program `starbridge`.
    pub program: PathBuf,
    /// The program `redis-server`, for the examples that need one.
    pub redis: Option<PathBuf>,
    /// How often the server is killed, or told to stop.
    pub kills: u32,
    /// The seed of the random numbers.
    pub seed: u64,
    /// An example that is run alone.
    pub example: Option<String>,
}

/// The server of an example is killed once for so many kills of the server under load, and at least so often.
const SHARE_OF_EXAMPLES: (u32, u32) = (20, 4);

/// Of so many ends one is a SIGTERM.
const GENTLE: u32 = 8;
/// The server is killed at most so long after it was ready, in milliseconds.
const LATEST: u32 = 300;
/// After the last restart everything must end within this time.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a campaign: a server under load, then examples. An error says why it could not be carried through.
pub async fn run(options: &Options) -> Result<Findings, String> {
    let example = options.example.as_deref();
    let (share, least) = SHARE_OF_EXAMPLES;
    let kills = match example {
        None => (options.kills / share).max(least),
        Some(_) => options.kills,
    };
    let few = kills == least;
    let programs = examples::Programs {
        starbridge: &options.program,
        redis: options.redis.as_deref(),
    };
    let examples = examples::run(programs, (kills, few), options.seed, example);
    if example.is_some() {
        return examples.await;
    }
    let mut findings = run_load(options).await?;
    findings.add(examples.await?);
    Ok(findings)
}

async fn run_load(options: &Options) -> Result<Findings, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut chance = Chance::new(options.seed);
    let place = Place::new(&options.program, folder.path())?;
    let witness = Witness::start(place.url()).await?;
    place.configure(witness.port())?;
    let mut findings = Findings::default();

    let mut process = Process::start(&place).await?;
    put_flows(&place.url()).await?;
    operators::put_flows(&place.url()).await?;
    load::put_schedule(&place.url()).await?;
    let load = Load::start(&place.url(), &witness);
    let operators = Operators::start(&place.url(), &witness);
    for _ in 0..options.kills {
        let after = u64::from(chance.from(1, LATEST));
        tokio::time::sleep(Duration::from_millis(after)).await;
        if chance.below(GENTLE) == 0 {
            let stopped = process.stop().await?;
            findings.count("told to stop (SIGTERM)", 1);
            findings.problems.extend(stopped);
        } else {
            process.kill()?;
            findings.count("killed (SIGKILL)", 1);
        }
        let begun = Instant::now();
        process = Process::start(&place).await?;
        let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        findings.count("milliseconds from start to ready, in all", took);
    }
    let started = load.finish(PATIENCE).await;
    let operated = operators.finish(&mut findings).await;
    load::discard_schedule(&place.url()).await?;
    let waited = Instant::now();
    wait_for_ends(&place.url(), PATIENCE, &mut findings).await;
    findings.count(
        "milliseconds until all had ended, after the last restart",
        u64::try_from(waited.elapsed().as_millis()).unwrap_or(u64::MAX),
    );
    witness.settle(PATIENCE).await;
    audit::audit(&place.url(), &started, &witness, &mut findings).await;
    operated.audit(&place.url(), &witness, &mut findings).await;
    told::audit(&place.url(), &witness, PATIENCE, &mut findings).await;
    findings.problems.extend(process.stop().await?);
    audit::nothing_left_behind(&place.database(), &mut findings);
    if !findings.problems.is_empty() {
        let kept = folder.keep();
        findings.problem(format!("the store and the log are kept in {}", kept.display()));
    }
    Ok(findings)
}
