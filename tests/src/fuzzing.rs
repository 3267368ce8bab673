//! Properties that fuzzing checks in the parts that read foreign bytes. The fuzz targets under
//! `fuzz/` and the replay of their corpora call the same functions; each panics if a promise is
//! broken.

use crate::damage::{self, Mistake, damaged, fixing_keeps_meaning};
use crate::outstanding::Outstanding;
use starbridge_fdl::expression::{Condition, Path, Template};
use starbridge_flow::diagnostics::{Diagnostic, Severity};
use starbridge_flow::graph::{Budget, Context, Exhausted, Flow, Guard, Root, Scope};
use starbridge_flow::limits::Limits;
use starbridge_flow::path::Query;
use starbridge_flow::syntax::{Node, Source, Span, SyntaxCode, parse};
use starbridge_flow::time::{Seconds, Timestamp};
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::history::{read_event, write_event};
use starbridge_machine::{Event, EventId, Signal, StartRecord, StartTerms, State};
use std::sync::{Arc, LazyLock};

/// A target: its name, and what it does with any bytes.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("check", check),
    ("checkpoint", checkpoint),
    ("condition", condition),
    ("fix_keeps_meaning", fix_keeps_meaning),
    ("history", history),
    ("parse_json", parse_json),
    ("parse_yaml", parse_yaml),
    ("path", path),
    ("search", search),
];

/// The flow whose histories and checkpoints are fuzzed: it has every kind of step.
pub static FLOW: LazyLock<Arc<Flow>> = LazyLock::new(|| {
    let source = Source::new("flow.json", include_str!("../../fuzz/flow.json"));
    let checked = starbridge_fdl::check(&source, &Limits::default());
    checked
        .flow
        .unwrap_or_else(|| panic!("the flow has errors: {:?}", checked.diagnostics))
});

/// Limits low enough that no input takes long.
pub fn limits() -> Arc<Limits> {
    Arc::new(Limits {
        step_visits: 50,
        history_events: 5_000,
        foreach_items: 1_000,
        ..Limits::default()
    })
}

/// JSON is what `serde_json` takes for JSON, and the same value.
pub fn parse_json(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let source = Source::new("fuzz.json", text);
    let parsed = parse(&source);
    sound_diagnostics(&source, &parsed.diagnostics);
    if let Some(root) = &parsed.root {
        sound_spans(text, root);
    }
    let theirs = serde_json::from_str::<serde_json::Value>(text.strip_prefix('\u{FEFF}').unwrap_or(text));
    let errors: Vec<SyntaxCode> = parsed
        .diagnostics
        .iter()
        .filter(|found| found.severity == Severity::Error)
        .map(|found| found.code)
        .collect();
    match (&parsed.root, theirs) {
        (Some(root), Ok(theirs)) if errors.is_empty() => {
            assert_eq!(serde_json::Value::from(&root.to_value()), theirs, "another value");
        }
        (_, Ok(_)) => assert!(
            errors.iter().all(|&code| code == SyntaxCode::DuplicateKey) && !errors.is_empty(),
            "serde_json accepts it, and we do not: {errors:?}"
        ),
        (root, Err(error)) => assert!(
            !errors.is_empty() || error.to_string().starts_with("recursion limit exceeded"),
            "we accept it ({}), and serde_json does not: {error}",
            root.is_some()
        ),
    }
}

/// YAML never panics, and what it takes can be written as JSON and read again.
pub fn parse_yaml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let source = Source::new("fuzz.yaml", text);
    let parsed = parse(&source);
    sound_diagnostics(&source, &parsed.diagnostics);
    let Some(root) = &parsed.root else { return };
    let value = root.to_value();
    let sound = parsed
        .diagnostics
        .iter()
        .all(|found| found.severity == Severity::Warning);
    if !sound || value.json_len() > Limits::default().definition_bytes {
        return;
    }
    let again = parse(&Source::new("again.json", value.to_json()));
    assert_eq!(again.diagnostics, [], "its JSON is not read again");
    let again = again.root.map(|root| root.to_value().to_json());
    assert_eq!(again, Some(value.to_json()), "its JSON is another value");
}

