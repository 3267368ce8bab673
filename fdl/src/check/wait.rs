//! `wait` and `fail` steps.

use super::Checker;
use super::cursor::Cursor;
use super::paths::looked_up;
use crate::diagnostics::{Code, Diagnostic};
use crate::duration;
use crate::expression::Path;
use crate::graph::{Fail, Source, StepKind, Wait};
use crate::limits::{ERROR_CAUSE_CHARS, ERROR_NAME_CHARS};
use crate::path::Query;
use crate::syntax::NodeKind;
use crate::time::Timestamp;

const DAY_SECONDS: f64 = 86_400.0;

impl Checker<'_> {
    /// A wait's own fields.
    pub(super) fn wait(&self, cursor: &Cursor<'_>) -> Option<StepKind> {
        let (field, value) = self.one_of(cursor, &["duration", "timestamp"], true)?;
        let wait = match field {
            "duration" => Wait::Duration(self.duration(&value)?),
            _ => Wait::Timestamp(self.timestamp(&value)?),
        };
        Some(StepKind::Wait(wait))
    }

    fn duration(&self, cursor: &Cursor<'_>) -> Option<Source> {
        let seconds = match &cursor.node.kind {
            NodeKind::Number(number) => number.as_f64(),
            NodeKind::String(text) if text.starts_with('$') => {
                return self.query(cursor, text).map(looked_up);
            }
            NodeKind::String(text) => {
                let seconds = text.trim().parse::<f64>().ok().filter(|seconds| seconds.is_finite());
                if seconds.is_none() {
                    self.report(bad_duration(cursor, text));
                    return None;
                }
                seconds
            }
            _ => {
                self.wrong_type(cursor, "a number of seconds, or a path");
                return None;
            }
        };
        let most = self.limits.wait_days;
        if seconds.is_some_and(|seconds| seconds > most as f64 * DAY_SECONDS) {
            let days = if most == 1 { "day" } else { "days" };
            let found = cursor.problem(Code::WaitTooLong, format!("a wait may take {most} {days} at most"));
            self.report(found.help("longer ones fail with `FnF.LimitExceeded`"));
        }
        if seconds.is_some_and(|seconds| seconds < 0.0) {
            let found = cursor.problem(Code::NegativeWait, "a wait of less than no time ends at once");
            self.report(found.help("write how many seconds to wait"));
        }
        Some(Source::Constant(cursor.node.to_value()))
    }

    fn timestamp(&self, cursor: &Cursor<'_>) -> Option<Source> {
        let text = self.text(cursor)?;
        if text.starts_with('$') {
            return self.query(cursor, &text).map(looked_up);
        }
        if Timestamp::parse(&text).is_none() {
            let found = cursor.problem(Code::BadTimestamp, format!("`{text}` is not a point in time"));
            self.report(found.help("write RFC 3339 with an offset, such as `2024-01-31T12:00:00Z`, or a path"));
            return None;
        }
        Some(Source::Constant(cursor.node.to_value()))
    }

    /// A fail's own fields.
    pub(super) fn fail(&self, cursor: &Cursor<'_>) -> Option<StepKind> {
        let said = |field: &str, most: usize| {
            let field = cursor.member(field)?;
            self.said(&field, most)
        };
        Some(StepKind::Fail(Fail {
            error: said("error", ERROR_NAME_CHARS),
            cause: said("cause", ERROR_CAUSE_CHARS),
        }))
    }

    /// A text, or a path into the step's own input.
    fn said(&self, cursor: &Cursor<'_>, most: usize) -> Option<Source> {
        let text = self.text(cursor)?;
        if let Some(rest) = text.strip_prefix("$input").filter(|_| Path::is_path(&text)) {
            self.path(cursor, &text)?;
            return Query::parse(&format!("${rest}")).ok().map(looked_up);
        }
        self.check_constant(cursor, &text, "only the step's own input can be seen here: `$input`");
        let chars = text.chars().count();
        if chars > most {
            let message = format!("{} has {chars} characters and is cut to {most}", cursor.called());
            self.report(cursor.problem(Code::TextCut, message));
        }
        Some(Source::Constant(cursor.node.to_value()))
    }
}

fn bad_duration(cursor: &Cursor<'_>, text: &str) -> Diagnostic {
    let found = cursor.problem(Code::BadDuration, format!("`{text}` is not a number of seconds"));
    if Timestamp::parse(text).is_some() {
        return found.help("a point in time goes into `timestamp`");
    }
    if let Some(seconds) = duration::seconds(text) {
        let help = format!("write `{seconds}`");
        return found
            .help(help)
            .fix("write the number of seconds", cursor.node.span, seconds.to_string());
    }
    found.help("write seconds, such as `90`, or a path into the step's own input, such as `$.seconds`")
}
