//! Strips: the steps of an execution in a row of a list, each as wide as it took long, and told apart by its height.

use crate::frame::Frame;
use crate::read::{is_set, items, text, time};
use crate::words::state;
use crate::zone::Reader;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};

/// The size of a strip.
const WIDTH: u64 = 132;
const HEIGHT: u64 = 12;
/// Between two bars.
const GAP: u64 = 2;
/// So many bars are in a strip: the latest.
const MOST: usize = 24;
/// So many steps are named.
const NAMED: usize = 12;

/// A bar before it has a place.
struct Part {
    begin: Option<Timestamp>,
    class: &'static str,
    height: u64,
    /// How wide it is beside others.
    weight: u64,
}

/// The strips of executions, for a script: of each its bars, and what they say. `page` has a list of `items`: the `id` of
/// an execution, and its visits as the API tells them, with their `spans`.
pub fn strips(frame: &Frame, page: &Value) -> String {
    let t = frame.t();
    let strip = |item: &Value| {
        let visits = items(item, "visits");
        let mut parts: Vec<Part> = visits.iter().flat_map(|visit| of_visit(visit, frame.now)).collect();
        // What is undone is undone after all that came later.
        parts.sort_by_key(|part| part.begin);
        let first = parts.len().saturating_sub(MOST);
        let bars = placed(parts.split_off(first));
        let members = [
            ("id", Value::from(Text::from(text(item, "id")))),
            ("says", Text::from(says(visits, t)).into()),
            ("bars", bars.into()),
        ];
        let members = members.into_iter().map(|(key, value)| (Text::from(key), value));
        Value::from(members.collect::<Object>())
    };
    let all: Vec<Value> = items(page, "items").iter().map(strip).collect();
    Value::from([("items".into(), all.into())].into_iter().collect::<Object>()).to_json()
}

/// What the bars say, in words: each step with its state.
fn says(visits: &[Value], t: Reader) -> String {
    let named = visits.iter().skip(visits.len().saturating_sub(NAMED));
    let named = named.map(|visit| {
        let word = state(text(visit, "status"), t).word;
        match text(visit, "error") {
            "" => format!("{}: {word}", text(visit, "step")),
            error => format!("{}: {word}, {error}", text(visit, "step")),
        }
    });
    let all: Vec<String> = named.collect();
    match visits.len() > NAMED {
        true => format!("… {}", all.join("; ")),
        false => all.join("; "),
    }
}

/// The bars of a visit: one for each of its attempts and pauses, or one for all of it.
fn of_visit(visit: &Value, now: Timestamp) -> Vec<Part> {
    let spans = items(visit, "spans");
    if spans.is_empty() {
        let (class, height) = match text(visit, "status") {
            "succeeded" => ("b-ok", 8),
            "failed" => ("b-fail", HEIGHT),
            "caught" => ("b-caught", HEIGHT),
            "manual" => ("b-man", 8),
            "waiting" | "retrying" | "polling" => ("b-wait", 4),
            "cancelled" => ("b-stop", 4),
            "rolledBack" | "rollbackFailed" | "skipped" => ("b-undo", 8),
            _ => ("b-run", 8),
        };
        let begin = time(visit, "enteredTime");
        return vec![Part {
            begin,
            class,
            height,
            weight: weight(begin, time(visit, "endedTime"), now),
        }];
    }
    let is_caught = text(visit, "status") == "caught";
    let part = |span: &Value| {
        let undone = is_set(span, "rollback");
        let (class, height) = match (text(span, "kind"), text(span, "status")) {
            ("backoff", _) => ("b-idle", 2),
            ("wait", _) => ("b-wait", 4),
            ("manual", _) => ("b-man", 8),
            (_, "failed") if is_caught => ("b-caught", HEIGHT),
            (_, "failed") => ("b-fail", HEIGHT),
            (_, "cancelled") => ("b-stop", 4),
            _ if undone => ("b-undo", 8),
            (_, "open") => ("b-run", 8),
            _ => ("b-ok", 8),
        };
        let begin = time(span, "startedTime");
        Part {
            begin,
            class,
            height,
            weight: weight(begin, time(span, "endedTime"), now),
        }
    };
    spans.iter().map(part).collect()
}

