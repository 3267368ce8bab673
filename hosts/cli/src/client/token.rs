//! The token for a server. It is sent to the server, and never shown.

use crate::definitions::{read_text, without_mark};
use crate::exit::Exit;
use crate::output::{Output, bad};
use std::path::Path;

#[derive(Clone)]
pub(super) struct Token(String);

impl Token {
    /// The token in a file; space around it is not part of it.
    pub(super) fn read(file: &Path, output: Output) -> Result<Self, Exit> {
        let token = read_text(file, output)?;
        match without_mark(&token).trim() {
            "" => Err(bad(
                output,
                &format!("`{}` is empty, but should have a token", file.display()),
                "",
            )),
            token => Ok(Self(token.to_owned())),
        }
    }

    /// Whether a header can contain it.
    pub(super) fn can_be_sent(&self) -> bool {
        self.0.bytes().all(|byte| byte.is_ascii_graphic())
    }

    /// The token itself.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Token {
    fn from(token: String) -> Self {
        Self(token.trim().to_owned())
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}
