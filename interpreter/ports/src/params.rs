//! Reading `serviceParams` (section "tasks"): each connector has a table of the members it knows.

use crate::Outcome;
use starbridge_flow::value::{Object, Value};

/// Reads one value of `serviceParams` into a connector's parameters. On failure the call ends with this outcome.
pub type ReadParam<P> = fn(&mut P, &Value) -> Result<(), Outcome>;

/// The members of `serviceParams` that a connector knows.
pub struct ParamsTable<P: 'static> {
    /// The subject of messages, for example `HTTP knows`.
    pub knower: &'static str,
    /// The names of the members, each with its reader.
    pub members: &'static [(&'static str, ReadParam<P>)],
    /// Members that are allowed and ignored.
    pub ignored: &'static [&'static str],
    /// Reads parameters that have none of these members: the whole of them is the body. `None` if the connector has
    /// no body: parameters must then be an object of known members.
    pub body: Option<ReadParam<P>>,
}

impl<P: Default + 'static> ParamsTable<P> {
    /// Reads `serviceParams`. A member that is missing keeps its default.
    ///
    /// # Errors
    ///
    /// The outcome of the call: a member is unknown or has a wrong value.
    pub fn read(&self, params: Option<&Value>) -> Result<P, Outcome> {
        let mut read = P::default();
        match (params, params.and_then(Value::as_object), self.body) {
            (None, ..) => {}
            (_, Some(members), None) => self.read_members(&mut read, members)?,
            (_, Some(members), Some(_)) if self.knows_one_of(members) => self.read_members(&mut read, members)?,
            (Some(whole), _, Some(body)) => body(&mut read, whole)?,
            (Some(whole), None, None) => {
                return Err(Outcome::not_sent(format!(
                    "`serviceParams` must be an object, not {}",
                    whole.kind()
                )));
            }
        }
        Ok(read)
    }

    fn read_members(&self, read: &mut P, members: &Object) -> Result<(), Outcome> {
        for (name, value) in members {
            match self.reader(name.as_str()) {
                Some(reader) => reader(read, value)?,
                None if self.ignored.contains(&name.as_str()) => {}
                None => return Err(Outcome::not_sent(self.unknown(name.as_str()))),
            }
        }
        Ok(())
    }

    fn reader(&self, name: &str) -> Option<ReadParam<P>> {
        let mut members = self.members.iter();
        members.find(|(known, _)| *known == name).map(|(_, reader)| *reader)
    }

    fn knows_one_of(&self, members: &Object) -> bool {
        let mut names = members.iter().map(|(name, _)| name.as_str());
        names.any(|name| self.reader(name).is_some() || self.ignored.contains(&name))
    }

    fn unknown(&self, name: &str) -> String {
        let known: Vec<String> = self.members.iter().map(|(known, _)| format!("`{known}`")).collect();
        let knower = self.knower;
        match (self.body, known.split_last()) {
            (None, Some((last, others))) if !others.is_empty() => {
                let others = others.join(", ");
                format!("`serviceParams` has `{name}`, but {knower} only {others} and {last}")
            }
            (None, _) => format!("`serviceParams` has `{name}`, but {knower} only {}", known.join("")),
            (Some(_), _) => format!(
                "`serviceParams` has `{name}` beside what {knower} ({})",
                known.join(", ")
            ),
        }
    }
}

/// The parameters that several connectors have. A connector's own ones hold them, and give them by [`AsMut`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharedParams {
    /// The body; the input if `None`.
    pub body: Option<Value>,
    /// Whether the step's key replaces the call's.
    pub step_key: bool,
}

/// Reads `body`, which is any value.
///
/// # Errors
///
/// None; it is a [`ReadParam`].
pub fn read_body<P: AsMut<SharedParams>>(params: &mut P, value: &Value) -> Result<(), Outcome> {
    params.as_mut().body = Some(value.clone());
    Ok(())
}

/// Reads `idempotency`, as [`step_key`] does.
///
/// # Errors
///
/// The outcome of the call: the value is neither `call` nor `step`.
pub fn read_idempotency<P: AsMut<SharedParams>>(params: &mut P, value: &Value) -> Result<(), Outcome> {
    params.as_mut().step_key = step_key(value)?;
    Ok(())
}

