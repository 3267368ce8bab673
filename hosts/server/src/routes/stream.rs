//! Word of changes: which of the topics that somebody watches have changed, not how. Whoever hears it asks for what it shows.
//!
//! A topic has a version that only grows. A frame names the topics whose version is another than the reader was told, so what
//! happens between two frames is one word, and nothing is kept for a reader that is slow. The id of a frame has the versions:
//! a reader that comes back with it is told at once what has changed meanwhile.

use super::route::Route;
use crate::App;
use crate::answers::aside;
use crate::caller::Caller;
use crate::scope::{Scope, lacks};
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_node::http::reading::Query;
use starbridge_node::node::{Node, WaitPermit, Watch};
use starbridge_node::problem::{Answer, Problem, quoted};
use starbridge_ports::AuditQuery;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_stream::Stream;

type Parameters = axum::extract::Query<Vec<(String, String)>>;

/// The route of the stream.
pub(super) const ROUTES: &[Route] = &[Route {
    method: "GET",
    path: "/v1/stream",
    scope: Some(Scope::Read),
    summary: "Says when something changes, not what: `changed` with the topics, `stale` where everything has to be asked for anew",
    query: &[
        (
            "topics",
            "what to watch, separated by commas: `executions`, `queues`, `bulk`, `audit` (scope `admin`), `execution:ID`; at most 64",
        ),
        ("last", "the id of a frame, where `Last-Event-ID` can't be sent"),
    ],
    body: None,
    answers: &[(200, "frames, at most four in a second", Some("text/event-stream"))],
    handler: Some(|| get(stream)),
}];

const MAX_TOPICS: usize = 64;
/// The longest id of an execution that can be watched.
const MAX_ID_BYTES: usize = 256;
/// There is a frame at most so often. Lists cost more to show than an execution, so that word of them comes less often.
const BETWEEN: Duration = Duration::from_millis(250);
const BETWEEN_LISTS: Duration = Duration::from_secs(1);
/// After so long without a frame there is a sign that the connection lives.
const SILENCE: Duration = Duration::from_secs(15);
/// A reader that took nothing for so long is slow. Nothing was kept for it, and it is told to ask for everything anew.
const SLOW: Duration = Duration::from_secs(10);
/// So many queues are looked at.
const QUEUES: usize = 1_000;
/// So many bulk jobs are looked at, the newest.
const JOBS: usize = 100;

/// `GET /v1/stream`
async fn stream(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    query: Parameters,
) -> Answer<Response> {
    let may_all = app.access.may(caller.0.as_deref(), Scope::Admin);
    open(&app, &headers, query.0, may_all).await
}

/// Opens a stream. `may_all`: whether the reader may do everything.
pub async fn open(app: &App, headers: &HeaderMap, query: Vec<(String, String)>, may_all: bool) -> Answer<Response> {
    let query = Query::of(query, &["topics", "last"])?;
    let topics = query.each("topics").flat_map(|topics| topics.split(','));
    let mut topics: Vec<Topic> = topics.map(Topic::of).collect::<Result<_, _>>()?;
    topics.sort();
    topics.dedup();
    if topics.is_empty() || topics.len() > MAX_TOPICS {
        return Err(Problem::bad(format!("`topics` must have 1 to {MAX_TOPICS} topics")));
    }
    if topics.contains(&Topic::Audit) && !may_all {
        return Err(lacks(Scope::Admin));
    }
    let permit = app.node.follow_permit()?;
    let sent = headers.get("last-event-id").and_then(|last| last.to_str().ok());
    let seen = sent.filter(|last| !last.is_empty()).or(query.get("last"));
    let reader = Reader::begin(app.clone(), topics, seen, permit).await;
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, Body::from_stream(Frames(Some(made_when_read(reader))))).into_response())
}

/// What can be watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Topic {
    /// All executions together.
    Executions,
    Queues,
    /// The newest bulk jobs.
    Bulk,
    /// The audit list.
    Audit,
    /// By its id.
    Execution(Text),
}

