//! One flow, three hosts, one history: `exec`, `serve` and the function of Lambda run the same cases over HTTP functions, and
//! their histories differ in times, in ids and in the order of concurrent answers only.

mod cases;
mod functions;
mod running;

use cases::Tried;
use functions::Functions;
use running::{Exec, Host, Lambda, Serve};
use starbridge_tests::same_history::{by_frame, in_order};

/// The part of the cases that is run; all, by default.
fn part() -> usize {
    std::env::var("STARBRIDGE_HOSTS_PART")
        .ok()
        .and_then(|part| part.parse().ok())
        .unwrap_or(1)
}

#[test]
fn three_hosts_write_one_history() {
    let functions = Functions::start();
    let cases: Vec<Tried> = cases::all().into_iter().step_by(part()).collect();
    let (exec, serve, lambda) = (
        Exec::new(&functions),
        Serve::start(&functions),
        Lambda::start(&functions),
    );
    let hosts: [(&str, &dyn Host); 3] = [("exec", &exec), ("serve", &serve), ("lambda", &lambda)];
    let mut wrong = Vec::new();
    for case in &cases {
        wrong.extend(differences(&functions, &hosts, case));
    }
    println!("{} cases on {} hosts", cases.len(), hosts.len());
    assert!(
        wrong.is_empty(),
        "{} of {} wrong:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
    assert!(cases.len() * part() >= 500, "{} cases", cases.len());
}

/// Runs a case on each host. Answers in what their histories differ.
fn differences(functions: &Functions, hosts: &[(&str, &dyn Host)], case: &Tried) -> Vec<String> {
    let (mut wrong, mut histories) = (Vec::new(), Vec::new());
    for (name, host) in hosts {
        functions.expect(case);
        match host.run(case) {
            // Answers to calls that are out together may come in any order.
            Ok(history) if case.wide => histories.push((name, by_frame(&history))),
            Ok(history) => histories.push((name, in_order(&history))),
            Err(problem) => wrong.push(format!("{} on {name}: {problem}", case.title)),
        }
    }
    if let Some((first, expected)) = histories.first() {
        for (name, history) in histories.iter().skip(1) {
            if let Some(difference) = difference(expected, history) {
                wrong.push(format!("{}: {first} and {name} differ: {difference}", case.title));
            }
        }
    }
    wrong
}

fn difference(expected: &[String], found: &[String]) -> Option<String> {
    let place = expected.iter().zip(found).position(|(one, other)| one != other);
    match place {
        Some(place) => Some(format!(
            "line {}\n    {}\n    {}",
            place + 1,
            expected[place],
            found[place]
        )),
        None if expected.len() != found.len() => Some(format!("{} and {} lines", expected.len(), found.len())),
        None => None,
    }
}
