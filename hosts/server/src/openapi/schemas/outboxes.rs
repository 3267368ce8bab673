//! The schemas of outboxes.

use super::Schemas;
use crate::openapi::forms::{number, page, shape, text, time, whole};

pub(super) fn schemas() -> Schemas {
    let outbox = [
        ("name!", text()),
        ("database!", text()),
        ("waiting", number()),
        ("oldestTime", time()),
        ("started!", number()),
        ("refused", number()),
        ("problem", text()),
    ];
    let row = [
        ("id!", text()),
        ("action!", text()),
        ("flow", text()),
        ("name", text()),
        ("by!", text()),
        ("writtenTime!", time()),
        ("refusedTime!", time()),
        ("code!", text()),
        ("reason!", text()),
    ];
    vec![
        ("OutboxList", whole(shape(&outbox))),
        ("RefusedRowPage", page(shape(&row), text())),
    ]
}
