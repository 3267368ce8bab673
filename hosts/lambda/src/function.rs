//! The function: what one environment keeps from invocation to invocation.

use crate::api::{ANSWER, Api};
use crate::event::{self, Kind};
use crate::onward::GoOn;
use crate::{Failure, batch, direct, record, settings, sweep, web};
use lambda_runtime::Context;
use starbridge_fdl::time::Timestamp;
use starbridge_fdl::value::Value;
use starbridge_kit::config::{Config, LambdaConfig};
use starbridge_kit::node::Node;
use starbridge_kit::stores::in_memory;
use starbridge_kit::system::SystemClock;
use starbridge_kit::tables::{Table, open_table};
use starbridge_ports::{Clock, Leases};
use starbridge_runtime::{Express, Resting};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// How long an invocation has where its deadline is none: a stand-in for Lambda that does not keep time.
const UNTOLD_MS: u64 = 60_000;
/// What a lease outlives its invocation by, in milliseconds: clocks differ.
const SKEW_MS: u64 = 2_000;
/// Longest a timer is waited for where nothing is kept: longer than any invocation.
const FOR_EVER: Duration = Duration::from_secs(24 * 3600);

/// The function.
pub struct Function {
    config: Result<Config, Failure>,
    running: Mutex<Option<Running>>,
}

/// What there is from the first event on, until something fails.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) node: Arc<Node>,
    pub(crate) api: Api,
    pub(crate) settings: Arc<LambdaConfig>,
    pub(crate) retention_days: u64,
    /// Where what goes on later is put; there is one where there is a table.
    pub(crate) onward: Option<GoOn>,
    pub(crate) figures: Arc<record::Figures>,
    leases: Option<Arc<dyn Leases>>,
    express: Option<Arc<Express>>,
}

/// An invocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Invocation {
    /// When everything is to be handed on.
    pub(crate) until: Timestamp,
}

impl Function {
    /// A function with this configuration. Nothing is opened before the first event.
    pub fn new(config: Result<Config, Failure>) -> Self {
        Self {
            config,
            running: Mutex::new(None),
        }
    }

    /// Takes an event, and gives its answer.
    pub async fn take(&self, event: Value, context: &Context) -> Result<Value, Failure> {
        let config = self.config.as_ref().map_err(Failure::clone)?;
        let kind = event::kind(&event)?;
        // One event at a time is all that Lambda gives an environment.
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
            // What it had begun is given back: the next event finds nothing under way.
            let given_back = mine.rest(mine.node.now()).await;
            if let Err(failure) = given_back {
                tracing::error!(kind = failure.kind, "{}", failure.words);
            }
        }
        record::write(&mine, kind, answer.is_ok());
        if mine.onward.is_none() {
            mine.forget_all().await;
        }
        let answer = answer.and_then(small_enough);
        if mine.has_failed() {
            // What was not durable is gone; the next event begins anew from what is.
            *running = None;
        }
        answer
    }
}

/// An answer that Lambda carries.
fn small_enough(answer: Value) -> Result<Value, Failure> {
    let bytes = answer.to_json().len();
    match bytes > ANSWER {
        false => Ok(answer),
        true => Err(Failure::new(
            "AnswerTooLarge",
            format!("the answer has {bytes} bytes, more than the 6 MB that Lambda carries: ask for less at a time"),
        )),
    }
}

impl Running {
    async fn start(config: &Config) -> Result<Self, Failure> {
        let bad = |error: String| Failure::new("BadConfiguration", error);
        let settings = &config.lambda;
        let (mut leases, mut express) = (None, None);
        let mut node = match settings.table.as_str() {
            "" => config.node(in_memory()).map_err(bad)?,
            table => {
                let Table {
                    store,
                    visit,
                    express: before,
                } = open_table(table, config).map_err(bad)?;
                express = Some(before);
                let mut node = config.node(store).map_err(bad)?;
                leases = Some(visit.leases.clone());
                node.visit = Some(visit);
                node
            }
        };
        if !node.notifications.is_empty() {
            let words = "`notifications` need a server: between invocations nobody is there to tell them";
            return Err(bad(words.to_owned()));
        }
        // One thread has all executions of an invocation: there are few.
        node.owners = 1;
        node.worker_queues = false;
        let onward = match settings.queue.as_str() {
            "" => None,
            queue => Some(GoOn::through(queue, &settings.dead_letters).map_err(bad)?),
        };
        let node = Arc::new(Node::start(node)?);
        let api = Api::of(&node, config).map_err(bad)?;
        let running = Self {
            node,
            api,
            settings: Arc::new(settings.clone()),
            retention_days: config.retention.days,
            onward,
            figures: Arc::default(),
            leases,
            express,
        };
        direct::put_flows(&running, &settings::package()).await?;
        Ok(running)
    }

    /// Says of executions that begin in this invocation whether they are express; nothing: as their flows are.
    pub(crate) fn choose_express(&self, choice: Option<bool>) {
        if let Some(express) = &self.express {
            express.choose(choice);
        }
    }

    fn invocation(&self, deadline: u64) -> Invocation {
        self.choose_express(None);
        // No clock went on while the process was frozen.
        SystemClock.catch_up();
        let now = SystemClock.now();
        let told = Timestamp(i64::try_from(deadline).unwrap_or(i64::MAX));
        let deadline = if told > now { told } else { now.plus_millis(UNTOLD_MS) };
        if let Some(leases) = &self.leases {
            leases.hold_until(deadline.plus_millis(SKEW_MS));
        }
        let left = deadline.millis_since(now);
        // Of a short time at most half is kept back.
        let until = now.plus_millis(left - self.settings.margin_ms.min(left / 2));
        Invocation { until }
    }

    /// Waits until nothing is left to do for now, or time is over; what goes on later is put where it comes back from. Answers
    /// what was given back.
    pub(crate) async fn rest(&self, until: Timestamp) -> Result<Vec<Resting>, Failure> {
        let linger = match self.onward {
            Some(_) => Duration::from_millis(self.settings.linger_ms),
            None => FOR_EVER,
        };
        let resting = self.node.rest(until, linger).await?;
        if let Some(onward) = &self.onward {
            for rest in &resting {
                onward.go_on(rest, self.node.now()).await?;
            }
        }
        Ok(resting)
    }

    /// Who gives executions to us, where others have some of them.
    pub(crate) fn leases(&self) -> Option<&Arc<dyn Leases>> {
        self.leases.as_ref()
    }

    /// Where nothing is kept, nothing of an invocation is looked at after it.
    async fn forget_all(&self) {
        while matches!(self.node.clear_before(Timestamp(i64::MAX)).await, Ok(1..)) {}
    }

    fn has_failed(&self) -> bool {
        self.node.ended().borrow().is_some()
    }
}
