//! The loop of a worker: it takes tasks, runs their programs, sends heartbeats and reports results.

use super::Options;
use super::held::{Entry, HeldTasks, Over, Stage};
use super::reporter::{Reporter, words};
use super::signals::Signals;
use super::task::{Task, TaskResult};
use super::unsent_reports::{NextTry, UnsentReport, UnsentReports};
use crate::client::{Answer, Client, Problem, Remote};
use crate::exit::Exit;
use starbridge_flow::graph::FaultKind;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_node::programs::CommandConnector;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::{AbortHandle, JoinError, JoinSet};

/// How long a hold waits for tasks, in seconds. If it must not wait, just long enough to find out.
const WAIT_SECONDS: u64 = 20;
const QUICK_WAIT_SECONDS: u64 = 1;
/// The additional time for an answer after its wait.
const ANSWER: Duration = Duration::from_secs(15);
/// The number of waiting reports at which no more tasks are taken.
const MAX_UNSENT_REPORTS: usize = 1_000;
/// The time limit of a hold in progress when the worker is told to stop: tasks may be on their way
/// here.
const LAST_HOLD: Duration = Duration::from_millis(500);

type Asked = Result<Result<Answer, Problem>, String>;

/// A request to the server, with its answer.
enum Answered {
    /// `idle`: no program ran and no report was waiting.
    Hold {
        sent: Instant,
        idle: bool,
        asked: Asked,
    },
    Reports {
        reports: Vec<UnsentReport>,
        asked: Asked,
    },
    Heartbeats {
        sent: Instant,
        tokens: Vec<String>,
        asked: Asked,
    },
}

/// The end of the work.
struct Leaving {
    /// Until when programs may run.
    until: Instant,
    /// Until when tasks may still arrive.
    holds: Instant,
    exit: Result<(), Exit>,
}

/// Polls for tasks, runs a program for each, and reports what became of it.
pub struct WorkerLoop<'a> {
    options: &'a Options,
    client: &'a Client,
    remote: Remote,
    worker: String,
    connector: Arc<CommandConnector>,
    reporter: Reporter,
    signals: Signals,
    held: HeldTasks,
    outbox: UnsentReports,
    programs: JoinSet<(String, TaskResult)>,
    under_way: JoinSet<Answered>,
    holding: Option<AbortHandle>,
    reporting: bool,
    sending_heartbeats: bool,
    hold_again: NextTry,
    heartbeat_again: Option<Instant>,
    /// Whether a hold found nothing while there was nothing else to do.
    found_nothing: bool,
    leaving: Option<Leaving>,
}

impl<'a> WorkerLoop<'a> {
    /// A worker without any task yet.
    pub fn new(options: &'a Options, client: &'a Client, connector: CommandConnector) -> Result<Self, Exit> {
        let output = client.output();
        let remote = client.remote().clone();
        let verbose = options.verbose || output.is_live();
        Ok(Self {
            reporter: Reporter::new(output, verbose, remote.address()),
            signals: Signals::new(output)?,
            worker: options.worker(),
            connector: Arc::new(connector),
            options,
            client,
            remote,
            held: HeldTasks::default(),
            outbox: UnsentReports::default(),
            programs: JoinSet::new(),
            under_way: JoinSet::new(),
            holding: None,
            reporting: false,
            sending_heartbeats: false,
            hold_again: NextTry::default(),
            heartbeat_again: None,
            found_nothing: false,
            leaving: None,
        })
    }

