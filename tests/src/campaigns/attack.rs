//! What a hostile neighbour tries, against a real server over its sockets, files and signals. Each try has a server and a folder of
//! its own, a bound that says what is allowed, and a deadline; what was seen decides whether it held.

mod answers;
mod bodies;
mod browser;
mod children;
mod connections;
mod evaluation;
mod limiter;
mod peer;
mod peers;
mod poison;
mod probe;
mod programs;
mod references;
mod requests;
mod server;
mod signals;
mod store;
mod waiters;
mod wire;

use self::server::Ground;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A quick try takes at most this long, a slow one the other.
const QUICK: Duration = Duration::from_secs(30);
const SLOW: Duration = Duration::from_secs(120);

/// How the campaign goes.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program `starbridge`.
    pub program: PathBuf,
    /// Only tries whose name begins with this.
    pub only: Option<String>,
    /// Only the quick ones.
    pub slice: bool,
    /// How many at once.
    pub jobs: u64,
}

/// What came of a try.
struct Seen {
    held: bool,
    text: String,
}

impl Seen {
    fn new(held: bool, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { held, text }
    }

    /// It held if nothing is wrong.
    fn unless(wrong: &[String], well: impl Into<String>) -> Self {
        match wrong {
            [] => Self::new(true, well),
            [only] => Self::new(false, only),
            [first, rest @ ..] => Self::new(false, format!("{first} (and {} more)", rest.len())),
        }
    }
}

type Trial = Pin<Box<dyn Future<Output = Result<Seen, String>> + Send>>;

/// Something that is tried.
struct Try {
    /// Its area and its own name.
    name: &'static str,
    /// What is done.
    tried: &'static str,
    /// What is allowed to come of it.
    bound: &'static str,
    /// Whether it is part of the slice.
    quick: bool,
    run: fn(Ground) -> Trial,
}

impl Try {
    const fn quick(name: &'static str, tried: &'static str, bound: &'static str, run: fn(Ground) -> Trial) -> Self {
        Self {
            name,
            tried,
            bound,
            quick: true,
            run,
        }
    }

    const fn slow(name: &'static str, tried: &'static str, bound: &'static str, run: fn(Ground) -> Trial) -> Self {
        Self {
            name,
            tried,
            bound,
            quick: false,
            run,
        }
    }

    /// Tries it, in time. What can't be tried has not held.
    async fn run(&self, program: &Path) -> Seen {
        let ground = match Ground::new(program) {
            Ok(ground) => ground,
            Err(problem) => return Seen::new(false, problem),
        };
        let deadline = if self.quick { QUICK } else { SLOW };
        let trial = tokio::spawn((self.run)(ground));
        let abort = trial.abort_handle();
        match tokio::time::timeout(deadline, trial).await {
            Ok(Ok(Ok(seen))) => seen,
            Ok(Ok(Err(problem))) => Seen::new(false, problem),
            Ok(Err(panicked)) => Seen::new(false, format!("the try itself broke: {panicked}")),
            Err(_) => {
                abort.abort();
                Seen::new(false, format!("not over after {} s", deadline.as_secs()))
            }
        }
    }
}

const AREAS: [&[Try]; 15] = [
    references::TRIES,
    browser::TRIES,
    limiter::TRIES,
    connections::TRIES,
    bodies::TRIES,
    answers::TRIES,
    evaluation::TRIES,
    poison::TRIES,
    waiters::TRIES,
    peers::TRIES,
    children::TRIES,
    programs::TRIES,
    store::TRIES,
    signals::TRIES,
    requests::TRIES,
];

/// Every try: its name, what is tried, the bound, and whether it is in the slice.
pub fn list() -> Vec<[&'static str; 4]> {
    let tries = AREAS.into_iter().flatten();
    let row = |a_try: &'static Try| {
        let slice = if a_try.quick { "slice" } else { "" };
        [a_try.name, a_try.tried, a_try.bound, slice]
    };
    tries.map(row).collect()
}

/// Tries everything asked for, prints the table and answers how many held and how many did not.
pub async fn run(options: &Options) -> Result<(usize, usize), String> {
    let wanted = |a_try: &&Try| {
        let named = options.only.as_deref().is_none_or(|only| a_try.name.starts_with(only));
        named && (a_try.quick || !options.slice)
    };
    let tries: Arc<[&'static Try]> = AREAS.into_iter().flatten().filter(wanted).collect();
    if tries.is_empty() {
        return Err("no try has such a name: `--list` shows them".to_owned());
    }
    println!("|    | try | bound | seen | s |\n|---|---|---|---|---|");
    let next = Arc::new(AtomicUsize::new(0));
    let workers = (0..options.jobs.max(1)).map(|_| {
        let (tries, next) = (Arc::clone(&tries), Arc::clone(&next));
        let program = options.program.clone();
        tokio::spawn(async move {
            let mut failed = Vec::new();
            while let Some(&a_try) = tries.get(next.fetch_add(1, Ordering::Relaxed)) {
                if !tell(a_try, &program).await {
                    failed.push(a_try);
                }
            }
            failed
        })
    });
    let workers: Vec<_> = workers.collect();
    let mut failed = Vec::new();
    for worker in workers {
        failed.append(&mut worker.await.map_err(|error| error.to_string())?);
    }
    // What is bounded in time and failed beside others counts by how it ends alone.
    if options.jobs > 1 {
        for a_try in std::mem::take(&mut failed) {
            if !tell(a_try, &options.program).await {
                failed.push(a_try);
            }
        }
    }
    Ok((tries.len() - failed.len(), failed.len()))
}

/// Tries it, prints its row, and answers whether it held.
async fn tell(a_try: &Try, program: &Path) -> bool {
    let begun = Instant::now();
    let seen = a_try.run(program).await;
    print(a_try, &seen, begun.elapsed());
    seen.held
}

fn print(a_try: &Try, seen: &Seen, took: Duration) {
    let verdict = if seen.held { "ok" } else { "NO" };
    let text = a_line_of(&seen.text);
    let seconds = took.as_secs_f64();
    println!(
        "| {verdict} | {} | {} | {text} | {seconds:.1} |",
        a_try.name, a_try.bound
    );
}

/// What was seen, as it fits into a table: peers' words are in it.
fn a_line_of(text: &str) -> String {
    const LONGEST: usize = 240;
    let shown = text.chars().map(|c| if c.is_control() || c == '|' { ' ' } else { c });
    let mut line: String = shown.clone().take(LONGEST).collect();
    if shown.count() > LONGEST {
        line.push('…');
    }
    line
}
