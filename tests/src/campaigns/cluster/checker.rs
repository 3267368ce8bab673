//! Holds what clients were told against what the store has in the end.

use std::collections::{BTreeMap, BTreeSet};

/// What a client asked for, and what it was told. Only what was acknowledged is written down.
#[derive(Clone, Debug)]
pub(super) enum Word {
    /// An execution was started; `new`: by this request.
    Started {
        id: String,
        flow: String,
        name: String,
        new: bool,
    },
    /// A report was taken.
    Reported { id: String },
    /// An execution was stopped.
    Stopped { id: String },
    /// The events of an execution, each by its number and type.
    Read { id: String, events: Vec<String> },
}

/// A word, and when and where it was said.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) node: &'static str,
    /// Milliseconds of the client's steady clock.
    pub(super) asked: u64,
    pub(super) answered: u64,
    pub(super) word: Word,
}

/// An execution, as the store has it in the end.
#[derive(Clone, Debug)]
pub(super) struct Final {
    pub(super) id: String,
    pub(super) flow: String,
    pub(super) name: String,
    pub(super) events: Vec<String>,
}

impl Final {
    fn count(&self, kind: &str) -> usize {
        self.events.iter().filter(|event| event.ends_with(kind)).count()
    }
}

/// What is wrong. `finals` are in the order of their starts.
pub(super) fn check(said: &[Said], finals: &[Final]) -> Vec<String> {
    let mut problems = Vec::new();
    let by_id: BTreeMap<&str, (usize, &Final)> = finals
        .iter()
        .enumerate()
        .map(|(place, last)| (last.id.as_str(), (place, last)))
        .collect();
    let mut names = BTreeSet::new();
    for last in finals {
        if !names.insert((&last.flow, &last.name)) {
            problems.push(format!("doubled: there are two executions {}/{}", last.flow, last.name));
        }
    }
    for one in said {
        problems.extend(alone(one, &by_id));
    }
    problems.extend(out_of_order(said, &by_id));
    problems.extend(unseen(said));
    problems
}

/// What is wrong with one word by itself.
fn alone(one: &Said, finals: &BTreeMap<&str, (usize, &Final)>) -> Option<String> {
    let (Word::Started { id, .. } | Word::Reported { id } | Word::Stopped { id } | Word::Read { id, .. }) = &one.word;
    let Some((_, last)) = finals.get(id.as_str()) else {
        return Some(format!(
            "lost: {:?} was acknowledged at {}, and there is no such execution",
            one.word, one.node
        ));
    };
    let once = |kind: &str| match last.count(kind) {
        1 => None,
        count => Some(format!(
            "{id}: {kind} was acknowledged at {} and is there {count} times",
            one.node
        )),
    };
    match &one.word {
        Word::Started { flow, name, .. } => (last.flow != *flow || last.name != *name).then(|| {
            format!(
                "{id} was acknowledged as {flow}/{name}, and is {}/{}",
                last.flow, last.name
            )
        }),
        Word::Reported { .. } => once("TaskSucceeded"),
        Word::Stopped { .. } => once("ExecutionStopped"),
        Word::Read { events, .. } => (!last.events.starts_with(events)).then(|| {
            format!(
                "{id}: what {} showed is no beginning of the history: {events:?}",
                one.node
            )
        }),
    }
}

/// Starts of which one was answered before the other was asked for, and that stand the other way round.
fn out_of_order(said: &[Said], finals: &BTreeMap<&str, (usize, &Final)>) -> Vec<String> {
    let starts = said.iter().filter_map(|one| match &one.word {
        Word::Started { id, new: true, .. } => Some((finals.get(id.as_str())?.0, one, id)),
        _ => None,
    });
    let mut starts: Vec<_> = starts.collect();
    starts.sort_by_key(|(place, ..)| *place);
    let mut problems = Vec::new();
    let mut latest: Option<(u64, &String)> = None;
    for (_, one, id) in starts {
        if let Some((asked, before)) = latest.filter(|(asked, _)| *asked > one.answered) {
            problems.push(format!(
                "order: {id} was acknowledged at {}, {before} asked for at {asked}, and stands before it",
                one.answered
            ));
        }
        if latest.is_none_or(|(asked, _)| one.asked > asked) {
            latest = Some((one.asked, id));
        }
    }
    problems
}

