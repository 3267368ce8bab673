//! `name` and `dependsOn` of branches: a graph without cycles (section "graphs").

use super::Checker;
use super::cursor::Cursor;
use super::parallel::branch_number;
use crate::diagnostics::Code;
use crate::value::Text;
use rustc_hash::FxHashSet;
use std::collections::HashMap;

/// A branch's name and the branches it waits for.
pub(super) type Dependencies = (Option<Text>, Vec<u32>);

impl Checker<'_> {
    /// Names and dependencies of all branches, one entry a branch.
    pub(super) fn depends(&self, branches: &Cursor<'_>) -> Vec<Dependencies> {
        let mut names: HashMap<Text, usize> = HashMap::default();
        let mut all: Vec<Dependencies> = Vec::new();
        for (index, branch) in branches.entries().enumerate() {
            let name = branch
                .member("name")
                .and_then(|cursor| self.branch_name(&cursor, index, &mut names, branches));
            all.push((name, Vec::new()));
        }
        for (index, branch) in branches.entries().enumerate() {
            let on = branch
                .member("dependsOn")
                .map(|cursor| self.depends_on(&cursor, index, &names));
            if let (Some(on), Some(entry)) = (on, all.get_mut(index)) {
                entry.1 = on;
            }
        }
        self.check_cycles(branches, &all);
        all
    }

    fn branch_name(
        &self,
        cursor: &Cursor<'_>,
        index: usize,
        names: &mut HashMap<Text, usize>,
        branches: &Cursor<'_>,
    ) -> Option<Text> {
        let name = self.filled(cursor)?;
        self.check_identifier(cursor, &name);
        if let Some(&first) = names.get(&name) {
            let found = cursor.problem(Code::DuplicateBranch, format!("there is another branch named `{name}`"));
            self.report(match branches.entries().nth(first) {
                Some(first) => found.label(first.head(), "the first one is here"),
                None => found,
            });
        } else {
            names.insert(name.clone(), index);
        }
        Some(name)
    }

    fn depends_on(&self, cursor: &Cursor<'_>, own: usize, names: &HashMap<Text, usize>) -> Vec<u32> {
        if !self.is_list(cursor, "branch names") {
            return Vec::new();
        }
        let mut on: Vec<u32> = Vec::new();
        let mut seen = FxHashSet::default();
        for item in cursor.items().take_while(|_| !self.is_hopeless()) {
            let Some(name) = self.filled(&item) else {
                continue;
            };
            match names.get(&name) {
                None => self.unknown_dependency(&item, &name, names),
                Some(&index) if index == own => {
                    let message = format!("`{name}` waits for itself and never starts");
                    self.report(item.problem(Code::DependsOnItself, message));
                }
                Some(&index) => {
                    let index = branch_number(index);
                    if seen.insert(index) {
                        on.push(index);
                    } else {
                        self.report(item.problem(Code::DependencyTwice, format!("`{name}` is named twice")));
                    }
                }
            }
        }
        on
    }

    fn unknown_dependency(&self, cursor: &Cursor<'_>, name: &str, names: &HashMap<Text, usize>) {
        let found = cursor.problem(Code::UnknownDependency, format!("there is no branch named `{name}`"));
        let near = self.near(name, names.len(), || {
            // Sorted, because a hash map's order must not show.
            let mut known: Vec<&str> = names.keys().map(Text::as_str).collect();
            known.sort_unstable();
            known
        });
        self.report(match near {
            Some(near) => self.did_you_mean(found, cursor, Self::perhaps(near)),
            None => found.help("it must be the `name` of a branch of the same parallel"),
        });
    }

    fn check_cycles(&self, branches: &Cursor<'_>, all: &[Dependencies]) {
        for cycle in cycles(all) {
            let names: Vec<&str> = cycle
                .iter()
                .chain(cycle.first())
                .filter_map(|&index| all.get(index)?.0.as_deref())
                .collect();
            let first = cycle
                .iter()
                .min()
                .and_then(|&first| branches.entries().nth(first).map(|cursor| (first, cursor.head())));
            let Some((index, span)) = first else { continue };
            let message = format!("these branches wait for each other: `{}`", names.join("` → `"));
            let mut found = branches.problem(Code::DependencyCycle, message);
            found.span = span;
            found.pointer = format!("{}/{index}", found.pointer);
            self.report(found.help("take one of the dependencies away"));
        }
    }
}

/// How far the walk over a branch has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Walk {
    Not,
    OnTheWay,
    Done,
}

/// Cycles, each as a list of its branches: at most one for each branch where the walk starts again.
fn cycles(all: &[Dependencies]) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    let mut walked = vec![Walk::Not; all.len()];
    for start in 0..all.len() {
        if walked.get(start) != Some(&Walk::Not) {
            continue;
        }
        let mut cycle: Option<Vec<usize>> = None;
        set(&mut walked, start, Walk::OnTheWay);
        // Each frame: a branch, and how many of its dependencies were looked at.
        let mut way: Vec<(usize, usize)> = vec![(start, 0)];
        while let Some((branch, looked)) = way.last_mut() {
            let next = all.get(*branch).and_then(|(_, on)| on.get(*looked));
            *looked += 1;
            let Some(next) = next.map(|&next| next as usize) else {
                set(&mut walked, *branch, Walk::Done);
                way.pop();
                continue;
            };
            match walked.get(next) {
                Some(Walk::Not) => {
                    set(&mut walked, next, Walk::OnTheWay);
                    way.push((next, 0));
                }
                Some(Walk::OnTheWay) if cycle.is_none() => {
                    let branches = way.iter().map(|(branch, _)| *branch);
                    cycle = Some(branches.skip_while(|branch| *branch != next).collect());
                }
                _ => {}
            }
        }
        found.extend(cycle);
    }
    found
}

fn set(walked: &mut [Walk], index: usize, walk: Walk) {
    if let Some(entry) = walked.get_mut(index) {
        *entry = walk;
    }
}
