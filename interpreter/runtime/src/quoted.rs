//! Quoting text from outside in an error.

/// How many characters are quoted.
const QUOTED: usize = 64;

/// The beginning of a text, in backquotes.
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        None => format!("`{text}`"),
        Some((end, _)) => format!("`{}…`", text.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_of_what_is_written_is_said_back() {
        assert_eq!(quoted("short"), "`short`");
        let long = "é".repeat(1_000_000);
        assert_eq!(quoted(&long), format!("`{}…`", "é".repeat(QUOTED)));
    }
}