/// Reads that lack what was acknowledged, or read, before they were asked for.
fn unseen(said: &[Said]) -> Vec<String> {
    let mut of: BTreeMap<&str, Vec<&Said>> = BTreeMap::new();
    for one in said {
        let (Word::Started { id, .. } | Word::Reported { id } | Word::Stopped { id } | Word::Read { id, .. }) =
            &one.word;
        of.entry(id).or_default().push(one);
    }
    let mut problems = Vec::new();
    for (id, all) in of {
        for read in &all {
            let Word::Read { events, .. } = &read.word else {
                continue;
            };
            for before in all.iter().filter(|before| before.answered < read.asked) {
                let has = |kind: &str| events.iter().any(|event| event.ends_with(kind));
                let seen = match &before.word {
                    Word::Started { .. } => !events.is_empty(),
                    Word::Reported { .. } => has("TaskSucceeded"),
                    Word::Stopped { .. } => has("ExecutionStopped"),
                    Word::Read { events: earlier, .. } => events.len() >= earlier.len(),
                };
                if !seen {
                    problems.push(format!(
                        "{id}: {} does not show what {} said before: {:?}",
                        read.node, before.node, before.word
                    ));
                }
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(name: &str, kinds: &[&str]) -> Final {
        Final {
            id: format!("id-{name}"),
            flow: "f".to_owned(),
            name: name.to_owned(),
            events: (1..)
                .zip(kinds)
                .map(|(number, kind)| format!("{number} {kind}"))
                .collect(),
        }
    }

    fn said(asked: u64, answered: u64, word: Word) -> Said {
        Said {
            node: "a",
            asked,
            answered,
            word,
        }
    }

    fn started(name: &str) -> Word {
        Word::Started {
            id: format!("id-{name}"),
            flow: "f".to_owned(),
            name: name.to_owned(),
            new: true,
        }
    }

    fn read(last: &Final, events: usize) -> Word {
        Word::Read {
            id: last.id.clone(),
            events: last.events[..events].to_vec(),
        }
    }

    const KINDS: &[&str] = &[
        "ExecutionStarted",
        "TaskScheduled",
        "TaskSucceeded",
        "ExecutionSucceeded",
    ];

    #[test]
    fn what_fits_is_no_problem() {
        let (x, y) = (last("x", KINDS), last("y", KINDS));
        let words = [
            said(0, 5, started("x")),
            said(3, 9, started("y")),
            said(6, 7, read(&x, 2)),
            said(8, 9, Word::Reported { id: x.id.clone() }),
            said(10, 11, read(&x, 4)),
        ];
        assert_eq!(
            check(&words, &[y.clone(), x.clone()]),
            Vec::<String>::new(),
            "they overlap"
        );
        assert_eq!(check(&words, &[x, y]), Vec::<String>::new());
    }

    /// One problem, in which this word stands.
    fn broken(words: &[Said], finals: &[Final], word: &str) {
        let problems = check(words, finals);
        assert!(
            problems.len() == 1 && problems[0].contains(word),
            "{word}: {problems:?}"
        );
    }

    #[test]
    fn each_law_is_broken_alone() {
        let (x, y) = (last("x", KINDS), last("y", KINDS));
        let all = [x.clone(), y.clone()];
        // An answer before the commit, and an owner that died.
        broken(&[said(0, 5, started("z"))], &all, "lost");
        let twin = Final {
            id: "other".to_owned(),
            ..x.clone()
        };
        broken(&[], &[x.clone(), twin], "doubled");
        let reported = said(0, 5, Word::Reported { id: x.id.clone() });
        broken(std::slice::from_ref(&reported), &[last("x", &KINDS[..2])], "0 times");
        let twice = last("x", &["ExecutionStarted", "TaskSucceeded", "TaskSucceeded"]);
        broken(std::slice::from_ref(&reported), &[twice], "2 times");
        let stopped = said(0, 5, Word::Stopped { id: x.id.clone() });
        broken(&[stopped], &all, "ExecutionStopped");
        // An owner that stood still went on beside the next one.
        let fork = said(0, 5, read(&last("x", &["ExecutionStarted", "TaskFailed"]), 2));
        broken(&[fork], &all, "no beginning");
        let words = [said(0, 5, started("x")), said(6, 9, started("y"))];
        broken(&words, &[y, x.clone()], "order");
        // Reads from a standby of the database that is behind.
        broken(
            &[said(0, 5, started("x")), said(6, 7, read(&x, 0))],
            &all,
            "does not show",
        );
        broken(&[reported, said(6, 7, read(&x, 2))], &all, "does not show");
        broken(
            &[said(0, 1, read(&x, 3)), said(6, 7, read(&x, 2))],
            &all,
            "does not show",
        );
    }
}