/// Checking never panics and gives a flow if and only if there is no error; a flow can be started.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let source = Source::new("", text);
    let checked = starbridge_fdl::check(&source, &Limits::default());
    sound_diagnostics(&source, &checked.diagnostics);
    let starts: Vec<usize> = checked.diagnostics.iter().map(|found| found.span.start).collect();
    assert!(starts.is_sorted(), "not in order of place");
    let sound = checked
        .diagnostics
        .iter()
        .all(|found| found.severity == Severity::Warning);
    assert_eq!(checked.flow.is_some(), sound, "a flow if and only if there is no error");
    if let Some(flow) = &checked.flow {
        let mut state = State::new("fuzz", limits());
        let mut events = Vec::new();
        if state
            .advance(flow, start(Object::new()), Timestamp::default(), &mut events)
            .is_ok()
        {
            same_when_folded(flow, &state, &events);
        }
    }
}

/// Typing mistakes in a good definition are mended to what it meant, or an error is left. The first bytes are the
/// mistake; the rest is the definition, or [`FLOW`]'s where it is none.
pub fn fix_keeps_meaning(data: &[u8]) {
    let Some((&[high, low, kind, piece], rest)) = data.split_first_chunk() else {
        return;
    };
    let mistake = Mistake {
        at: (usize::from(high) << 8) | usize::from(low),
        kind: kind.into(),
        piece: piece.into(),
    };
    let text = std::str::from_utf8(rest).unwrap_or_default();
    let own = Source::new("", text);
    let source = match damage::meaning(&own) {
        Some(_) => own,
        None => Source::new("flow.json", include_str!("../../fuzz/flow.json")),
    };
    let Some(meant) = damage::meaning(&source) else { return };
    if let Some(text) = damaged(source.text(), mistake) {
        fixing_keeps_meaning(source.name(), source.format(), &meant, &text);
    }
}

/// A condition parses or says where it does not; one that parses can be asked.
pub fn condition(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Condition::parse(text) {
        Ok(parsed) => {
            assert_eq!(parsed.text().as_str(), text);
            for object in sample() {
                let held = || parsed.holds(Root::Object(object), &Budget::new(&Limits::default(), 0));
                assert_eq!(held(), held(), "once so, once so");
            }
        }
        Err(error) => inside(text, error.offset, error.len, &error.message),
    }
}

/// Paths, templates and queries parse or say where they do not; one that parses can be asked.
pub fn path(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Path::parse(text) {
        Ok(path) => sample()
            .iter()
            .for_each(|object| drop(path.find(&scope(object, &budget())))),
        Err(error) => inside(text, error.offset, error.len, &error.message),
    }
    match Template::parse(text) {
        Ok(template) => sample()
            .iter()
            .for_each(|object| drop(template.render(&scope(object, &budget())))),
        Err(error) => inside(text, error.offset, error.len, &error.message),
    }
    match Query::parse(text) {
        Ok(query) => {
            for object in sample() {
                let found = query.find(Root::Object(object), &budget());
                let array = matches!(found, Ok(Some(Value::Array(_))) | Err(Exhausted));
                assert!(
                    query.is_singular() || array,
                    "a query that is not singular gives an array"
                );
            }
        }
        Err(error) => inside(text, error.offset, error.len, &error.message),
    }
}

/// Steps that a search by the fuzzer may take.
const SEARCH_STEPS: usize = 20_000;

/// Any path over any data ends within its budget: the first line is the path, the rest the data.
/// Each value found counts against the budget, so the same count bounds memory.
pub fn search(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some((path, data)) = text.split_once('\n') else {
        return;
    };
    let (Ok(query), Ok(data)) = (Query::parse(path), serde_json::from_str::<Value>(data)) else {
        return;
    };
    let root = Root::from(&data);
    let limits = Limits {
        evaluation_steps: SEARCH_STEPS,
        ..Limits::default()
    };
    let budget = || Budget::new(&limits, root.json_len());
    let (first, again) = (budget(), budget());
    let found = query.find(root, &first);
    assert_eq!(found, query.find(root, &again), "once so, once so");
    assert_eq!(first.spent(), again.spent(), "the count is another");
    assert!(first.spent() <= SEARCH_STEPS + root.json_len(), "more than the budget");
    match found {
        Ok(Some(Value::Array(found))) if !query.is_singular() => {
            assert!(found.len() * 4 <= first.spent(), "values that nothing was paid for");
        }
        Ok(_) => {}
        Err(Exhausted) => assert_eq!(first.spent(), SEARCH_STEPS + root.json_len(), "steps were left"),
    }
}

