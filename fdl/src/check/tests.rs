use super::*;
use crate::graph::{
    BackoffKind, CatchTarget, InputMode, Matcher, NumberSource, OutputMode, Pattern, Source as Given, Step, StepId,
    StepKind, Tolerance, Undo, Wait, WaitFor,
};
use crate::time::Millis;
use crate::value::Value;

fn compiled(steps: &str) -> Arc<Flow> {
    let text = format!("{{\"version\": \"v1\", \"type\": \"flow\", \"steps\": {steps}}}");
    let checked = check(&Source::new("flow.json", text), &Limits::default());
    checked.flow.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

fn named<'f>(flow: &'f Flow, name: &str) -> &'f Step {
    flow.step(flow.step_named(name).unwrap()).unwrap()
}

fn names(flow: &Flow, list: usize) -> Vec<&str> {
    let steps = &flow.lists[list].steps;
    steps.iter().map(|&id| &*flow.step(id).unwrap().name).collect()
}

const NESTED: &str = r#"[
    {"type": "choice", "name": "c", "choices": [
        {"condition": "$.x", "steps": [{"type": "pass", "name": "c0"}], "goto": "last"},
        {"condition": "$.y"}], "default": {"steps": [{"type": "pass", "name": "cd"}]}},
    {"type": "parallel", "name": "p", "branches": [
        {"name": "one", "steps": [{"type": "task", "name": "p0", "action": "a:B", "priority": 8}]},
        {"dependsOn": ["one"], "steps": [{"type": "pass", "name": "p1"}, {"type": "pass", "name": "p2"}]}]},
    {"type": "foreach", "name": "f", "iterationMapping": {"collection": "$.l", "item": "i"},
     "steps": [{"type": "pass", "name": "f0", "end": true}]},
    {"type": "pass", "name": "last"}]"#;

#[test]
fn steps_and_lists_are_numbered_in_document_order() {
    let flow = compiled(NESTED);
    let order: Vec<&str> = flow.steps.iter().map(|step| &*step.name).collect();
    assert_eq!(order, ["c", "c0", "cd", "p", "p0", "p1", "p2", "f", "f0", "last"]);
    assert_eq!(names(&flow, 0), ["c", "p", "f", "last"]);
    assert_eq!(names(&flow, 1), ["c0"]);
    assert_eq!(names(&flow, 4), ["p1", "p2"]);
    for (id, step) in flow.steps.iter().enumerate() {
        let list = flow.list(step.list).unwrap();
        assert_eq!(list.steps[step.position as usize], StepId(id as u32));
    }
    assert_eq!(named(&flow, "p1").next, flow.step_named("p2"));
    assert_eq!(named(&flow, "p2").next, None);
    assert_eq!(named(&flow, "f0").next, None);
    assert!(flow.lists.iter().all(|list| !list.loops));
}

#[test]
fn composites_lead_to_their_lists() {
    let flow = compiled(NESTED);
    let StepKind::Choice(choice) = &named(&flow, "c").kind else {
        panic!()
    };
    assert_eq!(choice.arms[0].goto, flow.step_named("last"));
    assert_eq!(&*choice.arms[0].text, "$.x");
    assert!(choice.arms[1].list.is_none() && choice.arms[1].condition.is_some());
    let default = choice.default.as_ref().unwrap();
    assert!(default.condition.is_none());
    assert_eq!(default.list, Some(named(&flow, "cd").list));
    let StepKind::Parallel(parallel) = &named(&flow, "p").kind else {
        panic!()
    };
    assert_eq!(parallel.wait_for, WaitFor::All);
    assert_eq!(parallel.branches[0].priority, 8);
    assert_eq!(
        (parallel.branches[1].priority, &*parallel.branches[1].depends_on),
        (5, &[0][..])
    );
    let StepKind::Foreach(foreach) = &named(&flow, "f").kind else {
        panic!()
    };
    assert!(matches!(foreach.concurrency, NumberSource::Fixed(100)) && foreach.tolerance.is_none());
    assert!(matches!(named(&flow, "p").leave, OutputMode::Nothing));
    assert!(matches!(named(&flow, "f").leave, OutputMode::Nothing));
    assert!(matches!(named(&flow, "c").leave, OutputMode::Local));
}