/// A thousand times as long is seen as somewhat wider: otherwise one long step would hide all others.
fn weight(from: Option<Timestamp>, to: Option<Timestamp>, now: Timestamp) -> u64 {
    let Some(from) = from else { return 4 };
    let took = to.unwrap_or(now).since(from);
    4 + u64::from(u64::BITS - took.0.leading_zeros())
}

/// The bars side by side over the whole width: the class, the place and the size of each.
fn placed(parts: Vec<Part>) -> Vec<Value> {
    let whole: u64 = parts.iter().map(|part| part.weight).sum();
    let gaps = GAP * (parts.len() as u64).saturating_sub(1);
    let room = WIDTH.saturating_sub(gaps);
    let (mut bars, mut passed) = (Vec::new(), 0);
    for (number, part) in (0..).zip(parts) {
        let begin = room * passed / whole.max(1);
        passed += part.weight;
        let width = (room * passed / whole.max(1) - begin).max(1);
        let place = [begin + GAP * number, (HEIGHT - part.height) / 2, width, part.height];
        let mut bar = vec![Value::from(Text::from(part.class))];
        bar.extend(place.map(Value::from));
        bars.push(bar.into());
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Value {
        Value::read_bounded(json.as_bytes(), 1 << 20).unwrap()
    }

    #[test]
    fn bars_differ_in_height_and_fill_the_strip() {
        let frame = Frame {
            now: Timestamp::parse("2026-11-22T10:00:00Z").unwrap(),
            ..Frame::default()
        };
        let span = |kind: &str, status: &str, more: &str| {
            format!(
                r#"{{"kind": "{kind}", "status": "{status}", "startedTime": "2026-11-22T09:59:58Z", "endedTime": "2026-11-22T09:59:59Z"{more}}}"#
            )
        };
        let page = read(&format!(
            r#"{{"items": [{{"id": "x-1", "visits": [{{"step": "<check>", "status": "succeeded", "enteredTime": "2026-11-22T09:59:57Z",
            "endedTime": "2026-11-22T09:59:58Z", "spans": []}}, {{"step": "pay", "status": "rolledBack", "spans": [{}]}},
            {{"step": "ship", "status": "running", "error": "HTTP.503", "spans": [{}, {}, {}]}}]}}, {{"id": "x-2", "visits": []}}]}}"#,
            span("attempt", "succeeded", ", \"rollback\": true").replace("09:59:58Z", "09:59:58.001Z"),
            span("attempt", "failed", ""),
            span("backoff", "succeeded", ""),
            span("attempt", "open", ""),
        ));
        let made = read(&strips(&frame, &page));
        let first = &items(&made, "items")[0];
        assert_eq!(
            text(first, "says"),
            "<check>: Succeeded; pay: Rolled back; ship: Running, HTTP.503"
        );
        let bars: Vec<String> = items(first, "bars").iter().map(Value::to_json).collect();
        assert_eq!(
            bars,
            [
                "[\"b-ok\",0,2,24,8]",
                "[\"b-fail\",26,0,25,12]",
                "[\"b-idle\",53,5,25,2]",
                "[\"b-run\",80,2,25,8]",
                "[\"b-undo\",107,2,25,8]",
            ]
        );
        assert!(items(&items(&made, "items")[1], "bars").is_empty());
    }

    #[test]
    fn strip_has_the_latest_of_many() {
        let visits = vec![r#"{"step": "s", "status": "succeeded", "spans": []}"#; 300].join(",");
        let page = read(&format!(r#"{{"items": [{{"id": "x", "visits": [{visits}]}}]}}"#));
        let made = read(&strips(&Frame::default(), &page));
        let bars = items(&items(&made, "items")[0], "bars");
        assert_eq!(bars.len(), MOST);
        let ends: Vec<&Value> = bars.last().and_then(Value::as_array).unwrap().values().iter().collect();
        let end = |at: usize| ends[at].as_number().unwrap().as_u64().unwrap();
        assert_eq!(end(1) + end(3), WIDTH);
    }
}