/// Folding is total: for any events, the state is valid or broken, and a signal is taken or
/// refused.
pub fn history(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let flow = &*FLOW;
    let mut state = State::new("fuzz", limits());
    for line in text.lines().take(400) {
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let Ok(event) = read_event(flow, &value) else { continue };
        let written = write_event(flow, &event);
        assert_eq!(
            read_event(flow, &written.into()),
            Ok(event.clone()),
            "an event does not come back from its written form"
        );
        state.apply(flow, &event);
    }
    if let Some(restored) = restored(flow, &written(flow, &state)) {
        assert_eq!(
            written(flow, &restored),
            written(flow, &state),
            "a checkpoint changes on the way"
        );
    }
    drive(flow, state);
}

/// A checkpoint is read or refused, whatever it contains; a state from a checkpoint continues like
/// a folded one.
pub fn checkpoint(data: &[u8]) {
    if let Some(state) = read_checkpoint(data) {
        drive(&FLOW, state);
    }
}

/// The state of a checkpoint, if it is read.
pub fn read_checkpoint(data: &[u8]) -> Option<State> {
    let flow = &*FLOW;
    if let Ok(state) = State::from_checkpoint(flow, data, limits()) {
        return Some(state);
    }
    // The head is made to fit, so that an old corpus still reaches what is behind it.
    let mut members = match serde_json::from_slice(data) {
        Ok(serde_json::Value::Object(members)) => members,
        _ => return None,
    };
    let fresh = State::new("fuzz", limits()).checkpoint(flow);
    let head: serde_json::Value = serde_json::from_slice(&fresh).ok()?;
    for key in ["format", "definition_hash", "machine"] {
        members.insert(key.to_owned(), head.get(key)?.clone());
    }
    let bytes = serde_json::to_vec(&members).ok()?;
    State::from_checkpoint(flow, &bytes, limits()).ok()
}

fn written(flow: &Flow, state: &State) -> String {
    String::from_utf8_lossy(&state.checkpoint(flow)).into_owned()
}

fn restored(flow: &Flow, checkpoint: &str) -> Option<State> {
    State::from_checkpoint(flow, checkpoint.as_bytes(), limits()).ok()
}

/// Asks a state everything and sends it one signal of each kind, then further ones as it asks for them.
fn drive(flow: &Arc<Flow>, mut state: State) {
    for _ in 0..3 {
        let now = state.last_time();
        let outstanding = Outstanding::of(&state, flow).count();
        let calls: Vec<EventId> = state.calls_in_flight().take(4).collect();
        let timer = state
            .next_wakeup()
            .and_then(|due| state.due(due).next().map(|timer| (due, timer)));
        let mut signals: Vec<(Timestamp, Signal)> = vec![(now, start(Object::new())), (now, Signal::Continue)];
        signals.extend(timer.map(|(due, timer)| (due.max(now), Signal::TimerDue(timer))));
        for call in calls {
            signals.extend(answers(call).map(|answer| (now, answer)));
        }
        let stop = Signal::Stop {
            error: None,
            cause: String::new(),
            by: None,
            rollback: outstanding.is_multiple_of(2),
            with_parent: false,
        };
        let pause = Signal::Pause {
            by: None,
            cause: String::new(),
            with_parent: outstanding.is_multiple_of(3),
        };
        let resume = Signal::Resume {
            by: None,
            with_parent: false,
        };
        signals.extend([(now, pause), (now, resume), (now, stop)]);
        let skip = Signal::Skip {
            by: None,
            cause: String::new(),
        };
        signals.push((now, skip));
        let redrive = Signal::Redrive {
            by: None,
            inputs: Vec::new(),
            definition: None,
        };
        signals.push((now, redrive));
        for (now, signal) in signals {
            send(flow, &mut state, signal, now);
        }
    }
}

