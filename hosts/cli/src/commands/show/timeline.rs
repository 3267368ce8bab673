//! The time line of an execution: a lane for each visit, with its attempts and pauses.

use crate::client::Client;
use crate::exit::Exit;
use crate::output::finish;
use crate::table::{NOTHING, table, time, took};
use crate::views::{id_of, place, plain, text};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Value};

/// The largest number of lanes on a page of the server.
const PAGE_LANES: &str = "1000";
const HEADS: [&str; 5] = ["STEP", "STATUS", "ENTERED", "TOOK", "TIME LINE"];
/// How many characters the time line has.
const WIDTH: usize = 48;

/// Which part of the time line is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) from: Option<&'a str>,
    pub(super) to: Option<&'a str>,
    pub(super) at: Option<u64>,
}

/// Prints when each step ran, as bars of characters.
pub(super) fn show(client: &Client, meant: &str, wanted: Wanted<'_>) -> Result<(), Exit> {
    let output = client.output();
    let id = id_of(client, meant)?;
    let mut asked = vec![("lanes", PAGE_LANES.to_owned())];
    asked.extend(wanted.from.map(|from| ("from", from.to_owned())));
    asked.extend(wanted.to.map(|to| ("to", to.to_owned())));
    asked.extend(wanted.at.map(|at| ("at", at.to_string())));
    let mut query = asked.clone();
    let (mut window, mut lanes): (Option<Window>, Vec<Object>) = (None, Vec::new());
    loop {
        let answer = client.get(&["executions", &id, "timeline"], &query)?;
        if output.json() {
            finish(output, &answer.text, Ok(()))?;
        }
        let (rows, next) = answer.page();
        window = window.or_else(|| Window::of(&answer.object()));
        lanes.extend(rows);
        let Some(next) = next else { break };
        query.clone_from(&asked);
        query.push(("cursor", next));
    }
    if output.json() {
        return Ok(());
    }
    let rows: Vec<Vec<String>> = lanes.iter().map(|lane| row(lane, window)).collect();
    output.print(&table(&HEADS, &rows))
}

fn row(lane: &Object, window: Option<Window>) -> Vec<String> {
    let entered = text(lane, "enteredTime");
    let ended = text(lane, "endedTime");
    let children = lane
        .get("children")
        .map(|_| format!(" ({} inside)", plain(lane, "children")));
    vec![
        format!(
            "{}{}{}",
            plain(lane, "step"),
            place(lane.get("path")),
            children.unwrap_or_default()
        ),
        plain(lane, "status"),
        time(entered),
        took(entered, ended).unwrap_or_else(|| NOTHING.to_owned()),
        window.map(|window| window.line(lane)).unwrap_or_default(),
    ]
}

/// The time that the line covers.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: Timestamp,
    to: Timestamp,
}

impl Window {
    fn of(answer: &Object) -> Option<Self> {
        Some(Self {
            from: Timestamp::parse(text(answer, "from")?)?,
            to: Timestamp::parse(text(answer, "to")?)?,
        })
    }

    /// The character at which a time stands.
    fn at(self, time: Timestamp) -> usize {
        let whole = self.to.since(self.from).0.max(1);
        let before = time.min(self.to).since(self.from).0;
        let column = before.saturating_mul(WIDTH as u64) / whole;
        usize::try_from(column).unwrap_or(WIDTH).min(WIDTH - 1)
    }

    /// A character for each part of the time: `=` an attempt, `x` one that failed, `u` undoing, `.` a pause, `-` an open
    /// composite. What comes later stands over what was before.
    fn line(self, lane: &Object) -> String {
        let mut line = vec![' '; WIDTH];
        let mut draw = |from: Option<&str>, to: Option<&str>, sign: char| {
            let Some(from) = from.and_then(Timestamp::parse) else {
                return;
            };
            let to = to.and_then(Timestamp::parse).unwrap_or(self.to);
            for cell in line.iter_mut().take(self.at(to) + 1).skip(self.at(from.max(self.from))) {
                *cell = sign;
            }
        };
        if lane.contains_key("children") {
            draw(text(lane, "enteredTime"), text(lane, "endedTime"), '-');
        }
        let spans = lane.get("spans").and_then(Value::as_array);
        for span in spans
            .into_iter()
            .flat_map(|spans| spans.values())
            .filter_map(Value::as_object)
        {
            draw(text(span, "startedTime"), text(span, "endedTime"), sign(span));
        }
        line.into_iter().collect::<String>().trim_end().to_owned()
    }
}

fn sign(span: &Object) -> char {
    let undoes = matches!(span.get("rollback"), Some(Value::Bool(true)));
    match (text(span, "kind"), text(span, "status")) {
        (Some("attempt"), Some("failed")) => 'x',
        (Some("attempt"), _) if undoes => 'u',
        (Some("attempt"), _) => '=',
        _ => '.',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_and_pauses_stand_where_their_time_is() {
        let window = Window {
            from: Timestamp(0),
            to: Timestamp(48_000),
        };
        let span = |kind: &str, status: &str, from: i64, to: i64| {
            let [from, to] = [from, to].map(|time| Timestamp(time).to_string());
            format!(r#"{{"kind":"{kind}","status":"{status}","startedTime":"{from}","endedTime":"{to}"}}"#)
        };
        let spans = [
            span("attempt", "failed", 0, 1_999),
            span("backoff", "succeeded", 2_000, 3_999),
            span("attempt", "succeeded", 4_000, 5_999),
        ];
        let lane = format!(r#"{{"spans":[{}]}}"#, spans.join(","));
        let lane: Object = serde_json::from_str(&lane).unwrap();
        assert_eq!(window.line(&lane), "xx..==");
    }

    #[test]
    fn what_is_open_lasts_to_the_end() {
        let window = Window {
            from: Timestamp(0),
            to: Timestamp(1_000),
        };
        let lane: Object =
            serde_json::from_str(r#"{"enteredTime":"1970-01-01T00:00:00Z","children":2,"spans":[]}"#).unwrap();
        assert_eq!(window.line(&lane), "-".repeat(WIDTH));
    }
}
