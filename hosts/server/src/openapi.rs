//! The OpenAPI document, made from the table of routes.

use crate::routes::{ROUTES, Route};
use crate::shapes;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// `GET /v1/openapi.json`
pub async fn answer() -> Response {
    // Anybody may ask for it, as often as they like.
    static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| openapi().to_string().into());
    shapes::json(StatusCode::OK, DOCUMENT.clone())
}

/// The document (OpenAPI 3.1).
pub fn openapi() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(route.method.to_lowercase(), operation(route));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Starbridge",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs flows. Errors are problem+json (RFC 9457) with a stable `code`.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas(),
        },
    })
}

fn operation(route: &Route) -> Value {
    let placed = route.path.split('{').skip(1).filter_map(|part| part.split('}').next());
    let in_path =
        placed.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
    let in_query = route.query.iter().map(
        |(name, meaning)| json!({"name": name, "in": "query", "description": meaning, "schema": {"type": "string"}}),
    );
    let parameters: Vec<Value> = in_path.chain(in_query).collect();
    let mut responses: Map<String, Value> = Map::new();
    for (status, meaning, schema) in route.answers {
        let kind = if *status >= 400 {
            "application/problem+json"
        } else {
            "application/json"
        };
        let mut response = json!({"description": meaning});
        if let (Some(schema), Some(response)) = (schema, response.as_object_mut()) {
            response.insert("content".to_owned(), json!({kind: {"schema": reference(schema)}}));
        }
        responses.insert(status.to_string(), response);
    }
    let problem = json!({"application/problem+json": {"schema": reference("Problem")}});
    responses.insert(
        "default".to_owned(),
        json!({"description": "why not", "content": problem}),
    );
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "responses": responses,
    });
    if let Some(operation) = operation.as_object_mut() {
        if !parameters.is_empty() {
            operation.insert("parameters".to_owned(), parameters.into());
        }
        if let Some(body) = route.body {
            let body = json!({"content": {"application/json": {"schema": reference(body)}}});
            operation.insert("requestBody".to_owned(), body);
        }
        if let Some(scope) = route.scope {
            operation.insert("security".to_owned(), json!([{"bearer": [scope.as_str()]}]));
        }
    }
    operation
}

fn operation_id(route: &Route) -> String {
    let words = route
        .path
        .split(['/', '.'])
        .filter(|word| !word.is_empty() && *word != "v1");
    let words = words.map(|word| word.trim_matches(['{', '}']));
    let mut id = route.method.to_lowercase();
    for word in words {
        id.push('-');
        id.push_str(word);
    }
    id
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

/// An object of members that are known; those with a `!` must be there.
fn shape(members: &[(&str, Value)]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, schema) in members {
        let plain = name.trim_end_matches('!');
        if plain != *name {
            required.push(plain);
        }
        properties.insert(plain.to_owned(), schema.clone());
    }
    json!({"type": "object", "properties": properties, "required": required})
}

fn schemas() -> Value {
    let text = || json!({"type": "string"});
    let number = || json!({"type": "integer", "minimum": 0});
    let object = || json!({"type": "object"});
    let time = || json!({"type": "string", "format": "date-time"});
    let list = |items: Value| json!({"type": "array", "items": items});
    let labels = || json!({"type": "object", "additionalProperties": {"type": "string"}});
    let start = [
        ("input", object()),
        ("name", text()),
        ("version", number()),
        ("labels", labels()),
    ];
    let hold = [
        ("worker!", text()),
        ("limit", number()),
        ("leaseSeconds", number()),
        ("waitSeconds", number()),
    ];
    let mut hold_several = hold.to_vec();
    hold_several.push(("queues!", list(text())));
    let mut one = start.to_vec();
    one.push(("flow!", text()));
    json!({
        "Problem": shape(&[("type!", text()), ("title!", text()), ("status!", number()), ("code!", text()), ("detail!", text()),
            ("diagnostics", list(object()))]),
        "Page": shape(&[("items!", list(object())), ("next", json!({}))]),
        "Definition": {"type": "object", "description": "a flow as the language reference has it; YAML by content type"},
        "PutFlow": shape(&[("name!", text()), ("version!", number()), ("hash!", text()), ("diagnostics!", list(object()))]),
        "Flow": shape(&[("name!", text()), ("version!", number()), ("hash!", text()), ("createdTime!", time()), ("definition!", object())]),
        "Start": shape(&start),
        "Batch": list(shape(&one)),
        "BatchAnswer": shape(&[("items!", list(shape(&[("status!", number()), ("execution", reference("Execution")),
            ("problem", reference("Problem"))])))]),
        "Execution": shape(&[("id!", text()), ("name!", text()), ("flow!", text()), ("version!", number()), ("status!", text()),
            ("input", object()), ("output", object()), ("error", text()), ("cause", text()), ("step", text()),
            ("startedTime!", time()), ("endedTime", time()), ("priority!", number()), ("labels", labels()), ("parent", object()),
            ("waitingFor", shape(&[("reason!", text()), ("text!", text()), ("since!", time()), ("act!", text())]))]),
        "State": shape(&[("event!", number()), ("time!", time()), ("status!", text()), ("input!", object()), ("local!", object()),
            ("steps!", list(object()))]),
        "Stop": shape(&[("error", text()), ("cause", text()), ("rollback", json!({"type": "boolean"}))]),
        "Fork": shape(&[("event!", number()), ("name", text())]),
        "Redrive": shape(&[]),
        "Report": shape(&[("output", object()), ("error", text()), ("cause", text())]),
        "Reports": shape(&[("reports!", list(shape(&[("token!", text()), ("output", object()), ("error", text()), ("cause", text()),
            ("heartbeat", json!({"type": "boolean"}))])))]),
        "ReportAnswers": shape(&[("results!", list(shape(&[("status!", number()), ("code", text()), ("detail", text())])))]),
        "Hold": shape(&hold),
        "HoldSeveral": shape(&hold_several),
        "HeldTasks": shape(&[("tasks!", list(shape(&[("token!", text()), ("queue!", text()), ("execution!", text()), ("flow!", text()),
            ("step!", text()), ("path!", list(object())), ("type!", text()), ("attempt!", number()), ("key!", text()), ("stepKey!", text()),
            ("priority!", number()), ("input!", json!({})), ("leaseSeconds!", number()), ("leaseUntil!", time()),
            ("timeoutSeconds", number()), ("deadline", time())])))]),
        "Queue": shape(&[("name!", text()), ("waiting!", number()), ("held!", number()), ("dead!", number()), ("workers!", number()),
            ("ageSeconds", number()), ("maxConcurrent", number()), ("ratePerSecond", json!({"type": "number"})),
            ("paused", json!({"type": "boolean"})), ("redeliver", number())]),
        "QueueSettings": shape(&[("maxConcurrent", number()), ("ratePerSecond", json!({"type": "number"})),
            ("paused", json!({"type": "boolean"})), ("redeliver", number())]),
        "Bury": shape(&[("action!", json!({"enum": ["requeue", "drop"]})), ("tasks", list(shape(&[("execution!", text()), ("call!", number())]))),
            ("cursor", text()), ("by", text())]),
        "Buried": shape(&[("done!", number()), ("notDone!", number()), ("next", json!({}))]),
        "Schedule": shape(&[("name", text()), ("flow!", text()), ("cron!", text()), ("payload", json!({})), ("overlap", text()),
            ("catchUp", text()), ("paused", json!({"type": "boolean"})), ("nextTime", time()), ("latestExecution", text())]),
    })
}
