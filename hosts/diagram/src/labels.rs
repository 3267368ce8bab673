//! The texts about a step: its resource, its times, what happens to its errors.

use super::text::{clean, shorten};
use super::words::Words;
use starbridge_flow::graph::{
    Branch, Catch, DEFAULT_CONCURRENCY, DEFAULT_PRIORITY, Fail, FaultNames, Foreach, Matcher, NumberSource, Parallel,
    Pattern, Source, Step, StepKind, Task, Tolerance, Undo, Wait, WaitFor,
};
use starbridge_flow::time::Millis;

/// How many characters of a resource are shown.
const RESOURCE: usize = 60;

/// A line about a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Detail {
    pub(super) text: String,
    /// Whether it is code: a path or a condition.
    pub(super) code: bool,
}

fn plain(text: impl AsRef<str>) -> Detail {
    Detail {
        text: clean(text.as_ref()),
        code: false,
    }
}

fn code(text: impl AsRef<str>) -> Detail {
    Detail {
        text: clean(text.as_ref()),
        code: true,
    }
}

/// The lines below a step's name.
pub(super) fn details(step: &Step, words: Words) -> Vec<Detail> {
    match &step.kind {
        StepKind::Task(task) => vec![plain(resource(&task.call.resource))],
        StepKind::Wait(wait) => vec![waited(wait, words)],
        StepKind::Foreach(foreach) => vec![code(words.fill("each of {}", &[foreach.collection.text()]))],
        StepKind::Fail(fail) => failed(fail),
        StepKind::Parallel(parallel) => waits_for(parallel, words).into_iter().collect(),
        StepKind::Pass | StepKind::Choice(_) | StepKind::Succeed => Vec::new(),
    }
}

fn waited(wait: &Wait, words: Words) -> Detail {
    match wait {
        Wait::Duration(Source::Constant(value)) => {
            let text = value.to_plain_text();
            let seconds = text
                .trim()
                .parse::<f64>()
                .ok()
                .filter(|seconds| (0.0..1e12).contains(seconds));
            plain(seconds.map_or(text, |seconds| duration(Millis((seconds * 1000.0) as u64))))
        }
        Wait::Timestamp(Source::Constant(value)) => plain(words.fill("until {}", &[&value.to_plain_text()])),
        Wait::Duration(Source::Lookup(lookup)) => code(words.fill("{} seconds", &[lookup.text()])),
        Wait::Timestamp(Source::Lookup(lookup)) => code(words.fill("until {}", &[lookup.text()])),
    }
}

fn failed(fail: &Fail) -> Vec<Detail> {
    [&fail.error, &fail.cause]
        .into_iter()
        .flatten()
        .map(|source| match source {
            Source::Constant(value) => plain(value.to_plain_text()),
            // Both are written with the root they begin at.
            Source::Lookup(lookup) => code(format!("$input{}", lookup.text().trim_start_matches('$'))),
        })
        .filter(|detail| !detail.text.is_empty())
        .collect()
}

fn waits_for(parallel: &Parallel, words: Words) -> Option<Detail> {
    match parallel.wait_for {
        WaitFor::All => None,
        WaitFor::Count(1) => Some(plain(words.say("until any branch succeeds"))),
        WaitFor::Count(count) => Some(plain(words.fill(
            "until {} of {} branches succeed",
            &[&count.to_string(), &parallel.branches.len().to_string()],
        ))),
    }
}

/// Other particulars of a step, a few characters each.
pub(super) fn badges(step: &Step, words: Words) -> Vec<String> {
    let mut badges = Vec::new();
    match &step.kind {
        StepKind::Task(task) => badges.extend(task_badges(task, words)),
        StepKind::Parallel(Parallel {
            concurrency: Some(most),
            ..
        }) => badges.push(at_once(most, words)),
        StepKind::Foreach(foreach) => badges.extend(foreach_badges(foreach, words)),
        _ => {}
    }
    if let Some(first) = step.retry.first() {
        let more = match step.retry.len() {
            1 => String::new(),
            policies => format!(" +{}", policies - 1),
        };
        badges.push(words.fill("retry {}×", &[&first.max_attempts.to_string()]) + &more);
    }
    match &step.timeout {
        Some(NumberSource::Fixed(bound)) => badges.push(words.fill("timeout {}", &[&duration(*bound)])),
        Some(NumberSource::Program(_)) => badges.push(words.say("timeout computed").to_owned()),
        None => {}
    }
    if step.settings.is_some() {
        badges.push(words.say("numbers computed").to_owned());
    }
    badges
}

