//! Quoting the user's words: a message stays short even if the word is long.

use std::borrow::Cow;

/// Characters of a quoted word; longer ones are cut.
pub const QUOTED_CHARS: usize = 64;

/// The word as a message quotes it: its first characters, and `…` if it is longer.
pub fn shortened(word: &str) -> Cow<'_, str> {
    match word.char_indices().nth(QUOTED_CHARS) {
        None => Cow::Borrowed(word),
        Some((end, _)) => Cow::Owned(format!("{}…", word.get(..end).unwrap_or_default())),
    }
}

/// The word in backquotes, cut as [`shortened`] does.
pub fn quoted(word: &str) -> String {
    format!("`{}`", shortened(word))
}

/// The text with its parts in backquotes cut as [`shortened`] does.
pub(super) fn with_short_quotes(text: &str) -> Cow<'_, str> {
    if text.len() <= QUOTED_CHARS {
        return Cow::Borrowed(text);
    }
    let cut: Vec<Cow<'_, str>> = text
        .split('`')
        .enumerate()
        .map(|(index, part)| {
            if index % 2 == 1 {
                shortened(part)
            } else {
                Cow::Borrowed(part)
            }
        })
        .collect();
    Cow::Owned(cut.join("`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_cut_at_a_character() {
        let fits = "é".repeat(QUOTED_CHARS);
        assert_eq!(shortened(&fits), fits);
        assert!(matches!(shortened("word"), Cow::Borrowed("word")));
        assert_eq!(shortened(&format!("{fits}x")), format!("{fits}…"));
        assert_eq!(quoted("word"), "`word`");
        assert_eq!(quoted(&format!("{fits}x")), format!("`{fits}…`"));
        let text = format!("`{fits}x` is no `name`");
        assert_eq!(with_short_quotes(&text), format!("`{fits}…` is no `name`"));
        let huge = shortened(&"😀".repeat(1_000_000)).into_owned();
        assert_eq!(huge.chars().count(), QUOTED_CHARS + 1);
    }
}
