//! The schemas of bodies and answers.

mod history;
mod outboxes;
mod queue_tasks;
mod stats;
mod views;

use super::execution::execution;
use super::forms::{flag, labels, list, number, object, or_null, page, shape, text, time, whole};
use serde_json::{Map, Value, json};
use starbridge_node::node::{BulkAction, BulkWait};

/// All codes of problems.
const CODES: &[&str] = &[
    "AlreadyBegun",
    "AlreadyEnded",
    "AlreadyResolved",
    "BadReport",
    "BadRequest",
    "BatchTooLarge",
    "BodyTooLarge",
    "BodyTooSlow",
    "Busy",
    "Corrupt",
    "CrossSite",
    "DefinitionDoesNotFit",
    "DependencyCycle",
    "DifferentLimits",
    "ExecutionAlreadyExists",
    "ExecutionBusy",
    "ExecutionSetAside",
    "Forbidden",
    "HostNotAllowed",
    "InputTooDeep",
    "InputTooLarge",
    "Internal",
    "InvalidConcurrencyKey",
    "InvalidDefinition",
    "InvalidInput",
    "InvalidQueue",
    "InvalidSchedule",
    "InvalidToken",
    "MethodNotAllowed",
    "NoOtherNode",
    "NoOwner",
    "NoSuchBulkJob",
    "NoSuchData",
    "NoSuchEvent",
    "NoSuchExecution",
    "NoSuchFlow",
    "NoSuchKey",
    "NoSuchNode",
    "NoSuchOutbox",
    "NoSuchQueue",
    "NoSuchRoute",
    "NoSuchSchedule",
    "NoSuchView",
    "NotATest",
    "NotAwaited",
    "NotEnded",
    "NotEnteredAgain",
    "NotForkable",
    "NotManual",
    "NotRedrivable",
    "NotRunning",
    "NotStarted",
    "NotSupported",
    "NothingToSkip",
    "OutboxUnavailable",
    "OutputTooLarge",
    "OwnerLost",
    "Panicked",
    "Rejected",
    "StartRefused",
    "Stopping",
    "StoreUnavailable",
    "TaskAlreadyCompleted",
    "TaskTimedOut",
    "TooManyAnswers",
    "TooManyBodies",
    "TooManyConnections",
    "TooManyFailures",
    "TooManyLargeExecutions",
    "TooManyReports",
    "TooManyViews",
    "TooManyWaiting",
    "Unauthorized",
    "UnknownDependency",
    "ValueTooLarge",
    "WrongBulkState",
];

/// A reference to a schema of the document.
pub fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

/// All schemas, by name.
pub fn schemas() -> Map<String, Value> {
    [
        general(),
        flows(),
        executions(),
        history::schemas(),
        operating(),
        reports(),
        queues(),
        queue_tasks::schemas(),
        outboxes::schemas(),
        stats::schemas(),
        views::schemas(),
        keys(),
        schedules(),
        bulk(),
    ]
    .into_iter()
    .flatten()
    .map(|(name, schema)| (name.to_owned(), schema))
    .collect()
}

