//! The function: it takes an event and returns its answer.

use crate::api::MAX_ANSWER_BYTES;
use crate::environment::Running;
use crate::event::{self, Kind};
use crate::{Failure, batch, direct, record, sweep, web};
use lambda_runtime::Context;
use starbridge_flow::value::Value;
use starbridge_node::config::Config;
use tokio::sync::Mutex;

/// The function. Call [`Function::new`] once and [`Function::take`] for each event.
pub struct Function {
    config: Result<Config, Failure>,
    running: Mutex<Option<Running>>,
}

impl Function {
    /// A function with this configuration. Nothing is opened before the first event.
    pub fn new(config: Result<Config, Failure>) -> Self {
        Self {
            config,
            running: Mutex::new(None),
        }
    }

    /// Takes an event and returns its answer.
    ///
    /// # Errors
    ///
    /// [`Failure`] if the configuration is wrong, the event can't be understood, the API refuses it, or the store
    /// fails.
    pub async fn take(&self, event: Value, context: &Context) -> Result<Value, Failure> {
        let config = self.config.as_ref().map_err(Failure::clone)?;
        let kind = event::kind(&event)?;
        // Lambda gives an environment one event at a time.
        let mut running = self.running.lock().await;
        let mine = match running.as_ref() {
            Some(running) => running.clone(),
            None => running.insert(Running::start(config).await?).clone(),
        };
        let invocation = mine.invocation(context.deadline);
        let answer = match kind {
            Kind::Direct => direct::take(&mine, &event, invocation).await,
            Kind::Batch => batch::take(&mine, &event, invocation).await,
            Kind::Web => web::take(&mine, &event, invocation).await,
            Kind::Sweep => sweep::take(&mine, invocation).await,
        };
        if answer.is_err() && !mine.has_failed() {
            // Work in progress is given back, so that the next event finds nothing in progress.
            let given_back = mine.quiesce(mine.node.now()).await;
            if let Err(failure) = given_back {
                tracing::error!(kind = failure.kind, "{}", failure.words);
            }
        }
        record::write(&mine, kind, answer.is_ok());
        if mine.continuations.is_none() {
            mine.forget_all().await;
        }
        let answer = answer.and_then(small_enough);
        if mine.has_failed() {
            // Changes that were not durable are gone. The next event starts again from the durable
            // state.
            *running = None;
        }
        answer
    }
}

/// An answer, if it is small enough for Lambda.
fn small_enough(answer: Value) -> Result<Value, Failure> {
    let bytes = answer.to_json().len();
    match bytes > MAX_ANSWER_BYTES {
        false => Ok(answer),
        true => Err(Failure::new(
            "AnswerTooLarge",
            format!("the answer has {bytes} bytes, more than the 6 MB that Lambda carries: ask for less at a time"),
        )),
    }
}
