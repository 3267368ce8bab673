//! A call becomes an entry of a stream.

use crate::params;
use redis::Cmd;
use starbridge_fdl::graph::Pattern;
use starbridge_fdl::value::Value;
use starbridge_ports::{Outcome, Request};

/// An entry to be, and the stream it is for.
#[derive(Debug)]
pub(crate) struct Message {
    pub stream: String,
    pub fields: Vec<(String, String)>,
    pub max_length: Option<u64>,
}

/// The entry of a call.
pub(crate) fn compose(request: &Request, limit: usize) -> Result<Message, Outcome> {
    let stream = stream(&request.target)?;
    let params = params::read(request.params.as_ref())?;
    let body = params.body.unwrap_or_else(|| Value::Object(request.input.clone()));
    let mut fields = vec![("body".to_owned(), body.to_json())];
    carried(&mut fields, request, params.step_key);
    for (name, value) in params.fields {
        if fields.iter().any(|(ours, _)| *ours == name) {
            return Err(Outcome::not_sent(format!(
                "the field `{name}` is not for `serviceParams` to set"
            )));
        }
        fields.push((name, value));
    }
    let bytes: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > limit {
        let cause = format!("the message for `{stream}` has {bytes} bytes, more than the {limit} it may have");
        return Err(Outcome::NotSent {
            error: "FnF.PayloadTooLarge".to_owned(),
            cause,
        });
    }
    Ok(Message {
        stream,
        fields,
        max_length: params.max_length,
    })
}

fn stream(target: &str) -> Result<String, Outcome> {
    let name = target.strip_prefix("redis:").unwrap_or_default();
    if name.starts_with("//") {
        let cause =
            "`redis://…` names a server, which is the configuration's to say: name the stream, as in `redis:orders`";
        return Err(Outcome::not_sent(cause.to_owned()));
    }
    if name.is_empty() {
        return Err(Outcome::not_sent(format!("`{target}` names no stream")));
    }
    Ok(name.to_owned())
}

/// The ids every call carries (section "tasks").
fn carried(fields: &mut Vec<(String, String)>, request: &Request, step_key: bool) {
    let keys = &request.keys;
    let mut put = |name: &str, value: &str| fields.push((name.to_owned(), value.to_owned()));
    let key = if step_key { &keys.step_visit } else { &keys.idempotency };
    put("idempotencyKey", key);
    put("stepKey", &keys.step_visit);
    put("execution", &keys.execution);
    put("flow", &keys.flow);
    put("step", &keys.step);
    put("attempt", &request.attempt.to_string());
    put("type", if request.rollback { "rollback" } else { "normal" });
    put(
        "pattern",
        match request.pattern {
            Pattern::RequestResponse => "requestResponse",
            Pattern::Sync => "sync",
            Pattern::WaitForCallback => "waitForCallback",
        },
    );
    if let Some(parent) = &keys.traceparent {
        put("traceparent", parent);
    }
    if let Some(end) = request.timeout_at {
        put("timeoutAt", &end.to_string());
    }
}

impl Message {
    pub(crate) fn command(&self) -> Cmd {
        let mut command = redis::cmd("XADD");
        command.arg(&self.stream);
        if let Some(length) = self.max_length {
            command.arg("MAXLEN").arg("~").arg(length);
        }
        command.arg("*");
        for (name, value) in &self.fields {
            command.arg(name).arg(value);
        }
        command
    }
}
