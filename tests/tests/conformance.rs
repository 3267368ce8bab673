//! The conformance cases: each runs straight, with every signal twice, crashed after each append and each dispatch, and
//! replayed at each event. The history never changes.
//!
//! `cargo conformance [PART OF A NAME]`

use starbridge_tests::conformance::{self, Fault};

fn main() {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let report = conformance::run(wanted.as_deref());
    for fault in &report.faults {
        let Fault { file, case, problem } = fault;
        eprintln!("{file}: {case}\n  {problem}");
    }
    println!(
        "{} cases, {} runs interrupted, {} prefixes replayed",
        report.cases, report.interrupted, report.prefixes
    );
    let failed = report.failed_cases();
    println!("{} passed, {} failed", report.cases - failed, failed);
    if failed > 0 || (report.cases == 0 && wanted.is_none()) {
        std::process::exit(1);
    }
}
