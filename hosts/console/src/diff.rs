//! What is gone and what is new from one text to another, line by line.

/// Of more lines that differ, no comparison is made.
const COMPARED: usize = 1_500;
/// So many lines around a change are shown.
const AROUND: usize = 3;

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Same,
    Gone,
    New,
    /// Some lines are left out here, all the same.
    Left,
}

impl Change {
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Same => " ",
            Self::Gone => "-",
            Self::New => "+",
            Self::Left => "…",
        }
    }

    /// Whether the line is one of those that differ.
    pub(crate) fn differs(&self) -> bool {
        matches!(self, Self::Gone | Self::New)
    }
}

/// A line, and what became of it.
pub(crate) type Line = (Change, String);

/// The lines of both texts; none where too many differ.
pub(crate) fn compared(before: &str, after: &str) -> Vec<Line> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let first = old.iter().zip(&new).take_while(same).count();
    let rest = old.len().min(new.len()) - first;
    let last = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(rest)
        .take_while(same)
        .count();
    let middle = |lines: &[&'_ str]| -> Vec<String> {
        let until = lines.len() - last;
        let lines = lines.get(first..until).unwrap_or_default();
        lines.iter().map(|line| (*line).to_owned()).collect()
    };
    let (gone, came) = (middle(&old), middle(&new));
    if gone.len() > COMPARED || came.len() > COMPARED {
        return Vec::new();
    }
    let kept = |line: &&str| (Change::Same, (*line).to_owned());
    let begin = old.iter().take(first).map(kept);
    let end = old.iter().skip(old.len() - last).map(kept);
    begin.chain(differing(&gone, &came)).chain(end).collect()
}

fn differing(old: &[String], new: &[String]) -> Vec<Line> {
    // How many lines are the same from each pair of lines on.
    let width = new.len() + 1;
    let mut same = vec![0_u32; (old.len() + 1) * width];
    let get = |same: &[u32], a: usize, b: usize| same.get(a * width + b).copied().unwrap_or(0);
    for (a, line) in old.iter().enumerate().rev() {
        for (b, other) in new.iter().enumerate().rev() {
            let best = match line == other {
                true => get(&same, a + 1, b + 1) + 1,
                false => get(&same, a + 1, b).max(get(&same, a, b + 1)),
            };
            if let Some(cell) = same.get_mut(a * width + b) {
                *cell = best;
            }
        }
    }
    let (mut a, mut b, mut lines) = (0, 0, Vec::new());
    loop {
        match (old.get(a), new.get(b)) {
            (None, None) => return lines,
            (Some(line), Some(other)) if line == other => {
                lines.push((Change::Same, line.clone()));
                a += 1;
                b += 1;
            }
            (Some(line), other) if other.is_none() || get(&same, a + 1, b) >= get(&same, a, b + 1) => {
                lines.push((Change::Gone, line.clone()));
                a += 1;
            }
            (_, Some(other)) => {
                lines.push((Change::New, other.clone()));
                b += 1;
            }
            (Some(_), None) => return lines,
        }
    }
}

/// The lines that differ, with some around them.
pub(crate) fn hunks(lines: Vec<Line>) -> Vec<Line> {
    let changed: Vec<usize> = (0..)
        .zip(&lines)
        .filter(|(_, (change, _))| change.differs())
        .map(|(place, _)| place)
        .collect();
    let is_near = |place: usize| {
        let next = changed.partition_point(|other| *other + AROUND < place);
        changed.get(next).is_some_and(|other| other.abs_diff(place) <= AROUND)
    };
    let mut shown: Vec<Line> = Vec::new();
    for (place, line) in lines.into_iter().enumerate() {
        if is_near(place) {
            shown.push(line);
        } else if shown.last().is_none_or(|(change, _)| *change != Change::Left) {
            shown.push((Change::Left, String::new()));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(lines: &[Line]) -> String {
        lines.iter().map(|(change, _)| change.sign()).collect()
    }

    #[test]
    fn lines_are_gone_or_new() {
        let told = compared("{\n  a\n  b\n}", "{\n  a\n  c\n}");
        assert_eq!(signs(&told), "  -+ ");
        assert_eq!(told[2].1, "  b");
        assert_eq!(signs(&compared("", "x\ny")), "++");
        assert_eq!(signs(&compared("a\na\na", "a\na")), "  -");
        assert!(compared(&"x\n".repeat(COMPARED + 1), "y").is_empty());
        assert_eq!(compared(&"x\n".repeat(9_000), &"x\n".repeat(9_001)).len(), 9_001);
    }

    #[test]
    fn lines_far_from_a_change_are_left_out() {
        let numbered = |changed: usize| -> String {
            (0..20)
                .map(|line| {
                    if line == changed {
                        "!\n".to_owned()
                    } else {
                        format!("{line}\n")
                    }
                })
                .collect()
        };
        let told = hunks(compared(&numbered(99), &numbered(10)));
        assert_eq!(signs(&told), "…   -+   …");
        assert!(
            hunks(compared("a\nb", "a\nb"))
                .iter()
                .all(|(change, _)| *change == Change::Left)
        );
    }
}
