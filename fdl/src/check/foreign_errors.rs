//! Names of errors that people bring from other languages. Here they match nothing, because names match exactly.

/// What a name from another language means here.
pub(super) struct Meant {
    /// Why the name matches nothing.
    pub(super) why: String,
    /// What to write.
    pub(super) help: String,
    /// The name to write in its place, if there is one.
    pub(super) name: Option<String>,
}

/// Matches every error.
const ALL: &str = "FnF.ALL";
/// Names of the Amazon States Language after `States.`, in lower case, and the error here.
const STATES: [(&str, &str); 10] = [
    ("all", ALL),
    ("taskfailed", ALL),
    ("timeout", "FnF.TaskTimeout"),
    ("heartbeattimeout", "FnF.HeartbeatTimeout"),
    ("branchfailed", "FnF.BranchFailed"),
    ("exceedtoleratedfailurethreshold", "FnF.BranchFailed"),
    ("datalimitexceeded", "FnF.PayloadTooLarge"),
    ("parameterpathfailure", "FnF.InvalidInput"),
    ("intrinsicfailure", "FnF.InvalidInput"),
    ("resultpathmatchfailure", "FnF.InvalidOutput"),
];
/// Words for all errors, in lower case.
const EVERY: [&str; 4] = ["*", ".*", "all", "any"];
/// Words for the end of a task's time, in lower case, and for a heartbeat that did not come.
const TIMEOUT: [&str; 5] = ["timeout", "timedout", "timed_out", "tasktimeout", "tasktimedout"];
const HEARTBEAT: [&str; 2] = ["heartbeattimeout", "heartbeat_timeout"];

/// What `name` means if another language has it; `None` for any other name.
pub(super) fn meaning(name: &str) -> Option<Meant> {
    let word = name.trim().to_ascii_lowercase();
    if let Some(rest) = word.strip_prefix("states.") {
        return Some(of_states(name, rest));
    }
    if EVERY.contains(&word.as_str()) {
        return Some(one(name, "names of errors match exactly", ALL.to_owned()));
    }
    if TIMEOUT.contains(&word.as_str()) {
        return Some(named(name, "FnF.TaskTimeout"));
    }
    if HEARTBEAT.contains(&word.as_str()) {
        return Some(named(name, "FnF.HeartbeatTimeout"));
    }
    if word.contains('*') {
        return Some(pattern(name));
    }
    let status = word.strip_prefix("http").unwrap_or(&word);
    let status = status.strip_prefix(['.', ' ', '_', '-', ':']).unwrap_or(status);
    match is_status(status)? {
        Status::Class => Some(pattern(name)),
        Status::One => {
            let meant = format!("HTTP.{status}");
            (name != meant).then(|| one(name, "the status of an HTTP function is named in one way", meant))
        }
    }
}

fn of_states(name: &str, rest: &str) -> Meant {
    let why = "the Amazon States Language has this name, no error here does";
    match STATES.iter().find(|(word, _)| *word == rest) {
        Some((_, meant)) => one(name, why, (*meant).to_owned()),
        None => Meant {
            why: format!("`{name}` matches nothing: {why}"),
            help: format!("`{ALL}` matches every error; those of the engine begin with `FnF.`"),
            name: None,
        },
    }
}

fn named(name: &str, meant: &str) -> Meant {
    let why = "it matches only an error that a function names so, not the engine's";
    Meant {
        why: format!("`{name}` is no name of the engine: {why}"),
        help: format!("did you mean `{meant}`?"),
        name: Some(meant.to_owned()),
    }
}

fn one(name: &str, why: &str, meant: String) -> Meant {
    Meant {
        why: format!("`{name}` matches nothing: {why}"),
        help: format!("did you mean `{meant}`?"),
        name: Some(meant),
    }
}

fn pattern(name: &str) -> Meant {
    Meant {
        why: format!("`{name}` matches nothing: there are no patterns for names of errors"),
        help: format!("name each error, such as `HTTP.503`; `{ALL}` matches every one"),
        name: None,
    }
}

/// A status of HTTP, or a class of them.
enum Status {
    One,
    Class,
}

/// What three characters such as `503` or `5xx` say.
fn is_status(text: &str) -> Option<Status> {
    let &[class, tens, ones] = text.as_bytes() else {
        return None;
    };
    let any = |byte: u8| byte == b'x' || byte == b'?';
    let fits = |byte: u8| byte.is_ascii_digit() || any(byte);
    if !(b'1'..=b'5').contains(&class) || !fits(tens) || !fits(ones) {
        return None;
    }
    Some(match any(tens) || any(ones) {
        true => Status::Class,
        false => Status::One,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FAULT_NAMES;
    use crate::graph::FaultKind;

    fn meant(name: &str) -> Option<Option<String>> {
        meaning(name).map(|meant| meant.name)
    }

    #[test]
    fn names_from_elsewhere_have_a_meaning() {
        for (name, here) in [
            ("States.ALL", "FnF.ALL"),
            ("States.TaskFailed", "FnF.ALL"),
            ("States.Timeout", "FnF.TaskTimeout"),
            ("*", "FnF.ALL"),
            ("ALL", "FnF.ALL"),
            ("Timeout", "FnF.TaskTimeout"),
            ("TaskTimeout", "FnF.TaskTimeout"),
            ("503", "HTTP.503"),
            ("HTTP 503", "HTTP.503"),
            ("http.503", "HTTP.503"),
        ] {
            assert_eq!(meant(name), Some(Some(here.to_owned())), "{name}");
        }
        for name in ["HTTP.5xx", "5XX", "HTTP.*", "HTTP.50?", "FnF.*", "States.Permissions"] {
            assert_eq!(meant(name), Some(None), "{name}");
        }
    }

    #[test]
    fn what_is_offered_is_an_error_of_the_engine() {
        for (word, meant) in STATES {
            let custom = matches!(FAULT_NAMES.kind(meant), FaultKind::Custom(_));
            assert!(meant == ALL || !custom, "{word}: {meant}");
        }
    }

    #[test]
    fn other_names_have_none() {
        for name in [
            "HTTP.503",
            "HTTP.ConnectionFailed",
            "CMD.503",
            "Payment.Refused",
            "TimeoutError",
            "E42",
            "600",
            "Why?",
        ] {
            assert!(meaning(name).is_none(), "{name}");
        }
    }
}
