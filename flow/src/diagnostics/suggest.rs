//! "Did you mean": the known word nearest to a mistyped one.

/// The maximum length of a word that is compared, in characters. Longer words are hardly typing
/// mistakes.
const MAX_WORD_CHARS: usize = 64;

/// The candidate nearest to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nearest<'a> {
    /// The candidate.
    pub word: &'a str,
    /// Whether it is so near that nothing else can be meant, and no other one is equally near.
    pub alone: bool,
}

/// The maximum number of changes for a candidate to be taken without asking.
const FEW: usize = 2;

/// The candidate nearest to a word, if one is near enough to be what was meant: one change (a letter too many, too few,
/// wrong, or two swapped) for every three letters, ignoring case. Of equal candidates, the first
/// one.
pub fn nearest<'a, C>(word: &str, candidates: C) -> Option<&'a str>
where
    C: IntoIterator<Item = &'a str>,
{
    nearest_alone(word, candidates).map(|nearest| nearest.word)
}

/// The nearest candidate, and whether no other is equally near.
pub fn nearest_alone<'a, C>(word: &str, candidates: C) -> Option<Nearest<'a>>
where
    C: IntoIterator<Item = &'a str>,
{
    let word = letters(word)?;
    let mut best: Option<(usize, Nearest<'a>)> = None;
    for candidate in candidates {
        let Some(other) = letters(candidate) else { continue };
        let allowed = word.len().max(other.len()) / 3;
        let bound = best.map_or(allowed, |(changes, _)| allowed.min(changes));
        if word.len().abs_diff(other.len()) > bound {
            continue;
        }
        let changes = distance(&word, &other);
        match &mut best {
            Some((least, nearest)) if *least == changes => nearest.alone &= nearest.word == candidate,
            _ if changes <= bound => {
                let alone = changes <= FEW;
                best = Some((changes, Nearest { word: candidate, alone }));
            }
            _ => {}
        }
    }
    best.map(|(_, nearest)| nearest)
}

/// How many changes turn one word into the other, ignoring case; `None` for more than `most`.
pub fn changes(word: &str, other: &str, most: usize) -> Option<usize> {
    let (word, other) = (letters(word)?, letters(other)?);
    if word.len().abs_diff(other.len()) > most {
        return None;
    }
    Some(distance(&word, &other)).filter(|changes| *changes <= most)
}

/// The letters in one case, unless there are too many of them.
fn letters(word: &str) -> Option<Vec<char>> {
    let letters: Vec<char> = word
        .chars()
        .flat_map(char::to_lowercase)
        .take(MAX_WORD_CHARS + 1)
        .collect();
    (letters.len() <= MAX_WORD_CHARS).then_some(letters)
}

/// The Damerau-Levenshtein distance of two words, where no letter is changed twice.
fn distance(a: &[char], b: &[char]) -> usize {
    // Rows of the usual table: two above, one above, and the one being filled.
    let mut older: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    let mut before_a = None;
    for (row, &letter_a) in a.iter().enumerate() {
        let mut current = vec![row + 1];
        let mut before_b = None;
        for (column, &letter_b) in b.iter().enumerate() {
            let at = |table: &[usize], index: usize| table.get(index).copied().unwrap_or(usize::MAX / 2);
            let changed = at(&above, column) + usize::from(letter_a != letter_b);
            let mut least = changed.min(at(&above, column + 1) + 1).min(at(&current, column) + 1);
            if before_a == Some(letter_b) && before_b == Some(letter_a) {
                least = least.min(at(&older, column.saturating_sub(1)) + 1);
            }
            current.push(least);
            before_b = Some(letter_b);
        }
        before_a = Some(letter_a);
        older = std::mem::replace(&mut above, current);
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: [&str; 6] = ["name", "type", "resourceArn", "inputMappings", "outputMappings", "end"];

    #[test]
    fn typing_mistakes_are_recognised() {
        for (word, meant) in [
            ("nmae", Some("name")),
            ("Name", Some("name")),
            ("resourceARN", Some("resourceArn")),
            ("resouceArn", Some("resourceArn")),
            ("inputMapping", Some("inputMappings")),
            ("ouputMapings", Some("outputMappings")),
            ("ned", Some("end")),
            ("ed", Some("end")),
            ("colour", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, FIELDS), meant, "{word}");
        }
        assert_eq!(nearest(&"name".repeat(1000), FIELDS), None);
    }

    #[test]
    fn the_nearest_wins_and_among_equals_the_first() {
        assert_eq!(nearest("step3", ["step1", "step2", "step33"]), Some("step1"));
        assert_eq!(nearest("step3", ["step12", "step33", "step3x"]), Some("step33"));
        assert_eq!(nearest("end", ["END", "end"]), Some("END"));
    }

    #[test]
    fn a_word_is_alone_only_where_no_other_is_as_near() {
        let alone = |word, candidates: &[&'static str]| nearest_alone(word, candidates.iter().copied()).unwrap().alone;
        assert!(alone("nmae", &FIELDS));
        assert!(alone("step11", &["step1", "elsewhere"]));
        assert!(!alone("step3", &["step1", "step2"]));
        assert!(!alone("a", &["A", "a"]), "letters are compared without case");
        assert!(!alone("timeSeconds", &["timeoutSeconds"]), "three changes are many");
    }

    #[test]
    fn distances() {
        for (a, b, changes) in [
            ("", "abc", 3),
            ("abc", "", 3),
            ("ab", "ba", 1),
            ("kitten", "sitting", 3),
            ("abcd", "badc", 2),
        ] {
            let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            assert_eq!(distance(&a, &b), changes);
        }
    }
}
