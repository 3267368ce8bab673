//! Which part of an execution is looked at: it stands in the address, so that a link leads there.

use crate::read::path_part;
use crate::zone::Reader;
use starbridge_flow::time::Timestamp;

/// The tabs, in order.
pub const TABS: [&str; 7] = ["timeline", "steps", "events", "data", "children", "definition", "raw"];

/// What is looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct View<'a> {
    /// The id of the execution.
    pub id: &'a str,
    /// The tab; the first where none is asked for.
    pub tab: &'a str,
    /// The event at which all is shown; the last where none is asked for.
    pub at: Option<u64>,
    /// The visit that is looked into, by its event.
    pub visit: Option<u64>,
    /// The attempt of it, from 1.
    pub attempt: Option<usize>,
    /// Where the part of the time line begins that is shown; nothing: at the beginning.
    pub from: Option<Timestamp>,
    /// Where it ends; nothing: at the end.
    pub to: Option<Timestamp>,
}

impl View<'_> {
    fn href(&self) -> String {
        let mut parts = Vec::new();
        if self.tab != TABS[0] && !self.tab.is_empty() {
            parts.push(format!("tab={}", path_part(self.tab)));
        }
        parts.extend(self.at.map(|at| format!("at={at}")));
        parts.extend(self.visit.map(|visit| format!("visit={visit}")));
        parts.extend(self.attempt.map(|attempt| format!("attempt={attempt}")));
        for (key, time) in [("from", self.from), ("to", self.to)] {
            parts.extend(time.map(|time| format!("{key}={}", path_part(&time.to_string()))));
        }
        match parts.is_empty() {
            true => format!("/executions/{}", path_part(self.id)),
            false => format!("/executions/{}?{}", path_part(self.id), parts.join("&")),
        }
    }

    /// The same place with one thing more.
    pub(super) fn further(&self, key: &str, value: &str) -> String {
        let here = self.href();
        let sign = if here.contains('?') { '&' } else { '?' };
        format!("{here}{sign}{key}={}", path_part(value))
    }

    pub(super) fn at_event(&self, at: Option<u64>) -> String {
        Self { at, ..*self }.href()
    }

    pub(super) fn with_visit(&self, visit: u64) -> String {
        let (visit, attempt) = (Some(visit), None);
        Self {
            visit,
            attempt,
            ..*self
        }
        .href()
    }

    pub(super) fn with_attempt(&self, attempt: usize) -> String {
        let attempt = Some(attempt);
        Self { attempt, ..*self }.href()
    }

    /// The place of the attempt that is shown among so many; the last where none is asked for.
    pub fn attempt_of(&self, attempts: usize) -> Option<usize> {
        let wanted = self.attempt.unwrap_or(attempts);
        wanted
            .clamp(1, attempts.max(1))
            .checked_sub(1)
            .filter(|place| *place < attempts)
    }

    pub(super) fn without_visit(&self) -> String {
        let (visit, attempt) = (None, None);
        Self {
            visit,
            attempt,
            ..*self
        }
        .href()
    }

    /// The time line of this stretch.
    pub(super) fn within(&self, from: Option<Timestamp>, to: Option<Timestamp>) -> String {
        let tab = TABS[0];
        Self { tab, from, to, ..*self }.href()
    }

    /// The tabs: the address of each, its word, and whether it is open.
    pub(super) fn tabs(&self, t: Reader) -> Vec<(String, &'static str, bool)> {
        let words = [t.timeline, t.steps, t.events, t.data, t.children, t.definition, t.raw];
        let tabs = TABS.into_iter().zip(words);
        tabs.map(|(tab, word)| (View { tab, ..*self }.href(), word, tab == self.tab))
            .collect()
    }
}

/// A place in the history, and the ways to others.
pub(super) struct Travel {
    pub(super) at: u64,
    pub(super) end: u64,
    pub(super) is_end: bool,
    pub(super) first: String,
    pub(super) before: String,
    pub(super) after: String,
    pub(super) last: String,
}

impl Travel {
    /// Nothing, where nothing has happened yet.
    pub(super) fn of(view: &View<'_>, end: u64) -> Option<Self> {
        let at = view.at.unwrap_or(end).min(end);
        (end > 0).then(|| Self {
            at,
            end,
            is_end: at == end,
            first: view.at_event(Some(1)),
            before: view.at_event(Some(at.saturating_sub(1).max(1))),
            after: view.at_event(Some(at + 1).filter(|next| *next < end)),
            last: view.at_event(None),
        })
    }
}