fn task_badges(task: &Task, words: Words) -> Vec<String> {
    let mut badges = Vec::new();
    match task.call.pattern {
        Pattern::RequestResponse => {}
        Pattern::Sync => badges.push(words.say("sync").to_owned()),
        Pattern::WaitForCallback => badges.push(words.say("callback").to_owned()),
    }
    if let Some(poll) = &task.poll {
        badges.push(words.fill("poll {}", &[&duration(poll.interval)]));
    }
    match task.rollback.as_ref().map(|rollback| &rollback.undo) {
        Some(Undo::Call(_)) => badges.push(words.say("rollback").to_owned()),
        Some(Undo::Child) => badges.push(words.say("rollback of child").to_owned()),
        None => {}
    }
    if let Some(every) = task.heartbeat {
        badges.push(words.fill("heartbeat {}", &[&duration(every)]));
    }
    if let Some(longest) = task.wait {
        badges.push(words.fill("queued {}", &[&duration(longest)]));
    }
    if let Some(priority) = task.priority.filter(|priority| *priority != DEFAULT_PRIORITY) {
        badges.push(words.fill("priority {}", &[&priority.to_string()]));
    }
    badges
}

fn at_once(concurrency: &NumberSource, words: Words) -> String {
    match concurrency {
        NumberSource::Fixed(most) => words.fill("{} at once", &[&most.to_string()]),
        NumberSource::Program(_) => words.say("computed number at once").to_owned(),
    }
}

fn foreach_badges(foreach: &Foreach, words: Words) -> Vec<String> {
    let usual = matches!(foreach.concurrency, NumberSource::Fixed(DEFAULT_CONCURRENCY));
    let at_once = (!usual).then(|| at_once(&foreach.concurrency, words));
    let tolerance = foreach.tolerance.map(|tolerance| match tolerance {
        Tolerance::Count(count) => words.fill("{} may fail", &[&count.to_string()]),
        Tolerance::Percent(percent) => words.fill("{} % may fail", &[&percent.to_string()]),
    });
    at_once.into_iter().chain(tolerance).collect()
}

/// The errors of a catch clause.
pub(super) fn errors(catch: &Catch, names: &FaultNames, words: Words) -> String {
    let each: Vec<String> = catch
        .errors
        .iter()
        .map(|matcher| match matcher {
            Matcher::Any => words.say("any error").to_owned(),
            Matcher::Named(name) => clean(name),
            Matcher::Kind(kind) => clean(&names.name(kind)),
            Matcher::Not(kind) => words.fill("all but {}", &[&clean(&names.name(kind))]),
        })
        .collect();
    each.join(", ")
}

/// The condition of an arm as a picture shows it, with its number in the order in which they are tried.
pub(super) fn condition(text: &str, arm: Option<u32>, words: Words) -> String {
    match arm {
        Some(number) => format!("{} · {}", number.saturating_add(1), clean(text)),
        None => words.say("otherwise").to_owned(),
    }
}

/// A branch's name, or its number from 1.
pub(super) fn branch(branch: &Branch, index: usize, words: Words) -> String {
    branch.name.as_ref().map_or_else(
        || words.fill("branch {}", &[&(index + 1).to_string()]),
        |name| clean(name),
    )
}

/// The branches that a branch depends on; `None` if there are none.
pub(super) fn after(parallel: &Parallel, one: &Branch, words: Words) -> Option<String> {
    /// How many branches are named.
    const NAMED: usize = 8;
    let named: Vec<String> = one
        .depends_on
        .iter()
        .take(NAMED)
        .filter_map(|&on| {
            parallel
                .branches
                .get(on as usize)
                .map(|other| branch(other, on as usize, words))
        })
        .collect();
    let more = one.depends_on.len().saturating_sub(NAMED);
    match (named.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(words.fill("after {}", &[&named.join(", ")])),
        (false, more) => Some(words.fill("after {} and {} more", &[&named.join(", "), &more.to_string()])),
    }
}

