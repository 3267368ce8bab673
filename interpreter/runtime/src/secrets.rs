//! Secrets: which flow may use which, how calls get their values, and how they are redacted in answers (section
//! "tasks").

use crate::tokens::{TokenKeys, end_of_token};
use starbridge_flow::graph::{FaultKind, Flow, Parameters, Rollback, SecretReference, StepKind, Undo};
use starbridge_flow::value::{Array, Object, Text, Value};
use starbridge_machine::Reference;
use starbridge_ports::{LOG_BYTES, Outcome, Secret, Secrets};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The minimum length of a secret that is redacted, in characters. A shorter one would occur in
/// ordinary text.
const MIN_SECRET_CHARS: usize = 4;

/// Which flows may use which secrets.
#[derive(Clone, Debug, Default)]
pub struct SecretUse {
    /// Patterns of flow names, each with patterns of secret names; `*` stands for any characters. `None`: each flow
    /// may use all secrets that are not reserved.
    rules: Option<Vec<(String, Vec<String>)>>,
    /// Secrets of the host. Only their exact names allow them, not a pattern.
    reserved: BTreeSet<String>,
}

impl SecretUse {
    /// With rules, a flow may use what they allow and nothing else, even if there are no rules in the list. With
    /// `None`, it may use everything that is not `reserved`.
    pub fn new(rules: Option<Vec<(String, Vec<String>)>>, reserved: impl IntoIterator<Item = String>) -> Self {
        Self {
            rules,
            reserved: reserved.into_iter().collect(),
        }
    }

    /// Whether a flow may use a secret.
    pub fn allows(&self, flow: &str, secret: &str) -> bool {
        let reserved = self.reserved.contains(secret);
        let Some(rules) = &self.rules else {
            return !reserved;
        };
        let names = |pattern: &String| match reserved {
            true => pattern == secret,
            false => fits(pattern, secret),
        };
        let mut rules = rules.iter().filter(|(flows, _)| fits(flows, flow));
        rules.any(|(_, secrets)| secrets.iter().any(names))
    }
}

/// Whether a name matches a pattern in which `*` stands for any characters.
pub fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    true
}

/// Gives secrets to calls that may have them, and redacts them in answers.
pub struct Vault {
    source: Arc<dyn Secrets>,
    uses: SecretUse,
    /// Values that were given out, with the references that stand for them.
    given: RwLock<Given>,
    any: AtomicBool,
    /// Flows whose secrets are known, by name and hash of the definition.
    flows: Mutex<BTreeSet<(Text, Text)>>,
    tokens: TokenKeys,
}

/// Values that were given out, with the references that stand for them.
#[derive(Default)]
struct Given {
    /// The values as they occur in text.
    texts: BTreeMap<String, Text>,
    /// The values that are numbers.
    numbers: Vec<(Value, Text)>,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault(…)")
    }
}

impl Vault {
    /// A vault over this source of secrets. Task tokens signed with `tokens` are redacted too.
    pub fn new(source: Arc<dyn Secrets>, uses: SecretUse, tokens: TokenKeys) -> Self {
        Self {
            source,
            uses,
            given: RwLock::default(),
            any: AtomicBool::new(false),
            flows: Mutex::default(),
            tokens,
        }
    }

    /// The secret with this name, for a call of this flow.
    ///
    /// # Errors
    ///
    /// Why the flow can't have the secret, for people.
    pub fn give(&self, flow: &str, name: &str) -> Result<Secret, String> {
        if !self.uses.allows(flow, name) {
            return Err(format!(
                "the flow `{flow}` may not use the secret `{name}`: allow it under `[secrets.use]` in the configuration"
            ));
        }
        let secret = self.source.get(name);
        let secret = secret.ok_or_else(|| format!("there is no secret `{name}`"))?;
        if secret.reveal().chars().count() >= MIN_SECRET_CHARS {
            let known = |given: &Given| given.texts.contains_key(secret.reveal());
            if !known(&self.given.read().unwrap_or_else(PoisonError::into_inner)) {
                let reference = Reference::Secret(Text::from(name)).text();
                let mut given = self.given.write().unwrap_or_else(PoisonError::into_inner);
                let number = number_of(secret.reveal()).map(|number| (number, reference.clone()));
                given.numbers.extend(number);
                let forms = forms(secret.reveal()).map(|form| (form, reference.clone()));
                given.texts.extend(forms);
                self.any.store(true, Ordering::Release);
            }
        }
        Ok(secret)
    }

