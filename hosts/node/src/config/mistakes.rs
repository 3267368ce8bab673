//! What is wrong in the text of a configuration: its place, and the name that is near.

use starbridge_flow::diagnostics::nearest;

/// The error with its line, and the nearest name where one is not known.
pub(super) fn described(error: &toml::de::Error) -> String {
    let text = error.to_string();
    match meant(error.message()) {
        Some(meant) => format!("{}\ndid you mean `{meant}`?", text.trim_end()),
        None => text,
    }
}

/// The name that is meant by one that nobody knows, of those that are known: all stand in backquotes.
fn meant(message: &str) -> Option<&str> {
    let words = message.strip_prefix("unknown ")?;
    let mut quoted = words.split('`').skip(1).step_by(2);
    let unknown = quoted.next()?;
    nearest(unknown, quoted)
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn wrong(text: &str) -> String {
        Config::read(text, std::iter::empty()).unwrap_err()
    }

    #[test]
    fn a_name_that_is_not_known_has_its_line_and_the_nearest_one() {
        for (text, line, meant) in [
            ("[store]\npath = \"a\"\n[servr]\n", "line 3", "`server`"),
            ("[server]\nlisen = \"127.0.0.1:1\"\n", "line 2", "`listen`"),
            ("[log]\nformat = \"jsn\"\n", "line 2", "`json`"),
            ("[[tokens]]\nname = \"a\"\nsha265 = \"\"\n", "line 3", "`sha256`"),
        ] {
            let error = wrong(text);
            assert!(error.contains(line), "{error}");
            assert!(error.ends_with(&format!("did you mean {meant}?")), "{error}");
        }
    }

    #[test]
    fn a_value_of_another_kind_has_its_line() {
        let error = wrong("[runtime]\n\nowners = \"two\"\n");
        assert!(error.contains("line 3") && !error.contains("did you mean"), "{error}");
    }
}
