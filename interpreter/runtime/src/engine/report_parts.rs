//! Reports without secrets, and without their logs.

use super::commands::Report;
use crate::secrets::Vault;

impl Report {
    /// This report with secrets redacted.
    pub(super) fn redacted(self, vault: &Vault) -> Self {
        let text = |text: String| vault.redacted_text(&text).unwrap_or(text);
        match self {
            Self::Succeed(output) => Self::Succeed(vault.redacted(&output).unwrap_or(output)),
            Self::Fail { error, cause } => Self::Fail {
                error: text(error),
                cause: text(cause),
            },
            Self::Heartbeat => Self::Heartbeat,
            Self::Logged { report, log } => Self::Logged {
                report: Box::new(report.redacted(vault)),
                log: vault.redacted_log(log),
            },
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