    /// Makes the secrets that a definition names known for redaction: an earlier process may have sent them with
    /// calls that are answered now.
    pub fn know(&self, name: &str, flow: &Flow) {
        let key = (Text::from(name), flow.hash.clone());
        let mut flows = self.flows.lock().unwrap_or_else(PoisonError::into_inner);
        if !flows.insert(key) {
            return;
        }
        drop(flows);
        for secret in secrets_of(flow) {
            // A secret that is forbidden to the flow, or that is gone, was not sent either.
            let _ = self.give(name, &secret.name);
        }
    }

    /// This text with the reference in place of each secret that was given out and each of our task tokens; `None` if
    /// it has none.
    pub fn redacted_text(&self, text: &str) -> Option<String> {
        let mut redacted = self.tokens.referred(text);
        if !self.any.load(Ordering::Acquire) {
            return redacted;
        }
        let given = self.given.read().unwrap_or_else(PoisonError::into_inner);
        // A secret may be part of another one, so the longest goes first.
        let mut found: Vec<(&String, &Text)> = given
            .texts
            .iter()
            .filter(|(value, _)| text.contains(value.as_str()))
            .collect();
        found.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        for (value, reference) in found {
            let so_far = redacted.as_deref().unwrap_or(text);
            redacted = Some(so_far.replace(value.as_str(), reference));
        }
        for (value, reference) in &given.texts {
            let cut = without_beginning(redacted.as_deref().unwrap_or(text), value, reference);
            redacted = cut.or(redacted);
        }
        redacted
    }

    /// A log with secrets redacted. If its beginning was cut off, the cut may be in the middle of a
    /// secret or a task token, so text that may be the rest of one is left out.
    pub fn redacted_log(&self, log: String) -> String {
        // A log that is not complete has at least this many bytes.
        let from = match log.len() >= LOG_BYTES && self.any.load(Ordering::Acquire) {
            true => self.after_rests(&log),
            false => self.rest_of_token(&log),
        };
        self.redacted_after(log, from)
    }

    /// A cause with secrets redacted. Programs and workers make causes of the last lines of a log, so it may begin with the rest of
    /// a task token, too.
    pub(crate) fn redacted_cause(&self, cause: String) -> String {
        let from = self.rest_of_token(&cause);
        self.redacted_after(cause, from)
    }

    /// The rest of a text from this position on, with secrets redacted.
    fn redacted_after(&self, text: String, from: usize) -> String {
        let whole = text.get(from..).unwrap_or_default();
        match self.redacted_text(whole) {
            Some(redacted) => redacted,
            None if from == 0 => text,
            None => whole.to_owned(),
        }
    }

    /// The position up to which a text may be the rest of a task token. A whole one is none.
    fn rest_of_token(&self, text: &str) -> usize {
        let rest = end_of_token(text).filter(|end| {
            let begins = text.get(..*end).unwrap_or_default();
            self.tokens.referred(begins).is_none()
        });
        rest.unwrap_or(0)
    }

