//! Operator actions on executions that have to be admitted, with a crash after any append: redrives
//! with another definition, forks, pauses, decisions for steps, and undos that are left out.

use super::*;
use starbridge_machine::{Decision, Event, NewDefinition, Resolution};
use starbridge_ports::Receivers;

const MANUAL: &str = r#"{"type": "task", "name": "call", "resourceArn": "http://x/f",
    "catch": [{"errors": ["FnF.ALL"], "manual": true}]}"#;
const UNDONE: &str = r#"{"type": "task", "name": "one", "resourceArn": "http://x/f", "rollback": {"resourceArn": "http://x/undo"}},
    {"type": "task", "name": "two", "resourceArn": "http://x/f"}"#;
const FAIL: &str = r#"{"type": "fail", "name": "call", "error": "E", "cause": "c"}"#;

impl World {
    fn load(&mut self, id: &Text) {
        if self.shard.state(id).is_none() && !self.shard.waits_to_begin(id) {
            self.fetch(id);
        }
    }

    /// The durable events of an execution, with the step numbers of a version.
    fn read(&self, id: &str, version: u64) -> (Arc<Flow>, Vec<Event>) {
        let flow = self.shard.flows().running("f", version).unwrap();
        let kept = self.kept.load(id).unwrap().unwrap();
        let turns = kept.turns.iter();
        let events = turns.flat_map(|turn| read_turn(&flow, turn.first, turn.time, &turn.text).unwrap());
        let events = events.collect();
        (flow, events)
    }

    fn redefine(&mut self, id: &Text, version: u64) -> Result<(), Rejection> {
        self.load(id);
        let (flow, events) = self.read(id, version);
        let definition = NewDefinition {
            version,
            hash: flow.hash.clone(),
        };
        let request = RedefineRequest {
            execution: id.clone(),
            flow,
            events,
            signal: Signal::Redrive {
                by: None,
                inputs: Vec::new(),
                definition: Some(definition),
            },
            audit: None,
        };
        let asked = self.shard.redefine(request, self.now);
        self.settle();
        asked
    }

    fn fork(&mut self, of: &Text) -> Text {
        let (flow, events) = self.read(of, 1);
        let request = ForkRequest {
            of: of.clone(),
            old_flow: flow.clone(),
            flow,
            version: None,
            events,
            event: EventId(1),
            name: Some("fork".into()),
            audit: None,
            by: None,
        };
        let id = self.shard.fork(&request, self.now).unwrap();
        self.settle();
        id
    }

    fn pause(&mut self, id: &Text) {
        let pause = Signal::Pause {
            by: None,
            cause: String::new(),
            with_parent: false,
        };
        self.ask_until_durable(id, &pause);
    }

    fn resume(&mut self, id: &Text) {
        let resume = Signal::Resume {
            by: None,
            with_parent: false,
        };
        self.ask_until_durable(id, &resume);
    }

    /// The oldest call that is out fails.
    fn fail_call(&mut self) {
        let (execution, call) = self.calls.remove(0);
        let failed = Signal::Failed {
            call,
            error: "Broken".to_owned(),
            cause: String::new(),
            retry_after: None,
            not_sent: false,
            holder: None,
        };
        let _ = self.shard.signal(&execution, failed, self.now);
        self.settle();
    }

    fn is_at_rest(&self, crash: usize) {
        assert!(
            self.kept.messages(&Receivers::All).unwrap().is_empty(),
            "after a crash at {crash}"
        );
        let admission = &self.admission;
        assert!(
            admission.holders.is_empty() && admission.waiters.is_empty(),
            "after a crash at {crash}: {:?}",
            admission.holders
        );
        for (id, kept) in self.kept.executions.lock().unwrap().iter() {
            assert!(kept.request.is_none(), "{id} after a crash at {crash}");
        }
    }

    fn admitted(&self, id: &Text) -> usize {
        let admitted = self.admission.admitted.iter();
        admitted.filter(|admitted| *admitted == id).count()
    }

    fn count(&self, id: &Text, event: &str) -> usize {
        self.events(id).matches(event).count()
    }
}

