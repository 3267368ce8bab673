//! Turns an answer into an outcome.

use crate::answer::{self, End};
use crate::client::Response;
use crate::failure;
use crate::retry_after;
use crate::target::shown;
use http::StatusCode;
use http::header::LOCATION;
use starbridge_flow::graph::{FaultKind, Origin, Pattern};
use starbridge_flow::value::{Object, Value};
use starbridge_ports::{Clock, Outcome, Request, ResourceFamily};
use url::Url;

/// How many bytes of a failure's body are read: enough for a name and a cause.
const FAILURE_BYTES: usize = 64 * 1024;
/// How many characters of a failure's body are quoted.
const QUOTED_CHARS: usize = 500;
/// Function Compute sets it if the function itself failed, with any status.
const FUNCTION_ERROR: &str = "x-fc-error-type";

/// The outcome of a call with this answer.
pub(crate) async fn of(request: &Request, url: &Url, response: Response, clock: Option<&dyn Clock>) -> Outcome {
    let function_error =
        request.via == ResourceFamily::FunctionCompute && response.headers().contains_key(FUNCTION_ERROR);
    if function_error || !response.status().is_success() {
        return failed(request, function_error, response, clock).await;
    }
    if request.polling && response.status() == StatusCode::ACCEPTED {
        return not_yet(url, &response, clock);
    }
    match request.pattern {
        Pattern::RequestResponse => result(request, url, response).await,
        Pattern::Sync | Pattern::WaitForCallback => accepted(request, response).await,
    }
}

async fn result(request: &Request, url: &Url, response: Response) -> Outcome {
    if response.status() == StatusCode::NO_CONTENT {
        return Outcome::Result(Object::new().into());
    }
    if let Some(coding) = answer::coding(&response) {
        let cause = format!("the answer is compressed (`{coding}`), which was not asked for");
        return Outcome::failed(FaultKind::Result, cause);
    }
    let limit = request.answer_limit;
    match answer::read(response, limit).await {
        (body, End::Whole) => match answer::parse(&body) {
            Ok(value) => Outcome::Result(value),
            Err(cause) => Outcome::failed(FaultKind::Result, cause),
        },
        (_, End::TooLong) => {
            let cause = format!("the answer has more than the {limit} bytes it may have");
            Outcome::failed(FaultKind::TooLarge, cause)
        }
        (body, End::CutOff(error)) => {
            let (url, read, reason) = (shown(url), body.len(), failure::reason(&error));
            let cause = format!("`{url}`: the answer was cut off after {read} bytes: {reason}");
            Outcome::failed("HTTP.ConnectionFailed", cause)
        }
    }
}

/// The status is the acceptance. The body can't take it back.
async fn accepted(request: &Request, response: Response) -> Outcome {
    let mut receipt = Object::new();
    receipt.insert("status".into(), u32::from(response.status().as_u16()).into());
    if answer::coding(&response).is_none()
        && let (body, End::Whole) = answer::read(response, request.answer_limit).await
        && !body.trim_ascii().is_empty()
        && let Ok(Value::Object(body)) = answer::parse(&body)
    {
        receipt.insert("body".into(), body.into());
    }
    Outcome::Accepted {
        receipt: Some(receipt.into()),
    }
}

/// The outcome of a 202 under `poll`: where to ask next, and when.
fn not_yet(url: &Url, response: &Response, clock: Option<&dyn Clock>) -> Outcome {
    let mut receipt = Object::new();
    receipt.insert("status".into(), 202u32.into());
    if let Some(location) = response.headers().get(LOCATION) {
        match same_origin(url, location.as_bytes()) {
            Ok(next) => _ = receipt.insert("location".into(), next.as_str().into()),
            Err(cause) => return Outcome::failed("HTTP.202", cause),
        }
    }
    if let Some(asked) = retry_after::asked(response.headers(), clock) {
        receipt.insert("retryAfter".into(), asked.0.into());
    }
    Outcome::Accepted {
        receipt: Some(receipt.into()),
    }
}

fn same_origin(url: &Url, location: &[u8]) -> Result<Url, String> {
    let text = String::from_utf8_lossy(location);
    let next = url
        .join(&text)
        .map_err(|error| format!("the `Location` of the answer is no URL: {error}"))?;
    if next.origin() != url.origin() || !matches!(next.scheme(), "http" | "https") {
        return Err(format!(
            "the `Location` of the answer, `{}`, is not of the same origin as `{}`",
            shown(&next),
            shown(url)
        ));
    }
    Ok(next)
}

async fn failed(request: &Request, function_error: bool, response: Response, clock: Option<&dyn Clock>) -> Outcome {
    let status = response.status();
    let retry_after = retry_after::asked(response.headers(), clock);
    let redirect = redirect(&response);
    // A body that was cut off may still name an error; the status is known.
    let body = match answer::coding(&response) {
        Some(_) => Vec::new(),
        None => answer::read(response, request.answer_limit.min(FAILURE_BYTES)).await.0,
    };
    let (error, cause) = named(&body).unwrap_or_else(|| {
        let error = match request.via {
            _ if function_error => "FC.Unknown".to_owned(),
            ResourceFamily::FunctionCompute if status == StatusCode::TOO_MANY_REQUESTS => {
                "FC.ResourceThrottled".to_owned()
            }
            ResourceFamily::FunctionCompute if status.is_server_error() => "FC.InternalServerError".to_owned(),
            _ => format!("HTTP.{}", status.as_u16()),
        };
        let cause = redirect.unwrap_or_else(|| described(status, &body));
        (error.into(), cause)
    });
    Outcome::Failed {
        error,
        cause,
        retry_after,
    }
}

/// The error that a body names: `{"error","cause"}`, or `{"errorType","errorMessage"}` as functions answer.
fn named(body: &[u8]) -> Option<(FaultKind, String)> {
    let Ok(Value::Object(body)) = answer::parse(body) else {
        return None;
    };
    [("error", "cause"), ("errorType", "errorMessage")]
        .into_iter()
        .find_map(|(error, cause)| {
            let error = body.get(error)?.as_str().filter(|name| !name.trim().is_empty())?;
            let cause = body.get(cause).map(Value::to_plain_text).unwrap_or_default();
            Some((FaultKind::Outside(Origin::Function, error.into()), cause))
        })
}

/// The target of a redirect, which is not followed; `None` if there is none.
fn redirect(response: &Response) -> Option<String> {
    let status = response.status();
    let location = response.headers().get(LOCATION).filter(|_| status.is_redirection())?;
    let location: String = String::from_utf8_lossy(location.as_bytes())
        .chars()
        .take(QUOTED_CHARS)
        .collect();
    let reason = status.canonical_reason().unwrap_or("a redirection");
    let bare = location.split(['?', '#']).next().unwrap_or_default();
    let place = Url::parse(&location).map_or(bare.to_owned(), |url| shown(&url));
    Some(format!("{reason}: redirects are not followed; `Location` is `{place}`"))
}

fn described(status: StatusCode, body: &[u8]) -> String {
    let reason = match status.canonical_reason() {
        Some(reason) => reason.to_owned(),
        None => format!("status {}", status.as_u16()),
    };
    match answer::excerpt(body, QUOTED_CHARS) {
        quoted if quoted.is_empty() => reason,
        quoted => format!("{reason}: {quoted}"),
    }
}
