//! The file of answers.

use super::callback::Report;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Answers by route, and how many were given.
#[derive(Debug, Default)]
pub struct Script {
    routes: BTreeMap<String, Vec<Answer>>,
    counts: Mutex<BTreeMap<String, u64>>,
}

/// The body of an answer.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Json(Value),
    Template(Value),
    Raw(String),
    Bytes(usize),
    Echo,
}

/// One answer.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub content: Content,
    pub counter: Option<String>,
    pub delay: Duration,
    pub hang: bool,
    pub close: bool,
    pub callback: Option<Report>,
    /// How often it is given before the next one is.
    times: u64,
}

impl Script {
    /// Reads a script; says what is wrong with it otherwise.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut script = Self::default();
        script.add(text)?;
        Ok(script)
    }

    /// Reads a file, or of a folder its `functions.json` and those of the folders in it.
    pub fn load(path: &Path) -> Result<Self, String> {
        let mut files = vec![path.to_path_buf()];
        if path.is_dir() {
            let inner = std::fs::read_dir(path).map_err(|error| told(path, &error))?;
            let mut inner: Vec<_> = inner.flatten().map(|entry| entry.path()).collect();
            inner.sort();
            files = [path.to_path_buf()]
                .into_iter()
                .chain(inner)
                .map(|folder| folder.join("functions.json"))
                .collect();
            files.retain(|file| file.is_file());
        }
        let mut script = Self::default();
        for file in &files {
            let text = std::fs::read_to_string(file).map_err(|error| told(file, &error))?;
            script.add(&text).map_err(|error| told(file, &error))?;
        }
        if script.routes.is_empty() {
            return Err(told(path, &"there are no functions"));
        }
        Ok(script)
    }

    fn add(&mut self, text: &str) -> Result<(), String> {
        let file: BTreeMap<String, Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        for (route, answers) in file {
            let answers = answers.as_array().cloned().unwrap_or_else(|| vec![answers]);
            let answers: Result<Vec<_>, _> = answers.iter().map(Answer::read).collect();
            let answers = answers.map_err(|error| format!("`{route}`: {error}"))?;
            if answers.is_empty() {
                return Err(format!("`{route}` has no answer"));
            }
            if !route.contains(" /") {
                return Err(format!("`{route}` is no route: `POST /path`"));
            }
            if self.routes.insert(route.clone(), answers).is_some() {
                return Err(format!("`{route}` is there twice"));
            }
        }
        Ok(())
    }

    /// The next answer of a route.
    pub(super) fn next(&self, route: &str) -> Option<Answer> {
        let answers = self.routes.get(route)?;
        let mut given = self.count(route);
        for answer in answers {
            if given <= answer.times {
                return Some(answer.clone());
            }
            given -= answer.times;
        }
        answers.last().cloned()
    }

    /// Counts; a counter's first count is 1. Routes have a space in their names, which keeps them apart from counters.
    pub(super) fn count(&self, counter: &str) -> u64 {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(counter.to_owned()).or_insert(0);
        *count += 1;
        *count
    }
}

fn told(path: &Path, error: &impl std::fmt::Display) -> String {
    format!("`{}`: {error}", path.display())
}

impl Answer {
    /// An answer with a status and no more.
    pub(super) fn with_status(status: StatusCode) -> Self {
        Self {
            status,
            headers: HeaderMap::new(),
            content: Content::Json(json!({})),
            counter: None,
            delay: Duration::ZERO,
            hang: false,
            close: false,
            callback: None,
            times: 1,
        }
    }

    fn read(value: &Value) -> Result<Self, String> {
        let members = value.as_object().ok_or("an answer is an object")?;
        let mut answer = Self::with_status(StatusCode::OK);
        for (key, value) in members {
            answer
                .take(key, value)
                .ok_or_else(|| format!("`{key}` can't be {value}"))??;
        }
        Ok(answer)
    }

    /// Sets a member; nothing where its value is of the wrong kind.
    fn take(&mut self, key: &str, value: &Value) -> Option<Result<(), String>> {
        match key {
            "status" => self.status = StatusCode::from_u16(u16::try_from(value.as_u64()?).ok()?).ok()?,
            "headers" => self.headers = headers(value.as_object()?)?,
            "body" => self.content = Content::Json(value.clone()),
            "template" => self.content = Content::Template(value.clone()),
            "raw" => self.content = Content::Raw(value.as_str()?.to_owned()),
            "bytes" => self.content = Content::Bytes(usize::try_from(value.as_u64()?).ok()?),
            "echo" if value.as_bool()? => self.content = Content::Echo,
            "echo" => {}
            "counter" => self.counter = Some(value.as_str().filter(|name| !name.contains(' '))?.to_owned()),
            "delayMs" => self.delay = Duration::from_millis(value.as_u64()?),
            "times" => self.times = value.as_u64().filter(|times| *times > 0)?,
            "hang" => self.hang = value.as_bool()?,
            "close" => self.close = value.as_bool()?,
            "callback" => self.callback = Some(Report::read(value.as_object()?)?),
            other => return Some(Err(format!("answers have no `{other}`"))),
        }
        Some(Ok(()))
    }
}

fn headers(members: &Map<String, Value>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in members {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        headers.append(
            HeaderName::from_bytes(name.as_bytes()).ok()?,
            HeaderValue::from_str(&text).ok()?,
        );
    }
    Some(headers)
}
