//! The schemas of the steps in a history.

use super::super::forms::{flag, list, number, object, or_null, page, shape, text, time};
use super::Schemas;
use serde_json::{Map, Value, json};

pub(super) fn schemas() -> Schemas {
    vec![
        ("StepPage", page(shape(&step()), number())),
        ("Visit", visit()),
        ("Iterations", iterations()),
        ("Timeline", timeline()),
        ("Marks", marks()),
        ("Datum", datum()),
        (
            "Cluster",
            shape(&[
                ("owner!", or_null(text())),
                ("since!", or_null(time())),
                (
                    "nodes!",
                    list(shape(&[
                        ("name!", text()),
                        ("address!", text()),
                        ("version!", text()),
                        ("joined!", time()),
                        ("owner!", flag()),
                        ("shards!", number()),
                        ("silentBeats!", number()),
                        ("drained!", flag()),
                    ])),
                ),
            ]),
        ),
        ("DrainedNode", shape(&[("name!", text()), ("owner!", flag())])),
        (
            "ServerConfig",
            shape(&[
                ("version!", text()),
                ("target!", text()),
                ("features!", list(text())),
                ("config!", or_null(text())),
            ]),
        ),
        ("Me", shape(&[("name!", or_null(text())), ("scopes!", list(text()))])),
    ]
}

/// A page of events. A page of some of them has the number of the last event that was looked at.
pub(super) fn event_page(event: Value) -> Value {
    shape(&[
        ("items!", list(event)),
        ("next!", or_null(number())),
        ("looked", or_null(number())),
    ])
}

fn step() -> Vec<(&'static str, Value)> {
    let waiting_for = [
        ("reason!", text()),
        ("text!", text()),
        ("since", time()),
        ("execution", text()),
        ("request", number()),
    ];
    let rollback = [
        ("status!", text()),
        ("attempts!", number()),
        ("startedTime!", time()),
        ("endedTime!", or_null(time())),
        ("waitsUntil!", or_null(time())),
        ("error", text()),
        ("cause", text()),
    ];
    vec![
        ("event!", number()),
        ("step!", text()),
        ("path!", list(object())),
        ("run!", number()),
        ("status!", text()),
        ("attempts!", number()),
        ("enteredTime!", time()),
        ("endedTime!", or_null(time())),
        ("waitsUntil!", or_null(time())),
        ("error!", or_null(text())),
        ("cause!", or_null(text())),
        ("child", text()),
        ("waitingFor", shape(&waiting_for)),
        ("rollback", shape(&rollback)),
    ]
}

/// A part of a visit's time.
fn span() -> Vec<(&'static str, Value)> {
    vec![
        ("kind!", json!({"enum": ["attempt", "backoff", "wait", "manual"]})),
        ("attempt!", number()),
        ("status!", json!({"enum": ["open", "succeeded", "failed", "cancelled"]})),
        ("event!", number()),
        ("startedTime!", time()),
        ("endedTime!", or_null(time())),
        ("rollback", flag()),
        ("until", time()),
        ("callEvent", number()),
        ("resource", text()),
        ("resultEvent", number()),
        ("endEvent", number()),
        ("worker", text()),
        ("heldTime", time()),
        ("error", text()),
        ("cause", text()),
    ]
}

fn visit() -> Value {
    let left = shape(&[("event!", number()), ("part!", text()), ("bytes!", number())]);
    let mut attempt = span();
    attempt.extend([
        ("input", any()),
        ("sent", any()),
        ("received", any()),
        ("output", any()),
        ("left", json!({"type": "object", "additionalProperties": left})),
    ]);
    let mut visit = step();
    visit.extend([
        ("tries!", list(shape(&attempt))),
        ("pauses!", list(shape(&span()))),
        ("earlierLeftOut!", number()),
    ]);
    shape(&visit)
}

/// Any value.
fn any() -> Value {
    Value::Object(Map::new())
}

fn iterations() -> Value {
    let item = [("number!", number()), ("status!", text()), ("event", number())];
    shape(&[
        ("event!", number()),
        ("step!", text()),
        ("total!", or_null(number())),
        (
            "counts!",
            json!({"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}}),
        ),
        ("map!", text()),
        ("items!", list(shape(&item))),
        ("next!", or_null(number())),
    ])
}

fn timeline() -> Value {
    let lane = [
        ("event!", number()),
        ("step!", text()),
        ("path!", list(object())),
        ("status!", text()),
        ("enteredTime!", time()),
        ("endedTime!", or_null(time())),
        ("spans!", list(shape(&span()))),
        ("children", number()),
        ("bands", list(list(number()))),
    ];
    shape(&[
        ("from!", time()),
        ("to!", time()),
        ("items!", list(shape(&lane))),
        ("next!", or_null(number())),
    ])
}

fn marks() -> Value {
    let item = [
        ("step!", text()),
        ("number!", number()),
        ("status!", text()),
        ("words!", text()),
        ("visits!", number()),
        ("attempts!", number()),
        ("error", text()),
    ];
    // Of very many events, some that are spread evenly.
    let places = || shape(&[("count!", number()), ("events!", list(number()))]);
    let incidents = shape(&[("failures!", places()), ("retries!", places()), ("pauses!", places())]);
    shape(&[
        ("event!", number()),
        ("end!", number()),
        ("ending!", or_null(text())),
        ("items!", list(shape(&item))),
        ("incidents!", incidents),
    ])
}

fn datum() -> Value {
    shape(&[
        ("event!", number()),
        ("kind!", text()),
        ("bytes!", number()),
        ("from!", number()),
        ("text!", text()),
        ("next!", or_null(number())),
    ])
}
