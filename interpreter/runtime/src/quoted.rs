//! Quoting text from outside in an error.

/// How many characters are quoted.
const QUOTED_CHARS: usize = 64;

/// The beginning of a text, in backquotes.
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS) {
        None => format!("`{text}`"),
        Some((end, _)) => format!("`{}…`", text.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_short() {
        assert_eq!(quoted("short"), "`short`");
        let long = "é".repeat(1_000_000);
        assert_eq!(quoted(&long), format!("`{}…`", "é".repeat(QUOTED_CHARS)));
    }
}