    /// Works until it is told to stop or nothing is left.
    pub async fn work(mut self) -> Result<(), Exit> {
        let queues = self.options.queues.join(", ");
        let server = self.remote.address();
        self.reporter
            .note(&format!("{} takes tasks of {queues} from {server}", self.worker));
        loop {
            let now = Instant::now();
            self.give_up_what_is_over(now);
            self.send_heartbeats(now);
            self.send_reports(now);
            self.ask_for_tasks(now);
            if let Some(exit) = self.is_over(now) {
                self.programs.shutdown().await;
                return exit;
            }
            let next = self.next(now);
            tokio::select! {
                Some(ended) = self.programs.join_next() => self.take_end(ended),
                Some(answered) = self.under_way.join_next() => self.take_answer(answered),
                signal = self.signals.next() => {
                    if self.leaving.is_some() {
                        self.reporter.note("stopping at once");
                        self.programs.shutdown().await;
                        return Err(Exit::Interrupted);
                    }
                    self.reporter.note(&format!("{signal}: finishing what runs"));
                    self.leave(Ok(()));
                }
                () = tokio::time::sleep_until(next.into()) => {}
            }
        }
    }

    /// Takes no more tasks; running programs may end.
    fn leave(&mut self, exit: Result<(), Exit>) {
        let now = Instant::now();
        self.leaving.get_or_insert(Leaving {
            until: now + self.options.patience(),
            holds: now + LAST_HOLD,
            exit,
        });
    }

    /// How the work ended, if it has.
    fn is_over(&mut self, now: Instant) -> Option<Result<(), Exit>> {
        let nothing_left = self.held.is_empty() && self.outbox.is_empty() && !self.reporting;
        let Some(leaving) = &self.leaving else {
            return (self.found_nothing && nothing_left).then_some(Ok(()));
        };
        if nothing_left && self.holding.is_none() {
            return Some(leaving.exit);
        }
        if now < leaving.until {
            return None;
        }
        let exit = leaving.exit;
        for entry in self.held.take_unfinished() {
            self.lose(&entry, "there is no time left");
        }
        let unsaid = self.held.take_ended();
        for entry in &unsaid {
            let label = &entry.task.label;
            self.reporter
                .note(&format!("{label}: what it came to could not be reported"));
        }
        Some(exit.and(if unsaid.is_empty() { Ok(()) } else { Err(Exit::Fault) }))
    }

    /// The next time to act.
    fn next(&self, now: Instant) -> Instant {
        let later = |at: Option<Instant>, not_before: Option<Instant>| at.map(|at| at.max(not_before.unwrap_or(at)));
        let heartbeat = later(self.held.next_heartbeat(), self.heartbeat_again).filter(|_| !self.sending_heartbeats);
        let report = self.outbox.next_try.until().filter(|_| !self.outbox.is_empty());
        let leaving = self.leaving.as_ref();
        let holds = leaving.filter(|_| self.holding.is_some()).map(|leaving| leaving.holds);
        let waits = [
            self.held.next_end(),
            heartbeat,
            report.filter(|_| !self.reporting),
            self.hold_again.until().filter(|_| self.holding.is_none()),
            leaving.map(|leaving| leaving.until),
            holds,
        ];
        // Work that is due but can't be done now waits for something else.
        let waits = waits.into_iter().flatten().filter(|at| *at > now);
        waits.min().unwrap_or(now + Duration::from_secs(WAIT_SECONDS))
    }

    fn ask_for_tasks(&mut self, now: Instant) {
        if let Some(leaving) = &self.leaving {
            if leaving.holds <= now
                && let Some(holding) = self.holding.take()
            {
                holding.abort();
            }
            return;
        }
        let slots = usize::try_from(self.options.concurrency).unwrap_or(1);
        let free = slots.saturating_sub(self.held.unfinished());
        let full = free == 0 || self.outbox.len() >= MAX_UNSENT_REPORTS;
        if full || self.holding.is_some() || !self.hold_again.is_over(now) {
            return;
        }
        let wait = match (self.options.until_empty, self.options.lease) {
            (true, _) => QUICK_WAIT_SECONDS,
            // A lease counts from the request, so as little of it as possible should pass with
            // waiting.
            (false, Some(lease)) => (lease / 3).clamp(1, WAIT_SECONDS),
            (false, None) => WAIT_SECONDS,
        };
        let queues: Vec<Value> = self.options.queues.iter().map(|queue| queue.as_str().into()).collect();
        let mut body = Object::new();
        body.insert("worker".into(), self.worker.as_str().into());
        body.insert("queues".into(), queues.into());
        body.insert("limit".into(), (free as u64).into());
        body.insert("waitSeconds".into(), wait.into());
        if let Some(lease) = self.options.lease {
            body.insert("leaseSeconds".into(), lease.into());
        }
        let idle = self.held.is_empty() && self.outbox.is_empty() && !self.reporting;
        let remote = self.remote.clone();
        self.holding = Some(self.under_way.spawn(async move {
            let sent = Instant::now();
            let patience = Duration::from_secs(wait) + ANSWER;
            let asked = remote.post(&["queues", "hold"], &body, patience).await;
            Answered::Hold { sent, idle, asked }
        }));
    }

