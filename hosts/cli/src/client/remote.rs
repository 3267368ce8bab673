//! The server itself. It takes several requests at once, and this code prints nothing about the
//! results.

use super::token::Token;
use super::{Answer, Body, Problem, root};
use reqwest::{Method, RequestBuilder, Url};
use starbridge_flow::value::{Object, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The addresses of a server: its nodes, where it has several. One of them is asked until it does not answer.
#[derive(Clone)]
pub(super) struct Servers {
    all: Arc<[Url]>,
    which: Arc<AtomicUsize>,
}

impl Servers {
    /// Addresses with commas between them. An error is the one that is none.
    pub(super) fn read(named: &str) -> Result<Self, &str> {
        let read = |one: &'_ str| {
            let url = Url::parse(one).ok();
            url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        };
        let all = named.split(',').map(str::trim);
        let all: Result<Vec<Url>, &str> = all.map(|one| read(one).ok_or(one)).collect();
        Ok(Self {
            all: all?.into(),
            which: Arc::default(),
        })
    }

    fn now(&self) -> Option<&Url> {
        self.all.get(self.which.load(Ordering::Relaxed) % self.all.len().max(1))
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// Whether all of them are asked without encryption, so that no certificates are needed.
    pub(super) fn are_plain(&self) -> bool {
        self.all.iter().all(|url| url.scheme() == "http")
    }

    /// From now on the next one is asked.
    pub(super) fn turn(&self) {
        self.which.fetch_add(1, Ordering::Relaxed);
    }
}

/// A server, and the identity of the caller.
#[derive(Clone)]
pub struct Remote {
    pub(super) http: reqwest::Client,
    pub(super) servers: Servers,
    pub(super) token: Option<Token>,
}

impl Remote {
    /// The address as the user gave it, for messages.
    pub fn address(&self) -> &str {
        self.servers.now().map_or("", |url| url.as_str().trim_end_matches('/'))
    }

    /// Its address without the path; `None` if it has none.
    pub(super) fn without_path(&self) -> Option<String> {
        let mut url = self.servers.now().filter(|url| url.path() != "/").cloned()?;
        url.set_path("");
        Some(url.as_str().trim_end_matches('/').to_owned())
    }

    /// Starts an action, and waits this long for the answer. An error says why there is none.
    pub async fn post(
        &self,
        path: &[&str],
        body: &Object,
        patience: Duration,
    ) -> Result<Result<Answer, Problem>, String> {
        let request = self.request(Method::POST, path, &[]);
        let request = request.map_err(|segment| format!("`{segment}` names nothing"))?;
        let exchanged = exchange(request, Body::Json(body), patience).await;
        exchanged.map_err(|error| {
            self.servers.turn();
            root(&error)
        })
    }

    /// A request. The error is the part of the path that would lead elsewhere.
    pub(super) fn request(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<RequestBuilder, String> {
        let mut url = self.servers.now().cloned().ok_or_else(String::new)?;
        if let Some(segment) = path.iter().find(|segment| matches!(**segment, "" | "." | "..")) {
            return Err((*segment).to_owned());
        }
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(path);
        }
        if !query.is_empty() {
            let pairs = query.iter().map(|(key, value)| (*key, value.as_str()));
            url.query_pairs_mut().extend_pairs(pairs);
        }
        let request = self.http.request(method, url);
        Ok(match &self.token {
            Some(token) => request.bearer_auth(token.reveal()),
            None => request,
        })
    }
}

/// Sends a request. The result is an answer or a problem.
pub(super) async fn exchange(
    request: RequestBuilder,
    body: Body<'_>,
    patience: Duration,
) -> reqwest::Result<Result<Answer, Problem>> {
    let request = request.timeout(patience);
    let request = match body {
        Body::Nothing => request,
        Body::Json(body) => request
            .header("content-type", "application/json")
            .body(Value::from(body.clone()).to_json()),
        Body::Text(kind, text) => request.header("content-type", kind).body(text),
    };
    let response = request.send().await?;
    let status = response.status().as_u16();
    let answer = Answer {
        status,
        text: response.text().await?,
    };
    Ok(match status {
        200..300 => Ok(answer),
        _ => Err(Problem::read(&answer)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_addresses_are_asked_in_turn() {
        let servers = Servers::read("http://a:1, https://b").unwrap();
        assert_eq!((servers.count(), servers.are_plain()), (2, false));
        let now = |servers: &Servers| servers.now().unwrap().host_str().unwrap().to_owned();
        assert_eq!(now(&servers), "a");
        servers.turn();
        assert_eq!(now(&servers), "b");
        servers.turn();
        assert_eq!(now(&servers), "a");
        assert_eq!(Servers::read("http://a,b").err(), Some("b"));
        assert_eq!(Servers::read("").err(), Some(""));
    }
}
