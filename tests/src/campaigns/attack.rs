//! Attacks of a hostile neighbour on a real server, over its sockets, files and signals. Each try
//! has its own server and folder, a bound that says what is allowed, and a deadline; the observed
//! result decides whether the bound held.

mod answers;
mod bodies;
mod browser;
mod children;
mod connections;
mod evaluation;
mod limiter;
mod order;
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
use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A quick try takes at most this long, a slow one the other.
const QUICK: Duration = Duration::from_secs(30);
const SLOW: Duration = Duration::from_secs(120);

/// The settings of the campaign.
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

/// The result of a try.
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

/// A try.
struct Try {
    /// Its area and its own name.
    name: &'static str,
    /// The action.
    tried: &'static str,
    /// The allowed result.
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

    /// Runs the try, with its deadline. A try that cannot be run has not held.
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

const AREAS: [&[Try]; 16] = [
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
    order::TRIES,
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

/// The tries asked for. A whole name selects only that one; the beginning of names selects all of
/// these.
fn wanted(options: &Options) -> Vec<&'static Try> {
    let all = || {
        AREAS
            .into_iter()
            .flatten()
            .filter(|a_try| a_try.quick || !options.slice)
    };
    let Some(only) = options.only.as_deref() else {
        return all().collect();
    };
    let named: Vec<_> = all().filter(|a_try| a_try.name == only).collect();
    match named.is_empty() {
        true => all().filter(|a_try| a_try.name.starts_with(only)).collect(),
        false => named,
    }
}

/// Prints a line. An error means that nobody reads the output any more, and no more tries are run.
pub fn say(line: &str) -> Result<(), String> {
    let said = writeln!(std::io::stdout().lock(), "{line}");
    said.map_err(|error| format!("the table can't be printed: {error}"))
}

/// Tries everything asked for, prints the table and answers how many held and how many did not.
pub async fn run(options: &Options) -> Result<(usize, usize), String> {
    let tries: Arc<[&'static Try]> = wanted(options).into();
    if tries.is_empty() {
        return Err("no try has such a name: `--list` shows them".to_owned());
    }
    say("|    | try | bound | seen | s |\n|---|---|---|---|---|")?;
    let next = Arc::new(AtomicUsize::new(0));
    let workers = (0..options.jobs.max(1)).map(|_| {
        let (tries, next) = (Arc::clone(&tries), Arc::clone(&next));
        let program = options.program.clone();
        tokio::spawn(async move {
            let mut failed = Vec::new();
            while let Some(&a_try) = tries.get(next.fetch_add(1, Ordering::Relaxed)) {
                if !tell(a_try, &program).await? {
                    failed.push(a_try);
                }
            }
            Ok::<_, String>(failed)
        })
    });
    let workers: Vec<_> = workers.collect();
    let mut failed = Vec::new();
    for worker in workers {
        failed.append(&mut worker.await.map_err(|error| error.to_string())??);
    }
    // A try with a time bound that failed beside others counts by its result alone.
    if options.jobs > 1 {
        for a_try in std::mem::take(&mut failed) {
            if !tell(a_try, &options.program).await? {
                failed.push(a_try);
            }
        }
    }
    Ok((tries.len() - failed.len(), failed.len()))
}

/// Tries it, prints its row, and answers whether it held.
async fn tell(a_try: &Try, program: &Path) -> Result<bool, String> {
    let begun = Instant::now();
    let seen = a_try.run(program).await;
    say(&row(a_try, &seen, begun.elapsed())).map(|()| seen.held)
}

fn row(a_try: &Try, seen: &Seen, took: Duration) -> String {
    let verdict = if seen.held { "ok" } else { "NO" };
    let text = a_line_of(&seen.text);
    let seconds = took.as_secs_f64();
    format!(
        "| {verdict} | {} | {} | {text} | {seconds:.1} |",
        a_try.name, a_try.bound
    )
}

/// The observed result in a form that fits into a table: it contains peers' words.
fn a_line_of(text: &str) -> String {
    const LONGEST: usize = 240;
    let shown = text.chars().map(|c| if c.is_control() || c == '|' { ' ' } else { c });
    let mut line: String = shown.clone().take(LONGEST).collect();
    if shown.count() > LONGEST {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(only: Option<&str>, slice: bool) -> Vec<&'static str> {
        let options = Options {
            program: PathBuf::new(),
            only: only.map(str::to_owned),
            slice,
            jobs: 1,
        };
        wanted(&options).into_iter().map(|a_try| a_try.name).collect()
    }

    #[test]
    fn a_whole_name_means_one_try() {
        assert_eq!(names(Some("waiters/gone"), false), ["waiters/gone"]);
        let begun = names(Some("waiters/gone-"), false);
        assert_eq!(begun, ["waiters/gone-before-a-live-one"]);
        assert!(names(Some("waiters/"), false).len() > names(Some("waiters/"), true).len());
        assert_eq!(names(None, false).len(), list().len());
        assert_eq!(names(Some("nothing"), false), [""; 0]);
    }

    #[test]
    fn each_try_has_a_name_of_its_own() {
        let mut all = names(None, false);
        all.sort_unstable();
        let many = all.len();
        all.dedup();
        assert_eq!(all.len(), many);
    }
}
