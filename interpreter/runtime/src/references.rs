//! Putting secrets and tokens into a call that is sent: in the places of their references, and nowhere else (section
//! "tasks").

use crate::secrets::Vault;
use crate::tokens::TokenKeys;
use starbridge_flow::graph::Pointer;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{CallPart, CallReference, EventId, Reference};

/// The replacements of references.
#[derive(Clone, Copy, Debug)]
pub struct Revealing<'a> {
    /// Gives the secrets.
    pub vault: &'a Vault,
    /// Sign the tokens.
    pub tokens: &'a TokenKeys,
    /// The name of the flow whose call it is.
    pub flow: &'a str,
}

impl Revealing<'_> {
    /// The value with these references replaced, each at its place. A place that does not hold its reference, because
    /// its source gave nothing, stays unchanged.
    ///
    /// # Errors
    ///
    /// Why a secret can't be had, for people.
    pub fn reveal<'a>(
        self,
        value: Value,
        references: impl IntoIterator<Item = (&'a Pointer, &'a Reference)>,
    ) -> Result<Value, String> {
        let mut revealed = value;
        for (at, reference) in references {
            if at.find(&revealed).and_then(Value::as_text) != Some(&reference.text()) {
                continue;
            }
            let known: Value = match reference {
                Reference::Secret(name) => self.vault.give(self.flow, name)?.reveal().into(),
                Reference::Token { execution, call } => self.tokens.sign(execution, *call).into(),
            };
            revealed = at.replaced(&revealed, known).unwrap_or(revealed);
        }
        Ok(revealed)
    }
}

/// The references in one part of a call.
pub fn references_in(references: &[CallReference], part: CallPart) -> impl Iterator<Item = (&Pointer, &Reference)> {
    references
        .iter()
        .filter(move |reference| reference.part == part)
        .map(|reference| (&reference.at, &reference.reference))
}

/// Writes references as JSON. They are stored beside a task of a queue.
pub(crate) fn write_references<'a>(references: impl IntoIterator<Item = (&'a Pointer, &'a Reference)>) -> Value {
    let written = references.into_iter().map(|(at, reference)| {
        let (word, what) = match reference {
            Reference::Secret(name) => ("secret", name.clone()),
            Reference::Token { execution, call } => ("token", Text::from(format!("{execution}/{call}"))),
        };
        let members = [("at", Text::from(at.to_string())), (word, what)];
        Value::Object(
            members
                .map(|(key, text)| (Text::from(key), text.into()))
                .into_iter()
                .collect(),
        )
    });
    Value::Array(written.collect())
}

/// Reads references that were written as JSON. Anything else is left out.
pub fn read_references(written: &Value) -> Vec<(Pointer, Reference)> {
    let read = |value: &Value| {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let at = Pointer::parse(text("at")?).ok()?;
        let reference = match (text("secret"), text("token")) {
            (Some(name), _) => Reference::Secret(name.into()),
            (None, token) => {
                let (execution, call) = token?.rsplit_once('/')?;
                Reference::Token {
                    execution: execution.into(),
                    call: EventId(call.parse().ok()?),
                }
            }
        };
        Some((at, reference))
    };
    let items = written.as_array().map(|array| array.values()).unwrap_or_default();
    items.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::SecretUse;
    use starbridge_ports::{Secret, Secrets};
    use std::sync::Arc;

    struct OneSecret;

    impl Secrets for OneSecret {
        fn get(&self, name: &str) -> Option<Secret> {
            (name == "KEY").then(|| Secret::new("canary"))
        }
    }

    fn known() -> (Vault, TokenKeys) {
        let tokens = TokenKeys::new(vec![[7; 32]]);
        let vault = Vault::new(Arc::new(OneSecret), SecretUse::default(), tokens.clone());
        (vault, tokens)
    }

    fn revealing<'a>(vault: &'a Vault, tokens: &'a TokenKeys) -> Revealing<'a> {
        Revealing {
            vault,
            tokens,
            flow: "f",
        }
    }

    fn value(json: &str) -> Value {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn references_are_revealed_only_at_their_places() {
        let (vault, tokens) = known();
        let revealing = revealing(&vault, &tokens);
        let secret = Reference::Secret("KEY".into());
        let token = Reference::Token {
            execution: "e".into(),
            call: EventId(4),
        };
        let data =
            value(r#"{"a":"secret://KEY","b":"secret://KEY","c":"task-token:e/4","d":"task-token:e/4","e":"x"}"#);
        let (a, c, e) = (Pointer::of(["a"]), Pointer::of(["c"]), Pointer::of(["e"]));
        let references = [(&a, &secret), (&c, &token), (&e, &secret)];
        let revealed = revealing.reveal(data, references).unwrap();
        let signed = tokens.sign("e", EventId(4));
        let expected = format!(r#"{{"a":"canary","b":"secret://KEY","c":"{signed}","d":"task-token:e/4","e":"x"}}"#);
        assert_eq!(revealed.to_json(), expected);

        let written = write_references(references);
        let read = read_references(&written);
        assert_eq!(read.iter().map(|(at, what)| (at, what)).collect::<Vec<_>>(), references);
    }

    #[test]
    fn secret_that_is_missing_is_named() {
        let (vault, tokens) = known();
        let revealing = revealing(&vault, &tokens);
        let (at, missing) = (Pointer::default(), Reference::Secret("NO".into()));
        let revealed = revealing.reveal("secret://NO".into(), [(&at, &missing)]);
        assert_eq!(revealed, Err("there is no secret `NO`".to_owned()));
    }
}