impl Topic {
    fn of(word: &str) -> Answer<Self> {
        match word {
            "executions" => Ok(Self::Executions),
            "queues" => Ok(Self::Queues),
            "bulk" => Ok(Self::Bulk),
            "audit" => Ok(Self::Audit),
            word => match word.strip_prefix("execution:") {
                Some(id) if !id.is_empty() && id.len() <= MAX_ID_BYTES => Ok(Self::Execution(id.into())),
                _ => Err(Problem::bad(format!(
                    "there is no topic {}: known are executions, queues, bulk, audit, execution:ID",
                    quoted(word)
                ))),
            },
        }
    }

    fn word(&self) -> String {
        match self {
            Self::Executions => "executions".to_owned(),
            Self::Queues => "queues".to_owned(),
            Self::Bulk => "bulk".to_owned(),
            Self::Audit => "audit".to_owned(),
            Self::Execution(id) => format!("execution:{id}"),
        }
    }

    /// A short name of the topic within the id of a frame.
    fn mark(&self) -> u32 {
        let mut hasher = DefaultHasher::new();
        self.word().hash(&mut hasher);
        let [_, _, _, _, a, b, c, d] = hasher.finish().to_be_bytes();
        u32::from_be_bytes([a, b, c, d])
    }
}

/// The versions of what can't say by itself that it changes. They are looked at once for all readers.
#[derive(Debug, Default)]
pub struct Looked {
    queues: Mutex<LookedAt>,
    bulk: Mutex<LookedAt>,
    audit: Mutex<LookedAt>,
}

#[derive(Debug, Default)]
struct LookedAt {
    at: Option<Instant>,
    print: u64,
    version: u64,
}

impl LookedAt {
    /// The version, after something was looked at if that is due. Where the store fails, the page that asks is told why.
    async fn look(mutex: &Mutex<Self>, print: impl Future<Output = Option<u64>>) -> u64 {
        let mut looked = mutex.lock().await;
        if looked.at.is_some_and(|at| at.elapsed() < BETWEEN_LISTS) {
            return looked.version;
        }
        if let Some(print) = print.await {
            looked.version += u64::from(looked.at.is_some() && looked.print != print);
            looked.print = print;
        }
        looked.at = Some(Instant::now());
        looked.version
    }
}

async fn print_of_queues(node: &Arc<Node>) -> Option<u64> {
    let queues = node.shown_queues("", QUEUES).await.ok()?;
    let mut hasher = DefaultHasher::new();
    for queue in &queues {
        let view = &queue.view;
        (view.name.as_str(), view.waiting, view.held, view.workers, queue.dead).hash(&mut hasher);
        view.settings.paused.hash(&mut hasher);
    }
    Some(hasher.finish())
}

async fn print_of_bulk(node: &Arc<Node>) -> Option<u64> {
    let read = aside(node, |node| {
        let jobs = node.store().bulk_jobs()?.jobs(None, JOBS).ok()?;
        let mut hasher = DefaultHasher::new();
        for job in &jobs.items {
            (job.id.as_str(), job.state.code(), job.items, job.open(), job.failed).hash(&mut hasher);
        }
        Some(hasher.finish())
    });
    read.await.ok().flatten()
}

async fn print_of_audit(node: &Arc<Node>) -> Option<u64> {
    let read = aside(node, |node| {
        let newest = AuditQuery {
            limit: 1,
            ..AuditQuery::default()
        };
        let page = node.store().audit(&newest).ok()?;
        Some(page.items.first().map_or(0, |(number, _)| *number))
    });
    read.await.ok().flatten()
}

impl Looked {
    /// The version of a topic that has to be looked at; `None` for others.
    async fn version(&self, topic: &Topic, node: &Arc<Node>) -> Option<u64> {
        match topic {
            Topic::Queues => Some(LookedAt::look(&self.queues, print_of_queues(node)).await),
            Topic::Bulk => Some(LookedAt::look(&self.bulk, print_of_bulk(node)).await),
            Topic::Audit => Some(LookedAt::look(&self.audit, print_of_audit(node)).await),
            Topic::Executions | Topic::Execution(_) => None,
        }
    }
}

