//! Numbers of a step that its input gives: the definition has a path in place of the number
//! (section "steps").

use crate::graph::{Budget, Fault, FaultKind, RetrySettings, Root, Settings, SettingsReader};
use crate::limits::EXECUTION_TIMEOUT;
use crate::path::Query;
use crate::time::Millis;
use crate::value::Value;

/// The number of a step that a path stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `priority`.
    Priority,
    /// `timeoutSeconds`.
    Timeout,
    /// `totalTimeoutSeconds`.
    TotalTimeout,
    /// `waitSeconds`.
    Wait,
    /// `heartbeatSeconds`.
    Heartbeat,
    /// A number of the retry policy with this number, from 0.
    Retry(u32, RetryNumber),
}

/// A number of a retry policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryNumber {
    /// `intervalSeconds`.
    Interval,
    /// `maxIntervalSeconds`.
    MaxInterval,
    /// `maxAttempts`.
    MaxAttempts,
    /// `multiplier`.
    Multiplier,
    /// `jitter`.
    Jitter,
}

/// The numbers of a step that are written as paths.
#[derive(Debug)]
pub struct SettingPaths(pub Vec<(Setting, Query)>);

impl RetryNumber {
    /// Every number of a policy that may be written as a path.
    pub const ALL: [Self; 5] = [
        Self::Interval,
        Self::MaxInterval,
        Self::MaxAttempts,
        Self::Multiplier,
        Self::Jitter,
    ];

    /// The field of a policy.
    pub fn field(self) -> &'static str {
        match self {
            Self::Interval => "intervalSeconds",
            Self::MaxInterval => "maxIntervalSeconds",
            Self::MaxAttempts => "maxAttempts",
            Self::Multiplier => "multiplier",
            Self::Jitter => "jitter",
        }
    }
}

impl Setting {
    /// The settings of the step itself.
    pub const OF_STEP: [Self; 5] = [
        Self::Priority,
        Self::Timeout,
        Self::TotalTimeout,
        Self::Wait,
        Self::Heartbeat,
    ];

    /// The field of the step or policy.
    pub fn field(self) -> &'static str {
        match self {
            Self::Priority => "priority",
            Self::Timeout => "timeoutSeconds",
            Self::TotalTimeout => "totalTimeoutSeconds",
            Self::Wait => "waitSeconds",
            Self::Heartbeat => "heartbeatSeconds",
            Self::Retry(_, number) => number.field(),
        }
    }

    /// The name of the field in messages.
    fn name(self) -> String {
        match self {
            Self::Retry(policy, number) => format!("retry[{policy}].{}", number.field()),
            _ => self.field().to_owned(),
        }
    }

    /// Sets a number. The error says what the number must be.
    fn put(self, value: &Value, into: &mut Settings) -> Result<(), &'static str> {
        match self {
            Self::Priority => {
                const WANTED: &str = "a whole number from 0 to 9";
                let priority = whole(value).and_then(|number| u8::try_from(number).ok());
                into.priority = Some(priority.filter(|priority| *priority <= 9).ok_or(WANTED)?);
            }
            Self::Timeout => into.timeout = Some(timeout(value)?),
            Self::TotalTimeout => into.total_timeout = Some(timeout(value)?),
            Self::Wait => into.wait = Some(timeout(value)?),
            Self::Heartbeat => into.heartbeat = Some(timeout(value)?),
            Self::Retry(policy, number) => {
                // Paths come policy by policy.
                if into.retry.last().is_none_or(|last| last.policy != policy) {
                    into.retry.push(RetrySettings {
                        policy,
                        ..RetrySettings::default()
                    });
                }
                if let Some(last) = into.retry.last_mut() {
                    number.put(value, last)?;
                }
            }
        }
        Ok(())
    }
}

impl RetryNumber {
    fn put(self, value: &Value, into: &mut RetrySettings) -> Result<(), &'static str> {
        match self {
            Self::Interval => into.interval = Some(pause(value)?),
            Self::MaxInterval => into.max_interval = Some(pause(value)?),
            Self::MaxAttempts => into.max_attempts = Some(whole(value).ok_or("a whole number from 0")?),
            Self::Multiplier => into.multiplier = Some(number(value, f64::MAX).ok_or("a number from 0")?),
            Self::Jitter => into.jitter = Some(number(value, 1.0).ok_or("a number from 0 to 1")?),
        }
        Ok(())
    }
}

impl SettingsReader for SettingPaths {
    fn read(&self, input: Root<'_>, budget: &Budget) -> Result<Settings, Fault> {
        let mut settings = Settings::default();
        for (setting, path) in &self.0 {
            let refuse = |cause: String| Fault::new(FaultKind::Input, format!("`{}`: {cause}", setting.name()));
            let found = budget.within(path.text(), path.find(input, budget))?;
            let value = found.ok_or_else(|| refuse(format!("`{}` finds nothing", path.text())))?;
            setting.put(&value, &mut settings).map_err(|wanted| {
                let found = match &value {
                    Value::Number(number) => number.to_string(),
                    other => other.kind().to_owned(),
                };
                refuse(format!("`{}` finds {found}, and it must be {wanted}", path.text()))
            })?;
        }
        Ok(settings)
    }
}

/// A whole number from 0, also one written with a fraction of zero, as far as the checker takes one in a definition.
fn whole(value: &Value) -> Option<u64> {
    let number = value.as_number()?;
    let exact = || {
        number
            .as_f64()
            .filter(|number| number.fract() == 0.0 && (0.0..1e18).contains(number))
    };
    number.as_u64().or_else(|| exact().map(|number| number as u64))
}

fn number(value: &Value, most: f64) -> Option<f64> {
    let number = value.as_number()?.as_f64()?;
    (0.0..=most).contains(&number).then_some(number)
}

/// A time limit in whole seconds.
fn timeout(value: &Value) -> Result<Millis, &'static str> {
    let bound = whole(value).filter(|seconds| *seconds > 0).map(Millis::from_secs);
    bound
        .filter(|bound| *bound <= EXECUTION_TIMEOUT)
        .ok_or("a whole number of seconds from 1 to 31536000")
}

/// A pause in seconds, with fractions; rounded up.
fn pause(value: &Value) -> Result<Millis, &'static str> {
    let seconds = number(value, EXECUTION_TIMEOUT.as_secs_f64()).ok_or("a number of seconds from 0 to 31536000")?;
    Ok(Millis(((seconds * 1e6).round() / 1e3).ceil() as u64))
}
