//! A task from a server, and the result of its program.

use starbridge_fdl::FAULT_NAMES;
use starbridge_flow::graph::{FaultKind, Origin, Pattern};
use starbridge_flow::limits::Limits;
use starbridge_flow::value::{Object, Value};
use starbridge_node::escaping::escaped;
use starbridge_node::programs::CommandConnector;
use starbridge_ports::{CallIds, LogTail, Outcome, Request, ResourceFamily};
use std::time::Duration;

/// The lease if a server gives none.
const LEASE_SECONDS: u64 = 30;

/// A task that was handed out.
#[derive(Clone, Debug)]
pub struct Task {
    /// The token for reports and heartbeats.
    pub token: String,
    /// The label for people: the step and the call.
    pub label: String,
    /// The longest time between heartbeats.
    pub lease: Duration,
    /// How long it may take.
    pub timeout: Option<Duration>,
    request: Request,
    input: Value,
}

impl Task {
    /// Reads a task from a server's answer; `None` if it has no token.
    pub fn read(told: &Object, command: &[String]) -> Option<Self> {
        let text = |key: &str| told.get(key).map(Value::to_plain_text).unwrap_or_default();
        let number = |key: &str| {
            told.get(key)
                .and_then(Value::as_number)
                .and_then(|number| number.as_u64())
        };
        let token = told.get("token")?.as_str()?.to_owned();
        let (program, arguments) = command.split_first()?;
        let keys = CallIds {
            idempotency: text("key"),
            step_visit: text("stepKey"),
            execution: text("execution"),
            flow: text("flow"),
            step: text("step"),
            traceparent: told.get("traceparent").and_then(Value::as_str).map(str::to_owned),
        };
        let label = format!("{} {}", keys.step, keys.idempotency);
        let variables: Object = [
            ("STARBRIDGE_TASK_TOKEN".into(), token.as_str().into()),
            ("STARBRIDGE_QUEUE".into(), text("queue").into()),
        ]
        .into_iter()
        .collect();
        let arguments: Vec<Value> = arguments.iter().map(|word| word.as_str().into()).collect();
        let params: Object = [("args".into(), arguments.into()), ("env".into(), variables.into())]
            .into_iter()
            .collect();
        let request = Request {
            target: format!("cmd:{program}"),
            via: ResourceFamily::Direct,
            pattern: Pattern::RequestResponse,
            input: Value::empty_object(),
            params: Some(params.into()),
            keys,
            attempt: number("attempt")
                .and_then(|number| u32::try_from(number).ok())
                .unwrap_or(1),
            rollback: told.get("type").and_then(Value::as_str) == Some("rollback"),
            polling: false,
            follow: false,
            timeout_at: None,
            answer_limit: Limits::default().step_data_bytes,
        };
        Some(Self {
            token,
            label: escaped(&label).into_owned(),
            lease: Duration::from_secs(number("leaseSeconds").unwrap_or(LEASE_SECONDS).max(1)),
            timeout: number("timeoutSeconds").map(Duration::from_secs),
            request,
            input: told.get("input").cloned().unwrap_or_else(|| Object::new().into()),
        })
    }

    /// Runs its program and returns the result. Its stderr is added to the log meanwhile. If the
    /// future is dropped, the program is killed with everything it started.
    pub async fn run(&self, programs: &CommandConnector, log: &LogTail) -> TaskResult {
        match programs.run(&self.request, &self.input, log).await {
            Outcome::Result(Value::Object(output)) => TaskResult::Done(output),
            Outcome::Result(other) => {
                let cause = format!("what the program printed must be an object, not {}", other.kind());
                TaskResult::failed(&FaultKind::Result, cause)
            }
            Outcome::Failed { error, cause, .. } | Outcome::NotSent { error, cause } => {
                TaskResult::failed(&error, cause)
            }
            // Programs are only asked for results.
            Outcome::Accepted { .. } => TaskResult::Done(Object::new()),
        }
    }
}

/// The result of a program.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskResult {
    /// Its output.
    Done(Object),
    /// The error it stands for.
    Failed {
        /// Its name.
        error: String,
        /// What people read.
        cause: String,
    },
}

impl TaskResult {
    /// A failure under the name that the server stores.
    pub fn failed(error: &FaultKind, cause: String) -> Self {
        let error = FAULT_NAMES
            .outside(Origin::Worker, &FAULT_NAMES.name(error))
            .into_owned();
        Self::Failed { error, cause }
    }

    /// The report of it, with what the program logged.
    pub fn report(&self, token: &str, log: &str) -> Object {
        let mut report = Object::new();
        report.insert("token".into(), token.into());
        match self {
            Self::Done(output) => drop(report.insert("output".into(), output.clone().into())),
            Self::Failed { error, cause } => {
                report.insert("error".into(), error.as_str().into());
                report.insert("cause".into(), cause.as_str().into());
            }
        }
        if !log.is_empty() {
            report.insert("log".into(), log.into());
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starbridge_node::programs::CommandSettings;

    fn task(told: &str, command: &[&str]) -> Task {
        let told: Object = serde_json::from_str(told).unwrap();
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        Task::read(&told, &command).unwrap()
    }

    async fn result(input: &str, script: &str) -> TaskResult {
        let told = format!(r#"{{"token": "t-1", "key": "e-1/4", "step": "s", "input": {input}}}"#);
        let folder = tempfile::tempdir().unwrap();
        let programs = CommandConnector::new(CommandSettings::in_folder(folder.path().to_path_buf()));
        task(&told, &["sh", "-c", script])
            .run(&programs, &LogTail::default())
            .await
    }

    #[test]
    fn what_is_missing_has_a_usual_value() {
        let read = task(
            r#"{"token": "t", "step": "a\u001b", "key": "e/1", "timeoutSeconds": 7}"#,
            &["x"],
        );
        assert_eq!(read.lease, Duration::from_secs(30));
        assert_eq!(read.timeout, Some(Duration::from_secs(7)));
        assert!(!read.label.contains('\u{1b}'), "{}", read.label);
        assert!(Task::read(&Object::new(), &["x".to_owned()]).is_none());
    }

    #[tokio::test]
    async fn programs_see_their_task_and_no_other_secret() {
        let done = result(r#"{"n": 1}"#, r#"printf '{"sent": %s, "token": "%s", "key": "%s", "other": "%s"}' "$(cat)" "$STARBRIDGE_TASK_TOKEN" "$STARBRIDGE_IDEMPOTENCY_KEY" "$STARBRIDGE_TOKEN""#).await;
        let expected = r#"{"sent": {"n": 1}, "token": "t-1", "key": "e-1/4", "other": ""}"#;
        assert_eq!(done, TaskResult::Done(serde_json::from_str(expected).unwrap()));
        let list = result("[1, 2]", r#"printf '{"sent": %s}' "$(cat)""#).await;
        assert_eq!(
            list,
            TaskResult::Done(serde_json::from_str(r#"{"sent": [1, 2]}"#).unwrap())
        );
    }

    #[tokio::test]
    async fn what_is_no_object_is_no_output() {
        let TaskResult::Failed { error, cause } = result("{}", "echo '[1]'").await else {
            panic!("a list is taken for an output");
        };
        assert_eq!(error, "Worker.FnF.InvalidLocal");
        assert!(cause.contains("must be an object, not"), "{cause}");
        let TaskResult::Failed { error, cause } = result("{}", "echo no disk >&2; exit 3").await else {
            panic!("an exit code is not seen");
        };
        assert_eq!((&*error, &*cause), ("CMD.3", "no disk"));
    }
}
