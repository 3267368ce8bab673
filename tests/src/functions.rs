//! A small server of HTTP functions that answer from a file: for examples and tests.
//!
//! The file names routes, `"POST /pay": [answer, …]`; answers are given in order and the last one repeats. Members of an
//! answer:
//!
//! | member | meaning |
//! |---|---|
//! | `status`, `headers` | 200 and none where they are missing |
//! | `body` | JSON; `{}` where nothing says otherwise |
//! | `template` | JSON in which a string `"$"` or `"$.a.b[0]"` is replaced by the value at that path of the request |
//! | `echo` | `true`: the body of the request |
//! | `raw` | text, sent unchanged |
//! | `bytes` | so many bytes |
//! | `counter` | a name: the body gets `n`, how often this counter has counted, from 1 |
//! | `delayMs` | waits before it answers |
//! | `times` | how often the answer is given before the next one is, 1 |
//! | `hang` | `true`: never answers |
//! | `close` | `true`: half of the body, then the connection is closed |
//! | `callback` | `{"output" (a template) or "error" and "cause", "delayMs", "url"}`: reports by the `token` found in the request, to its `callbackUrl`, its header `Starbridge-Callback-Url`, or `url` |

mod callback;
mod half;
mod script;
mod template;
#[cfg(test)]
mod tests;

pub use script::Script;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::Response;
use half::Half;
use script::{Answer, Content};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::TcpListener;

/// Serves until the listener breaks. Says each request in a line on stderr.
pub async fn serve(listener: TcpListener, script: Script) -> std::io::Result<()> {
    let router = Router::new().fallback(answer).with_state(Arc::new(script));
    axum::serve(listener, router).await
}

async fn answer(
    State(script): State<Arc<Script>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    sent: Bytes,
) -> Response {
    let route = format!("{method} {}", uri.path());
    let Some(answer) = script.next(&route) else {
        eprintln!("{route}: no such route");
        let body = json!({"error": "NoSuchRoute", "cause": route}).to_string();
        return respond(&Answer::with_status(StatusCode::NOT_FOUND), body.into_bytes());
    };
    eprintln!("{route}: {}", answer.says());
    tokio::time::sleep(answer.delay).await;
    if answer.hang {
        std::future::pending::<()>().await;
    }
    if let Some(report) = &answer.callback {
        callback::send(report, &headers, &sent);
    }
    let body = body(&script, &answer, &sent);
    respond(&answer, body)
}

fn body(script: &Script, answer: &Answer, sent: &Bytes) -> Vec<u8> {
    let mut body = match &answer.content {
        Content::Echo => return sent.to_vec(),
        Content::Raw(text) => return text.clone().into_bytes(),
        Content::Bytes(count) => return vec![b'x'; *count],
        Content::Json(body) => body.clone(),
        Content::Template(template) => {
            let request = serde_json::from_slice(sent).unwrap_or(Value::Null);
            template::filled(template, &request)
        }
    };
    if let (Some(counter), Some(body)) = (&answer.counter, body.as_object_mut()) {
        body.insert("n".to_owned(), script.count(counter).into());
    }
    body.to_string().into_bytes()
}

fn respond(answer: &Answer, mut body: Vec<u8>) -> Response {
    let mut builder = Response::builder().status(answer.status);
    if !answer.headers.contains_key(CONTENT_TYPE) {
        builder = builder.header(CONTENT_TYPE, "application/json");
    }
    for (name, value) in &answer.headers {
        builder = builder.header(name, value);
    }
    if answer.close {
        builder = builder.header(CONTENT_LENGTH, body.len().max(1));
        body.truncate(body.len() / 2);
        return builder.body(Body::new(Half::of(body))).unwrap_or_default();
    }
    builder.body(Body::from(body)).unwrap_or_default()
}

impl Answer {
    fn says(&self) -> String {
        match (self.hang, self.close) {
            (true, _) => "no answer".to_owned(),
            (_, true) => format!("{} and half a body", self.status.as_u16()),
            _ => self.status.as_u16().to_string(),
        }
    }
}
