//! One schedule: when it starts what, and a form that changes it.

use crate::escape::visible_json;
use crate::frame::Frame;
use crate::plain::{done, written};
use crate::read::{is_set, items, number, path_part, pretty, text};
use crate::zone::Reader;
use askama::Template;
use starbridge_flow::value::Value;

/// The fields of the form, as the API calls them.
pub const SCHEDULE_FIELDS: [&str; 7] = [
    "flow",
    "cron",
    "payload",
    "overlap",
    "catchUp",
    "priority",
    "startDeadlineSeconds",
];

/// A payload that has more bytes is nothing to edit in a page.
const PAYLOAD_BYTES: usize = 256 * 1024;

/// What the page of a schedule is made of.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleParts<'a> {
    /// The schedule, as the API answers.
    pub schedule: &'a Value,
    /// What was written into the fields, where it was refused.
    pub filled: Option<&'a [(String, String)]>,
    /// The code of the refusal, and why.
    pub refused: Option<(&'a str, &'a str)>,
    /// The action that was just done, in one word.
    pub done: &'a str,
}

/// A field with what stands in it, and what is wrong with that.
struct Field {
    name: &'static str,
    word: &'static str,
    about: &'static str,
    value: String,
    /// The words to choose from, with which is chosen.
    words: Vec<(&'static str, bool)>,
    wrong: Option<String>,
}

#[derive(Template)]
#[template(path = "schedule.html")]
struct Schedule<'a> {
    f: &'a Frame,
    t: Reader,
    name: &'a str,
    part: String,
    paused: bool,
    said: Option<&'static str>,
    facts: Vec<(&'static str, String, Option<String>)>,
    next: Vec<String>,
    fields: Vec<Field>,
    /// What is wrong with none of the fields.
    wrong: Option<String>,
    may_not_change: Option<String>,
    may_not_operate: Option<String>,
}

/// The page of a schedule.
pub fn schedule(frame: &Frame, parts: &ScheduleParts<'_>) -> String {
    let t = frame.t();
    let schedule = parts.schedule;
    let refused = parts.refused.map(|(code, detail)| (field_of(code, detail), detail));
    let fields: Vec<Field> = SCHEDULE_FIELDS
        .into_iter()
        .map(|name| field(name, parts, refused, t))
        .collect();
    let flow = text(schedule, "flow");
    let mut facts = vec![
        (t.flow, flow.to_owned(), Some(format!("/flows/{}", path_part(flow)))),
        (t.next_time, t.moment(schedule, "nextTime"), None),
    ];
    let latest = text(schedule, "latestExecution");
    let link = (!latest.is_empty()).then(|| format!("/executions/{}", path_part(latest)));
    facts.push((t.latest, t.moment(schedule, "latestTime"), link));
    let error = text(schedule, "latestError");
    if !error.is_empty() {
        facts.push((t.error, error.to_owned(), None));
    }
    let next = items(schedule, "nextTimes").iter();
    written(&Schedule {
        f: frame,
        t,
        name: text(schedule, "name"),
        part: path_part(text(schedule, "name")),
        paused: is_set(schedule, "paused"),
        said: done(frame, parts.done),
        facts,
        next: next.map(|time| next_time(time, t)).collect(),
        fields,
        wrong: refused
            .filter(|(field, _)| field.is_none())
            .map(|(_, detail)| detail.to_owned()),
        may_not_change: frame.lacks("admin"),
        may_not_operate: frame.lacks("operate"),
    })
}

/// A time at which a schedule triggers: in UTC, and by the clocks of its zone where it has one.
pub(crate) fn next_time(time: &Value, t: Reader) -> String {
    let (utc, local) = (t.moment(time, "time"), text(time, "local"));
    match local.is_empty() || local.ends_with("[UTC]") {
        true => utc,
        false => format!("{utc} · {local}"),
    }
}

/// The field that a refusal is about: the one that it names first.
fn field_of(code: &str, detail: &str) -> Option<&'static str> {
    let named = match code {
        "NoSuchFlow" => "flow",
        _ => detail.split('`').nth(1).unwrap_or_default(),
    };
    SCHEDULE_FIELDS.into_iter().find(|field| *field == named)
}

fn field(
    name: &'static str,
    parts: &ScheduleParts<'_>,
    refused: Option<(Option<&'static str>, &str)>,
    t: Reader,
) -> Field {
    let (word, about) = match name {
        "flow" => (t.flow, ""),
        "cron" => (t.cron, t.about_cron),
        "payload" => (t.payload, t.about_payload),
        "overlap" => (t.overlap, t.about_overlap),
        "catchUp" => (t.catch_up, t.about_catch_up),
        "priority" => (t.priority, t.about_priority),
        _ => (t.start_deadline, t.about_start_deadline),
    };
    let kept = || match (name, parts.schedule.get(name)) {
        (_, None | Some(Value::Null)) => String::new(),
        ("payload", Some(payload)) => visible_json(&pretty(payload, PAYLOAD_BYTES)),
        ("priority" | "startDeadlineSeconds", _) => {
            number(parts.schedule, name).map_or_else(String::new, |number| number.to_string())
        }
        _ => text(parts.schedule, name).to_owned(),
    };
    let filled = parts.filled.and_then(|all| all.iter().find(|(known, _)| known == name));
    let value = filled.map_or_else(kept, |(_, value)| value.clone());
    let words: &[&'static str] = match name {
        "overlap" => &["skip", "queue", "allow"],
        "catchUp" => &["none", "last"],
        _ => &[],
    };
    Field {
        name,
        word,
        about,
        words: words.iter().map(|word| (*word, *word == value)).collect(),
        wrong: refused
            .filter(|(field, _)| *field == Some(name))
            .map(|(_, detail)| detail.to_owned()),
        value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_stands_at_the_field_that_it_names() {
        let schedule =
            br#"{"name": "nightly", "flow": "order", "cron": "0 3 * * *", "payload": {"n": 1}, "overlap": "skip",
            "catchUp": "last", "priority": 7, "paused": false}"#;
        let schedule = Value::read_bounded(schedule, 1 << 16).unwrap();
        let filled = [("cron".to_owned(), "<never>".to_owned())];
        let page = |refused| {
            let parts = ScheduleParts {
                schedule: &schedule,
                filled: Some(&filled),
                refused: Some(refused),
                done: "",
            };
            super::schedule(&Frame::default(), &parts)
        };
        let wrong = page(("InvalidSchedule", "`cron`: five fields are needed"));
        assert!(
            wrong.contains("value=\"&#60;never&#62;\"") || wrong.contains("value=\"&lt;never&gt;\""),
            "{wrong}"
        );
        assert!(
            wrong.contains("id=\"wrong-cron\" role=\"alert\">`cron`: five fields are needed"),
            "{wrong}"
        );
        assert_eq!(wrong.matches("aria-invalid").count(), 1);
        assert!(wrong.contains("<option selected>last</option>") && wrong.contains("&quot;n&quot;: 1"));
        assert!(page(("NoSuchFlow", "there is no flow")).contains("id=\"wrong-flow\""));
        let other = page(("Busy", "try again later"));
        assert!(other.contains("try again later") && !other.contains("aria-invalid"));
    }
}