#[test]
fn lists_with_edges_backward_loop() {
    let back = |target: &str| {
        compiled(&format!(
            r#"[{{"type": "pass", "name": "a"}},
            {{"type": "task", "name": "b", "action": "a:B", "catch": [{{"errors": ["FnF.ALL"], "goto": "{target}"}}]}},
            {{"type": "pass", "name": "c"}}]"#
        ))
    };
    assert!(back("a").lists[0].loops);
    assert!(back("b").lists[0].loops);
    assert!(!back("c").lists[0].loops);
    let arm = compiled(
        r#"[{"type": "pass", "name": "a"}, {"type": "choice", "name": "b", "choices": [{"condition": "$.x", "goto": "a"}]}]"#,
    );
    assert!(arm.lists[0].loops);
}

#[test]
fn defaults_are_those_of_the_language() {
    let flow = compiled(
        r#"[{"type": "task", "name": "a", "resource": "http://localhost/a", "poll": {},
             "retry": [{"errors": ["FnF.ALL"]}, {"errors": ["A"], "values": [1]}]}]"#,
    );
    assert_eq!(flow.timeout, Millis::from_days(365));
    let step = named(&flow, "a");
    assert!(matches!(step.enter, InputMode::Merged) && step.timeout.is_none() && step.failed.is_none());
    let retry = &step.retry[0];
    assert_eq!(retry.errors, [Matcher::Any]);
    assert_eq!(
        (retry.interval, retry.max_interval, retry.max_attempts),
        (Millis(1_000), Millis::from_days(1), 3)
    );
    assert_eq!(
        (retry.multiplier, retry.jitter, retry.backoff),
        (2.0, 0.0, BackoffKind::Exponential)
    );
    assert_eq!(step.retry[1].errors, [Matcher::Named("A".into())]);
    assert_eq!(step.retry[1].max_attempts, u64::MAX);
    let StepKind::Task(task) = &step.kind else { panic!() };
    let poll = task.poll.as_ref().unwrap();
    assert_eq!(
        (poll.interval, poll.max_interval, poll.multiplier),
        (Millis(5_000), Millis(60_000), 1.5)
    );
    assert_eq!((poll.max_attempts, task.priority), (None, None));
    assert_eq!(task.call.pattern, Pattern::RequestResponse);
}

#[test]
fn what_is_written_is_compiled() {
    let flow = compiled(
        r#"[{"type": "task", "name": "a", "resourceArn": "queue:q", "pattern": "waitForCallback", "timeoutSeconds": 9,
             "heartbeatSeconds": 2, "waitSeconds": 3, "inputMappings": [], "errorMappings": [], "outputMappings": [],
             "retry": [{"errors": ["A", "B"], "intervalSeconds": 0.0015, "maxIntervalSeconds": 1.1, "maxAttempts": 0}],
             "catch": [{"errors": ["A"], "goto": "b"}, {"errors": ["FnF.ALL"], "manual": true}],
             "rollback": {"resourceArn": "queue:undo", "timeoutSeconds": 4, "heartbeatSeconds": 6, "waitSeconds": 8,
              "priority": 9, "poll": {"until": "$.a"}}},
            {"type": "task", "name": "b", "resourceArn": "flow:x", "pattern": "sync", "rollback": {"child": true}},
            {"type": "wait", "name": "c", "duration": "$.s"}, {"type": "wait", "name": "d", "duration": "7"},
            {"type": "foreach", "name": "e", "iterationMapping": {"collection": "$.l", "item": "i", "index": "n"},
             "tolerance": {"percent": 12.5}, "steps": [{"type": "pass", "name": "f"}]},
            {"type": "fail", "name": "g", "error": "$input.name", "cause": "$inputs"}]"#,
    );
    let step = named(&flow, "a");
    assert!(matches!(step.timeout, Some(NumberSource::Fixed(Millis(9_000)))));
    assert!(
        matches!(
            (&step.enter, &step.leave),
            (InputMode::Program(_), OutputMode::Program(_))
        ) && step.failed.is_some()
    );
    assert_eq!(
        (step.retry[0].interval, step.retry[0].max_interval),
        (Millis(2), Millis(1_100))
    );
    assert_eq!(step.retry[0].max_attempts, 0);
    assert_eq!(step.catch[0].target, CatchTarget::Goto(StepId(1)));
    assert_eq!(step.catch[1].target, CatchTarget::Manual);
    let StepKind::Task(task) = &step.kind else { panic!() };
    assert_eq!((task.heartbeat, task.wait), (Some(Millis(2_000)), Some(Millis(3_000))));
    let rollback = task.rollback.as_ref().unwrap();
    assert!(matches!(&rollback.undo, Undo::Call(call) if &*call.resource == "queue:undo"));
    assert_eq!(rollback.timeout, Some(Millis(4_000)));
    assert_eq!(
        (rollback.heartbeat, rollback.wait),
        (Some(Millis(6_000)), Some(Millis(8_000)))
    );
    assert_eq!(rollback.priority, Some(9));
    assert_eq!(rollback.poll.as_ref().map(|poll| poll.interval), Some(Millis(5_000)));
    let StepKind::Task(child) = &named(&flow, "b").kind else {
        panic!()
    };
    assert!(matches!(child.rollback.as_ref().unwrap().undo, Undo::Child));
    assert!(matches!(
        &named(&flow, "c").kind,
        StepKind::Wait(Wait::Duration(Given::Lookup(_)))
    ));
    let constant = |given: &Given, value: Value| matches!(given, Given::Constant(there) if *there == value);
    assert!(matches!(&named(&flow, "d").kind, StepKind::Wait(Wait::Duration(given)) if constant(given, "7".into())));
    let StepKind::Foreach(foreach) = &named(&flow, "e").kind else {
        panic!()
    };
    assert_eq!(foreach.tolerance, Some(Tolerance::Percent(12.5)));
    let StepKind::Fail(fail) = &named(&flow, "g").kind else {
        panic!()
    };
    assert!(matches!(&fail.error, Some(Given::Lookup(found)) if &**found.text() == "$.name"));
    assert!(constant(fail.cause.as_ref().unwrap(), "$inputs".into()));
}