    fn send_heartbeats(&mut self, now: Instant) {
        if self.sending_heartbeats || self.heartbeat_again.is_some_and(|again| again > now) {
            return;
        }
        let tokens = self.held.due(now);
        if tokens.is_empty() {
            return;
        }
        let heartbeat = |token: &String| {
            let members = [
                ("token".into(), Value::from(token.as_str())),
                ("heartbeat".into(), true.into()),
            ];
            Value::from(members.into_iter().collect::<Object>())
        };
        let body = reports_body(tokens.iter().map(heartbeat).collect());
        let lease = self.held.shortest().unwrap_or(ANSWER);
        let patience = (lease / 3).clamp(Duration::from_secs(1), ANSWER);
        let remote = self.remote.clone();
        self.sending_heartbeats = true;
        self.under_way.spawn(async move {
            let sent = Instant::now();
            let asked = remote.post(&["callbacks"], &body, patience).await;
            Answered::Heartbeats { sent, tokens, asked }
        });
    }

    fn send_reports(&mut self, now: Instant) {
        if self.reporting {
            return;
        }
        let reports = self.outbox.batch(now);
        if reports.is_empty() {
            return;
        }
        let body = reports_body(reports.iter().map(|report| report.body.clone().into()).collect());
        let remote = self.remote.clone();
        self.reporting = true;
        self.under_way.spawn(async move {
            let asked = remote.post(&["callbacks"], &body, ANSWER).await;
            Answered::Reports { reports, asked }
        });
    }

    fn take_answer(&mut self, answered: Result<Answered, JoinError>) {
        match answered {
            Ok(Answered::Hold { sent, idle, asked }) => {
                self.holding = None;
                self.take_hold(sent, idle, asked);
            }
            Ok(Answered::Reports { reports, asked }) => {
                self.reporting = false;
                self.take_reported(reports, asked);
            }
            Ok(Answered::Heartbeats { sent, tokens, asked }) => {
                self.sending_heartbeats = false;
                self.take_heartbeat_answers(sent, &tokens, asked);
            }
            Err(stopped) => resume(stopped),
        }
    }

    /// The server answers again: waiting requests may go on.
    fn is_there(&mut self) {
        self.reporter.there();
        self.hold_again.reset();
        self.outbox.next_try.reset();
        self.heartbeat_again = None;
    }

    fn take_hold(&mut self, sent: Instant, idle: bool, asked: Asked) {
        let now = Instant::now();
        let answer = match asked {
            Ok(Ok(answer)) => answer,
            Ok(Err(problem)) if problem.exit() == Exit::Bad => {
                let exit = self.client.say(&problem);
                return self.leave(Err(exit));
            }
            failed => {
                self.reporter.away(&why(failed));
                return self.hold_again.failed(now);
            }
        };
        let told = answer.object();
        let told = told.get("tasks").and_then(Value::as_array);
        let told: Vec<&Object> = told
            .into_iter()
            .flat_map(|tasks| tasks.values())
            .filter_map(Value::as_object)
            .collect();
        if told.is_empty() {
            // A server that is about to stop answers at once without tasks.
            if now.duration_since(sent) < Duration::from_secs(QUICK_WAIT_SECONDS) / 2 {
                return self.hold_again.failed(now);
            }
            self.found_nothing = self.options.until_empty && idle;
            return self.is_there();
        }
        self.is_there();
        for task in told
            .into_iter()
            .filter_map(|told| Task::read(told, &self.options.command))
        {
            let token = task.token.clone();
            if self.held.take(task, sent, now) {
                self.begin(&token);
            }
        }
    }

