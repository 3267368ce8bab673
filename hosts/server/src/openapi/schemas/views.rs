//! The schemas of views.

use super::{Schemas, reference};
use crate::openapi::forms::{object, shape, text, time, whole};

pub(super) fn schemas() -> Schemas {
    let view = [
        ("name!", text()),
        ("filter!", object()),
        ("by!", text()),
        ("time!", time()),
    ];
    vec![
        ("ViewFilter", shape(&[("filter!", object())])),
        ("View", shape(&view)),
        ("ViewList", whole(reference("View"))),
    ]
}