/// `levels` nested choices around one step.
fn nested(levels: usize) -> String {
    let mut text = "{\"version\": \"v1\", \"type\": \"flow\", \"steps\": [".to_owned();
    for level in 0..levels {
        text += &format!(
            "{{\"type\": \"choice\", \"name\": \"s{level}\", \"choices\": [{{\"condition\": \"$.x\", \"steps\": ["
        );
    }
    text + "{\"type\": \"pass\", \"name\": \"inner\"}" + &"]}]}".repeat(levels) + "]}"
}

#[test]
fn nesting_ends_at_its_limit_and_never_at_the_stack() {
    let codes = |levels: usize| {
        let checked = check(&Source::new("flow.json", nested(levels)), &Limits::default());
        let codes: Vec<Code> = checked.diagnostics.iter().map(|found| found.code).collect();
        (checked.flow.is_some(), codes)
    };
    let small = std::thread::Builder::new().stack_size(256 * 1024);
    let thread = small.spawn(move || {
        assert_eq!(codes(32), (true, vec![]));
        assert_eq!(codes(33), (false, vec![Code::TooManyLevels]));
        assert_eq!(codes(100), (false, vec![Code::TooManyLevels]));
        assert!(!codes(5_000).0);
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn limits_hold_at_and_past_themselves() {
    let limits = Limits {
        steps: 2,
        branches: 2,
        ..Limits::default()
    };
    let errors = |steps: &str| {
        let text = format!("{{\"version\": \"v1\", \"type\": \"flow\", \"steps\": [{steps}]}}");
        check(&Source::new("flow.json", text), &limits).diagnostics.len()
    };
    let pass = |name: &str| format!("{{\"type\": \"pass\", \"name\": \"{name}\"}}");
    assert_eq!(errors(&[pass("a"), pass("b")].join(",")), 0);
    assert_eq!(errors(&[pass("a"), pass("b"), pass("c")].join(",")), 1);
    assert_eq!(errors(&pass(&"n".repeat(128))), 0);
    assert_eq!(errors(&pass(&"ü".repeat(129))), 1);
}

#[test]
fn a_definition_may_be_as_long_as_the_limit_says() {
    let flow = r#"{"version": "v1", "type": "flow", "steps": [{"type": "pass", "name": "a"}]}"#;
    let codes = |bytes: usize, limits: &Limits| {
        let text = format!("{flow}{}", " ".repeat(bytes - flow.len()));
        let checked = check(&Source::new("flow.json", text), limits);
        let codes: Vec<Code> = checked.diagnostics.iter().map(|found| found.code).collect();
        (checked.flow.is_some(), codes)
    };
    let default = Limits::default();
    let of = |definition_bytes: usize| Limits {
        definition_bytes,
        ..Limits::default()
    };
    for limits in [of(200), default.clone(), of(default.definition_bytes * 2)] {
        let limit = limits.definition_bytes;
        assert_eq!(codes(limit - 1, &limits), (true, vec![]), "{limit}");
        assert_eq!(codes(limit, &limits), (true, vec![]), "{limit}");
        assert_eq!(codes(limit + 1, &limits), (false, vec![Code::TooLarge]), "{limit}");
    }
}

#[test]
fn many_mistakes_are_all_told() {
    let steps: Vec<String> = (0..900)
        .map(|n| format!("{{\"type\": \"choice\", \"name\": \"step{n}\", \"choices\": [{{\"condition\": \"$.x\", \"goto\": \"stepp{n}\"}}]}}"))
        .collect();
    let text = format!(
        "{{\"version\": \"v1\", \"type\": \"flow\", \"steps\": [{}]}}",
        steps.join(",")
    );
    let checked = check(&Source::new("flow.json", text), &Limits::default());
    assert_eq!(checked.diagnostics.len(), 900);
    assert!(checked.diagnostics[0].help.is_some());
}

/// The number and the bytes of the diagnostics for a definition that makes the same mistake very
/// often.
fn told(text: String) -> (Checked, usize) {
    let checked = check(&Source::new("many.json", text), &Limits::default());
    let bytes =
        |found: &Diagnostic| found.message.len() + found.pointer.len() + found.help.as_ref().map_or(0, String::len);
    let all = checked.diagnostics.iter().map(bytes).sum();
    (checked, all)
}

fn listed(count: usize, each: impl Fn(usize) -> String) -> String {
    (0..count).map(each).collect::<Vec<_>>().join(",")
}

#[test]
fn very_many_problems_are_told_in_short() {
    let flow = |steps: &str, rest: &str| format!(r#"{{"version":"v1","type":"flow","steps":[{steps}]{rest}}}"#);
    let pass = r#"{"type":"pass","name":"a"}"#;
    let mapped = |mappings: String| {
        flow(
            &format!(r#"{{"type":"pass","name":"a","inputMappings":[{mappings}]}}"#),
            "",
        )
    };
    for text in [
        flow(
            pass,
            &format!(",{}", listed(80_000, |index| format!(r#""m{index}":1"#))),
        ),
        flow(&listed(30_000, |_| pass.to_owned()), ""),
        flow(&listed(80_000, |_| "{}".to_owned()), ""),
        mapped(listed(25_000, |_| r#"{"target":"t","source":"$input.a"}"#.to_owned())),
        mapped(listed(100_000, |_| "1".to_owned())),
        mapped(format!(
            r#"{{"target":"a","source":{{"{}":[{}]}}}}"#,
            "k".repeat(300_000),
            listed(50_000, |_| r#""$.a""#.to_owned())
        )),
    ] {
        assert!(text.len() <= 1024 * 1024);
        let (checked, bytes) = told(text);
        assert!(
            checked.diagnostics.len() <= 2 * MAX_DIAGNOSTICS,
            "{}",
            checked.diagnostics.len()
        );
        assert!(bytes < 2 * MAX_DIAGNOSTIC_BYTES, "{bytes}");
        let last = checked
            .diagnostics
            .last()
            .and_then(|found| found.help.as_deref())
            .unwrap_or_default();
        assert!(last.starts_with("there are too many problems"), "{last}");
    }
}

#[test]
fn warnings_beyond_those_kept_do_not_withhold_the_flow() {
    let mappings = listed(5_000, |index| format!(r#"{{"target":"t{index}","source":"$nput.a"}}"#));
    let (checked, _) = told(format!(
        r#"{{"version":"v1","type":"flow","steps":[{{"type":"pass","name":"a","inputMappings":[{mappings}]}}]}}"#
    ));
    assert_eq!(checked.diagnostics.len(), MAX_DIAGNOSTICS);
    assert!(checked.flow.is_some());
}

#[test]
fn long_words_are_quoted_in_short() {
    let long = "x".repeat(200_000);
    let flow = |steps: &str, rest: &str| format!(r#"{{"version":"v1","type":"flow","steps":[{steps}]{rest}}}"#);
    for text in [
        flow(r#"{"type":"pass","name":"a"}"#, &format!(r#","{long}":1"#)),
        flow(&format!(r#"{{"type":"{long}","name":"a"}}"#), ""),
        flow(
            &format!(
                r#"{{"type":"task","name":"a","resource":"http://h/","catch":[{{"errors":["E"],"goto":"{long}"}}]}}"#
            ),
            "",
        ),
        flow(
            &format!(r#"{{"type":"pass","name":"a","inputMappings":[{{"target":"$.{long}","source":1}}]}}"#),
            "",
        ),
    ] {
        let (checked, _) = told(text);
        let longest = checked.diagnostics.iter().map(|found| found.message.len()).max();
        assert!(longest.is_some_and(|longest| longest < 300), "{longest:?}");
    }
}
