//! A route, and definitions that many routes share.

use crate::App;
use crate::scope::Scope;
use axum::routing::MethodRouter;
use starbridge_flow::limits::Limits;

/// A row of the table of routes.
pub struct Route {
    /// In capitals, as HTTP has it.
    pub method: &'static str,
    /// The path, in the notation that the router and OpenAPI share.
    pub path: &'static str,
    /// The scope that a token needs ([`Scope::Any`]: any token); `None` if no token is needed.
    pub scope: Option<Scope>,
    /// What it does, in one line.
    pub summary: &'static str,
    /// The parameters of the query: names and meanings.
    pub query: &'static [(&'static str, &'static str)],
    /// The schema of the body, if it takes one.
    pub body: Option<&'static str>,
    /// The statuses of answers, with their meaning and schema.
    pub answers: &'static [(u16, &'static str, Option<&'static str>)],
    /// The handler; `None` if another part of the program answers.
    pub handler: Option<fn() -> MethodRouter<App>>,
}

/// How many bytes a body may have in addition to its data.
const ENVELOPE_BYTES: usize = 64 * 1024;

/// How many bytes the body of a request may have.
pub fn largest_body(limits: &Limits) -> usize {
    limits.collection_bytes.max(limits.definition_bytes) + ENVELOPE_BYTES
}

/// The parameters of a list with pages.
pub(super) const PAGE: &[(&str, &str)] = &[
    ("cursor", "`next` of the page before"),
    ("limit", "how many at most: 1 to 1000, 100 where none is given"),
];