/// Whether a message contains the input, according to the shared members: a `body` replaces it, and a GET has none.
pub fn sends_input(params: Option<&Value>) -> bool {
    let Some(params) = params else { return true };
    let bare = |word: &str| word.eq_ignore_ascii_case("get") || word.eq_ignore_ascii_case("head");
    params.as_object().is_some_and(|members| {
        let method = members.get("method").and_then(Value::as_str);
        !members.contains_key("body") && !method.is_some_and(bare)
    })
}

/// The names in a table of members, for [`SentMembers`](crate::SentMembers).
pub const fn param_names<P, const N: usize>(members: &[(&'static str, ReadParam<P>); N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut index = 0;
    while index < N {
        names[index] = members[index].0;
        index += 1;
    }
    names
}

/// Reads `idempotency`: whether the step's key replaces the call's.
///
/// # Errors
///
/// The outcome of the call: the value is neither `call` nor `step`.
pub fn step_key(value: &Value) -> Result<bool, Outcome> {
    match value.as_str() {
        Some("step") => Ok(true),
        Some("call") => Ok(false),
        _ => Err(Outcome::not_sent(format!(
            "`idempotency` must be `step` or `call`, not {value}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Params {
        body: Option<String>,
        step_key: bool,
    }

    const MEMBERS: [(&str, ReadParam<Params>); 2] = [
        ("body", |params, value| {
            params.body = Some(value.to_json());
            Ok(())
        }),
        ("idempotency", |params, value| {
            params.step_key = step_key(value)?;
            Ok(())
        }),
    ];

    const TABLE: ParamsTable<Params> = ParamsTable {
        knower: "HTTP knows",
        members: &MEMBERS,
        ignored: &["Priority"],
        body: Some(MEMBERS[0].1),
    };

    const STRICT: ParamsTable<Params> = ParamsTable {
        knower: "programs know",
        members: &MEMBERS,
        ignored: &[],
        body: None,
    };

    fn value(json: &str) -> Value {
        serde_json::from_str(json).unwrap()
    }

    fn cause(outcome: Outcome) -> String {
        match outcome {
            Outcome::NotSent { cause, .. } => cause,
            other => panic!("{other:?}"),
        }
    }

    fn params(body: Option<&str>, step_key: bool) -> Params {
        let body = body.map(str::to_owned);
        Params { body, step_key }
    }

    #[test]
    fn service_params_are_members_or_the_body() {
        for (given, read) in [
            (r#"{"body": [1], "idempotency": "step"}"#, params(Some("[1]"), true)),
            (r#"{"idempotency": "call", "Priority": 1}"#, params(None, false)),
            (r#"{"Priority": 1}"#, params(None, false)),
            (r#"{"Body": 1}"#, params(Some(r#"{"Body":1}"#), false)),
            ("{}", params(Some("{}"), false)),
            ("null", params(Some("null"), false)),
            ("7", params(Some("7"), false)),
        ] {
            assert_eq!(TABLE.read(Some(&value(given))), Ok(read), "{given}");
        }
        assert_eq!(TABLE.read(None), Ok(Params::default()));
        assert_eq!(STRICT.read(Some(&value("{}"))), Ok(Params::default()));
        assert_eq!(param_names(&MEMBERS), ["body", "idempotency"]);
    }

    #[test]
    fn service_params_that_nobody_knows_are_refused() {
        for (table, given, expected) in [
            (
                TABLE,
                r#"{"idempotency": "step", "x": 1}"#,
                "`serviceParams` has `x` beside what HTTP knows (`body`, `idempotency`)",
            ),
            (
                TABLE,
                r#"{"idempotency": 1}"#,
                "`idempotency` must be `step` or `call`, not 1",
            ),
            (
                STRICT,
                r#"{"x": 1}"#,
                "`serviceParams` has `x`, but programs know only `body` and `idempotency`",
            ),
            (STRICT, "[]", "`serviceParams` must be an object, not an array"),
        ] {
            assert_eq!(cause(table.read(Some(&value(given))).unwrap_err()), expected);
        }
    }
}
