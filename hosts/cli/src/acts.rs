//! Acts on one execution of a server: the request that several commands make.

use crate::client::{Answer, Client};
use crate::exit::Exit;
use crate::output::{Output, bad};
use crate::views::{id_of, plain};
use clap::Args;
use starbridge_flow::value::Object;

/// Why an operator acts.
#[derive(Debug, Args)]
pub struct Reason {
    /// Why
    #[arg(long, value_name = "TEXT")]
    cause: Option<String>,
}

impl Reason {
    /// The body of a request that needs nothing else.
    pub fn body(&self) -> Object {
        let mut body = Object::new();
        if let Some(cause) = &self.cause {
            body.insert("cause".into(), cause.as_str().into());
        }
        body
    }
}

/// Asks for an act on the execution that is meant, which is an id or FLOW/NAME.
pub fn act(client: &Client, meant: &str, word: &str, body: &Object) -> Result<Answer, Exit> {
    let id = id_of(client, meant)?;
    client.post(&["executions", &id, word], &[], body)
}

/// Reports that an act on one step could mean several: those that wait for `what`.
pub fn several_wait(steps: &[&Object], what: &str, output: Output) -> Exit {
    let names: Vec<String> = steps
        .iter()
        .map(|row| format!("{} (event {})", plain(row, "step"), plain(row, "event")))
        .collect();
    let message = format!("{} steps wait for {what}: {}", names.len(), names.join(", "));
    bad(output, &message, "choose one with `--step` or `--event`")
}
