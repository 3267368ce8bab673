//! Reports without secrets, and without their logs.

use super::commands::Report;
use crate::secrets::Vault;

impl Report {
    /// Whether it is a heartbeat, with a log or without.
    pub fn is_heartbeat(&self) -> bool {
        match self {
            Self::Heartbeat => true,
            Self::Logged { report, .. } => report.is_heartbeat(),
            Self::Succeed(_) | Self::Fail { .. } | Self::Log(_) => false,
        }
    }

    /// What of a heartbeat that the queues have taken is left to do.
    #[must_use]
    pub fn after_heartbeat(self) -> Option<Self> {
        match self {
            Self::Logged { log, .. } if !log.is_empty() => Some(Self::Log(log)),
            _ => None,
        }
    }

    /// This report with secrets redacted.
    pub(super) fn redacted(self, vault: &Vault) -> Self {
        let text = |text: String| vault.redacted_text(&text).unwrap_or(text);
        match self {
            Self::Succeed(output) => Self::Succeed(vault.redacted(&output).unwrap_or(output)),
            Self::Fail { error, cause } => Self::Fail {
                error: text(error),
                cause: vault.redacted_cause(cause),
            },
            Self::Heartbeat => Self::Heartbeat,
            Self::Logged { report, log } => Self::Logged {
                report: Box::new(report.redacted(vault)),
                log: vault.redacted_log(log),
            },
            Self::Log(log) => Self::Log(vault.redacted_log(log)),
        }
    }

    /// The report without its log, and the log.
    pub(super) fn split_log(self) -> (Self, Option<String>) {
        match self {
            Self::Logged { report, log } => (report.split_log().0, Some(log)),
            other => (other, None),
        }
    }
}
