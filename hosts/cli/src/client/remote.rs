//! The server itself. It takes several requests at once, and this code prints nothing about the
//! results.

use super::token::Token;
use super::{Answer, Body, Problem, root};
use reqwest::{Method, RequestBuilder, Url};
use starbridge_flow::value::{Object, Value};
use std::time::Duration;

/// A server, and the identity of the caller.
#[derive(Clone)]
pub struct Remote {
    pub(super) http: reqwest::Client,
    pub(super) server: Url,
    pub(super) token: Option<Token>,
}

impl Remote {
    /// Its address.
    pub fn address(&self) -> &str {
        self.server.as_str().trim_end_matches('/')
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
        exchanged.map_err(|error| root(&error))
    }

    /// A request. The error is the part of the path that would lead elsewhere.
    pub(super) fn request(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<RequestBuilder, String> {
        let mut url = self.server.clone();
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