/// Something that is watched, and the version that the reader was told of.
struct Watched {
    topic: Topic,
    /// Of an execution.
    watch: Option<(Watch, u64)>,
    told: u64,
    at: Instant,
}

impl Watched {
    fn of(app: &App, topic: Topic) -> Self {
        let watch = match &topic {
            Topic::Execution(id) => Some((app.node.watchers().watch(id), 0)),
            _ => None,
        };
        Self {
            topic,
            watch,
            told: 0,
            at: Instant::now(),
        }
    }

    /// Its version now, if it may have changed.
    async fn version(&mut self, app: &App) -> Option<u64> {
        match &self.topic {
            Topic::Executions => {
                let counters = app.node.counters();
                let changes = [&counters.turns, &counters.kept];
                Some(changes.map(|count| count.load(Ordering::Relaxed)).iter().sum())
            }
            Topic::Queues | Topic::Bulk | Topic::Audit => app.looked.version(&self.topic, &app.node).await,
            Topic::Execution(id) => {
                let (watch, turns) = self.watch.as_mut()?;
                let known = *turns;
                *turns = watch.turns();
                match known == *turns {
                    true => None,
                    false => Some(last_event(app, id.clone()).await),
                }
            }
        }
    }

    fn is_due(&self) -> bool {
        let between = match self.topic {
            Topic::Execution(_) => BETWEEN,
            _ => BETWEEN_LISTS,
        };
        self.at.elapsed() >= between
    }
}

/// The number of the last event of an execution; 0 where there is none.
async fn last_event(app: &App, id: Text) -> u64 {
    let last = aside(&app.node, move |node| node.last_event(&id)).await;
    last.ok().and_then(Result::ok).map_or(0, |last| last.0)
}

/// Somebody who watches.
struct Reader {
    app: App,
    watched: Vec<Watched>,
    /// The first frame, until it was sent.
    first: Option<Bytes>,
    spoke: Instant,
    _permit: WaitPermit,
}

impl Reader {
    async fn begin(app: App, topics: Vec<Topic>, seen: Option<&str>, permit: WaitPermit) -> Self {
        let known = seen.map(|seen| versions(&app, seen));
        let mut watched = Vec::with_capacity(topics.len());
        let mut changed = Vec::new();
        for topic in topics {
            let mut one = Watched::of(&app, topic);
            one.told = match (&one.topic, &mut one.watch) {
                (Topic::Execution(id), Some((watch, turns))) => {
                    // Before the read, so that no change in between is missed.
                    *turns = watch.turns();
                    last_event(&app, id.clone()).await
                }
                _ => one.version(&app).await.unwrap_or_default(),
            };
            let before = known.as_ref().and_then(|known| known.as_ref()?.get(&one.topic.mark()));
            if before.is_some_and(|before| *before != one.told) {
                changed.push(one.topic.word());
            }
            watched.push(one);
        }
        let mut reader = Self {
            app,
            watched,
            first: None,
            spoke: Instant::now(),
            _permit: permit,
        };
        let event = match known {
            // The id is of another process: what happened meanwhile is not known.
            Some(None) => "stale",
            Some(Some(_)) if !changed.is_empty() => "changed",
            _ => "begun",
        };
        reader.first = Some(reader.frame(event, &changed));
        reader
    }

    /// The id of a frame: the process, and what is told.
    fn id(&self) -> String {
        let mut id = process(&self.app);
        for watched in &self.watched {
            id.push_str(&format!(".{:x}-{:x}", watched.topic.mark(), watched.told));
        }
        id
    }

    fn frame(&self, event: &str, topics: &[String]) -> Bytes {
        let topics: Vec<Value> = topics.iter().map(|topic| topic.as_str().into()).collect();
        let data: Object = [("topics".into(), topics.into())].into_iter().collect();
        let data = Value::from(data).to_json();
        format!("event: {event}\nid: {}\ndata: {data}\n\n", self.id()).into()
    }