fn answers(call: EventId) -> impl Iterator<Item = Signal> {
    let result = serde_json::from_str(r#"{"receipt":"r1","ready":true}"#).unwrap_or_default();
    [
        Signal::Submitted {
            call,
            receipt: None,
            execution: None,
            version: None,
        },
        Signal::Failed {
            call,
            error: "Stock.Busy".to_owned(),
            cause: String::new(),
            retry_after: Some(Seconds(u64::MAX)),
            not_sent: false,
            holder: None,
        },
        Signal::Succeeded {
            call,
            result,
            worker: None,
            held_time: None,
        },
    ]
    .into_iter()
}

/// One signal: taken with events that are dense, or refused with the state as it was.
fn send(flow: &Arc<Flow>, state: &mut State, signal: Signal, now: Timestamp) {
    let before = written(flow, state);
    let last = state.last_event();
    let mut events = Vec::new();
    let word = format!("{signal:?}");
    match state.advance(flow, signal, now, &mut events) {
        Ok(()) => {
            for (index, event) in (1..).zip(&events) {
                assert_eq!(event.id.0, last.0.saturating_add(index), "{word}: a gap");
            }
            if let Some(mut folded) = restored(flow, &before) {
                events.iter().for_each(|event| folded.apply(flow, event));
                assert_eq!(
                    written(flow, &folded),
                    written(flow, state),
                    "{word}: folding leads elsewhere"
                );
            }
        }
        Err(rejection) => {
            assert!(events.is_empty(), "{word}: {rejection} with events");
            assert_eq!(written(flow, state), before, "{word}: {rejection} changed the state");
        }
    }
}

fn same_when_folded(flow: &Flow, state: &State, events: &[Event]) {
    let mut folded = State::new("fuzz", limits());
    for event in events {
        folded.apply(flow, event);
    }
    assert_eq!(folded.broken_at(), None, "its own history breaks it");
    assert_eq!(written(flow, &folded), written(flow, state), "folding leads elsewhere");
}

fn start(input: Object) -> Signal {
    Signal::Start(Box::new(StartRecord {
        flow: Text::from("fuzz"),
        version: 1,
        definition_hash: Text::from(""),
        machine: 0,
        name: Text::from("fuzz"),
        input: input.into(),
        seed: 7,
        labels: None,
        parent: None,
        tokens: Vec::new(),
        terms: StartTerms::default(),
    }))
}

/// Small data to ask paths and conditions about.
fn sample() -> &'static [Object] {
    static SAMPLE: LazyLock<Vec<Object>> = LazyLock::new(|| {
        [
            r#"{}"#,
            r#"{"a":{"b":[1,2.5,"x",null,true,{"c":-1}],"k y":"v"},"list":["a","b",["a"]],"s":"text","n":3,"t":true}"#,
        ]
        .into_iter()
        .filter_map(|text| serde_json::from_str(text).ok())
        .collect()
    });
    &SAMPLE
}

/// A context with one member.
struct OneMember;

impl Context for OneMember {
    fn member(&self, name: &str) -> Option<Value> {
        (name == "step").then(|| Value::Object(sample()[1].clone()))
    }

    fn names(&self) -> Vec<&'static str> {
        vec!["step"]
    }
}

fn budget() -> Budget {
    Budget::new(&Limits::default(), 0)
}

fn scope<'a>(object: &'a Object, budget: &'a Budget) -> Scope<'a> {
    Scope {
        input: Root::Object(object),
        variables: Root::Object(object),
        context: &OneMember,
        now: Timestamp::default(),
        seed: 7,
        budget,
    }
}

/// A place in a string must be one that can be shown.
fn inside(text: &str, offset: usize, len: usize, message: &str) {
    assert!(
        text.get(offset..offset.saturating_add(len)).is_some(),
        "{offset}+{len} is no place in {text:?}: {message}"
    );
}

fn sound_diagnostics<C: std::fmt::Debug>(source: &Source, diagnostics: &[Diagnostic<C>]) {
    for found in diagnostics {
        let labels = found.labels.iter().map(|label| label.span);
        let spans = labels.chain([found.span]).chain(found.fix.iter().map(|fix| fix.span));
        for Span { start, end } in spans {
            assert!(
                source.text().get(start..end).is_some(),
                "{start}..{end} is no place: {found:?}"
            );
        }
        assert!(!found.message.ends_with('.'), "{}", found.message);
    }
}

/// Every node is inside the node around it.
fn sound_spans(text: &str, root: &Node) {
    let mut open = vec![(
        root,
        Span {
            start: 0,
            end: text.len(),
        },
    )];
    while let Some((node, outer)) = open.pop() {
        let Span { start, end } = node.span;
        assert!(
            text.get(start..end).is_some() && outer.start <= start && end <= outer.end,
            "{start}..{end} is not inside {outer:?}"
        );
        open.extend(node.items().iter().map(|item| (item, node.span)));
        open.extend(node.members().iter().map(|member| (&member.value, node.span)));
    }
}