    /// Runs a task's program.
    fn begin(&mut self, token: &str) {
        let Some(entry) = self.held.get(token) else { return };
        self.reporter.started(&entry.task.label);
        let (task, connector, log) = (entry.task.clone(), self.connector.clone(), entry.log.clone());
        entry.begun = Instant::now();
        entry.stage = Stage::Runs(self.programs.spawn(async move {
            let result = task.run(&connector, &log).await;
            (task.token, result)
        }));
    }

    fn take_end(&mut self, ended: Result<(String, TaskResult), JoinError>) {
        let (token, result) = match ended {
            Ok(ended) => ended,
            Err(stopped) => return resume(stopped),
        };
        let Some(entry) = self.held.get(&token) else { return };
        entry.stage = Stage::Ended;
        self.reporter.ended(&entry.task.label, &result, entry.begun.elapsed());
        self.outbox.put(UnsentReport {
            label: entry.task.label.clone(),
            body: result.report(&token, &entry.log.text().unwrap_or_default()),
            token,
            again: false,
        });
    }

    fn take_heartbeat_answers(&mut self, sent: Instant, tokens: &[String], asked: Asked) {
        let results = match asked {
            Ok(Ok(answer)) => results(&answer),
            failed => {
                self.reporter.away(&why(failed));
                let pause = self.held.shortest().unwrap_or(ANSWER) / 10;
                let pause = pause.clamp(Duration::from_millis(200), Duration::from_secs(5));
                self.heartbeat_again = Some(Instant::now() + pause);
                return;
            }
        };
        self.is_there();
        for (token, (status, code)) in tokens.iter().zip(results) {
            match status {
                204 => {
                    if self.held.renew(token, sent).is_some() {
                        self.begin(token);
                    }
                }
                404 | 409 | 410 => self.refused(token, &code),
                // Not now: the heartbeat is sent again later.
                _ => self.heartbeat_again = Some(Instant::now() + Duration::from_secs(1)),
            }
        }
    }

    /// The task belongs to another worker or to none. An ended task stays, because its report will
    /// tell.
    fn refused(&mut self, token: &str, code: &str) {
        let ended = |entry: &mut Entry| matches!(entry.stage, Stage::Ended);
        if self.held.get(token).is_some_and(ended) {
            return;
        }
        if let Some(entry) = self.held.remove(token) {
            self.lose(&entry, &format!("it is ours no longer ({code})"));
            self.send_log(entry);
        }
    }

    fn give_up_what_is_over(&mut self, now: Instant) {
        for (entry, over) in self.held.over(now) {
            let why = match over {
                Over::Lease => "no heartbeat got through for a whole lease",
                Over::Deadline => "it took longer than it may",
            };
            self.lose(&entry, why);
            self.send_log(entry);
        }
    }

    /// Sends the log of a task that is no longer ours. The server keeps it, and answers that the
    /// task is over.
    fn send_log(&mut self, entry: Entry) {
        let Some(log) = entry.log.text() else { return };
        let Task { token, label, .. } = entry.task;
        let body = [
            ("token".into(), token.as_str().into()),
            ("heartbeat".into(), true.into()),
            ("log".into(), log.into()),
        ];
        self.outbox.put(UnsentReport {
            token,
            label,
            body: body.into_iter().collect(),
            again: false,
        });
    }

