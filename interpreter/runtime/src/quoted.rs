//! What somebody wrote, said back in an error.

/// Characters of what somebody wrote that are said back.
const QUOTED: usize = 64;

/// What somebody wrote, in backquotes, as far as it helps to see it.
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
