//! The schemas of what is in a queue.

use super::Schemas;
use crate::openapi::forms::{list, number, object, shape, text, time, whole};

pub(super) fn schemas() -> Schemas {
    let task = [
        ("queue!", text()),
        ("execution!", text()),
        ("flow", text()),
        ("name", text()),
        ("call!", number()),
        ("step", text()),
        ("path", list(object())),
        ("attempt", number()),
        ("priority", number()),
        ("since", time()),
        ("waitUntil", time()),
        ("worker", text()),
        ("heldTime", time()),
        ("leaseUntil", time()),
        ("error", text()),
        ("cause", text()),
        ("time", time()),
        ("input", object()),
        ("inputBytes", number()),
    ];
    let worker = [
        ("worker!", text()),
        ("held!", number()),
        ("polls!", number()),
        ("since", time()),
    ];
    vec![
        ("QueueTaskList", whole(shape(&task))),
        ("QueueWorkerList", whole(shape(&worker))),
    ]
}