    /// Kills a task's program; nothing is reported.
    fn lose(&self, entry: &Entry, why: &str) {
        let label = &entry.task.label;
        match &entry.stage {
            Stage::Runs(program) => {
                program.abort();
                self.reporter.note(&format!("{label}: {why}: its program is killed"));
            }
            _ => self.reporter.note(&format!("{label}: {why}: it is not run")),
        }
    }

    fn take_reported(&mut self, reports: Vec<UnsentReport>, asked: Asked) {
        let results = match asked {
            Ok(Ok(answer)) => results(&answer),
            Ok(Err(problem)) if problem.status == 413 => return self.too_large(reports),
            failed => {
                self.reporter.away(&why(failed));
                self.outbox.put_back(reports);
                return self.outbox.next_try.failed(Instant::now());
            }
        };
        self.is_there();
        let mut results = results.into_iter();
        let mut unsent = Vec::new();
        for report in reports {
            // A truncated answer tells nothing about the rest.
            let (status, code) = results.next().unwrap_or_default();
            if matches!(status, 204 | 400..=428 | 430..=499) {
                self.reported(&report, status, &code);
            } else {
                unsent.push(report);
            }
        }
        if !unsent.is_empty() {
            self.outbox.put_back(unsent);
            self.outbox.next_try.failed(Instant::now());
        }
    }

    fn reported(&mut self, report: &UnsentReport, status: u16, code: &str) {
        self.held.remove(&report.token);
        if report.body.get("heartbeat").is_some() {
            // The task was over when its log was sent.
            return;
        }
        // The answer to an earlier try was lost.
        let was_ours = report.again && status == 409 && code == "TaskAlreadyCompleted";
        if status != 204 && !was_ours {
            let label = &report.label;
            let then = match code {
                "ExecutionSetAside" => {
                    ": its execution is set aside, and it comes again once an operator lets that go on"
                }
                _ => "",
            };
            self.reporter
                .note(&format!("{label}: what it came to is not taken ({code}){then}"));
        }
    }

    fn too_large(&mut self, reports: Vec<UnsentReport>) {
        if reports.len() > 1 {
            self.outbox.send_singly();
            return self.outbox.put_back(reports);
        }
        for mut report in reports {
            // The program's log is dropped first.
            if report.body.get("log").is_some() {
                report.body = report.body.iter().filter(|(key, _)| *key != "log").map(owned).collect();
                self.outbox.put(report);
                continue;
            }
            let cause = "what the program printed is more than the server takes";
            let result = TaskResult::failed(&FaultKind::TooLarge, cause.to_owned());
            report.body = result.report(&report.token, "");
            self.outbox.put(report);
        }
    }
}

fn owned((key, value): (&Text, &Value)) -> (Text, Value) {
    (key.clone(), value.clone())
}

fn reports_body(reports: Vec<Value>) -> Object {
    [("reports".into(), Value::from(reports))].into_iter().collect()
}

/// Status and code of each report, in order.
fn results(answer: &Answer) -> Vec<(u16, String)> {
    let answer = answer.object();
    let results = answer.get("results").and_then(Value::as_array);
    let results = results.into_iter().flat_map(|results| results.values());
    results
        .map(|result| {
            let result = result.as_object();
            let status = result.and_then(|result| result.get("status")?.as_number()?.as_u64());
            let code = result.and_then(|result| result.get("code").map(Value::to_plain_text));
            let status = status.and_then(|status| u16::try_from(status).ok());
            (status.unwrap_or_default(), code.unwrap_or_default())
        })
        .collect()
}

fn why(failed: Asked) -> String {
    match failed {
        Err(why) => why,
        Ok(Err(problem)) => words(&problem),
        Ok(Ok(answer)) => format!("status {}", answer.status),
    }
}

/// An aborted task has been handled; one that panicked has not.
fn resume(stopped: JoinError) {
    if let Ok(panic) = stopped.try_into_panic() {
        std::panic::resume_unwind(panic);
    }
}
