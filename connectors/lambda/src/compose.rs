//! Makes an invocation from a call: a payload, and a client context with the call's ids.

use aws_sdk_lambda::types::InvocationType;
use starbridge_aws::base64;
use starbridge_flow::value::{Object, Value};
use starbridge_ports::{CallField, CallMetadata, Outcome, ParamsTable, ReadParam, Request, param_names, step_key};

/// The largest payload whose answer is awaited, in bytes.
const PAYLOAD_BYTES: usize = 6 << 20;
/// The largest payload that is queued for the function, in bytes.
const EVENT_BYTES: usize = 1 << 20;
/// The largest client context, encoded, in bytes.
const CONTEXT_BYTES: usize = 3583;

/// An invocation, ready to be sent.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub kind: InvocationType,
    pub qualifier: Option<String>,
    pub payload: String,
    /// The client context, in base64.
    pub context: String,
}

impl Invocation {
    /// Whether the answer is the function's own.
    pub(crate) fn is_awaited(&self) -> bool {
        self.kind != InvocationType::Event
    }
}

/// The content of `serviceParams` for an invocation.
#[derive(Default)]
struct Params {
    payload: Option<Value>,
    qualifier: Option<String>,
    event: bool,
    context: Object,
    step_key: bool,
}

/// The invocation for a call.
pub(crate) fn invocation(request: &Request) -> Result<Invocation, Outcome> {
    let params = TABLE.read(request.params.as_ref())?;
    let payload = match params.payload {
        Some(payload) => payload.to_json(),
        None => request.input.to_json(),
    };
    let most = if params.event { EVENT_BYTES } else { PAYLOAD_BYTES };
    if payload.len() > most {
        let cause = format!(
            "the payload has {} bytes, more than the {most} it may have",
            payload.len()
        );
        return Err(Outcome::NotSent {
            error: "Lambda.RequestTooLargeException".into(),
            cause,
        });
    }
    Ok(Invocation {
        kind: match params.event {
            true => InvocationType::Event,
            false => InvocationType::RequestResponse,
        },
        qualifier: params.qualifier,
        payload,
        context: context(params.context, request, params.step_key)?,
    })
}

/// The members of `serviceParams` that function calls know. A member that is `null` counts as missing, except the
/// payload.
const MEMBERS: [(&str, ReadParam<Params>); 5] = [
    ("Payload", payload),
    ("Qualifier", |params, value| {
        params.qualifier = match value {
            Value::Null => None,
            Value::String(_) | Value::Number(_) => Some(value.to_plain_text()),
            other => return Err(wrong_kind("Qualifier", "text", other)),
        };
        Ok(())
    }),
    ("InvocationType", |params, value| {
        params.event = match (value, value.as_str()) {
            (Value::Null, _) | (_, Some("RequestResponse")) => false,
            (_, Some("Event")) => true,
            _ => {
                return Err(Outcome::not_sent(format!(
                    "`InvocationType` must be `RequestResponse` or `Event`, not {value}"
                )));
            }
        };
        Ok(())
    }),
    ("ClientContext", |params, value| {
        params.context = match value {
            Value::Null => Object::new(),
            Value::Object(context) => context.clone(),
            other => return Err(wrong_kind("ClientContext", "an object", other)),
        };
        Ok(())
    }),
    ("idempotency", |params, value| {
        params.step_key = match value {
            Value::Null => false,
            value => step_key(value)?,
        };
        Ok(())
    }),
];

/// The names of these members.
pub(crate) const KNOWN: [&str; 5] = param_names(&MEMBERS);

const TABLE: ParamsTable<Params> = ParamsTable {
    knower: "a function knows",
    members: &MEMBERS,
    ignored: &[],
    body: Some(payload),
};

fn payload(params: &mut Params, value: &Value) -> Result<(), Outcome> {
    params.payload = Some(value.clone());
    Ok(())
}

fn wrong_kind(name: &str, wanted: &str, value: &Value) -> Outcome {
    Outcome::not_sent(format!("`{name}` must be {wanted}, not {}", value.kind()))
}

