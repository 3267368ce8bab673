//! Strings in quotes, as in paths and conditions.

/// The rules of a string, in addition to JSON's own escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// As in RFC 9535: only the string's own quote may be escaped, and control characters must be
    /// escaped.
    Path,
    /// As in conditions: `\"` is an escape in both kinds of quotes, `\'` in single ones, and any
    /// character may stand unescaped.
    Condition,
}

/// An error in a string, and its place in the whole text.
#[derive(Clone, Debug)]
pub struct LiteralError {
    /// Where, in bytes from the start of the text.
    pub offset: usize,
    /// The number of bytes concerned.
    pub len: usize,
    /// The error.
    pub message: String,
    /// The advice.
    pub help: Option<&'static str>,
}

impl LiteralError {
    fn new(offset: usize, len: usize, message: impl Into<String>) -> Self {
        Self {
            offset,
            len,
            message: message.into(),
            help: None,
        }
    }
}

/// Reads the string whose opening quote, `"` or `'`, is the byte at `start`. Returns its value and
/// the offset after its closing quote.
///
/// # Errors
///
/// A [`LiteralError`] with the place if the string is not closed or has a wrong escape.
pub fn read(text: &str, start: usize, rules: Rules) -> Result<(String, usize), LiteralError> {
    let rest = text.get(start..).unwrap_or_default();
    let mut chars = rest.char_indices();
    let quote = chars.next().map_or('"', |(_, quote)| quote);
    let mut said = String::new();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return Ok((said, start + at + 1));
        }
        if c < ' ' && rules == Rules::Path {
            let message = format!("control character U+{:04X} stands bare in a string", u32::from(c));
            return Err(LiteralError {
                help: Some("write it as an escape like `\\n` or `\\u0009`"),
                ..LiteralError::new(start + at, 1, message)
            });
        }
        if c != '\\' {
            said.push(c);
            continue;
        }
        let (escaped, len) =
            escape(rest.get(at..).unwrap_or_default(), quote, rules).map_err(|fault| LiteralError {
                offset: start + at,
                ..fault
            })?;
        said.push(escaped);
        // The backslash is already taken; each other character of an escape is one byte.
        for _ in 1..len {
            chars.next();
        }
    }
    Err(LiteralError {
        help: Some("close it with the quote it began with"),
        ..LiteralError::new(start, rest.len(), "the string has no end")
    })
}

/// The character an escape stands for and the escape's length; `text` starts at its backslash.
fn escape(text: &str, quote: char, rules: Rules) -> Result<(char, usize), LiteralError> {
    let Some(letter) = text.chars().nth(1) else {
        return Err(LiteralError::new(0, 1, "the string ends in a backslash"));
    };
    let said = match letter {
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        '/' | '\\' => letter,
        '"' if quote == '"' || rules == Rules::Condition => letter,
        '\'' if quote == '\'' => letter,
        'u' => return unicode(text),
        _ => {
            return Err(LiteralError {
                help: Some("the escapes are `\\b`, `\\f`, `\\n`, `\\r`, `\\t`, `\\/`, `\\\\`, `\\uXXXX` and the quote"),
                ..LiteralError::new(0, 1 + letter.len_utf8(), format!("`\\{letter}` is no escape"))
            });
        }
    };
    Ok((said, 2))
}

/// `\uXXXX`, or two of them that make a surrogate pair.
fn unicode(text: &str) -> Result<(char, usize), LiteralError> {
    let unit = |from: usize| -> Option<u32> {
        let digits = text.get(from..from + 6)?.strip_prefix("\\u")?;
        let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    };
    let Some(first) = unit(0) else {
        return Err(LiteralError::new(0, 2, "`\\u` needs four hexadecimal digits"));
    };
    if let Some(said) = char::from_u32(first) {
        return Ok((said, 6));
    }
    // The rest is a surrogate; only a high one followed by a low one has a meaning.
    match (first, unit(6)) {
        (0xD800..=0xDBFF, Some(second @ 0xDC00..=0xDFFF)) => {
            char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00)).map(|said| (said, 12))
        }
        _ => None,
    }
    .ok_or_else(|| LiteralError {
        help: Some("characters above U+FFFF are two escapes, a high and a low surrogate"),
        ..LiteralError::new(0, 6, "half of a surrogate pair")
    })
}
