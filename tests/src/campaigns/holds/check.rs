//! Checks the promises against the workers' logs.

use super::log::{Did, Line};
use crate::campaigns::Findings;
use std::collections::BTreeMap;

/// All facts about one call.
#[derive(Debug, Default)]
struct Call {
    step: String,
    /// How often it was handed out.
    held: u64,
    /// When the hold was answered.
    came: u64,
    /// Until when its worker may take it for its own: counted from when it last asked with success, up to its report.
    until: u64,
    reporting: Option<u64>,
    /// Reports that were taken.
    taken: u64,
    /// The time of the answer to the report of success.
    done: Option<u64>,
}

/// Checks it all.
pub(super) fn check(workers: &[Vec<Line>], tasks: u64, findings: &mut Findings) {
    let mut calls: BTreeMap<&str, Call> = BTreeMap::new();
    for line in workers.iter().flatten() {
        let call = calls.entry(&line.key).or_default();
        take(call, &line.did, findings);
    }
    let mut steps: BTreeMap<&str, Vec<(&str, &Call)>> = BTreeMap::new();
    for (key, call) in &calls {
        findings.count("holds", call.held);
        if call.held > 1 {
            findings.problem(format!("{key} was handed out {} times", call.held));
        }
        if call.taken > 1 {
            findings.problem(format!("{} reports on {key} were taken", call.taken));
        }
        steps.entry(&call.step).or_default().push((key, call));
    }
    for (step, mut calls) in steps {
        calls.sort_by_key(|(_, call)| call.came);
        one_after_the_other(step, &calls, findings);
        findings.count("tasks that were seen", 1);
    }
    if findings.of("tasks that were seen") > tasks {
        findings.problem("there were more tasks than were started");
    }
}

fn take(call: &mut Call, did: &Did, findings: &mut Findings) {
    match did {
        Did::Held {
            step,
            asked,
            came,
            lease,
        } => {
            call.step.clone_from(step);
            call.held += 1;
            call.came = *came;
            call.until = asked + lease;
            findings.count(
                "holds answered within a tenth of a lease",
                u64::from(came - asked < lease / 10),
            );
        }
        Did::Beat { sent, status: 204 } => {
            findings.count("heartbeats taken", 1);
            // A lease is a second here.
            call.until = call.until.max(sent + super::LEASE * 1_000_000);
        }
        Did::Beat { .. } => findings.count("heartbeats refused", 1),
        Did::Reports { at } => {
            findings.count("reports sent again", u64::from(call.reporting.is_some()));
            call.reporting.get_or_insert(*at);
        }
        Did::Reported {
            came,
            status: 204,
            well,
            ..
        } => {
            findings.count("reports taken", 1);
            call.taken += 1;
            call.done = well.then_some(*came);
        }
        Did::Reported { status: 410, .. } => findings.count("reports refused: given up (410)", 1),
        Did::Reported { status: 409, .. } => findings.count("reports refused: there was one before (409)", 1),
        Did::Reported { status, .. } => findings.problem(format!("a report is answered with {status}")),
    }
}

/// Each call of a step begins after the previous one was over.
fn one_after_the_other(step: &str, calls: &[(&str, &Call)], findings: &mut Findings) {
    for (at, (key, call)) in calls.iter().enumerate() {
        for (later, next) in calls.iter().skip(at + 1) {
            let until = call.reporting.map_or(call.until, |at| at.min(call.until));
            if next.came < until {
                let early = until - next.came;
                findings.problem(format!(
                    "{later} was handed out {early} µs before {key} was over ({step})"
                ));
            }
            if call.done.is_some_and(|done| done < next.came) {
                findings.problem(format!("{later} was handed out after {key} was done ({step})"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn held(key: &str, at: u64) -> Line {
        Line {
            key: key.to_owned(),
            did: Did::Held {
                step: "e/2".to_owned(),
                asked: at,
                came: at + 10,
                lease: SECOND,
            },
        }
    }

    fn line(key: &str, did: Did) -> Line {
        Line {
            key: key.to_owned(),
            did,
        }
    }

    fn reported(key: &str, at: u64, well: bool) -> [Line; 2] {
        let taken = Did::Reported {
            sent: at,
            came: at + 5,
            status: 204,
            well,
        };
        [line(key, Did::Reports { at }), line(key, taken)]
    }

    fn problems(lines: &[Line]) -> usize {
        let mut findings = Findings::default();
        check(&[lines.to_vec()], 1, &mut findings);
        findings.problems.len()
    }

    #[test]
    fn what_must_not_be_is_seen() {
        let beat = line(
            "e/4",
            Did::Beat {
                sent: SECOND / 2,
                status: 204,
            },
        );
        assert_eq!(problems(&[held("e/4", 0), held("e/5", SECOND)]), 0);
        assert_eq!(
            problems(&[held("e/4", 0), held("e/5", SECOND / 2)]),
            1,
            "a lease is not over"
        );
        assert_eq!(
            problems(&[held("e/4", 0), beat, held("e/5", SECOND)]),
            1,
            "a heartbeat prolonged it"
        );
        assert_eq!(
            problems(&[held("e/4", 0), held("e/4", 3 * SECOND)]),
            1,
            "a call comes once"
        );
        let [about, failed] = reported("e/4", 100, false);
        assert_eq!(
            problems(&[held("e/4", 0), about, failed, held("e/5", 200)]),
            0,
            "a failure is retried"
        );
        let [about, done] = reported("e/4", 100, true);
        let lines = [held("e/4", 0), about.clone(), done.clone(), held("e/5", 200)];
        assert_eq!(problems(&lines), 1, "it was done");
        assert_eq!(
            problems(&[held("e/4", 0), about, done.clone(), done]),
            1,
            "a report is taken once"
        );
    }
}
