//! Requests over HTTP to a function URL, or to API Gateway with payloads of version 2.0. They are the same as
//! in the API of a server.

use crate::Failure;
use crate::api::{ApiRequest, ApiResponse};
use crate::environment::{Invocation, Running};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use starbridge_flow::value::{Object, Value};
use std::net::{IpAddr, Ipv4Addr};

/// Answers a request. An execution that it starts goes on later, unless the request waits for its
/// end.
pub(crate) async fn take(running: &Running, event: &Value, invocation: Invocation) -> Result<Value, Failure> {
    let mut asked = match read(event) {
        Ok(asked) => asked,
        Err(words) => return Ok(problem(StatusCode::BAD_REQUEST, "BadRequest", &words)),
    };
    if asked.uri.path().starts_with("/v1/queues") {
        let words = "there are no worker queues here: they need a server; send to SQS (`sqs:QUEUE`) instead";
        return Ok(problem(StatusCode::NOT_IMPLEMENTED, "NotHere", words));
    }
    // A sender that Lambda has authenticated needs no token. Without tokens, no other sender is allowed.
    let known = event
        .get("requestContext")
        .and_then(|context| context.get("authorizer")?.get("iam"));
    let known = known.is_some_and(|known| *known != Value::Null);
    if !running.api.has_tokens && !known && !is_report(asked.uri.path()) {
        let words = "nobody may ask here: give the function tokens (`[[tokens]]` in its `starbridge.toml`), or its URL the \
                     authorization type AWS_IAM";
        return Ok(problem(StatusCode::FORBIDDEN, "NoAccess", words));
    }
    know_what_is_asked_for(running, &asked)?;
    let waits = wait_in_time(&mut asked.uri, invocation.until.since(running.node.now()).as_secs());
    if running.continuations.is_some() && !waits {
        running.node.pause_dispatch().await?;
    }
    let answered = running.api.answer(asked, known).await?;
    let until = match running.continuations {
        // Without a store, executions that began must be finished now.
        None => invocation.until,
        Some(_) => running.node.now(),
    };
    running.quiesce(until).await?;
    Ok(answer(&answered))
}

/// Limits the wait of a request to the seconds that are left. Returns whether it waits at all.
fn wait_in_time(uri: &mut Uri, left: u64) -> bool {
    let query = uri.query().unwrap_or_default();
    let asked = query.split('&').find_map(|pair| pair.strip_prefix("wait="));
    let Some(asked) = asked.map(str::to_owned) else {
        return false;
    };
    if asked.parse::<u64>().is_ok_and(|seconds| seconds > left) {
        let pairs = query.split('&').map(|pair| match pair.starts_with("wait=") {
            true => format!("wait={left}"),
            false => pair.to_owned(),
        });
        let whole = format!("{}?{}", uri.path(), pairs.collect::<Vec<_>>().join("&"));
        // It was taken from a URI, so it is a valid one.
        if let Ok(cut) = whole.parse() {
            *uri = cut;
        }
    }
    true
}

/// Whether a request reports about a call: its token allows it.
fn is_report(path: &str) -> bool {
    path == "/v1/callbacks" || path.starts_with("/v1/callbacks/")
}

/// Loads flows that may have been stored elsewhere since.
fn know_what_is_asked_for(running: &Running, asked: &ApiRequest) -> Result<(), Failure> {
    let path = asked.uri.path();
    match path.strip_prefix("/v1/flows/").and_then(|rest| rest.split('/').next()) {
        Some(flow) => running.know(flow),
        None if path == "/v1/flows" || path == "/v1/executions/batch" || path.starts_with("/v1/schedules") => {
            running.know_all()
        }
        None => Ok(()),
    }
}

fn read(event: &Value) -> Result<ApiRequest, String> {
    let empty = Object::new();
    let context = event
        .get("requestContext")
        .and_then(|context| context.get("http")?.as_object());
    let context = context.unwrap_or(&empty);
    let of = |object: &Object, key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default();
    let method = of(context, "method").parse::<Method>();
    let mut uri = text("rawPath").to_owned();
    if !text("rawQueryString").is_empty() {
        uri = format!("{uri}?{}", text("rawQueryString"));
    }
    let uri: Result<Uri, _> = uri.parse();
    let mut headers = HeaderMap::new();
    for (name, value) in event.get("headers").and_then(Value::as_object).unwrap_or(&empty) {
        let value = value.as_str().and_then(|value| HeaderValue::from_str(value).ok());
        if let (Ok(name), Some(value)) = (name.parse::<HeaderName>(), value) {
            headers.insert(name, value);
        }
    }
    // Lambda can't answer with a stream.
    headers.remove(header::ACCEPT);
    let body = match event.get("isBase64Encoded") {
        Some(Value::Bool(true)) => BASE64_STANDARD
            .decode(text("body"))
            .map_err(|_| "the body is not the Base64 it is said to be")?,
        _ => text("body").as_bytes().to_vec(),
    };
    let from = of(context, "sourceIp")
        .parse()
        .unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    Ok(ApiRequest {
        method: method.map_err(|_| "the method is none")?,
        uri: uri.map_err(|_| "the path is none")?,
        headers,
        body,
        from,
    })
}

fn answer(answered: &ApiResponse) -> Value {
    let mut headers = Object::new();
    for (name, value) in &answered.headers {
        if let Ok(value) = value.to_str() {
            headers.insert(name.as_str().into(), value.into());
        }
    }
    let body = String::from_utf8_lossy(&answered.body).into_owned();
    shaped(answered.status, headers, body)
}

fn shaped(status: StatusCode, headers: Object, body: String) -> Value {
    let members = [
        ("statusCode".into(), Value::from(u32::from(status.as_u16()))),
        ("headers".into(), headers.into()),
        ("body".into(), body.into()),
        ("isBase64Encoded".into(), false.into()),
    ];
    members.into_iter().collect::<Object>().into()
}

fn problem(status: StatusCode, code: &str, detail: &str) -> Value {
    let kind = [("content-type".into(), Value::from("application/problem+json"))];
    let members = [
        ("status".into(), Value::from(u32::from(status.as_u16()))),
        ("code".into(), code.into()),
        ("detail".into(), detail.into()),
    ];
    let body: Object = members.into_iter().collect();
    shaped(status, kind.into_iter().collect(), Value::from(body).to_json())
}
