//! The witness: functions outside the server, which note every call and every report that was acknowledged.

use super::ledger::Ledger;
use crate::client;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::post;
use serde_json::{Value, json};
use starbridge_flow::fnv::fnv1a_64;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;

/// The record of one idempotency key.
#[derive(Clone, Debug, Default)]
pub(super) struct Called {
    /// The execution, by its header.
    pub(super) execution: String,
    /// The step, by its header.
    pub(super) step: String,
    /// When the call came, in milliseconds since 1970, each time.
    pub(super) came: Vec<u64>,
    /// When the last answer was given.
    pub(super) answered: u64,
    /// The body that was sent the first time.
    sent: Vec<u8>,
    /// Whether something else was sent later.
    pub(super) changed: bool,
}

/// The outcome of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reported {
    /// It is on its way.
    UnderWay,
    /// The server confirmed that it has it.
    Acknowledged,
    /// The server answered that it already has one: the answer to an earlier try was lost.
    HadItAlready,
    /// The server refused it.
    Refused(u16),
}

/// A notification that came.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) execution: String,
    pub(super) event: u64,
    pub(super) status: String,
}

/// Notes what it sees.
#[derive(Debug)]
pub(in crate::campaigns) struct Witness {
    port: u16,
    server: String,
    book: Mutex<Book>,
    /// The notifications of executions, in the order they came.
    told_of: Mutex<Vec<Told>>,
    ledger: Mutex<Ledger>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Book {
    /// By idempotency key.
    pub(super) calls: BTreeMap<String, Called>,
    /// By the idempotency key of the call reported on.
    pub(super) reports: BTreeMap<String, Reported>,
    /// Second reports on the same call that were taken, or refused as they must be.
    pub(super) second_taken: u64,
    pub(super) second_refused: u64,
    /// Tries that had no answer.
    pub(super) tries_lost: u64,
}

impl Witness {
    /// Starts the functions; reports go to that server.
    pub(in crate::campaigns) async fn start(server: String) -> Result<Arc<Self>, String> {
        let problem = |error: std::io::Error| error.to_string();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(problem)?;
        let witness = Arc::new(Self {
            port: listener.local_addr().map_err(problem)?.port(),
            server,
            book: Mutex::default(),
            told_of: Mutex::default(),
            ledger: Mutex::default(),
        });
        let router = Router::new()
            .route("/notified", post(notified))
            .fallback(answer)
            .with_state(Arc::clone(&witness));
        tokio::spawn(async move {
            // Ends with the campaign.
            let _ = axum::serve(listener, router).await;
        });
        Ok(witness)
    }

    pub(in crate::campaigns) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn told_of(&self) -> MutexGuard<'_, Vec<Told>> {
        self.told_of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The things that exist for each job.
    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does the work of a call, at once: the caller may be gone before the answer. Answers whether
    /// it went well.
    fn carry_out(&self, path: &str, key: &str, sent: &Bytes) -> bool {
        let sent: Value = serde_json::from_slice(sent).unwrap_or_default();
        match path {
            "/make" => self.ledger().make(key, &sent),
            "/take" => self.ledger().take(&sent),
            _ => true,
        }
    }

