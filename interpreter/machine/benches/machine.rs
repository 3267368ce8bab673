//! Measures the machine alone on one core: events that are produced, folded and kept with all their details.

#[path = "../../../fdl/benches/figures/mod.rs"]
mod figures;
mod runs;

use figures::{Figures, Unit};
use runs::{Run, data, keys};
use starbridge_flow::value::Value;
use starbridge_machine::State;
use starbridge_machine::history::{read_event, write_event};

fn main() {
    let mut figures = Figures::from_arguments();
    goals(&mut figures);
    replay(&mut figures);
    steps_done(&mut figures);
    untouched_data(&mut figures);
    width(&mut figures);
    checkpoints(&mut figures);
    figures.print();
}

fn goals(figures: &mut Figures) {
    let passes = Run::passes(10, data(200));
    figures.measure(
        "10 passes, 200 bytes of input",
        Unit::PerSecond(10, "step"),
        Some(400_000.0),
        || passes.fresh(),
        |execution| passes.start(execution),
    );
    figures.measure(
        "the same, written as JSON",
        Unit::PerSecond(10, "step"),
        None,
        || passes.fresh(),
        |execution| {
            let execution = passes.start(execution);
            let mut text = Vec::new();
            for event in &execution.events {
                let _ = serde_json::to_writer(&mut text, &write_event(&passes.flow, event));
                text.push(b'\n');
            }
            (execution, text)
        },
    );
    let wide = Run::wide(10_000);
    figures.measure(
        "foreach over 10,000 items, one pass",
        Unit::PerSecond(10_000, "iteration"),
        Some(300_000.0),
        || wide.fresh(),
        |execution| wide.start(execution),
    );
    let calls = Run::calls(1_000);
    figures.measure(
        "foreach over 1,000 items, one task, all answered",
        Unit::PerSecond(1_000, "iteration"),
        None,
        || calls.fresh(),
        |execution| {
            let mut execution = calls.start(execution);
            execution.answer_all(&calls);
            execution
        },
    );
}

fn replay(figures: &mut Figures) {
    const EVENTS: usize = 100_000;
    let wide = Run::wide(20_000);
    let rounds = Run::rounds(20_000);
    for (name, run) in [("foreach", &wide), ("loop", &rounds)] {
        let mut history = run.complete().events;
        history.truncate(EVENTS);
        assert_eq!(history.len(), EVENTS, "{name}");
        figures.measure(
            &format!("replay of 100,000 events, {name}"),
            Unit::PerSecond(EVENTS as u64, "event"),
            Some(2_000_000.0),
            || (),
            |()| run.fold(&history),
        );
    }
    let history = wide.complete().events;
    let lines: Vec<String> = history
        .iter()
        .take(EVENTS)
        .map(|event| Value::from(write_event(&wide.flow, event)).to_json())
        .collect();
    figures.measure(
        "replay of the same from JSON text",
        Unit::PerSecond(EVENTS as u64, "event"),
        None,
        || (),
        |()| {
            let mut state = State::new("execution", wide.limits.clone());
            for line in &lines {
                let value: Value = serde_json::from_str(line).unwrap_or_default();
                if let Ok(event) = read_event(&wide.flow, &value) {
                    state.apply(&wide.flow, &event);
                }
            }
            assert_eq!(state.last_event().0, EVENTS as u64);
            state
        },
    );
}

/// The cost of a step must not depend on how many steps were before it.
fn steps_done(figures: &mut Figures) {
    for rounds in [10, 100, 1_000, 10_000] {
        let run = Run::rounds(rounds);
        figures.measure(
            &format!("loop of {rounds} rounds"),
            Unit::NanosEach(2 * rounds as u64, "step"),
            None,
            || run.fresh(),
            |execution| run.start(execution),
        );
    }
}

/// The cost of a step must not depend on data that it does not touch.
fn untouched_data(figures: &mut Figures) {
    const STEPS: usize = 100;
    for (name, bytes) in [("200 B", 200), ("2 KB", 2_000), ("20 KB", 20_000), ("200 KB", 200_000)] {
        let run = Run::passes(STEPS, data(bytes));
        measure_passes(figures, &format!("untouched data of {name}"), &run, STEPS);
    }
    for count in [10, 100, 1_000, 10_000] {
        let run = Run::passes(STEPS, keys(count));
        measure_passes(figures, &format!("{count} untouched keys in the input"), &run, STEPS);
    }
    for count in [10, 100, 1_000] {
        // The first step puts them into the local; the others leave them there.
        let members: Vec<String> = (0..count)
            .map(|n| format!(r#"{{"target":"k{n}","source":{n}}}"#))
            .collect();
        let mut steps = vec![format!(
            r#"{{"type":"pass","name":"first","outputMappings":[{}]}}"#,
            members.join(",")
        )];
        steps.extend(
            (1..STEPS).map(|n| {
                format!(r#"{{"type":"pass","name":"p{n}","outputMappings":[{{"target":"n","source":{n}}}]}}"#)
            }),
        );
        let run = Run::new(&format!("[{}]", steps.join(",")), data(200));
        measure_passes(figures, &format!("{count} untouched keys in the local"), &run, STEPS);
    }
}

fn measure_passes(figures: &mut Figures, name: &str, run: &Run, steps: usize) {
    figures.measure(
        name,
        Unit::NanosEach(steps as u64, "step"),
        None,
        || run.fresh(),
        |execution| run.start(execution),
    );
}

/// The time of an iteration, and its share of the history, must not depend on how many there are.
fn width(figures: &mut Figures) {
    const WIDTHS: [usize; 5] = [10, 100, 1_000, 10_000, 100_000];
    for items in WIDTHS {
        let run = Run::wide(items);
        figures.measure(
            &format!("foreach of width {items}"),
            Unit::NanosEach(items as u64, "iteration"),
            None,
            || run.fresh(),
            |execution| run.start(execution),
        );
    }
    let narrow = Run::wide(10);
    let mut before = narrow.complete().history_bytes(&narrow.flow);
    let mut items_before = 10;
    for items in WIDTHS.into_iter().skip(1) {
        let run = Run::wide(items);
        let bytes = run.complete().history_bytes(&run.flow);
        // What the further iterations add. The flow's own events, once each, do not count.
        let each = (bytes - before) as f64 / (items - items_before) as f64;
        figures.count(
            &format!("history of a foreach of width {items}"),
            each,
            "bytes/iteration",
            None,
        );
        (before, items_before) = (bytes, items);
    }
}

fn checkpoints(figures: &mut Figures) {
    for (name, run) in [
        ("after 100 passes, 2 KB", Run::passes(100, data(2_000))),
        ("with 1,000 open tasks", Run::calls(1_000)),
    ] {
        let state = run.start(run.fresh()).state;
        let bytes = state.checkpoint(&run.flow);
        figures.measure(
            &format!("checkpoint written {name}"),
            Unit::Millis,
            None,
            || (),
            |()| state.checkpoint(&run.flow),
        );
        figures.measure(
            &format!("checkpoint read {name}"),
            Unit::Millis,
            None,
            || (),
            |()| State::from_checkpoint(&run.flow, &bytes, run.limits.clone()),
        );
        figures.count(&format!("checkpoint's size {name}"), bytes.len() as f64, "bytes", None);
    }
}
