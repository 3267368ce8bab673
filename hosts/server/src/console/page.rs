//! A request for a page, and the answer to it.

use super::answer::{PageRefusal, html, is_local};
use super::ask::{Api, Asker};
use super::sent_forms::FormClaim;
use super::session::{Visitor, cookie};
use crate::App;
use crate::scope::Scope;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use starbridge_console::{Frame, Language, Theme, Zone};
use starbridge_node::node::Operator;
use std::convert::Infallible;

/// The cookies of what a visitor chose.
pub const LANGUAGE: &str = "starbridge-language";
pub const THEME: &str = "starbridge-theme";
pub const ZONE: &str = "starbridge-zone";

/// The parameter that all pages have: a link that was copied names the zone of whoever sent it.
pub const ZONE_OF_LINK: &str = "zone";

/// A request for a page.
pub struct Page {
    pub app: App,
    pub frame: Frame,
    pub ask: Asker,
    /// The form that is being done, if it has a number.
    pub claim: Option<FormClaim>,
}

impl FromRequestParts<App> for Page {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        let visitor = parts.extensions.get::<Visitor>().cloned().unwrap_or(Visitor::Stranger);
        let operator = parts.extensions.get::<Operator>().cloned();
        let api = parts.extensions.get::<Api>().cloned();
        let mut frame = frame(app, &visitor, &parts.headers, &parts.uri);
        let ask = Asker { api, visitor, operator };
        if parts.method == Method::GET && has_menu(parts.uri.path()) {
            frame.asking = asking(&ask).await;
        }
        Ok(Self {
            app: app.clone(),
            frame,
            ask,
            claim: None,
        })
    }
}

impl Page {
    /// An answer with a page, or why there is none.
    pub fn answer(&self, page: Result<String, PageRefusal>) -> Response {
        match page {
            Ok(page) => html(StatusCode::OK, page),
            Err(refusal) => refusal.page(&self.frame),
        }
    }

    /// An answer that leads to a page, or why not. The same form leads there again.
    pub fn lead(&self, to: Result<String, PageRefusal>) -> Response {
        match to {
            Ok(to) => {
                if let Some(claim) = &self.claim {
                    claim.led(&to);
                }
                Redirect::to(&to).into_response()
            }
            Err(refusal) => refusal.page(&self.frame),
        }
    }
}

/// Whether what is answered there has the menu. Files and parts of pages have none.
fn has_menu(path: &str) -> bool {
    let without = ["/console/", "/strips", "/stream"];
    !without.iter().any(|other| path.starts_with(other)) && !path.ends_with("/map")
}

/// How many executions wait for a decision; none, where the visitor may not know or the store does not count them.
async fn asking(ask: &Asker) -> u64 {
    let counts = ask.get("/v1/executions/counts", &[], &[]).await.unwrap_or_default();
    let count = |kind: &str, word: &str| counts.get(kind)?.get(word)?.as_number()?.as_u64();
    count("reasons", "manual")
        .or_else(|| count("statuses", "Manual"))
        .unwrap_or_default()
}

/// What a page has around it.
pub fn frame(app: &App, visitor: &Visitor, headers: &HeaderMap, uri: &Uri) -> Frame {
    const SCOPES: [Scope; 5] = [Scope::Read, Scope::Start, Scope::Worker, Scope::Operate, Scope::Admin];
    let accepted = headers
        .get(header::ACCEPT_LANGUAGE)
        .and_then(|value| value.to_str().ok());
    let chosen = cookie(headers, LANGUAGE).and_then(Language::parse);
    let (here, sent) = without_zone(uri);
    let of_link = sent.as_deref().and_then(Zone::parse);
    let own = cookie(headers, ZONE).and_then(Zone::parse).unwrap_or_default();
    let sessions = app.sessions.as_ref();
    Frame {
        language: chosen.unwrap_or_else(|| Language::of_browser(accepted.unwrap_or_default())),
        theme: cookie(headers, THEME).and_then(Theme::parse).unwrap_or_default(),
        zone: of_link.unwrap_or(own),
        zone_of_link: of_link.is_some_and(|zone| zone != own),
        here: if is_local(&here) { here } else { "/".to_owned() },
        who: visitor.name().map(ToString::to_string),
        scopes: SCOPES
            .into_iter()
            .filter(|scope| visitor.may(*scope))
            .map(Scope::as_str)
            .collect(),
        forgery: sessions.map(|sessions| sessions.forgery(visitor)).unwrap_or_default(),
        now: app.node.now(),
        asking: 0,
    }
}

/// The address of a page without the zone that a link names, and that zone.
fn without_zone(uri: &Uri) -> (String, Option<String>) {
    let query = uri.query().unwrap_or_default();
    let is_zone = |part: &&str| part.split('=').next() == Some(ZONE_OF_LINK);
    let parts = query.split('&').filter(|part| !part.is_empty());
    let zone = parts.clone().any(|part| is_zone(&part)).then(|| {
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri);
        let pairs = pairs.map(|pairs| pairs.0).unwrap_or_default();
        let zone = pairs.into_iter().find(|(key, _)| key == ZONE_OF_LINK);
        zone.map_or_else(String::new, |(_, zone)| zone)
    });
    let others: Vec<&str> = parts.filter(|part| !is_zone(part)).collect();
    let here = match others.is_empty() {
        true => uri.path().to_owned(),
        false => format!("{}?{}", uri.path(), others.join("&")),
    };
    (here, zone)
}
