//! How a state is shown: its word, its sign and its colour.

use crate::read::{items, text, time};
use crate::texts::Language;
use crate::zone::Reader;
use starbridge_flow::value::Value;

/// A state as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// The class of the colour.
    pub(crate) class: &'static str,
    /// The name of the sign.
    pub(crate) sign: &'static str,
    /// In English; texts translate it.
    pub(crate) word: &'static str,
}

/// How the status of an execution or of a step is shown. One that is not known is shown as a new one.
pub(crate) fn state(status: &str, t: Reader) -> State {
    let (class, sign, word) = match status {
        "Succeeded" | "succeeded" => ("ok", "ok", t.succeeded),
        "Running" | "running" => ("run", "run", t.running),
        "Failed" | "failed" => ("fail", "fail", t.failed),
        "TimedOut" => ("fail", "time", t.timed_out),
        "Stopped" => ("stop", "stop", t.stopped),
        "Manual" | "manual" => ("man", "man", t.manual),
        "RollingBack" => ("undo", "undo", t.rolling_back),
        "RolledBack" | "rolledBack" => ("undo", "undo", t.rolled_back),
        "RollbackFailed" | "rollbackFailed" => ("undo", "left", t.rollback_failed),
        "Delayed" => ("wait", "glass", t.delayed),
        "Blocked" => ("wait", "lock", t.blocked),
        "Queued" => ("wait", "wait", t.queued),
        "entered" => ("run", "run", t.entered),
        "waiting" => ("wait", "wait", t.waiting),
        "retrying" => ("wait", "again", t.retrying),
        "polling" => ("wait", "again", t.polling),
        "caught" => ("caught", "flag", t.caught),
        "cancelled" => ("stop", "stop", t.cancelled),
        "notBegun" => ("wait", "glass", t.not_begun),
        "skipped" => ("stop", "stop", t.skipped),
        _ => ("wait", "glass", t.starting),
    };
    State { class, sign, word }
}

/// Why executions do not go on: the sign and the word of a reason, as the API calls it.
pub(crate) fn reason(reason: &str, t: Reader) -> (&'static str, &'static str) {
    match reason {
        "manual" => ("man", t.manual),
        "broken" => ("left", t.broken),
        "paused" => ("wait", t.paused),
        "startTime" => ("glass", t.delayed),
        "dependency" => ("glass", t.why_dependency),
        "key" => ("lock", t.why_key),
        "flowLimit" => ("lock", t.why_flow_limit),
        "flowPaused" => ("wait", t.why_flow_paused),
        "admission" => ("wait", t.why_admission),
        "queue" => ("wait", t.why_queue),
        "worker" => ("run", t.why_worker),
        "callback" => ("glass", t.why_callback),
        "child" => ("fork", t.why_child),
        "retry" => ("again", t.why_retry),
        "poll" => ("again", t.why_poll),
        "timer" => ("time", t.why_timer),
        "call" => ("run", t.why_call),
        _ => ("run", t.running),
    }
}

/// What an execution or a step waits for, in a sentence. The API's own is in English; in another language it is made of the same
/// members.
pub(crate) fn waits(waiting: &Value, t: Reader) -> String {
    if t.spoken == Language::English {
        return t.retold(text(waiting, "text"));
    }
    let mut says = match text(waiting, "step") {
        "" => String::new(),
        step => format!("{step}："),
    };
    says.push_str(reason(text(waiting, "reason"), t).1);
    let of = ["of", "key", "queue", "worker", "flow", "execution", "resource"];
    let of = of.iter().map(|member| text(waiting, member)).find(|of| !of.is_empty());
    if let Some(of) = of.or_else(|| {
        items(waiting, "executions")
            .first()
            .map(|first| text(first, "execution"))
    }) {
        says.push_str(&format!("（{of}）"));
    }
    let because = match text(waiting, "because") {
        "queuePaused" => t.queue_is_paused,
        "noWorker" => t.no_worker_asks,
        "limit" | "rate" => t.queue_limit,
        _ => "",
    };
    let cause = match text(waiting, "reason") {
        "broken" => text(waiting, "text"),
        _ => text(waiting, "cause"),
    };
    let by = text(waiting, "by");
    for (before, more) in [("，", because), ("，", by), ("：", cause)] {
        if !more.is_empty() {
            says.push_str(&format!("{before}{more}"));
        }
    }
    if time(waiting, "until").is_some() {
        says.push_str(&format!("，{} {}", t.until, t.moment(waiting, "until")));
    }
    if let Some(own) = waiting.get("waitingFor").filter(|own| own.as_object().is_some()) {
        says.push_str(&format!("；{}", waits(own, t)));
    }
    says
}

/// The reasons that a list can be filtered by.
pub(crate) const REASONS: [&str; 16] = [
    "manual",
    "broken",
    "paused",
    "startTime",
    "dependency",
    "key",
    "flowLimit",
    "flowPaused",
    "admission",
    "queue",
    "worker",
    "callback",
    "child",
    "retry",
    "poll",
    "timer",
];

/// The statuses that a list can be filtered by.
pub(crate) const STATUSES: [&str; 12] = [
    "Running",
    "Manual",
    "RollingBack",
    "Queued",
    "Blocked",
    "Delayed",
    "Succeeded",
    "Failed",
    "TimedOut",
    "Stopped",
    "RolledBack",
    "RollbackFailed",
];

/// Whether an execution with this status has ended.
pub(crate) fn has_ended(status: &str) -> bool {
    matches!(
        status,
        "Succeeded" | "Failed" | "TimedOut" | "Stopped" | "RolledBack" | "RollbackFailed"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texts::Language;
    use crate::zone::Zone;

    #[test]
    fn what_is_waited_for_is_said_in_the_language_of_the_page() {
        let waiting = br#"{"reason": "child", "of": "c-1", "text": "its child c-1 is Running: ...", "waitingFor": {"reason":
            "queue", "queue": "mail", "because": "noWorker", "text": "its task is in the queue `mail`: no worker asks for tasks"}}"#;
        let waiting = Value::read_bounded(waiting, 1 << 16).unwrap();
        assert_eq!(
            waits(&waiting, Reader::new(Language::English, Zone::default())),
            "its child c-1 is Running: ..."
        );
        let chinese = waits(&waiting, Reader::new(Language::Chinese, Zone::default()));
        assert_eq!(chinese, "等待子执行（c-1）；在队列中（mail），没有工作者领取任务");
    }

    #[test]
    fn each_status_has_a_word_of_its_own() {
        for language in [Language::English, Language::Chinese] {
            let mut words: Vec<&str> = STATUSES
                .map(|status| state(status, Reader::new(language, Zone::default())).word)
                .to_vec();
            words.sort_unstable();
            words.dedup();
            assert_eq!(words.len(), STATUSES.len());
        }
    }
}
