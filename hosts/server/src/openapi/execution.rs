//! The schema of an execution.

use super::forms::{flag, labels, list, number, object, or_null, shape, text, time};
use serde_json::{Value, json};

pub(super) fn execution() -> Value {
    let origin = [("execution!", text()), ("event!", number())];
    let parent = [("execution!", text()), ("event!", number()), ("deleted", flag())];
    let rollback = [
        ("step!", text()),
        ("error!", text()),
        ("cause!", text()),
        ("left!", list(text())),
    ];
    shape(&[
        ("id!", text()),
        ("name!", text()),
        ("flow!", text()),
        ("version!", number()),
        ("status!", text()),
        ("input", object()),
        ("output", object()),
        ("error", text()),
        ("cause", text()),
        ("step", text()),
        ("startedTime!", time()),
        ("endedTime", time()),
        ("requestedTime", time()),
        ("priority!", number()),
        ("orderTime", json!({"type": "integer"})),
        ("onceKey", text()),
        ("labels", labels()),
        ("parent", shape(&parent)),
        ("root", text()),
        ("waitingFor", waiting_for()),
        ("rollback", shape(&rollback)),
        ("forkedFrom", shape(&origin)),
    ])
}

/// Why an execution does not go on. The members depend on the reason.
fn waiting_for() -> Value {
    let dependency = [
        ("execution", text()),
        ("flow", text()),
        ("name", text()),
        ("status!", text()),
    ];
    let full = [
        ("pool!", text()),
        ("key!", text()),
        ("limit!", or_null(number())),
        ("held!", number()),
    ];
    shape(&[
        ("reason!", text()),
        ("text!", text()),
        ("since", time()),
        ("until", time()),
        ("of", text()),
        ("by", text()),
        ("cause", text()),
        ("act!", or_null(text())),
        ("pool", text()),
        ("key", text()),
        ("flow", text()),
        ("limit", or_null(number())),
        ("held", number()),
        ("holders", list(text())),
        ("position", number()),
        ("claim", flag()),
        ("alsoFull", list(shape(&full))),
        ("executions", list(shape(&dependency))),
        ("open", number()),
        ("step", text()),
        ("path", list(object())),
        ("event", number()),
        ("request", number()),
        ("attempt", number()),
        ("rollback", flag()),
        ("resource", text()),
        ("timeoutAt", time()),
        ("error", text()),
        ("execution", text()),
        ("childStatus", text()),
        ("waitingFor", or_null(object())),
        ("queue", text()),
        ("because", text()),
        ("waiting", number()),
        ("workers", number()),
        ("maxConcurrent", number()),
        ("ratePerSecond", json!({"type": "number"})),
        ("waitUntil", time()),
        ("worker", text()),
        ("heldTime", time()),
        ("leaseUntil", time()),
    ])
}
