//! Makes an HTTP request from a call.

use crate::carried;
use crate::params::{self, Params};
use crate::targets::Target;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::Method;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use percent_encoding::percent_decode_str;
use starbridge_flow::value::{Object, Value};
use starbridge_ports::{Outcome, Request};
use url::Url;

/// Headers for the framing and routing of messages. A flow can't set them.
const FRAMING: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// How many headers an ordinary call has, including those that the client adds.
const USUAL_HEADERS: usize = 16;

/// The request to send. If a poll was told where to ask, it is a GET of the target with the headers of the call.
pub(crate) fn compose(request: &Request, target: &Target) -> Result<http::Request<String>, Outcome> {
    let params = params::read(request.params.as_ref())?;
    let mut headers = given_headers(&params.headers)?;
    let method = match (request.follow, &params.method) {
        (true, _) => Method::GET,
        (false, Some(method)) => method.clone(),
        (false, None) => Method::POST,
    };
    let body = if request.follow {
        headers.remove(CONTENT_TYPE);
        None
    } else {
        body(&method, &params, request, &mut headers)
    };
    let queried = (!request.follow && !params.query.is_empty()).then(|| with_query(&target.url, &params.query));
    let bare = without_credentials(queried.as_ref().unwrap_or(&target.url), &mut headers);
    let uri = match bare.or(queried) {
        Some(changed) => Target::from(changed).uri,
        None => target.uri.clone(),
    };
    headers
        .entry(ACCEPT)
        .or_insert(HeaderValue::from_static("application/json"));
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(concat!(
        "starbridge/",
        env!("CARGO_PKG_VERSION")
    )));
    if let Some(host) = &target.host {
        headers.entry(HOST).or_insert_with(|| host.clone());
    }
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    carried::put(&mut headers, request, params.shared.step_key);
    let mut message = http::Request::new(body.unwrap_or_default());
    *message.method_mut() = method;
    *message.uri_mut() = uri?;
    *message.headers_mut() = headers;
    Ok(message)
}

/// Moves user and password of the URL to a header, unless that header is set. Returns the URL without them, if it has
/// any.
fn without_credentials(url: &Url, headers: &mut HeaderMap) -> Option<Url> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut credentials: Vec<u8> = percent_decode_str(url.username()).collect();
    credentials.push(b':');
    credentials.extend(percent_decode_str(url.password().unwrap_or_default()));
    if let Ok(mut value) = HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(credentials))) {
        value.set_sensitive(true);
        headers.entry(AUTHORIZATION).or_insert(value);
    }
    let mut bare = url.clone();
    // Neither fails for a URL that has a user or a password.
    let _ = bare.set_username("");
    let _ = bare.set_password(None);
    Some(bare)
}

fn given_headers(given: &Object) -> Result<HeaderMap, Outcome> {
    let mut headers = HeaderMap::with_capacity(USUAL_HEADERS + given.len());
    for (name, value) in given {
        let bad_name = || Outcome::not_sent(format!("`{name}` is no name of a header"));
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad_name())?;
        if FRAMING.contains(&header.as_str()) {
            return Err(Outcome::not_sent(format!(
                "the header `{header}` is not for `serviceParams` to set"
            )));
        }
        let text = match value {
            Value::Null => continue,
            Value::Array(_) | Value::Object(_) => {
                return Err(Outcome::not_sent(format!(
                    "the header `{header}` must be text, not {}",
                    value.kind()
                )));
            }
            scalar => scalar.to_plain_text(),
        };
        // The value may be a secret, so the error does not repeat it.
        let mut value = HeaderValue::from_bytes(text.as_bytes()).map_err(|_| {
            Outcome::not_sent(format!(
                "the value of the header `{header}` has characters no header can have"
            ))
        })?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}

/// The URL with these parameters: a list as one parameter for each item, `null` as none, an object as its JSON.
fn with_query(url: &Url, query: &Object) -> Url {
    let mut url = url.clone();
    let mut pairs = url.query_pairs_mut();
    for (name, value) in query {
        match value {
            Value::Null => {}
            Value::Array(values) => {
                for value in values.values() {
                    pairs.append_pair(name, &value.to_plain_text());
                }
            }
            value => {
                pairs.append_pair(name, &value.to_plain_text());
            }
        }
    }
    drop(pairs);
    url
}

fn body(method: &Method, params: &Params, request: &Request, headers: &mut HeaderMap) -> Option<String> {
    let bare = matches!(*method, Method::GET | Method::HEAD);
    let body = match &params.shared.body {
        Some(body) => body.clone(),
        None if bare => return None,
        None => request.input.clone(),
    };
    if let (Some(text), Some(kind)) = (body.as_str(), headers.get(CONTENT_TYPE))
        && !is_json(kind)
    {
        return Some(text.to_owned());
    }
    headers
        .entry(CONTENT_TYPE)
        .or_insert(HeaderValue::from_static("application/json"));
    Some(body.to_json())
}

fn is_json(content_type: &HeaderValue) -> bool {
    let text = content_type.to_str().unwrap_or_default().to_ascii_lowercase();
    let kind = text.split(';').next().unwrap_or_default().trim();
    kind == "application/json" || kind.ends_with("+json") || kind == "text/json"
}
