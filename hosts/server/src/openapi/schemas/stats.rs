//! The schema of what is counted.

use super::Schemas;
use crate::openapi::forms::{list, number, object, or_null, shape, text, time};

pub(super) fn schemas() -> Schemas {
    let counts = [
        ("started!", number()),
        ("ended!", object()),
        ("turns!", number()),
        ("events!", number()),
        ("calls!", number()),
        ("failedAttempts!", number()),
    ];
    let minute = [
        ("time!", time()),
        ("started!", number()),
        ("ended!", number()),
        ("failed!", number()),
    ];
    let failure = [
        ("flow!", text()),
        ("step!", text()),
        ("error!", text()),
        ("executions!", number()),
        ("attempts!", number()),
    ];
    let flow = [
        ("flow!", text()),
        ("started!", number()),
        ("ended!", number()),
        ("failed!", number()),
        ("medianMs!", or_null(number())),
        ("p95Ms!", or_null(number())),
    ];
    let step = [
        ("step!", text()),
        ("since!", time()),
        ("attempts!", number()),
        ("failed!", number()),
        ("medianMs!", or_null(number())),
        ("p95Ms!", or_null(number())),
    ];
    let server = [
        ("version!", text()),
        ("startedTime!", time()),
        ("followers!", number()),
        ("waitingRequests!", number()),
    ];
    let day = [("since!", time()), ("quarters!", list(shape(&minute)))];
    let stats = [
        ("since!", time()),
        ("to!", time()),
        ("counts!", shape(&counts)),
        ("minutes!", list(shape(&minute))),
        ("day!", shape(&day)),
        ("failures!", list(shape(&failure))),
        ("otherFailures!", number()),
        ("flows!", list(shape(&flow))),
        ("steps!", list(shape(&step))),
        ("server!", shape(&server)),
    ];
    vec![("Stats", shape(&stats))]
}
