//! Targets of notices.

use super::notice::STEP_EVENTS;
use serde::{Deserialize, Serialize};
use starbridge_flow::limits::is_name;
use starbridge_machine::Status;

/// The configuration of a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetConfig {
    /// The name of the target, for people and for its stored notices. A new name makes a new
    /// target.
    pub name: String,
    /// Where notices go: an `http:` or `https:` URL, `sqs:QUEUE`, `redis:STREAM`.
    pub to: String,
    /// The wanted statuses; empty: all.
    #[serde(default)]
    pub statuses: Vec<String>,
    /// The wanted events of steps. If there are any, and no `statuses`, statuses are not reported.
    #[serde(default)]
    pub events: Vec<String>,
    /// The secret that signs webhooks: `secret://NAME`; empty: they are not signed.
    #[serde(default)]
    pub secret: String,
}

/// Where notices go, and which ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The name of the target.
    pub name: String,
    /// Where notices go.
    pub(super) to: String,
    statuses: Vec<Status>,
    events: Vec<String>,
    /// The name of the secret that signs webhooks.
    pub(crate) secret: Option<String>,
}

impl Target {
    /// Reads the configuration of a target.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn read(config: &TargetConfig) -> Result<Self, String> {
        let wrong = |what: String| format!("the notifications `{}`: {what}", config.name);
        if !is_name(&config.name) {
            let name = "`name` must be 1 to 128 letters, digits, `_` or `-`, beginning with a letter or `_`";
            return Err(wrong(name.to_owned()));
        }
        let (scheme, place) = config.to.split_once(':').unwrap_or_default();
        if !matches!(scheme, "http" | "https" | "sqs" | "redis") || place.is_empty() {
            // It may contain a password, so it is not repeated.
            return Err(wrong("`to` must be a URL, `sqs:QUEUE` or `redis:STREAM`".to_owned()));
        }
        let authority = place
            .trim_start_matches('/')
            .split(['/', '?', '#'])
            .next()
            .unwrap_or_default();
        if authority.contains('@') {
            return Err(wrong(
                "`to` must have no user and password in it: sign with `secret`".to_owned(),
            ));
        }
        let mut statuses = Vec::new();
        for word in &config.statuses {
            let status = Status::parse(word);
            statuses.push(status.ok_or_else(|| wrong(format!("`{word}` is no status of an execution")))?);
        }
        if let Some(word) = config.events.iter().find(|word| !STEP_EVENTS.contains(&word.as_str())) {
            let known = STEP_EVENTS.join(", ");
            return Err(wrong(format!(
                "`{word}` is no event of a step that is told: known are {known}"
            )));
        }
        let secret = config.secret.strip_prefix("secret://").filter(|name| !name.is_empty());
        if !config.secret.is_empty() && secret.is_none() {
            return Err(wrong("`secret` must be `secret://NAME`".to_owned()));
        }
        let target = Self {
            name: config.name.clone(),
            to: config.to.clone(),
            statuses,
            events: config.events.clone(),
            secret: secret.map(str::to_owned),
        };
        if target.secret.is_some() && !target.is_webhook() {
            return Err(wrong("`secret` signs webhooks only".to_owned()));
        }
        Ok(target)
    }

    /// Whether the target wants changes to this status.
    pub fn wants(&self, status: Status) -> bool {
        match self.statuses.is_empty() {
            true => self.events.is_empty(),
            false => self.statuses.contains(&status),
        }
    }

    /// Whether the target wants events of steps of this type.
    pub fn wants_event(&self, event: &str) -> bool {
        self.events.iter().any(|wanted| wanted == event)
    }

    pub(super) fn is_webhook(&self) -> bool {
        self.scheme() == "http"
    }

    /// The word by which its connector is registered.
    pub(crate) fn scheme(&self) -> &str {
        match self.to.split(':').next().unwrap_or_default() {
            "https" => "http",
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(to: &str, statuses: &[&str], secret: &str) -> TargetConfig {
        TargetConfig {
            name: "ops".to_owned(),
            to: to.to_owned(),
            statuses: statuses.iter().map(|&word| word.to_owned()).collect(),
            events: Vec::new(),
            secret: secret.to_owned(),
        }
    }

    #[test]
    fn notification_target_chooses_events_of_steps() {
        let mut config = config("redis:alerts", &[], "");
        config.events = vec!["StepFailed".to_owned()];
        let steps = Target::read(&config).unwrap();
        assert!(steps.wants_event("StepFailed") && !steps.wants_event("ManualRequested"));
        assert!(!steps.wants(Status::Failed));
        config.statuses = vec!["Failed".to_owned()];
        let both = Target::read(&config).unwrap();
        assert!(both.wants_event("StepFailed") && both.wants(Status::Failed) && !both.wants(Status::Succeeded));
        config.events = vec!["ExecutionFailed".to_owned()];
        assert!(Target::read(&config).unwrap_err().contains("known are StepEntered"));
    }

    #[test]
    fn notification_target_chooses_statuses() {
        let all = Target::read(&config("https://h/x", &[], "secret://KEY")).unwrap();
        assert!(Status::ALL.into_iter().all(|status| all.wants(status)));
        assert_eq!((all.scheme(), all.secret.as_deref()), ("http", Some("KEY")));
        let some = Target::read(&config("redis:alerts", &["Failed", "RollbackFailed"], "")).unwrap();
        assert!(some.wants(Status::RollbackFailed) && !some.wants(Status::Succeeded));
    }

    #[test]
    fn notification_target_mistakes_are_named() {
        for (config, word) in [
            (config("ftp://me:hidden@h", &[], ""), "`to`"),
            (config("queue:x", &[], ""), "`to`"),
            (config("http://h", &["Done"], ""), "`Done`"),
            (config("http://h", &[], "hidden"), "secret://NAME"),
            (config("sqs:x", &[], "secret://KEY"), "webhooks only"),
        ] {
            let error = Target::read(&config).unwrap_err();
            assert!(error.contains(word) && error.contains("`ops`"), "{error}");
            assert!(!error.contains("hidden"), "{error}");
        }
    }
}