/// The distinctive part of a resource: an address without scheme and query, an ARN without region and account.
pub(super) fn resource(written: &str) -> String {
    let text = clean(written);
    let parts: Vec<&str> = text.split(':').collect();
    let short = match parts.as_slice() {
        ["arn", _, service, _, _, rest @ ..] if !rest.is_empty() => {
            format!("{service} {}", last_parts(&rest.join(":")))
        }
        ["acs", service, _, _, rest @ ..] if !rest.is_empty() => format!("{service} {}", last_parts(&rest.join(":"))),
        ["http" | "https", ..] => address(&text),
        _ => text,
    };
    shorten(&short, RESOURCE)
}

/// `services/a/functions/b` as `a/b`, `function:b` as `b`.
fn last_parts(path: &str) -> String {
    let path = path.strip_prefix("function:").unwrap_or(path);
    match path.split('/').collect::<Vec<_>>().as_slice() {
        ["services", service, "functions", function] => format!("{service}/{function}"),
        ["flow" | "queue" | "queues" | "topics", name] => (*name).to_owned(),
        _ => path.to_owned(),
    }
}

fn address(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    // A user and password in an address must not be in a picture.
    let host = authority.rsplit('@').next().unwrap_or(authority);
    if path.is_empty() {
        host.to_owned()
    } else {
        format!("{host}/{path}")
    }
}

/// The resource as the flow writes it, without passwords and queries of addresses.
pub(super) fn whole_resource(written: &str) -> String {
    let text = clean(written);
    match text.split_once("://") {
        Some((scheme @ ("http" | "https"), _)) => format!("{scheme}://{}", address(&text)),
        _ => text,
    }
}

/// How long something took, rounded for people: `250 ms`, `1.8 s`, `2 h 5 min`.
pub(super) fn took(span: Millis) -> String {
    let millis = span.0;
    match millis {
        0..1_000 => duration(span),
        1_000..60_000 => {
            let tenth = millis % 1_000 / 100;
            let tenth = if tenth == 0 { String::new() } else { format!(".{tenth}") };
            format!("{}{tenth} s", millis / 1_000)
        }
        60_000..3_600_000 => duration(Millis(millis / 1_000 * 1_000)),
        _ => duration(Millis(millis / 60_000 * 60_000)),
    }
}

/// A duration for people: `250 ms`, `1 min 30 s`, `2 d`.
pub(super) fn duration(span: Millis) -> String {
    const UNITS: [(u64, &str); 5] = [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "min"),
        (1000, "s"),
        (1, "ms"),
    ];
    let mut rest = span.0;
    let mut parts = Vec::new();
    for (size, unit) in UNITS {
        if rest >= size {
            parts.push(format!("{} {unit}", rest / size));
            rest %= size;
        }
    }
    // The two largest units are enough.
    parts.truncate(2);
    if parts.is_empty() {
        "0 s".to_owned()
    } else {
        parts.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_long_is_told_less_exactly() {
        for (millis, text) in [
            (7, "7 ms"),
            (1_817, "1.8 s"),
            (10_009, "10 s"),
            (61_999, "1 min 1 s"),
            (7_512_345, "2 h 5 min"),
        ] {
            assert_eq!(took(Millis(millis)), text);
        }
    }

    #[test]
    fn durations_are_short() {
        for (millis, text) in [
            (0, "0 s"),
            (250, "250 ms"),
            (1500, "1 s 500 ms"),
            (90_000, "1 min 30 s"),
            (172_800_001, "2 d 1 ms"),
        ] {
            assert_eq!(duration(Millis(millis)), text);
        }
    }

    #[test]
    fn resources_are_shown_by_what_tells_them_apart() {
        for (written, short) in [
            (
                "https://user:pass@host.example:8080/a/b?token=1",
                "host.example:8080/a/b",
            ),
            ("http://host", "host"),
            ("arn:aws:lambda:eu-west-1:123456789012:function:charge", "lambda charge"),
            (
                "acs:fc:cn-hangzhou:123:services/shop/functions/charge",
                "fc shop/charge",
            ),
            ("queue:mail", "queue:mail"),
            ("cmd:/usr/bin/true", "cmd:/usr/bin/true"),
        ] {
            assert_eq!(resource(written), short);
        }
        assert_eq!(whole_resource("https://u:p@h/x?secret"), "https://h/x");
    }
}