    /// The position up to which the rests of secrets reach that were cut before the beginning of a
    /// text. No whole secret is cut there.
    fn after_rests(&self, text: &str) -> usize {
        let given = self.given.read().unwrap_or_else(PoisonError::into_inner);
        let longest = given.texts.keys().map(String::len).max().unwrap_or(0);
        let rest_of_token = self.rest_of_token(text);
        let mut from = longest.max(rest_of_token).min(text.len());
        while !text.is_char_boundary(from) {
            from += 1;
        }
        let across = |at: usize, value: &String| {
            let first = (at + 1).saturating_sub(value.len());
            let around = text.as_bytes().get(first..(at + value.len() - 1).min(text.len()))?;
            let found = around.windows(value.len()).rposition(|part| part == value.as_bytes())?;
            Some(first + found + value.len())
        };
        while let Some(end) = given.texts.keys().filter_map(|value| across(from, value)).max() {
            if end <= from {
                break;
            }
            from = end;
        }
        from
    }

    /// The reference of a secret that came back as a number.
    fn redacted_number(&self, number: &Value) -> Option<Value> {
        let given = self.given.read().unwrap_or_else(PoisonError::into_inner);
        let found = given.numbers.iter().find(|(known, _)| known == number);
        found.map(|(_, reference)| reference.clone().into())
    }

    /// This value with secrets redacted in its strings, numbers and keys; `None` if it has none. Its depth was
    /// limited when it was read.
    pub fn redacted(&self, value: &Value) -> Option<Value> {
        if !self.any.load(Ordering::Acquire) && !may_hold_token(value) {
            return None;
        }
        match value {
            Value::String(text) => self.redacted_text(text).map(Value::from),
            Value::Array(array) => {
                let items: Vec<Option<Value>> = array.values().iter().map(|item| self.redacted(item)).collect();
                let all = || array.values().iter().zip(&items);
                let item = |(old, new): (&Value, &Option<Value>)| new.clone().unwrap_or_else(|| old.clone());
                items
                    .iter()
                    .any(Option::is_some)
                    .then(|| Array::from(all().map(item).collect::<Vec<_>>()).into())
            }
            Value::Object(object) => self.redacted_object(object).map(Value::from),
            Value::Number(_) => self.redacted_number(value),
            _ => None,
        }
    }

    /// This object with secrets redacted; `None` if it has none.
    fn redacted_object(&self, object: &Object) -> Option<Object> {
        if !self.any.load(Ordering::Acquire) && !object_may_hold_token(object) {
            return None;
        }
        let mut any = false;
        let mut member = |(key, value): (&Text, &Value)| {
            let (new_key, new_value) = (self.redacted_text(key), self.redacted(value));
            any |= new_key.is_some() || new_value.is_some();
            (
                new_key.map_or_else(|| key.clone(), Text::from),
                new_value.unwrap_or_else(|| value.clone()),
            )
        };
        let redacted: Object = object.iter().map(&mut member).collect();
        any.then_some(redacted)
    }

    /// This outcome with secrets redacted.
    pub(crate) fn redacted_outcome(&self, outcome: Outcome) -> Outcome {
        let name = |error: FaultKind| match error {
            FaultKind::Custom(name) => FaultKind::Custom(self.redacted_text(&name).map_or(name, Text::from)),
            FaultKind::Outside(origin, name) => {
                FaultKind::Outside(origin, self.redacted_text(&name).map_or(name, Text::from))
            }
            own => own,
        };
        let value = |value: Value| self.redacted(&value).unwrap_or(value);
        match outcome {
            Outcome::Result(result) => Outcome::Result(value(result)),
            Outcome::Accepted { receipt } => Outcome::Accepted {
                receipt: receipt.map(value),
            },
            Outcome::Failed {
                error,
                cause,
                retry_after,
            } => Outcome::Failed {
                error: name(error),
                cause: self.redacted_cause(cause),
                retry_after,
            },
            Outcome::NotSent { error, cause } => Outcome::NotSent {
                error: name(error),
                cause: self.redacted_cause(cause),
            },
        }
    }
}

