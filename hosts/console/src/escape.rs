//! How text stands in a page: markup is escaped, and what cannot be seen or turns text around is shown as a sign.

use askama::filters::Escaper;
use std::fmt::{self, Write};

/// The escaper of all templates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page;

impl Escaper for Page {
    fn write_escaped_str<W: Write>(&self, mut to: W, text: &str) -> fmt::Result {
        text.chars()
            .try_for_each(|letter| self.write_escaped_char(&mut to, letter))
    }

    fn write_escaped_char<W: Write>(&self, mut to: W, letter: char) -> fmt::Result {
        match letter {
            '<' => to.write_str("&lt;"),
            '>' => to.write_str("&gt;"),
            '&' => to.write_str("&amp;"),
            '"' => to.write_str("&quot;"),
            '\'' => to.write_str("&#39;"),
            '\n' | '\t' => to.write_char(letter),
            letter if is_hidden(letter) => write!(to, "\u{27e8}U+{:04X}\u{27e9}", u32::from(letter)),
            letter => to.write_char(letter),
        }
    }
}

/// Whether a letter is invisible, or changes the direction of others.
pub(crate) fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// JSON that says the same in letters that can all be seen, for a field that is sent back.
pub(crate) fn visible_json(json: &str) -> String {
    let mut visible = String::with_capacity(json.len());
    for letter in json.chars() {
        if is_hidden(letter) && letter != '\n' {
            // None of these letters is outside of the first plane.
            visible.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            visible.push(letter);
        }
    }
    visible
}

/// A definition for a field that is sent back: nothing in it may look like something else. JSON says the same in letters that can
/// be seen; `None` for another text that has letters which can't.
pub(crate) fn editable(definition: &str) -> Option<String> {
    let hides = |letter: char| is_hidden(letter) && !matches!(letter, '\n' | '\r' | '\t');
    match (definition.contains(hides), definition.trim_start().starts_with('{')) {
        (false, _) => Some(definition.to_owned()),
        (true, false) => None,
        (true, true) => {
            let letters = definition.chars().map(|letter| match hides(letter) {
                true => format!("\\u{:04x}", u32::from(letter)),
                false => letter.to_string(),
            });
            Some(letters.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut shown = String::new();
        Page.write_escaped_str(&mut shown, text).unwrap();
        shown
    }

    #[test]
    fn hostile_text_is_shown_as_it_is() {
        assert_eq!(
            shown("<b a=\"1\" c='&'>"),
            "&lt;b a=&quot;1&quot; c=&#39;&amp;&#39;&gt;"
        );
        assert_eq!(shown("a\u{202e}b\u{0}\u{200b}"), "a⟨U+202E⟩b⟨U+0000⟩⟨U+200B⟩");
        assert_eq!(shown("星桥\n\t"), "星桥\n\t");
    }

    #[test]
    fn definition_in_a_field_hides_nothing() {
        assert_eq!(editable("{\n\t\"a\": 1\r\n}").as_deref(), Some("{\n\t\"a\": 1\r\n}"));
        assert_eq!(
            editable("{\"a\": \"x\u{202e}\"}").as_deref(),
            Some("{\"a\": \"x\\u202e\"}")
        );
        assert_eq!(editable("a: \u{202e}"), None);
    }

    #[test]
    fn json_says_the_same_in_letters_that_can_be_seen() {
        assert_eq!(visible_json("{\"a\": \"x\u{202e}\"\n}"), "{\"a\": \"x\\u202e\"\n}");
    }
}
