//! Finds the known name that a misspelt name meant.

use crate::diagnostics::changes;

/// The letters and digits of a word, as far as 64 bits can hold them.
#[derive(Clone, Copy)]
struct Letters(u64);

impl Letters {
    fn of(word: &str) -> Self {
        let bit = |letter: char| match letter.to_ascii_lowercase() {
            letter @ 'a'..='z' => Some(u32::from(letter) - u32::from('a')),
            digit @ '0'..='9' => Some(26 + u32::from(digit) - u32::from('0')),
            // The two cases of other letters may differ in more than a bit.
            _ => None,
        };
        Self(word.chars().filter_map(bit).fold(0, |all, bit| all | 1 << bit))
    }

    /// Whether this many changes can turn one into the other: each change removes one letter and
    /// adds one.
    fn may_be(self, other: Self, changes: u32) -> bool {
        (self.0 ^ other.0).count_ones() <= 2 * changes
    }
}

/// Longer words, in bytes, are hardly typing mistakes, and comparing many of them takes long.
const LONGEST: usize = 64;

/// The maximum number of changes that count as a typing mistake.
const MOST_CHANGES: u32 = 2;

/// The typical number of changes of a typing mistake in a word of this length.
fn usual(letters: usize) -> usize {
    match letters {
        0..=2 => 0,
        3..=7 => 1,
        _ => 2,
    }
}

/// The names that a word of these letters may have meant.
fn alike<'n>(word: &str, letters: Letters, names: impl Iterator<Item = &'n str>) -> impl Iterator<Item = &'n str> {
    let is_short = word.len() <= LONGEST;
    names.filter(move |name| is_short && name.len() <= LONGEST && Letters::of(name).may_be(letters, MOST_CHANGES))
}

/// The known name that is most similar to a misspelt one, if the known names are complete: the same
/// letters except for case and signs, or one or two changes.
pub(super) fn likely<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let letters_of_word = Letters::of(word);
    let mut best: Option<(usize, &str)> = None;
    for name in alike(word, letters_of_word, names) {
        let letters = word.chars().count().max(name.chars().count());
        let distance = match plain(word) == plain(name) && !name.is_empty() {
            true => Some(0),
            false => changes(word, name, usual(letters)),
        };
        if let Some(distance) = distance.filter(|distance| best.is_none_or(|least| (*distance, name) < least)) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

/// The name that was meant, where other names may exist too. Only a name that is hardly a word of its own counts as
/// misspelt: the same letters except for case and signs, or, in longer words, one letter too many
/// or too few, or two swapped letters, inside the word.
pub(super) fn surely<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let letters = Letters::of(word);
    let mut names = alike(word, letters, names);
    let same = |name: &&str| {
        if plain(word) == plain(name) && !word.is_empty() {
            return true;
        }
        let (a, b): (Vec<char>, Vec<char>) = (word.chars().collect(), name.chars().collect());
        let swapped = || {
            let (mut a, mut b) = (a.clone(), b.clone());
            a.sort_unstable();
            b.sort_unstable();
            a == b
        };
        let ends = a.first() == b.first() && a.last() == b.last();
        a.len().min(b.len()) >= 5 && ends && (a.len() != b.len() || swapped()) && changes(word, name, 1) == Some(1)
    };
    let first = names.find(same)?;
    Some(names.filter(same).fold(first, std::cmp::min))
}

/// The letters and digits of a name, in one case.
fn plain(name: &str) -> String {
    name.chars()
        .filter(|letter| letter.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_told_from_other_words() {
        let names = ["customer", "items", "orderId", "state", "zip"];
        for (word, meant, without_doubt) in [
            ("custmer", Some("customer"), Some("customer")),
            ("customre", Some("customer"), None),
            ("custoemr", Some("customer"), Some("customer")),
            ("custoner", Some("customer"), None),
            ("item", Some("items"), None),
            ("itmes", Some("items"), Some("items")),
            ("order_id", Some("orderId"), Some("orderId")),
            ("stage", Some("state"), None),
            ("zap", Some("zip"), None),
            ("amount", None, None),
            ("", None, None),
        ] {
            assert_eq!(likely(word, names.into_iter()), meant, "{word}");
            assert_eq!(surely(word, names.into_iter()), without_doubt, "{word}");
        }
    }
}