#[test]
fn redrive_with_another_definition_waits_with_its_old_history() {
    let mut world = World::new(0);
    world.answers = false;
    let first = world.start("a", |_| {});
    world.stop(&first);
    let holder = world.start("a", |_| {});
    let before = world.events(&first);
    world.redefine(&first, 2).unwrap();
    let record = world.kept.record(&first);
    assert_eq!((record.status, record.version), (Status::Queued, 1));
    assert_eq!(world.events(&first), before);
    assert_eq!(world.redefine(&first, 2), Err(Rejection::NotRedrivable));
    world.stop(&first);
    let record = world.kept.record(&first);
    assert_eq!((record.status, record.version), (Status::Stopped, 1));
    world.now = world.now.plus(Millis(1));
    world.redefine(&first, 2).unwrap();
    world.answers = true;
    world.settle();
    let record = world.kept.record(&first);
    assert_eq!((record.status, record.version), (Status::Succeeded, 2));
    assert!(world.count(&first, r#""step":"end""#) > 0, "{}", world.events(&first));
    assert_eq!(world.status(&holder), Status::Succeeded);
    world.is_at_rest(0);
}

#[test]
fn fork_waits_and_begins_although_it_was_left_to_the_store() {
    let mut world = World::new(0);
    world.answers = false;
    let first = world.start("a", |_| {});
    let fork = world.fork(&first);
    let record = world.kept.record(&fork);
    assert_eq!(record.status, Status::Queued);
    assert_eq!(record.forked.as_ref().map(|of| &of.execution), Some(&first));
    assert_eq!(world.events(&fork), "", "no history before it is admitted");
    world.shard.leave_waiting();
    world.answers = true;
    world.settle();
    assert_eq!(
        (world.status(&first), world.status(&fork)),
        (Status::Succeeded, Status::Succeeded)
    );
    assert_eq!(world.count(&fork, "ExecutionForked"), 1, "{}", world.events(&fork));
    world.is_at_rest(0);
}

#[test]
fn fork_fails_if_what_it_goes_on_from_is_gone() {
    let mut world = World::new(0);
    world.answers = false;
    let (first, holder) = (world.start("a", |_| {}), world.start("a", |_| {}));
    let fork = world.fork(&first);
    world.stop(&first);
    world.shard.leave_waiting();
    world.shard.forget(&first);
    world.kept.executions.lock().unwrap().remove(&first);
    world.stop(&holder);
    assert_eq!(world.status(&fork), Status::Failed);
    assert_eq!(
        world.count(&fork, "is not there any more"),
        1,
        "{}",
        world.events(&fork)
    );
    world.is_at_rest(0);
}

#[test]
fn fork_that_waits_is_stopped_without_a_step() {
    let mut world = World::new(0);
    world.answers = false;
    let first = world.start("a", |_| {});
    let fork = world.fork(&first);
    world.stop(&fork);
    assert_eq!(world.status(&fork), Status::Stopped);
    assert_eq!(
        (
            world.count(&fork, "ExecutionStopped"),
            world.count(&fork, "StepEntered")
        ),
        (1, 0)
    );
    world.answers = true;
    world.settle();
    world.is_at_rest(0);
}

/// Redrives with another definition, forks and pauses while the slot is taken. Returns how often something became durable.
fn waiting_story(crash: usize) -> usize {
    let mut world = World::of(crash, CALL);
    world.answers = false;
    let first = world.start("a", |_| {});
    world.stop(&first);
    let holder = world.start("a", |_| {});
    let paused = world.start("a", |_| {});
    let fork = world.fork(&first);
    world.redefine(&first, 2).unwrap();
    world.pause(&paused);
    world.answers = true;
    world.settle();
    assert_eq!(world.status(&paused), Status::Queued, "after a crash at {crash}");
    world.resume(&paused);
    for (id, times) in [(&first, 2), (&holder, 1), (&paused, 2), (&fork, 1)] {
        assert_eq!(world.status(id), Status::Succeeded, "{id} after a crash at {crash}");
        assert_eq!(world.admitted(id), times, "{id} after a crash at {crash}");
        assert_eq!(world.count(id, "ExecutionStarted"), 1, "{id} after a crash at {crash}");
    }
    assert_eq!(world.kept.record(&first).version, 2);
    assert_eq!(world.count(&first, "ExecutionRedriven"), 1, "after a crash at {crash}");
    assert_eq!(world.count(&fork, "ExecutionForked"), 1, "after a crash at {crash}");
    world.is_at_rest(crash);
    world.writes
}

/// A step asks an operator, who decides while another execution waits for the slot.
fn manual_story(crash: usize) -> usize {
    let mut world = World::of(crash, MANUAL);
    world.answers = false;
    let first = world.start("a", |_| {});
    while world.status(&first) == Status::Running {
        world.fail_call();
    }
    assert_eq!(world.status(&first), Status::Manual, "after a crash at {crash}");
    let second = world.start("a", |_| {});
    assert_eq!(
        world.status(&second),
        Status::Queued,
        "the step that asks keeps the slot"
    );
    world.load(&first);
    let request = world.shard.state(&first).unwrap().last_event();
    let resolution = Resolution {
        decision: Decision::Retry,
        by: "o".into(),
        note: None,
    };
    let resolve = Signal::Resolve {
        request,
        resolution: Box::new(resolution),
    };
    world.ask_until_durable(&first, &resolve);
    world.answers = true;
    world.settle();
    for id in [&first, &second] {
        assert_eq!(world.status(id), Status::Succeeded, "{id} after a crash at {crash}");
        assert_eq!(world.admitted(id), 1, "{id} after a crash at {crash}");
    }
    assert_eq!(world.count(&first, "ManualResolved"), 1, "after a crash at {crash}");
    world.is_at_rest(crash);
    world.writes
}

/// An undo fails and is left out, while another execution waits for the slot.
fn skip_story(crash: usize) -> usize {
    let mut world = World::of(crash, UNDONE);
    world.answers = false;
    let first = world.start("a", |_| {});
    let second = world.start("a", |_| {});
    let (execution, call) = world.calls.remove(0);
    assert_eq!(execution, first);
    world.ask_until_durable(&first, &succeeded(call));
    let stop = Signal::Stop {
        error: None,
        cause: "no longer wanted".to_owned(),
        by: None,
        rollback: true,
        with_parent: false,
    };
    world.ask_until_durable(&first, &stop);
    assert_eq!(
        (world.status(&first), world.status(&second)),
        (Status::RollingBack, Status::Queued),
        "after a crash at {crash}"
    );
    while world.status(&first) == Status::RollingBack {
        world.fail_call();
    }
    assert_eq!(world.status(&first), Status::RollbackFailed, "after a crash at {crash}");
    let skip = Signal::Skip {
        by: None,
        cause: "done by hand".to_owned(),
    };
    world.ask_until_durable(&first, &skip);
    assert_eq!(
        (world.status(&first), world.count(&first, "RollbackSkipped")),
        (Status::Queued, 0),
        "the other one holds the slot, after a crash at {crash}"
    );
    world.answers = true;
    world.settle();
    assert_eq!(world.count(&first, "RollbackSkipped"), 1, "after a crash at {crash}");
    assert!(world.status(&first).is_ended(), "after a crash at {crash}");
    assert_eq!(world.status(&second), Status::Succeeded, "after a crash at {crash}");
    assert_eq!(world.admitted(&second), 1, "after a crash at {crash}");
    world.is_at_rest(crash);
    world.writes
}

/// A redrive that ends in its first turn.
fn ending_story(crash: usize) -> usize {
    let mut world = World::of(crash, FAIL);
    let first = world.start("a", |_| {});
    world.now = world.now.plus(Millis(1));
    world.ask_until_durable(&first, &redrive());
    let second = world.start("a", |_| {});
    for (id, times) in [(&first, 2), (&second, 1)] {
        assert_eq!(world.status(id), Status::Failed, "{id} after a crash at {crash}");
        assert_eq!(world.admitted(id), times, "{id} after a crash at {crash}");
    }
    assert_eq!(world.count(&first, "ExecutionRedriven"), 1, "after a crash at {crash}");
    world.is_at_rest(crash);
    world.writes
}

/// What has succeeded is undone, while another execution holds the slot.
fn undo_story(crash: usize) -> usize {
    let mut world = World::of(crash, UNDONE);
    let first = world.start("a", |_| {});
    assert_eq!(world.status(&first), Status::Succeeded, "after a crash at {crash}");
    world.answers = false;
    let second = world.start("a", |_| {});
    let stop = Signal::Stop {
        error: None,
        cause: "no longer wanted".to_owned(),
        by: None,
        rollback: true,
        with_parent: true,
    };
    world.now = world.now.plus(Millis(1));
    world.ask_until_durable(&first, &stop);
    assert_eq!(
        (world.status(&first), world.count(&first, "ExecutionStopped")),
        (Status::Queued, 0),
        "after a crash at {crash}"
    );
    world.answers = true;
    world.settle();
    assert_eq!(world.status(&first), Status::RolledBack, "after a crash at {crash}");
    assert_eq!(world.status(&second), Status::Succeeded, "after a crash at {crash}");
    assert_eq!(
        (world.admitted(&first), world.admitted(&second)),
        (2, 1),
        "after a crash at {crash}"
    );
    world.is_at_rest(crash);
    world.writes
}

#[test]
fn paused_waiter_lets_others_go_first() {
    let mut world = World::new(0);
    world.answers = false;
    let holder = world.start("a", |_| {});
    let paused = world.start("a", |request| request.deadline = Some(Millis(100)));
    let next = world.start("a", |_| {});
    world.pause(&paused);
    world.stop(&holder);
    assert_eq!(
        (world.status(&paused), world.status(&next)),
        (Status::Queued, Status::Running)
    );
    // Its time to begin passes during the pause.
    world.now = Timestamp(101);
    world.resume(&paused);
    assert_eq!(world.status(&paused), Status::Failed);
    assert_eq!(
        world.count(&paused, "startDeadlineSeconds"),
        1,
        "{}",
        world.events(&paused)
    );
    world.answers = true;
    world.settle();
    world.is_at_rest(0);
}

#[test]
fn one_whose_dependencies_have_ended_is_queued() {
    let mut world = World::new(0);
    world.answers = false;
    let holder = world.start("a", |_| {});
    let other = world.start("b", |_| {});
    let dependency = Dependency {
        flow: None,
        execution: other.clone(),
        any_end: false,
    };
    let after = world.start("a", |request| request.after = vec![dependency]);
    assert_eq!(world.status(&after), Status::Blocked);
    let place = world.calls.iter().position(|(id, _)| *id == other).unwrap();
    let (_, call) = world.calls.remove(place);
    world.ask_until_durable(&other, &succeeded(call));
    assert_eq!(
        (world.status(&other), world.status(&after)),
        (Status::Succeeded, Status::Queued)
    );
    // A pause and a resume do not make it wait for the other one again.
    world.pause(&after);
    world.stop(&holder);
    world.resume(&after);
    assert_eq!(world.status(&after), Status::Running);
    assert_eq!(world.count(&after, r#""after":[{"#), 1, "{}", world.events(&after));
    world.answers = true;
    world.settle();
    world.is_at_rest(0);
}

#[test]
fn redrive_that_waits_can_not_be_paused() {
    let mut world = World::new(0);
    world.answers = false;
    let first = world.start("a", |_| {});
    world.stop(&first);
    world.start("a", |_| {});
    world.ask_until_durable(&first, &redrive());
    assert_eq!(world.status(&first), Status::Queued);
    world.load(&first);
    let pause = Signal::Pause {
        by: None,
        cause: String::new(),
        with_parent: false,
    };
    assert_eq!(
        world.shard.signal(&first, pause, world.now),
        Err(Rejection::WaitsToGoOn)
    );
}

#[test]
fn crash_after_any_append_of_what_operators_do_loses_nothing_and_does_nothing_twice() {
    for story in [waiting_story, manual_story, skip_story, undo_story, ending_story] {
        let writes = story(0);
        assert!(writes > 8, "{writes}");
        for crash in 1..=writes {
            story(crash);
        }
    }
}
