//! Pages that say one thing.

use crate::frame::Frame;
use crate::zone::Reader;
use askama::Template;

/// A page as text. A template only fails where its writer does, and a string never does.
pub(crate) fn written(page: &impl Template) -> String {
    page.render().unwrap_or_default()
}

#[derive(Template)]
#[template(path = "problem.html")]
struct Problem<'a> {
    f: &'a Frame,
    t: Reader,
    status: u16,
    code: &'a str,
    detail: &'a str,
    back: Option<String>,
}

/// The page that the form of an address stands on: `/flows/order` for `/flows/order/start`.
fn page_of(here: &str) -> Option<String> {
    let path = here.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["", "keys", _, ..] => Some("/keys".to_owned()),
        [
            "",
            list @ ("flows" | "executions" | "queues" | "bulk" | "schedules"),
            one,
            _,
            ..,
        ] => Some(format!("/{list}/{one}")),
        _ => None,
    }
}

/// Why something did not work, and what next.
pub fn problem(frame: &Frame, status: u16, code: &str, detail: &str) -> String {
    written(&Problem {
        f: frame,
        t: frame.t(),
        status,
        code,
        detail,
        back: page_of(&frame.here),
    })
}

#[derive(Template)]
#[template(path = "signin.html")]
struct SignIn<'a> {
    f: &'a Frame,
    t: Reader,
    to: &'a str,
    wrong: bool,
}

/// The form in which a token is given. `to` is the page that is then shown.
pub fn sign_in(frame: &Frame, to: &str, wrong: bool) -> String {
    written(&SignIn {
        f: frame,
        t: frame.t(),
        to,
        wrong,
    })
}

#[derive(Template)]
#[template(path = "again.html")]
struct Again<'a> {
    f: &'a Frame,
    t: Reader,
    to: &'a str,
}

/// A page that loads another of ours: a link from elsewhere comes without the cookie, the second request has it.
pub fn again(frame: &Frame, to: &str) -> String {
    written(&Again {
        f: frame,
        t: frame.t(),
        to,
    })
}

/// What an action says once it is done.
pub fn done(frame: &Frame, action: &str) -> Option<&'static str> {
    let t = frame.t();
    Some(match action {
        "stop" => t.did_stop,
        "redrive" => t.did_redrive,
        "pause" => t.did_pause,
        "resume" => t.did_resume,
        "resolve" => t.did_resolve,
        "skip" => t.did_skip,
        "start" => t.did_start,
        "put" => t.did_put,
        "bulk" => t.did_bulk,
        "view" => t.did_view,
        "unview" => t.did_unview,
        "set" => t.did_set,
        "requeue" => t.did_requeue,
        "drop" => t.did_drop,
        "part" => t.did_part,
        "fork" => t.did_fork,
        "report" => t.did_report,
        "hide" => t.did_hide,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn way_back_from_a_form_is_the_page_that_has_it() {
        for (here, back) in [
            ("/flows/order/start", Some("/flows/order")),
            ("/executions/a-1/steps/7?x=/y/z", Some("/executions/a-1")),
            ("/keys/shops/a/set", Some("/keys")),
            ("/schedules/nightly/run", Some("/schedules/nightly")),
            ("/executions/none", None),
            ("/", None),
        ] {
            assert_eq!(page_of(here).as_deref(), back, "{here}");
        }
    }
}
