//! The OpenAPI document, made from the table of routes.

mod execution;
mod forms;
mod schemas;

use crate::routes::{Route, routes};
use crate::scope::Scope;
use schemas::{reference, schemas};
use serde_json::{Map, Value, json};

/// The document (OpenAPI 3.1).
pub fn openapi() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in routes() {
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
    let mut responses = answers(route);
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
            let scopes: &[&str] = match scope {
                // Any token will do.
                Scope::Any => &[],
                scope => &[scope.as_str()],
            };
            operation.insert("security".to_owned(), json!([{"bearer": scopes}]));
        }
    }
    operation
}

/// The answers of a route, by status. A status occurs once, with each form that its answer may have.
fn answers(route: &Route) -> Map<String, Value> {
    let mut responses: Map<String, Value> = Map::new();
    for (status, meaning, schema) in route.answers {
        let response = responses
            .entry(status.to_string())
            .or_insert_with(|| json!({"description": meaning}));
        if let Some(schema) = schema {
            let (kind, schema) = content(*status, schema);
            response["content"][kind] = json!({"schema": schema});
        }
    }
    responses
}

/// The media type and the schema of an answer. One that is named by a media type is text.
fn content(status: u16, schema: &str) -> (&str, Value) {
    if schema.contains('/') {
        return (schema, json!({"type": "string"}));
    }
    let kind = if status >= 400 {
        "application/problem+json"
    } else {
        "application/json"
    };
    (kind, reference(schema))
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
