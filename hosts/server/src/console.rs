//! The console: pages for people, made of what the API answers.
//!
//! A page asks the API in the name of whoever is signed in, so it shows and does nothing that the same token could not do
//! by itself. The cookie of a session opens these pages only; the API reads no cookie.

mod acts;
mod answer;
mod ask;
mod asked;
mod bulk;
mod compress;
mod export;
mod find;
mod flow_acts;
mod form;
mod gate;
mod inspected;
mod live;
mod map;
mod page;
mod pages;
mod problem_page;
mod questions;
mod queue_acts;
mod routes;
mod schedule_acts;
mod sent_forms;
mod session;
mod signing_in;
mod strips;
mod view_acts;

pub use ask::Api;
pub use compress::Compressed;
pub use gate::{enter, is_page};
pub use problem_page::BrowserRequest;
pub use routes::ROUTES;
pub use sent_forms::SentForms;
pub use session::Sessions;

use crate::scope::Scope;

/// The pages: method, path and the scope that each needs; no scope where nobody has to be signed in.
pub fn page_scopes() -> Vec<(&'static str, &'static str, Option<Scope>)> {
    let pages = ROUTES.iter().map(|route| (route.method, route.path, route.scope));
    pages.collect()
}