type Schemas = Vec<(&'static str, Value)>;

fn general() -> Schemas {
    let problem = shape(&[
        ("type!", text()),
        ("title!", text()),
        ("status!", number()),
        ("code!", json!({"enum": CODES})),
        ("detail!", text()),
        ("diagnostics", list(object())),
        ("execution", text()),
        ("limit", number()),
        ("by", text()),
        ("action", json!({"enum": ["retry", "succeed", "fail"]})),
        ("resolvedTime", time()),
        ("event", number()),
        ("recorded", or_null(object())),
        ("expected", or_null(object())),
        ("why", text()),
        ("outbox", text()),
        ("reasonCode", text()),
        ("reason", text()),
    ]);
    let audit = shape(&[
        ("number!", number()),
        ("time!", time()),
        ("by!", text()),
        ("action!", text()),
        ("kind!", text()),
        ("object!", text()),
        ("detail!", object()),
        ("request", text()),
    ]);
    let log = shape(&[
        ("event!", number()),
        ("time!", time()),
        ("step!", text()),
        ("path!", list(object())),
        ("rollback", json!({"type": "boolean"})),
        ("attempt!", number()),
        ("stream!", json!({"enum": ["stderr"]})),
        ("text!", text()),
    ]);
    vec![
        ("LogPage", page(log, number())),
        ("Problem", problem),
        ("Document", object()),
        ("AuditPage", page(audit, text())),
    ]
}

fn flows() -> Schemas {
    let version = [
        ("name!", text()),
        ("version!", number()),
        ("hash!", text()),
        ("createdTime!", time()),
    ];
    let mut flow = version.to_vec();
    // Nobody created the flow of a queue's messages.
    flow.retain(|(name, _)| *name != "createdTime!");
    flow.extend([
        ("createdTime", time()),
        ("definition", object()),
        ("text", text()),
        ("maxRunning!", or_null(number())),
        ("paused!", flag()),
    ]);
    let changes = [("maxRunning", or_null(number())), ("paused", flag())];
    let limits = [
        ("name!", text()),
        ("maxRunning!", or_null(number())),
        ("paused!", flag()),
    ];
    let put = [
        ("name!", text()),
        ("version!", number()),
        ("hash!", text()),
        ("diagnostics!", list(object())),
    ];
    let definition =
        json!({"type": "object", "description": "a flow as the language reference has it; YAML by content type"});
    vec![
        ("Definition", definition),
        ("PutFlow", shape(&put)),
        (
            "CheckedFlow",
            shape(&[
                ("name!", text()),
                ("hash!", text()),
                ("latestVersion!", or_null(number())),
                ("same!", flag()),
                ("diagnostics!", list(object())),
            ]),
        ),
        ("Flow", shape(&flow)),
        ("FlowVersion", shape(&version)),
        ("FlowChanges", shape(&changes)),
        ("FlowLimits", shape(&limits)),
        ("FlowList", whole(reference("FlowVersion"))),
    ]
}

fn executions() -> Schemas {
    let dependency = shape(&[("execution!", text()), ("when", text())]);
    let start = [
        ("input", object()),
        ("name", text()),
        ("version", number()),
        ("labels", labels()),
        ("onceKey", text()),
        ("priority", number()),
        ("orderTime", json!({"type": ["integer", "string"]})),
        ("startAt", time()),
        ("delaySeconds", number()),
        ("startDeadlineSeconds", number()),
        ("after", list(json!({"anyOf": [{"type": "string"}, dependency]}))),
        ("traceparent", text()),
    ];
    let mut one = start.to_vec();
    one.push(("flow!", text()));
    let answer = shape(&[
        ("status!", number()),
        ("execution", reference("Execution")),
        ("problem", reference("Problem")),
    ]);
    let state = shape(&[
        ("event!", number()),
        ("time!", time()),
        ("machine!", number()),
        ("status!", text()),
        ("input!", object()),
        ("local!", object()),
        ("steps!", list(open_step())),
        ("stepsLeftOut", number()),
    ]);
    let event =
        json!({"type": "object", "description": "an event of a history; `schemas/history.schema.json` has its form"});
    vec![
        ("Start", shape(&start)),
        ("Batch", list(shape(&one))),
        ("BatchAnswer", whole(answer)),
        ("Execution", execution()),
        ("ExecutionPage", execution_page()),
        ("EventPage", history::event_page(event)),
        ("State", state),
    ]
}

/// A page of executions. Where the store stopped looking before the page was full, `looked` is the request of the earliest one.
fn execution_page() -> Value {
    shape(&[
        ("items!", list(reference("Execution"))),
        ("next!", or_null(text())),
        ("looked!", or_null(time())),
    ])
}

/// The bodies of operators' requests about an execution.
fn operating() -> Schemas {
    let input = [("event!", number()), ("input!", object())];
    let resolve = [
        ("action!", json!({"enum": ["retry", "succeed", "fail"]})),
        ("output", object()),
        ("error", text()),
        ("cause", text()),
        ("note", text()),
    ];
    let fork = [
        ("event!", number()),
        ("name", text()),
        ("version", number()),
        ("definition", json!({"anyOf": [object(), text()]})),
        ("input", object()),
    ];
    let stop = shape(&[("error", text()), ("cause", text()), ("rollback", flag())]);
    vec![
        ("Stop", stop),
        ("Fork", shape(&fork)),
        (
            "Redrive",
            shape(&[
                ("inputs", list(shape(&input))),
                ("version", json!({"anyOf": [number(), {"const": "latest"}]})),
            ]),
        ),
        ("Resolve", shape(&resolve)),
        (
            "ReportByHand",
            shape(&[
                ("action!", json!({"enum": ["succeed", "fail"]})),
                ("output", object()),
                ("error", text()),
                ("cause", text()),
                ("note", text()),
            ]),
        ),
        ("Skip", shape(&[("cause", text())])),
        ("Pause", shape(&[("cause", text())])),
        ("Resume", shape(&[])),
        (
            "ExecutionCounts",
            shape(&[("statuses!", object()), ("reasons!", or_null(object()))]),
        ),
        (
            "Why",
            shape(&[
                ("execution!", text()),
                ("status!", text()),
                ("waitingFor!", or_null(object())),
                ("open!", number()),
                ("waits!", list(object())),
            ]),
        ),
        (
            "Order",
            shape(&[
                ("priority", number()),
                ("orderTime", json!({"type": ["integer", "string"]})),
                ("startNow", flag()),
                ("after", json!({"type": "array", "maxItems": 0})),
            ]),
        ),
    ]
}

fn open_step() -> Value {
    shape(&[
        ("step!", text()),
        ("path!", list(object())),
        ("state!", text()),
        ("attempt!", number()),
        ("visit!", number()),
        ("input!", object()),
        ("local!", object()),
    ])
}

fn reports() -> Schemas {
    let report = [("output", object()), ("error", text()), ("cause", text())];
    let mut one = report.to_vec();
    one.extend([("token!", text()), ("heartbeat", flag())]);
    let answer = [
        ("status!", number()),
        ("code", json!({"enum": CODES})),
        ("detail", text()),
    ];
    vec![
        ("Report", shape(&report)),
        ("Reports", shape(&[("reports!", list(shape(&one)))])),
        ("ReportAnswers", shape(&[("results!", list(shape(&answer)))])),
    ]
}

fn queues() -> Schemas {
    let hold = [
        ("worker!", text()),
        ("limit", number()),
        ("leaseSeconds", number()),
        ("waitSeconds", number()),
    ];
    let mut several = hold.to_vec();
    several.push(("queues!", list(text())));
    let settings = [
        ("maxConcurrent", or_null(number())),
        ("ratePerSecond", or_null(json!({"type": "number"}))),
        ("paused", flag()),
        ("redeliver", number()),
    ];
    let mut set = settings.to_vec();
    set.push(("name!", text()));
    let mut queue = set.clone();
    queue.extend([
        ("waiting!", number()),
        ("held!", number()),
        ("dead!", number()),
        ("workers!", number()),
        ("busyWorkers!", number()),
        ("ageSeconds!", or_null(number())),
        ("minutes", list(shape(&[("time!", time()), ("waiting!", number())]))),
    ]);
    let dead = [
        ("queue!", text()),
        ("execution!", text()),
        ("flow", text()),
        ("name", text()),
        ("call!", number()),
        ("step!", text()),
        ("attempt!", number()),
        ("error!", text()),
        ("cause!", text()),
        ("time!", time()),
    ];
    let change = [
        ("action!", json!({"enum": ["requeue", "drop"]})),
        ("tasks", list(shape(&[("execution!", text()), ("call!", number())]))),
        ("cursor", text()),
        ("by", text()),
    ];
    let changed = [("done!", number()), ("notDone!", number()), ("next!", or_null(text()))];
    vec![
        ("Hold", shape(&hold)),
        ("HoldSeveral", shape(&several)),
        ("HeldTasks", shape(&[("tasks!", list(held_task()))])),
        ("Queue", shape(&queue)),
        ("QueuePage", page(reference("Queue"), text())),
        ("QueueSettings", shape(&settings)),
        ("QueueSet", shape(&set)),
        ("DeadTaskPage", page(shape(&dead), text())),
        ("DeadTasksChange", shape(&change)),
        ("DeadTasksChanged", shape(&changed)),
    ]
}

fn keys() -> Schemas {
    let key = [
        ("pool!", text()),
        ("key!", text()),
        ("limit!", or_null(number())),
        ("definedLimit!", or_null(number())),
        ("setLimit!", or_null(number())),
        ("setBy", text()),
        ("paused!", flag()),
        ("held!", number()),
        ("waiting!", number()),
    ];
    let mut one = key.to_vec();
    one.push(("holders!", list(text())));
    vec![
        ("Key", shape(&one)),
        ("KeyPage", page(shape(&key), text())),
        ("KeyLimit", shape(&[("limit!", number())])),
    ]
}

fn held_task() -> Value {
    shape(&[
        ("token!", text()),
        ("queue!", text()),
        ("execution!", text()),
        ("flow!", text()),
        ("step!", text()),
        ("path!", list(object())),
        ("type!", text()),
        ("attempt!", number()),
        ("key!", text()),
        ("stepKey!", text()),
        ("priority!", number()),
        ("traceparent", text()),
        ("ancestors", list(text())),
        ("input!", json!({})),
        ("leaseSeconds!", number()),
        ("leaseUntil!", time()),
        ("timeoutSeconds", number()),
        ("deadline", time()),
    ])
}

fn schedules() -> Schemas {
    let settings = [
        ("flow!", text()),
        ("cron!", text()),
        ("payload", json!({})),
        ("overlap", text()),
        ("catchUp", text()),
        ("priority", number()),
        ("startDeadlineSeconds", number()),
        ("paused", flag()),
    ];
    let mut schedule = settings.to_vec();
    schedule.extend([
        ("name!", text()),
        ("nextTime", time()),
        ("nextTimes", list(shape(&[("time!", time()), ("local", text())]))),
        ("latestExecution", text()),
        ("latestTime", time()),
        ("latestError", text()),
    ]);
    let changes: Vec<(&str, Value)> = settings
        .iter()
        .map(|(name, schema)| (name.trim_end_matches('!'), schema.clone()))
        .collect();
    vec![
        ("ScheduleChanges", shape(&changes)),
        ("ScheduleSettings", shape(&settings)),
        ("Schedule", shape(&schedule)),
        ("ScheduleList", whole(reference("Schedule"))),
    ]
}

fn bulk() -> Schemas {
    let action = json!({"enum": BulkAction::WORDS});
    let filter = shape(&[
        ("flow", text()),
        ("status", list(text())),
        ("reason", text()),
        ("reasonOf", text()),
        ("name", text()),
        ("parent", text()),
        ("root", text()),
        ("labels", labels()),
        ("from", time()),
        ("to", time()),
        ("error", text()),
        ("step", text()),
        ("endedFrom", time()),
        ("endedTo", time()),
        ("view", text()),
    ]);
    let bulk = [
        ("action!", action),
        ("arguments", object()),
        ("filter", filter),
        ("executions", list(text())),
        ("all", flag()),
        ("dryRun", flag()),
        ("ratePerSecond", number()),
    ];
    let job = [
        ("id!", text()),
        ("action!", text()),
        ("arguments!", object()),
        ("filter!", object()),
        ("by!", text()),
        (
            "state!",
            json!({"enum": ["collecting", "running", "suspended", "done", "cancelled"]}),
        ),
        ("waitsFor", json!({"enum": BulkWait::WORDS})),
        ("items!", number()),
        ("open!", number()),
        ("done!", number()),
        ("skipped!", number()),
        ("failed!", number()),
        ("ratePerSecond", number()),
        ("createdTime!", time()),
        ("endedTime", time()),
    ];
    let item = [
        ("item!", number()),
        ("execution!", text()),
        ("result!", json!({"enum": ["open", "done", "skipped", "failed"]})),
        ("code", text()),
    ];
    let count = [("flow!", text()), ("status!", text()), ("executions!", number())];
    let preview = [
        ("executions!", number()),
        ("counts!", list(shape(&count))),
        ("examples!", list(reference("Execution"))),
    ];
    vec![
        ("Bulk", shape(&bulk)),
        ("BulkJob", shape(&job)),
        ("BulkJobPage", page(reference("BulkJob"), text())),
        ("BulkItemPage", page(shape(&item), number())),
        ("BulkPreview", shape(&preview)),
    ]
}
