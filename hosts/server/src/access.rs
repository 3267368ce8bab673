//! Who may do what: bearer tokens with scopes, and how fast strangers may try.

use crate::App;
use crate::routes::ROUTES;
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use starbridge_kit::config::TokenConfig;
use starbridge_kit::problem::Problem;
use starbridge_runtime::hexadecimal;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// What a token lets its bearer do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Look at flows, executions and histories.
    Read,
    /// Start executions.
    Start,
    /// Hold and report tasks.
    Worker,
    /// Stop, redrive, fork, resolve.
    Operate,
    /// Put and delete flows and schedules; everything else as well.
    Admin,
}

impl Scope {
    /// The scope of that name.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "read" => Self::Read,
            "start" => Self::Start,
            "worker" => Self::Worker,
            "operate" => Self::Operate,
            "admin" => Self::Admin,
            _ => return None,
        })
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Start => "start",
            Self::Worker => "worker",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }
}

/// The SHA-256 of a token: all that is kept of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Of a token.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// From its 64 hexadecimal digits.
    pub fn parse(hex: &str) -> Option<Self> {
        hexadecimal::read_exactly(hex).map(Self)
    }

    /// Compares in constant time.
    fn is(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        pairs.fold(0, |difference, (one, two)| difference | (one ^ two)) == 0
    }
}

/// Who may do what.
#[derive(Clone, Debug, Default)]
pub struct Access {
    tokens: Vec<(TokenHash, Vec<Scope>)>,
}

impl Access {
    /// Lets whoever has a token of that hash do so much.
    pub fn grant(&mut self, hash: TokenHash, scopes: Vec<Scope>) {
        self.tokens.push((hash, scopes));
    }

    /// Whether nobody needs a token.
    pub fn is_open(&self) -> bool {
        self.tokens.is_empty()
    }

    /// What a token lets its bearer do; nothing, if it is none of ours.
    fn scopes(&self, token: &str) -> Option<&[Scope]> {
        let hash = TokenHash::of(token);
        let mut found = None;
        for (known, scopes) in &self.tokens {
            if known.is(&hash) {
                found = Some(scopes.as_slice());
            }
        }
        found
    }
}

/// How often strangers may fail: a bucket for each address.
#[derive(Debug, Default)]
pub struct Limiter {
    buckets: Mutex<HashMap<IpAddr, Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    left: f64,
    seen: Instant,
}

/// Failures at once, and further ones a second.
const BURST: f64 = 50.0;
const PER_SECOND: f64 = 5.0;
/// Addresses remembered.
const ADDRESSES: usize = 10_000;

impl Limiter {
    /// Whether an address has failed too often.
    fn is_spent(&self, address: IpAddr) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.get_mut(&address).is_some_and(|bucket| {
            bucket.refill();
            bucket.left < 1.0
        })
    }

    fn failed(&self, address: IpAddr) {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= ADDRESSES {
            // Whoever has not failed for long is as good as new.
            let full = Duration::from_secs_f64(BURST / PER_SECOND);
            buckets.retain(|_, bucket| bucket.seen.elapsed() < full);
        }
        let bucket = buckets.entry(address).or_insert_with(|| Bucket {
            left: BURST,
            seen: Instant::now(),
        });
        bucket.refill();
        bucket.left = (bucket.left - 1.0).max(0.0);
    }
}

impl Bucket {
    fn refill(&mut self) {
        self.left = (self.left + self.seen.elapsed().as_secs_f64() * PER_SECOND).min(BURST);
        self.seen = Instant::now();
    }
}

/// Who may do what by these tokens. The error names a scope that is none.
pub fn access_of(tokens: &[TokenConfig]) -> Result<Access, String> {
    let mut access = Access::default();
    for token in tokens {
        let mut scopes = Vec::new();
        for word in &token.scopes {
            let scope = Scope::parse(word);
            scopes
                .push(scope.ok_or_else(|| format!("the token `{}` has a scope `{word}`, which is none", token.name))?);
        }
        if let Some(hash) = TokenHash::parse(&token.sha256) {
            access.grant(hash, scopes);
        }
    }
    Ok(access)
}

/// Lets a request through, or not.
pub async fn check(
    State(app): State<App>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    path: MatchedPath,
    request: Request,
    next: Next,
) -> Response {
    if app.limiter.is_spent(from.ip()) {
        let detail = "too many requests from here were refused: wait a little";
        return Problem::new(StatusCode::TOO_MANY_REQUESTS, "TooManyFailures", detail).into_response();
    }
    if !is_utf8(request.uri().path()) {
        return Problem::bad("the path is not UTF-8").into_response();
    }
    if let Err(problem) = admit(&app, path.as_str(), &request) {
        app.limiter.failed(from.ip());
        return problem.into_response();
    }
    let reports = path.as_str().starts_with("/v1/callbacks/");
    let response = next.run(request).await;
    if reports && response.status() == StatusCode::NOT_FOUND {
        app.limiter.failed(from.ip());
    }
    response
}

/// Whether a path is text once its `%xx` are read.
fn is_utf8(path: &str) -> bool {
    let mut bytes = Vec::with_capacity(path.len());
    let mut parts = path.split('%');
    bytes.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        match part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(part.as_bytes().get(2..).unwrap_or_default());
            }
            None => bytes.extend_from_slice(part.as_bytes()),
        }
    }
    std::str::from_utf8(&bytes).is_ok()
}

fn admit(app: &App, path: &str, request: &Request) -> Result<(), Problem> {
    let method = request.method().as_str();
    // HEAD is answered like GET.
    let method = if method == "HEAD" { "GET" } else { method };
    let route = ROUTES.iter().find(|route| route.path == path && route.method == method);
    let Some(scope) = route.and_then(|route| route.scope) else {
        return Ok(());
    };
    if app.access.is_open() {
        return check_host(app, request.headers());
    }
    let token = bearer(request.headers());
    let Some(scopes) = token.and_then(|token| app.access.scopes(token)) else {
        let detail = match token {
            None => "this needs a token: send it as `Authorization: Bearer …`",
            Some(_) => "the token is not one of this server's",
        };
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "Unauthorized", detail));
    };
    if scopes.contains(&scope) || scopes.contains(&Scope::Admin) {
        return Ok(());
    }
    let detail = format!("this needs a token with the scope `{}`", scope.as_str());
    Err(Problem::new(StatusCode::FORBIDDEN, "Forbidden", detail))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (kind, token) = value.split_once(' ')?;
    kind.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Without tokens a page from elsewhere could reach this server under a name of its own that leads to the loopback: only
/// names of this machine pass.
fn check_host(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let loopback = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if name.eq_ignore_ascii_case("localhost") || loopback || app.hosts.iter().any(|host| host == name) {
        return Ok(());
    }
    let detail =
        format!("the server is not known as `{name}`: call it as `localhost`, or name the host in its configuration");
    Err(Problem::new(StatusCode::FORBIDDEN, "HostNotAllowed", detail))
}
