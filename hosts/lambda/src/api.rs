//! The API inside this process. Events become requests to it, so that they are checked and refused
//! in the same way everywhere.

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use starbridge_flow::value::Value;
use starbridge_node::config::Config;
use starbridge_node::node::Node;
use starbridge_server::{Access, ServerSettings, access_of};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tower_service::Service;

use crate::Failure;

/// The largest answer, in bytes. Lambda carries 6 MB, of which quoting a body takes two.
pub(crate) const MAX_ANSWER_BYTES: usize = 6 * 1024 * 1024;

/// The API, for events and for requests over HTTP.
#[derive(Clone)]
pub(crate) struct Api {
    /// For events: without tokens, because only senders with the right to invoke the function send
    /// them.
    inside: Router,
    /// For requests over HTTP: as configured.
    outside: Router,
    /// Whether requests over HTTP need tokens.
    pub(crate) has_tokens: bool,
}

pub(crate) struct ApiRequest {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) from: IpAddr,
}

/// An answer of the API.
pub(crate) struct ApiResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Api {
    /// The API of a node.
    pub(crate) fn of(node: &Arc<Node>, config: &Config) -> Result<Self, String> {
        let access = access_of(&config.tokens)?;
        let has_tokens = !access.is_open();
        let proxies = config.server.proxies()?;
        let settings = |access: Access| ServerSettings {
            access,
            hosts: config.server.hosts.clone(),
            trusted_proxies: proxies.clone(),
            ..ServerSettings::default()
        };
        Ok(Self {
            inside: starbridge_server::service(node.clone(), settings(Access::default())),
            outside: starbridge_server::service(node.clone(), settings(access)),
            has_tokens,
        })
    }

    /// Sends a request on behalf of an event. An answer with an error status is a failure.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: &Value) -> Result<Value, Failure> {
        self.ask_traced(method, path, body, None).await
    }

    /// Asks the API as a part of a trace. An invalid trace context is ignored, as in a header.
    pub(crate) async fn ask_traced(
        &self,
        method: Method,
        path: &str,
        body: &Value,
        traceparent: Option<&str>,
    ) -> Result<Value, Failure> {
        let internal = |error: &dyn std::fmt::Display| Failure::new("Internal", error.to_string());
        let uri = path
            .parse()
            .map_err(|error: axum::http::uri::InvalidUri| internal(&error))?;
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("localhost"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(traceparent) = traceparent.and_then(|text| HeaderValue::from_str(text).ok()) {
            headers.insert("traceparent", traceparent);
        }
        let asked = ApiRequest {
            method,
            uri,
            headers,
            body: body.to_json().into_bytes(),
            from: Ipv4Addr::LOCALHOST.into(),
        };
        let answered = send(self.inside.clone(), asked).await?;
        let read = if answered.body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&answered.body).map_err(|error| internal(&error))?
        };
        match answered.status.is_success() {
            true => Ok(read),
            false => Err(Failure::of_problem(&read)),
        }
    }

    /// Answers a request over HTTP. `known`: Lambda has authenticated the sender, who then needs no token.
    pub(crate) async fn answer(&self, mut asked: ApiRequest, known: bool) -> Result<ApiResponse, Failure> {
        if known {
            // A sender that Lambda knows has signed the request. No browser does that by itself for
            // any page.
            asked.headers.remove(header::ORIGIN);
            asked.headers.remove("sec-fetch-site");
        }
        let router = match known || !self.has_tokens {
            true => {
                asked
                    .headers
                    .insert(header::HOST, HeaderValue::from_static("localhost"));
                &self.inside
            }
            false => &self.outside,
        };
        send(router.clone(), asked).await
    }
}

async fn send(mut router: Router, asked: ApiRequest) -> Result<ApiResponse, Failure> {
    let mut request = Request::new(Body::from(asked.body));
    *request.method_mut() = asked.method;
    *request.uri_mut() = asked.uri;
    *request.headers_mut() = asked.headers;
    let from = ConnectInfo(SocketAddr::new(asked.from, 0));
    request.extensions_mut().insert(from);
    let response = router.call(request).await.unwrap_or_else(|never| match never {});
    let (head, body) = response.into_parts();
    let body = axum::body::to_bytes(body, MAX_ANSWER_BYTES).await;
    let body = body.map_err(|_| {
        let words = "the answer has more than the 6 MB that Lambda carries: ask for less at a time";
        Failure::new("AnswerTooLarge", words)
    })?;
    Ok(ApiResponse {
        status: head.status,
        headers: head.headers,
        body: body.to_vec(),
    })
}