/// The forms in which a value may come back: unchanged, in a JSON string, in a cause, where line breaks are blanks, and in the path
/// or query of a URL that was read and written again.
fn forms(value: &str) -> impl Iterator<Item = String> {
    let json = Value::from(value).to_json();
    let inside = json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned();
    let flat = value.replace(|letter: char| letter.is_control(), " ");
    let (path, query) = (in_url(value, "`{}", true), in_url(value, "'", false));
    let all = BTreeSet::from([value.to_owned(), inside, flat, path, query]);
    all.into_iter().filter(|form| form.chars().count() >= MIN_SECRET_CHARS)
}

/// The value in a part of a URL (<https://url.spec.whatwg.org/#percent-encoded-bytes>). `also` has the letters that are encoded in
/// this part, beside those that are in all. Line breaks and tabs vanish.
fn in_url(value: &str, also: &str, is_path: bool) -> String {
    let mut text = String::new();
    for letter in value.chars().filter(|letter| !matches!(letter, '\t' | '\n' | '\r')) {
        match letter {
            '\\' if is_path => text.push('/'),
            ' ' | '"' | '<' | '>' => text.push_str(&encoded(letter)),
            letter if also.contains(letter) || letter.is_ascii_control() || !letter.is_ascii() => {
                text.push_str(&encoded(letter));
            }
            letter => text.push(letter),
        }
    }
    text
}

fn encoded(letter: char) -> String {
    let mut buffer = [0; 4];
    letter
        .encode_utf8(&mut buffer)
        .bytes()
        .map(|byte| format!("%{byte:02X}"))
        .collect()
}

/// The value as a number, if it is one of the same length.
fn number_of(value: &str) -> Option<Value> {
    let number: Value = serde_json::from_str(value).ok()?;
    (number.as_number().is_some() && number.to_json().len() >= MIN_SECRET_CHARS).then_some(number)
}

/// The secrets that a definition names.
fn secrets_of(flow: &Flow) -> impl Iterator<Item = &SecretReference> {
    let calls = flow.steps.iter().flat_map(|step| {
        let StepKind::Task(task) = &step.kind else {
            return [None, None];
        };
        let undo = match &task.rollback {
            Some(Rollback {
                undo: Undo::Call(undo), ..
            }) => Some(undo),
            _ => None,
        };
        [Some(&task.call), undo]
    });
    let params = calls.flatten().filter_map(|call| call.params.as_deref());
    params.flat_map(|params: &dyn Parameters| params.secrets())
}

/// The least length of the beginning of a value, in bytes, that is redacted where a text was cut.
const MIN_BEGINNING_BYTES: usize = 6;

/// The text without the beginning of a value at its end, or before the `…` where it was cut.
fn without_beginning(text: &str, value: &str, reference: &str) -> Option<String> {
    let ends = text.match_indices('…').map(|(at, _)| at).chain([text.len()]);
    let cut = |end: usize| {
        let before = text.get(..end)?;
        let lengths = value.char_indices().rev().map(|(at, _)| at);
        let longest = lengths
            .take_while(|&length| length >= MIN_BEGINNING_BYTES)
            .find(|&length| value.get(..length).is_some_and(|part| before.ends_with(part)))?;
        let kept = before.get(..end - longest)?;
        Some(format!("{kept}{reference}{}", text.get(end..).unwrap_or_default()))
    };
    ends.into_iter().find_map(cut)
}

/// Whether a string in a value looks like a token. Most do not, and need no closer look.
fn may_hold_token(value: &Value) -> bool {
    match value {
        Value::String(text) => TokenKeys::may_be_in(text),
        Value::Array(array) => array.values().iter().any(may_hold_token),
        Value::Object(object) => object_may_hold_token(object),
        _ => false,
    }
}

fn object_may_hold_token(object: &Object) -> bool {
    let mut members = object.iter();
    members.any(|(key, value)| TokenKeys::may_be_in(key) || may_hold_token(value))
}

#[cfg(test)]
mod tests;
