//! Makes an entry of a stream from a call.

use crate::params;
use redis::Cmd;
use starbridge_flow::graph::FaultKind;

use starbridge_ports::{CallMetadata, Outcome, Request};

/// An entry to add, and its stream.
#[derive(Debug)]
pub(crate) struct Message {
    pub stream: String,
    pub fields: Vec<(String, String)>,
    pub max_length: Option<u64>,
}

/// The entry for a call.
pub(crate) fn compose(request: &Request, limit: usize) -> Result<Message, Outcome> {
    let stream = stream(&request.target)?;
    let params = params::read(request.params.as_ref())?;
    let body = params.shared.body.unwrap_or_else(|| request.input.clone());
    let mut fields = vec![("body".to_owned(), body.to_json())];
    let metadata = CallMetadata::of(request, params.shared.step_key).pairs();
    fields.extend(metadata.map(|(field, value)| (field.member().to_owned(), value.into_owned())));
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
            error: FaultKind::TooLarge,
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
