//! Changes of one table, put together so that few statements make them.
//!
//! A statement makes many changes of one kind at once, and does not see what it changes itself. So a row stands in a statement
//! once, and what happens to the same row later stands in a later statement. Changes of different rows may change places.

use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::Hash;

/// Changes of kind `K`, each of a row of a group. What happens to a group stays in order.
pub(crate) struct Stages<K, G, R, C> {
    all: Vec<Stage<K, R, C>>,
    /// The last stage in which something happens to a group.
    last: FxHashMap<G, usize>,
}

/// Changes that one statement makes.
pub(crate) struct Stage<K, R, C> {
    pub kind: K,
    pub changes: Vec<C>,
    rows: FxHashSet<R>,
}

impl<K, G, R, C> Default for Stages<K, G, R, C> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            last: FxHashMap::default(),
        }
    }
}

impl<K: Copy + PartialEq, G: Eq + Hash, R: Eq + Hash, C> Stages<K, G, R, C> {
    pub(crate) fn add(&mut self, kind: K, group: G, row: R, change: C) {
        let last = self.last.get(&group).copied();
        let same = |stage: &Stage<K, R, C>| stage.kind == kind && !stage.rows.contains(&row);
        let from = match last {
            Some(last) if self.all.get(last).is_some_and(same) => last,
            Some(last) => last + 1,
            None => 0,
        };
        let found = self.all.iter().skip(from).position(same);
        let at = found.map_or(self.all.len(), |further| from + further);
        if at == self.all.len() {
            self.all.push(Stage {
                kind,
                changes: Vec::new(),
                rows: FxHashSet::default(),
            });
        }
        if let Some(stage) = self.all.get_mut(at) {
            stage.changes.push(change);
            stage.rows.insert(row);
        }
        self.last.insert(group, at);
    }

    pub(crate) fn stages(&self) -> &[Stage<K, R, C>] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages(changes: &[(char, u8)]) -> Vec<String> {
        let mut stages = Stages::default();
        for &(kind, row) in changes {
            stages.add(kind, row, row, row.to_string());
        }
        let all = stages.stages();
        all.iter()
            .map(|stage| format!("{}{}", stage.kind, stage.changes.concat()))
            .collect()
    }

    #[test]
    fn changes_of_different_rows_come_together() {
        assert_eq!(stages(&[('+', 1), ('-', 2), ('+', 3), ('-', 4)]), ["+13", "-24"]);
    }

    #[test]
    fn changes_of_a_row_stay_in_order() {
        assert_eq!(stages(&[('+', 1), ('-', 1), ('+', 1), ('+', 2)]), ["+12", "-1", "+1"]);
        assert_eq!(stages(&[('+', 1), ('+', 1), ('-', 1)]), ["+1", "+1", "-1"]);
        assert_eq!(stages(&[('-', 1), ('+', 2), ('-', 2), ('+', 1)]), ["-1", "+21", "-2"]);
    }
}