    /// Waits until all reports have an answer.
    pub(in crate::campaigns) async fn settle(&self, patience: Duration) {
        let until = now() + u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        let waiting = || self.book().reports.values().any(|told| *told == Reported::UnderWay);
        while waiting() && now() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Notes a call. Answers whether it is the first under its key.
    fn note(&self, key: &str, headers: &HeaderMap, sent: &Bytes) -> bool {
        let mut book = self.book();
        let called = book.calls.entry(key.to_owned()).or_default();
        let first = called.came.is_empty();
        if first {
            called.execution = text_of(headers, "starbridge-execution");
            called.step = text_of(headers, "starbridge-step");
            called.sent = sent.to_vec();
        }
        called.came.push(now());
        called.changed |= called.sent != *sent;
        first
    }

    fn told(&self, key: &str, reported: Reported) {
        self.book().reports.insert(key.to_owned(), reported);
    }

    /// Reports until the server answers with the outcome.
    async fn report(self: Arc<Self>, key: String, token: String, delay: u64) {
        tokio::time::sleep(Duration::from_millis(delay)).await;
        let client = client();
        let url = format!("{}/v1/callbacks/{token}/succeed", self.server);
        let mut tries: u32 = 0;
        let status = loop {
            tries += 1;
            let sent = client.post(&url).body(json!({"output": {"said": key}}).to_string());
            match sent.send().await.map(|answer| answer.status().as_u16()) {
                Ok(429 | 503) | Err(_) => self.book().tries_lost += 1,
                Ok(status) => break status,
            }
            tokio::time::sleep(Duration::from_millis(15)).await;
        };
        let reported = match status {
            200 | 204 => Reported::Acknowledged,
            409 if tries > 1 => Reported::HadItAlready,
            status => Reported::Refused(status),
        };
        self.told(&key, reported);
        if delay.is_multiple_of(4) {
            let second = client.post(&url).body(json!({"output": {"said": "again"}}).to_string());
            match second.send().await.map(|answer| answer.status().as_u16()) {
                Ok(409) => self.book().second_refused += 1,
                Ok(200 | 204) => self.book().second_taken += 1,
                // The server was just killed.
                Ok(_) | Err(_) => {}
            }
        }
    }
}

/// Now, in milliseconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn text_of(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

/// A number that depends on nothing but the key.
pub(super) fn number_of(key: &str) -> u64 {
    fnv1a_64(key.bytes())
}

/// Takes a notification. Some are refused the first time, some answered late enough for the server to be killed meanwhile.
async fn notified(State(witness): State<Arc<Witness>>, sent: Bytes) -> StatusCode {
    let message: Value = serde_json::from_slice(&sent).unwrap_or_default();
    let text = |member: &str| message[member].as_str().unwrap_or_default();
    let id = text("id");
    let told = Told {
        execution: text("execution").to_owned(),
        event: id.rsplit('/').next().and_then(|event| event.parse().ok()).unwrap_or(0),
        status: text("status").to_owned(),
    };
    let number = number_of(id);
    let first = {
        let mut all = witness.told_of();
        let known = |other: &Told| other.execution == told.execution && other.event == told.event;
        let first = !all.iter().rev().any(known);
        all.push(told);
        first
    };
    if number.is_multiple_of(7) {
        tokio::time::sleep(Duration::from_millis(number % 200)).await;
    }
    match first && number.is_multiple_of(11) {
        true => StatusCode::SERVICE_UNAVAILABLE,
        false => StatusCode::NO_CONTENT,
    }
}

async fn answer(
    State(witness): State<Arc<Witness>>,
    uri: Uri,
    headers: HeaderMap,
    sent: Bytes,
) -> (StatusCode, String) {
    let key = text_of(&headers, "idempotency-key");
    let first = witness.note(&key, &headers, &sent);
    let went_well = witness.carry_out(uri.path(), &key, &sent);
    let number = number_of(&key);
    if uri.path() == "/later" && first {
        // At once: the caller may be gone before the answer.
        let sent: Value = serde_json::from_slice(&sent).unwrap_or_default();
        let token = sent["token"].as_str().unwrap_or_default().to_owned();
        witness.told(&key, Reported::UnderWay);
        tokio::spawn(Arc::clone(&witness).report(key.clone(), token, number % 500));
    }
    // Most answers come at once, some late enough for the server to be killed meanwhile.
    let delay = if number.is_multiple_of(7) {
        number % 200
    } else {
        number % 10
    };
    tokio::time::sleep(Duration::from_millis(delay)).await;
    let answer = match uri.path() {
        "/flaky" if number.is_multiple_of(3) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            json!({"error": "Flaky", "cause": key}),
        ),
        "/make" | "/take" if !went_well => (StatusCode::CONFLICT, json!({"error": "Witness.Refused", "cause": key})),
        "/broken" => (StatusCode::BAD_REQUEST, json!({"error": "Broken", "cause": key})),
        "/later" => (StatusCode::ACCEPTED, json!({"taken": key})),
        _ => (StatusCode::OK, json!({"key": key})),
    };
    if let Some(called) = witness.book().calls.get_mut(&key) {
        called.answered = now();
    }
    (answer.0, answer.1.to_string())
}
