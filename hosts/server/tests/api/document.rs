//! Compares the answers of the tests with the document of the API, `/v1/openapi.json`.
//!
//! Every answer must have a path, a method, a status, a media type and a body that the document
//! names. The answers to the requests of a thread are recorded, so that a test can check whether
//! the whole document was covered.

use jsonschema::Validator;
use serde_json::{Value, json};
use starbridge_server::openapi;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{LazyLock, Mutex, PoisonError};

/// An answer, as far as it was read.
pub struct Came<'a> {
    pub status: u16,
    /// The media type that the answer names.
    pub kind: Option<&'a str>,
    /// The body; `None` if it is read only later.
    pub body: Option<&'a str>,
}

/// The covered parts of the document: methods, paths and statuses, and codes of problems.
#[derive(Clone, Default)]
pub struct Seen {
    pub answers: BTreeSet<(String, String, u16)>,
    pub codes: BTreeSet<String>,
}

/// What a thread has seen until now. It is kept under the thread's name when the thread ends; a test has a thread of its name.
#[derive(Default)]
struct Seeing {
    thread: Option<String>,
    seen: Seen,
}

impl Drop for Seeing {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        let seen = std::mem::take(&mut self.seen);
        ENDED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(thread, seen);
    }
}

thread_local! {
    static SEEING: RefCell<Seeing> = RefCell::default();
}

/// What the threads saw that have ended, by their names.
static ENDED: Mutex<BTreeMap<String, Seen>> = Mutex::new(BTreeMap::new());

static DOCUMENT: LazyLock<Value> = LazyLock::new(openapi);
static SCHEMAS: LazyLock<HashMap<String, Validator>> = LazyLock::new(|| validators(&DOCUMENT));

/// The parts that a test covers: it is run, unless it has ended already.
pub fn seen_by(name: &str, test: fn()) -> Seen {
    let ended = ENDED.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
    ended.unwrap_or_else(|| {
        SEEING.with_borrow_mut(|seeing| seeing.seen = Seen::default());
        test();
        SEEING.with_borrow_mut(|seeing| std::mem::take(&mut seeing.seen))
    })
}

/// Each answer that the document names: method, path, status.
pub fn named_answers() -> BTreeSet<(String, String, u16)> {
    let mut named = BTreeSet::new();
    for (path, methods) in DOCUMENT["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let statuses = operation["responses"].as_object().unwrap().keys();
            for status in statuses.filter_map(|status| status.parse().ok()) {
                named.insert((method.to_uppercase(), path.clone(), status));
            }
        }
    }
    named
}

/// Each code that the document names for problems.
pub fn named_codes() -> BTreeSet<String> {
    let codes = &DOCUMENT["components"]["schemas"]["Problem"]["properties"]["code"]["enum"];
    let codes = codes.as_array().unwrap().iter();
    codes.map(|code| code.as_str().unwrap().to_owned()).collect()
}

/// A validator for each schema that the document names. Objects are closed: a member that the document does not name
/// is an error.
fn validators(document: &Value) -> HashMap<String, Validator> {
    let mut closed = document["components"].clone();
    close(&mut closed);
    let names = closed["schemas"].as_object().unwrap().keys();
    let of = |name: &String| {
        let schema = json!({"$ref": format!("#/components/schemas/{name}"), "components": closed});
        let built = jsonschema::options().should_validate_formats(true).build(&schema);
        (name.clone(), built.unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    names.map(of).collect()
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("properties").is_some_and(Value::is_object) && members.contains_key("required") {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
            members.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// The path of the document for a target: the one with the fewest parameters.
fn path_of(target: &str) -> Option<&'static str> {
    let target: Vec<&str> = target.split('?').next().unwrap_or_default().split('/').collect();
    let fits = |path: &&String| {
        let parts: Vec<&str> = path.split('/').collect();
        let mut pairs = parts.iter().zip(&target);
        parts.len() == target.len() && pairs.all(|(part, given)| part == given || part.starts_with('{'))
    };
    let paths = DOCUMENT["paths"].as_object().unwrap().keys().filter(fits);
    paths.min_by_key(|path| path.matches('{').count()).map(String::as_str)
}

/// Fails if the document does not have this answer.
pub fn check(method: &str, target: &str, came: &Came) {
    // HEAD is answered like GET.
    let method = if method == "HEAD" { "GET" } else { method };
    let path = path_of(target);
    let operation = path.and_then(|path| DOCUMENT["paths"][path].get(method.to_lowercase()));
    let what = || format!("{method} {target}: {} {:?} {:?}", came.status, came.kind, came.body);
    let nobodys =
        json!({"content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}});
    let answer = match operation.map(|operation| &operation["responses"]) {
        Some(answers) => match answers.get(came.status.to_string()) {
            None if came.status >= 400 => &answers["default"],
            answer => answer.unwrap_or_else(|| panic!("the document has no such status: {}", what())),
        },
        None => &nobodys,
    };
    let kind = came.kind.map(|kind| kind.split(';').next().unwrap_or_default());
    let Some(contents) = answer.get("content") else {
        assert!(
            came.body.unwrap_or_default().is_empty(),
            "the document has no body: {}",
            what()
        );
        return note(method, path, came, &Value::Null);
    };
    let content = kind.and_then(|kind| contents.get(kind));
    let content = content.unwrap_or_else(|| panic!("the document has no such media type: {}", what()));
    let mut body = Value::Null;
    if let (Some(text), Some(schema)) = (came.body, content["schema"]["$ref"].as_str()) {
        body = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {}", what()));
        let schema = &SCHEMAS[schema.rsplit('/').next().unwrap()];
        if let Err(error) = schema.validate(&body) {
            panic!("{} {error}: {}", error.instance_path(), what());
        }
    }
    note(method, operation.and(path), came, &body);
}

/// Fails if the document does not have this answer, given as the text of a connection. A head alone has no body yet.
pub fn check_text(method: &str, target: &str, answer: &str) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let headers: HashMap<String, &str> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value))
        .collect();
    let kind = headers.get("content-type").copied();
    let chunked = headers.contains_key("transfer-encoding");
    let length = headers.get("content-length").and_then(|length| length.parse().ok());
    let whole = !chunked && length.unwrap_or(0) == body.len() && method != "HEAD";
    let status = status.unwrap_or_else(|| panic!("no answer: {answer}"));
    let body = whole.then_some(body);
    check(method, target, &Came { status, kind, body });
}

fn note(method: &str, path: Option<&str>, came: &Came, body: &Value) {
    SEEING.with_borrow_mut(|seeing| {
        if seeing.thread.is_none() {
            seeing.thread = std::thread::current().name().map(str::to_owned);
        }
        let seen = &mut seeing.seen;
        if let Some(path) = path {
            seen.answers.insert((method.to_owned(), path.to_owned(), came.status));
        }
        seen.codes.extend(body["code"].as_str().map(str::to_owned));
        // A batch has a problem for each start that was refused.
        let starts = body["items"].as_array().into_iter().flatten();
        let starts = starts.filter_map(|item| item["problem"]["code"].as_str());
        let reports = body["results"].as_array().into_iter().flatten();
        let reports = reports.filter_map(|result| result["code"].as_str());
        seen.codes.extend(starts.chain(reports).map(str::to_owned));
    });
}
