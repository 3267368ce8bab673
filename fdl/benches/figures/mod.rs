//! Figures: the time of each benchmark's best run turned into a rate or a cost, with its goal, as one flat table at
//! the end. On a shared machine the best run says the most about the code; the spread is in
//! criterion's own lines.

use criterion::Criterion;
use criterion::measurement::{Measurement, WallTime};
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// The meaning of the figure of one run.
#[derive(Clone, Copy)]
pub enum Unit {
    /// This many things per run; shown as things per second. More is better.
    PerSecond(u64, &'static str),
    /// This many things per run; shown as nanoseconds per thing. Fewer is better.
    NanosEach(u64, &'static str),
    /// Milliseconds per run. Fewer is better.
    Millis,
}

/// The goal of a figure: a minimum for a rate, a maximum for a cost; `None`: the figure is only
/// shown.
pub type Goal = Option<f64>;

struct Figure {
    name: String,
    value: f64,
    unit: String,
    goal: Goal,
    more_is_better: bool,
}

/// Runs benchmarks and keeps a figure of each.
#[derive(Default)]
pub struct Figures {
    criterion: Criterion,
    figures: RefCell<Vec<Figure>>,
}

impl Figures {
    /// Figures for the arguments of the command line.
    pub fn from_arguments() -> Self {
        let criterion = Criterion::default()
            .without_plots()
            .warm_up_time(Duration::from_millis(500))
            .measurement_time(Duration::from_secs(2))
            .sample_size(20)
            .configure_from_args();
        Self {
            criterion,
            figures: RefCell::default(),
        }
    }

    /// Measures `work` on the result of `prepare`; the result of `work` is dropped outside of the
    /// measured time.
    pub fn measure<I, O>(
        &mut self,
        name: &str,
        unit: Unit,
        goal: Goal,
        mut prepare: impl FnMut() -> I,
        mut work: impl FnMut(I) -> O,
    ) {
        let best = Cell::new(f64::INFINITY);
        self.criterion.bench_function(name, |bencher| {
            bencher.iter_custom(|runs| {
                let mut sum = Duration::ZERO;
                for _ in 0..runs {
                    let prepared = prepare();
                    let begun = WallTime.start();
                    let made = std::hint::black_box(counted(&mut work, std::hint::black_box(prepared)));
                    let took = WallTime.end(begun);
                    drop(made);
                    best.set(best.get().min(took.as_secs_f64()));
                    sum += took;
                }
                sum
            });
        });
        // A benchmark left out by the command line's filter has no figure.
        if best.get().is_finite() {
            self.figures.borrow_mut().push(figure(name, unit, goal, best.get()));
        }
    }

    /// Records something that is counted, not timed, and should be at most `goal`.
    pub fn count(&self, name: &str, value: f64, unit: &str, goal: Goal) {
        self.figures.borrow_mut().push(Figure {
            name: name.to_owned(),
            value,
            unit: unit.to_owned(),
            goal,
            more_is_better: false,
        });
    }

    /// Prints the table.
    pub fn print(self) {
        self.criterion.final_summary();
        println!("\n{:<46} {:>14}  {:<22} {:>12}", "what", "figure", "unit", "goal");
        for figure in self.figures.borrow().iter() {
            let goal = figure.goal.map_or_else(String::new, |goal| {
                let sign = if figure.more_is_better { "≥" } else { "≤" };
                format!("{sign} {}", rounded(goal))
            });
            let missed = figure
                .goal
                .is_some_and(|goal| figure.value != goal && (figure.value < goal) == figure.more_is_better);
            let mark = if missed { "  missed" } else { "" };
            let value = rounded(figure.value);
            println!("{:<46} {value:>14}  {:<22} {goal:>12}{mark}", figure.name, figure.unit);
        }
    }
}

fn figure(name: &str, unit: Unit, goal: Goal, seconds: f64) -> Figure {
    let (value, unit, more_is_better) = match unit {
        Unit::PerSecond(things, word) => (things as f64 / seconds, format!("{word}/s"), true),
        Unit::NanosEach(things, word) => (seconds * 1e9 / things as f64, format!("ns/{word}"), false),
        Unit::Millis => (seconds * 1e3, "ms".to_owned(), false),
    };
    Figure {
        name: name.to_owned(),
        value,
        unit,
        goal,
        more_is_better,
    }
}

/// The measured work alone, under a name at which a profiler can begin and end to count.
#[inline(never)]
fn counted<I, O>(work: &mut impl FnMut(I) -> O, prepared: I) -> O {
    work(prepared)
}

/// A number that people can read: thousands grouped, small ones with two decimals.
fn rounded(value: f64) -> String {
    if value < 100.0 {
        return format!("{value:.2}");
    }
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