    /// What has changed since it was told.
    async fn changed(&mut self) -> Vec<String> {
        let mut changed = Vec::new();
        for watched in &mut self.watched {
            if !watched.is_due() {
                continue;
            }
            if let Some(version) = watched.version(&self.app).await
                && version != watched.told
            {
                (watched.told, watched.at) = (version, Instant::now());
                changed.push(watched.topic.word());
            }
        }
        changed
    }
}

/// The begin of the ids of this process.
fn process(app: &App) -> String {
    format!("{:x}", app.node.stats().since().0)
}

/// The versions that an id has; `None` if it is none of this process.
fn versions(app: &App, id: &str) -> Option<BTreeMap<u32, u64>> {
    let mut parts = id.split('.');
    if parts.next() != Some(process(app).as_str()) {
        return None;
    }
    let pair = |part: &str| {
        let (mark, version) = part.split_once('-')?;
        Some((
            u32::from_str_radix(mark, 16).ok()?,
            u64::from_str_radix(version, 16).ok()?,
        ))
    };
    parts.map(pair).collect()
}

/// What makes the parts of a stream.
trait Parts: Send + Sized + 'static {
    /// The next part, and what makes those after it, if there are more. `waited`: how long the reader took nothing.
    fn next(self, waited: Duration) -> impl Future<Output = (Bytes, Option<Self>)> + Send;
}

impl Parts for Reader {
    async fn next(mut self, waited: Duration) -> (Bytes, Option<Self>) {
        if let Some(first) = self.first.take() {
            return (first, Some(self));
        }
        loop {
            tokio::time::sleep(BETWEEN).await;
            if self.app.draining.load(Ordering::SeqCst) {
                return (Bytes::new(), None);
            }
            let changed = self.changed().await;
            if !changed.is_empty() {
                self.spoke = Instant::now();
                let event = if waited >= SLOW { "stale" } else { "changed" };
                return (self.frame(event, &changed), Some(self));
            }
            if self.spoke.elapsed() >= SILENCE {
                self.spoke = Instant::now();
                return (Bytes::from_static(b":\n\n"), Some(self));
            }
        }
    }
}

/// The next part of a stream, with what makes those after it.
type NextPart<P> = Pin<Box<dyn Future<Output = (Bytes, Option<P>)> + Send>>;

/// The next part. It is made when there is room for it, and not before.
fn made_when_read<P: Parts>(parts: P) -> NextPart<P> {
    let handed = Instant::now();
    Box::pin(async move { parts.next(handed.elapsed()).await })
}

/// The parts of a stream, for who sends them.
struct Frames<P>(Option<NextPart<P>>);

impl<P: Parts> Stream for Frames<P> {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(frame) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let (bytes, parts) = ready!(frame.as_mut().poll(context));
        self.0 = parts.map(made_when_read);
        match bytes.is_empty() {
            true => Poll::Ready(None),
            false => Poll::Ready(Some(Ok(bytes))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    /// Remembers how long its reader waited each time.
    struct Waits(Arc<std::sync::Mutex<Vec<Duration>>>);

    impl Parts for Waits {
        async fn next(self, waited: Duration) -> (Bytes, Option<Self>) {
            self.0.lock().unwrap().push(waited);
            (Bytes::from_static(b"x"), Some(self))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_made_for_a_reader_that_does_not_read_and_its_wait_is_known() {
        let waits = Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut frames = Frames(Some(made_when_read(Waits(waits.clone()))));
        let mut take = async || {
            let part = poll_fn(|context| Pin::new(&mut frames).poll_next(context)).await;
            assert_eq!(part.unwrap().unwrap(), "x");
        };
        take().await;
        take().await;
        tokio::time::advance(SLOW).await;
        assert_eq!(waits.lock().unwrap().len(), 2);
        take().await;
        assert_eq!(*waits.lock().unwrap(), [Duration::ZERO, Duration::ZERO, SLOW]);
    }
}
