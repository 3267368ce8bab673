//! A cache that keeps repeated words, mostly keys, only once.

use crate::value::Text;

/// The places for words. The number of a place is made of the word's length and ends.
const SLOTS: usize = 256;
/// The maximum length of a cached word. Longer words are rarely the same.
const MAX_STRING_BYTES: usize = 24;

/// The words read last, one in each place. Words with the same place replace each other, so chosen
/// words can make the cache useless but not slow.
pub(super) struct StringCache(Vec<Text>);

impl Default for StringCache {
    fn default() -> Self {
        Self(vec![Text::default(); SLOTS])
    }
}

impl StringCache {
    /// A text without escapes, shared with the previous one if it is the same.
    pub(super) fn shared(&mut self, word: &str) -> Text {
        let place = match word.as_bytes() {
            [first, .., before, last] if word.len() <= MAX_STRING_BYTES => {
                word.len() * 59 + usize::from(*first) * 31 + usize::from(*before) * 17 + usize::from(*last)
            }
            _ => return Text::plain(word),
        };
        match self.0.get_mut(place % SLOTS) {
            Some(stored) if stored.as_str() == word => stored.clone(),
            Some(stored) => {
                *stored = Text::plain(word);
                stored.clone()
            }
            None => Text::plain(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_was_written() {
        let mut words = StringCache::default();
        let texts = [
            "name",
            "type",
            "nbme",
            "",
            "x",
            "äöü",
            "name",
            "step17",
            "step71",
            "type",
            "a longer text than is kept",
        ];
        for _ in 0..3 {
            for text in texts {
                let word = words.shared(text);
                assert_eq!((word.as_str(), word.json_len()), (text, text.len() + 2));
            }
        }
        let (one, other) = (words.shared("target"), words.shared("target"));
        assert!(std::ptr::eq(one.as_str(), other.as_str()));
    }
}
