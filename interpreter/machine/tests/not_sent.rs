//! Whether a failed task is undone follows from a member of the event, never from the name of the error.

mod set_up;

use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Value;
use starbridge_machine::history::{read_event, read_turn, write_event, write_turn};
use starbridge_machine::{CancelReason, Event, EventId, Signal, State, Status};
use std::sync::Arc;

const NOW: Timestamp = Timestamp(1_704_067_200_000);
const NO_SUCH: &str = "FnF.NoSuchResource";

/// An execution with one scheduled task that has a rollback.
struct Run {
    flow: Arc<Flow>,
    state: State,
}

impl Run {
    fn new(more: &str) -> Self {
        let step = format!(
            r#"{{"type": "task", "name": "t", "resourceArn": "http://x/",
               "rollback": {{"resourceArn": "http://x/undo"}} {more}}}"#
        );
        let mut run = Self {
            flow: set_up::flow(&step),
            state: State::new("e", Arc::new(Limits::default())),
        };
        run.give(set_up::start());
        run
    }

    /// Gives a signal, and checks that its events are read back unchanged from the stored and the exported form.
    fn give(&mut self, signal: Signal) -> Vec<Event> {
        let (flow, mut events) = (self.flow.clone(), Vec::new());
        let before = self.state.clone();
        self.state.advance(&flow, signal.clone(), NOW, &mut events).unwrap();
        let read = read_turn(&flow, events[0].id, events[0].time, &write_turn(&flow, &events)).unwrap();
        assert_eq!(read, events);
        for event in &events {
            assert_eq!(&read_event(&flow, &write_event(&flow, event).into()).unwrap(), event);
        }
        if !matches!(signal, Signal::Start(_)) {
            assert_eq!(before.recorded_signal(&flow, &events), Some(signal));
        }
        events
    }

    fn call(&self) -> EventId {
        self.state.calls_in_flight().next().unwrap()
    }

    /// Lets the task fail. Returns the detail of the event, in the exported form.
    fn fail(&mut self, error: &str, not_sent: bool) -> String {
        let signal = Signal::Failed {
            call: self.call(),
            error: error.to_owned(),
            cause: String::new(),
            retry_after: None,
            not_sent,
            holder: None,
        };
        let events = self.give(signal);
        detail(&self.flow, &events[0])
    }

    fn is_undone(&self) -> bool {
        match self.state.status() {
            Status::RollingBack => true,
            Status::Failed => false,
            other => panic!("{other:?}"),
        }
    }

    fn wait(&mut self) {
        let due = self.state.next_wakeup().unwrap();
        let timer = self.state.due(due).next().unwrap();
        let mut events = Vec::new();
        let flow = self.flow.clone();
        self.state
            .advance(&flow, Signal::TimerDue(timer), due, &mut events)
            .unwrap();
    }

    /// Folds an event with this detail.
    fn fold(&mut self, kind: &str, detail: &str) {
        let call = self.call();
        let text = format!(
            r#"{{"id": {}, "causedBy": {call}, "time": "{NOW}", "step": "t", "path": [], "type": "{kind}", "detail": {detail}}}"#,
            self.state.last_event().next()
        );
        let event = read_event(&self.flow, &serde_json::from_str::<Value>(&text).unwrap()).unwrap();
        self.state.apply(&self.flow, &event);
        let mut events = Vec::new();
        self.state
            .advance(&self.flow, Signal::Continue, NOW, &mut events)
            .unwrap();
    }
}

fn detail(flow: &Flow, event: &Event) -> String {
    write_event(flow, event).get("detail").unwrap().to_json()
}

#[test]
fn not_sent_is_decided_by_the_member_and_not_the_name() {
    for (error, not_sent, undone, written) in [
        ("Paper.Jam", false, true, r#"{"error":"Paper.Jam","cause":""}"#),
        (
            "Paper.Jam",
            true,
            false,
            r#"{"error":"Paper.Jam","cause":"","notSent":true}"#,
        ),
        (
            NO_SUCH,
            true,
            false,
            r#"{"error":"FnF.NoSuchResource","cause":"","notSent":true}"#,
        ),
        (
            NO_SUCH,
            false,
            true,
            r#"{"error":"FnF.NoSuchResource","cause":"","notSent":false}"#,
        ),
    ] {
        let mut run = Run::new("");
        assert_eq!(run.fail(error, not_sent), written);
        assert_eq!(run.is_undone(), undone, "{written}");
    }
}

#[test]
fn not_sent_of_a_call_for_a_callback() {
    for (error, not_sent) in [
        ("HTTP.500", false),
        (NO_SUCH, false),
        ("HTTP.500", true),
        (NO_SUCH, true),
    ] {
        let mut run = Run::new(r#", "pattern": "waitForCallback""#);
        run.give(Signal::SubmitFailed {
            call: run.call(),
            error: error.to_owned(),
            cause: String::new(),
            not_sent,
        });
        assert_eq!(run.is_undone(), !not_sent, "{error}");
    }
}

#[test]
fn rollback_undoes_an_earlier_attempt_that_was_sent() {
    let retry = r#", "retry": [{"errors": ["FnF.ALL"], "maxAttempts": 1, "intervalSeconds": 1}]"#;
    for (first, second, undone) in [(false, true, true), (true, false, true), (true, true, false)] {
        let mut run = Run::new(retry);
        run.fail("Busy", first);
        run.wait();
        run.fail("Busy", second);
        assert_eq!(run.is_undone(), undone, "{first} {second}");
    }
}

/// Before the member `notSent` existed, the name alone said it.
#[test]
fn not_sent_in_histories_without_the_member() {
    for kind in ["TaskFailed", "TaskSubmitFailed"] {
        for (error, undone) in [
            (NO_SUCH, false),
            ("Function.FnF.NoSuchResource", true),
            ("Paper.Jam", true),
        ] {
            let mut run = Run::new("");
            run.fold(kind, &format!(r#"{{"error": "{error}", "cause": "c"}}"#));
            assert_eq!(run.is_undone(), undone, "{kind} {error}");
        }
    }
}

#[test]
fn history_with_unknown_words_is_refused() {
    let flow = Run::new("").flow;
    for (kind, detail, problem) in [
        (
            "TaskCancelled",
            r#"{"of": 4, "reason": "Boredom"}"#,
            "there is no reason to cancel a call `Boredom`",
        ),
        (
            "LateResultIgnored",
            r#"{"of": 4, "code": "Late"}"#,
            "there is no code of a late result `Late`",
        ),
        (
            "ManualResolved",
            r#"{"action": "dance", "by": "me"}"#,
            "there is no decision `dance`",
        ),
        (
            "TaskFailed",
            r#"{"error": "E", "cause": "c", "notSent": "no"}"#,
            "`notSent` must be true or false, not a string",
        ),
    ] {
        let text = format!(
            r#"{{"id": 5, "causedBy": 4, "time": "{NOW}", "step": "t", "path": [], "type": "{kind}", "detail": {detail}}}"#
        );
        let read = read_event(&flow, &serde_json::from_str::<Value>(&text).unwrap());
        assert_eq!(read.unwrap_err().message, problem);
    }
}

#[test]
fn history_words_are_read_as_they_are_written() {
    for reason in CancelReason::ALL {
        assert_eq!(CancelReason::parse(reason.as_str()), Some(*reason));
        let json = serde_json::to_string(reason).unwrap();
        assert_eq!(json, format!("\"{}\"", reason.as_str()));
        assert_eq!(serde_json::from_str::<CancelReason>(&json).unwrap(), *reason);
    }
    assert_eq!(CancelReason::parse("stopped"), None);
}