/// The client context: the flow's own, with the ids of the call among its custom values.
fn context(mut context: Object, request: &Request, step_key: bool) -> Result<String, Outcome> {
    let mut custom = match context.get("custom") {
        None => Object::new(),
        Some(Value::Object(custom)) => custom.clone(),
        Some(other) => {
            return Err(Outcome::not_sent(format!(
                "`ClientContext.custom` must be an object, not {}",
                other.kind()
            )));
        }
    };
    for (field, value) in CallMetadata::of(request, step_key).pairs() {
        let Some(name) = field.header() else { continue };
        let given = field == CallField::IdempotencyKey && custom.contains_key(name);
        if !value.is_empty() && !given {
            custom.insert(name.into(), Value::from(&*value));
        }
    }
    context.insert("custom".into(), custom.into());
    let encoded = base64::encode(Value::from(context).to_json());
    if encoded.len() > CONTEXT_BYTES {
        return Err(Outcome::not_sent(format!(
            "the client context has {} bytes in base64, more than the {CONTEXT_BYTES} it may have",
            encoded.len()
        )));
    }
    Ok(encoded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::tests::request;
    use starbridge_fdl::FAULT_NAMES;

    fn composed(params: Option<&str>) -> Result<Invocation, (String, String)> {
        let mut request = request();
        request.params = params.map(|params| serde_json::from_str(params).unwrap());
        invocation(&request).map_err(|outcome| match outcome {
            Outcome::NotSent { error, cause } => (FAULT_NAMES.name(&error).to_string(), cause),
            other => panic!("{other:?}"),
        })
    }

    fn custom(invocation: &Invocation) -> serde_json::Value {
        let context = base64::decode(&invocation.context).unwrap();
        serde_json::from_slice::<serde_json::Value>(&context).unwrap()["custom"].clone()
    }

    #[test]
    fn the_input_is_the_payload_and_the_context_has_the_keys() {
        let invocation = composed(None).unwrap();
        assert_eq!(invocation.payload, r#"{"a":"é"}"#);
        assert!(invocation.is_awaited());
        let expected = serde_json::json!({
            "Idempotency-Key": "e/3", "Starbridge-Step-Key": "e/2", "Starbridge-Execution": "e", "Starbridge-Flow": "f",
            "Starbridge-Step": "schritt ü", "Starbridge-Attempt": "1", "Starbridge-Type": "normal",
        });
        assert_eq!(custom(&invocation), expected);
    }

    #[test]
    fn parameters_are_the_payload_or_say_what_it_is() {
        assert_eq!(composed(Some(r#"{"x": 1}"#)).unwrap().payload, r#"{"x":1}"#);
        assert_eq!(composed(Some(r#"{"Payload": [1]}"#)).unwrap().payload, "[1]");
        let all = r#"{"Qualifier": 7, "InvocationType": "Event", "idempotency": "step",
            "ClientContext": {"client": {"a": 1}, "custom": {"mine": 1, "Starbridge-Type": "x"}}}"#;
        let invocation = composed(Some(all)).unwrap();
        assert_eq!(invocation.payload, r#"{"a":"é"}"#);
        assert_eq!(invocation.qualifier.as_deref(), Some("7"));
        assert!(!invocation.is_awaited());
        let custom = custom(&invocation);
        assert_eq!(
            (&custom["mine"], &custom["Starbridge-Type"]),
            (&1.into(), &"normal".into())
        );
        assert_eq!(custom["Idempotency-Key"], "e/2");
        for bad in [
            r#"{"Payload": 1, "FunctionName": "x"}"#,
            r#"{"InvocationType": "DryRun"}"#,
            r#"{"Qualifier": {}}"#,
            r#"{"ClientContext": "x"}"#,
            r#"{"ClientContext": {"custom": 1}}"#,
            r#"{"idempotency": 1}"#,
        ] {
            assert_eq!(composed(Some(bad)).unwrap_err().0, "FnF.NoSuchResource", "{bad}");
        }
        let large = format!(r#"{{"ClientContext": {{"client": "{}"}}}}"#, "x".repeat(3000));
        assert!(composed(Some(&large)).unwrap_err().1.contains("more than the 3583"));
    }

    #[test]
    fn payloads_have_a_limit() {
        let of = |bytes: usize, kind: &str| {
            let text = "x".repeat(bytes - 2);
            composed(Some(&format!(r#"{{"Payload": "{text}", "InvocationType": "{kind}"}}"#)))
        };
        assert!(of(PAYLOAD_BYTES, "RequestResponse").is_ok());
        assert!(of(EVENT_BYTES, "Event").is_ok());
        for (bytes, kind) in [(PAYLOAD_BYTES, "RequestResponse"), (EVENT_BYTES, "Event")] {
            let (error, cause) = of(bytes + 1, kind).unwrap_err();
            assert_eq!(error, "Lambda.RequestTooLargeException");
            assert_eq!(
                cause,
                format!("the payload has {} bytes, more than the {bytes} it may have", bytes + 1)
            );
        }
    }
}
