//! What forms do. Each asks the API for one thing, and leads back to the page.

use super::answer::PageRefusal;
use super::form::{Fields, Form};
use super::page::Page;
use axum::extract::Path;
use axum::response::Response;
use starbridge_console::{FieldKind, FormField, form_fields, path_part};
use starbridge_flow::value::{Object, Text, Value};
use starbridge_node::problem::{Problem, quoted};

/// An object of the members that have a value.
pub(super) fn members(members: impl IntoIterator<Item = (&'static str, Option<Value>)>) -> Value {
    let given = members
        .into_iter()
        .filter_map(|(key, value)| Some((Text::from(key), value?)));
    given.collect::<Object>().into()
}

/// A box that was ticked.
pub(super) fn ticked(fields: &Fields, key: &str) -> Option<Value> {
    (fields.get(key) == "true").then_some(Value::Bool(true))
}

/// Does something to an execution, and leads back to its page.
async fn execution(page: Page, route: &'static str, action: &str, id: &str, body: Value) -> Response {
    let done = page.ask.post(route, &[id], Some(body)).await;
    page.lead(done.map(|_| format!("/executions/{}?done={action}", path_part(id))))
}

/// `POST /executions/{id}/stop`
pub async fn stop(Path(id): Path<String>, form: Form) -> Response {
    let body = members([
        ("cause", form.fields.text("cause")),
        ("rollback", ticked(&form.fields, "rollback")),
    ]);
    execution(form.page, "/v1/executions/{id}/stop", "stop", &id, body).await
}

/// `POST /executions/{id}/redrive`
pub async fn redrive(Path(id): Path<String>, form: Form) -> Response {
    let (page, fields) = (form.page, form.fields);
    match redriven(&fields).await {
        Ok(body) => execution(page, "/v1/executions/{id}/redrive", "redrive", &id, body).await,
        Err(refusal) => page.lead(Err(refusal)),
    }
}

/// A redrive: with another version, or with another input of one step.
async fn redriven(fields: &Fields) -> Result<Value, PageRefusal> {
    let version = match fields.get("latest") {
        "true" => Some(Value::from(Text::from("latest"))),
        _ => fields.json("version").await?,
    };
    let (event, input) = (fields.json("event").await?, fields.json("input").await?);
    let edited = event.map(|event| Value::from(vec![members([("event", Some(event)), ("input", input)])]));
    Ok(members([("version", version), ("inputs", edited)]))
}

/// `POST /executions/{id}/fork`
pub async fn fork(Path(id): Path<String>, form: Form) -> Response {
    let (page, fields) = (form.page, form.fields);
    let done = async {
        let body = members([
            ("event", fields.json("event").await?),
            ("name", fields.text("name")),
            ("version", fields.json("version").await?),
            ("input", fields.json("input").await?),
        ]);
        let begun = page.ask.post("/v1/executions/{id}/fork", &[&id], Some(body)).await?;
        let new = begun.get("id").and_then(Value::as_str).unwrap_or_default();
        Ok(format!("/executions/{}?done=fork", path_part(new)))
    };
    let done: Result<String, PageRefusal> = done.await;
    page.lead(done)
}

/// Where an answer leads: back to the list that it was given in, or to the execution.
fn answered(fields: &Fields, action: &str, id: &str) -> String {
    match fields.get("from") {
        "inbox" => format!("/inbox?done={action}"),
        _ => format!("/executions/{}?done={action}", path_part(id)),
    }
}

/// `POST /executions/{id}/report`
pub async fn report(Path(id): Path<String>, form: Form) -> Response {
    decide(form, &id, "/v1/executions/{id}/steps/{event}/report", "report").await
}

/// Sends a form that says how a step goes on.
async fn decide(form: Form, id: &str, route: &'static str, done: &str) -> Response {
    let (page, fields) = (form.page, form.fields);
    let sent = async {
        let body = members([
            ("action", fields.text("action")),
            ("output", fields.json("output").await?),
            ("error", fields.text("error")),
            ("cause", fields.text("cause")),
            ("note", fields.text("note")),
        ]);
        page.ask.post(route, &[id, fields.get("event")], Some(body)).await?;
        Ok(answered(&fields, done, id))
    };
    let sent: Result<String, PageRefusal> = sent.await;
    page.lead(sent)
}

/// `POST /executions/{id}/pause`
pub async fn pause(Path(id): Path<String>, form: Form) -> Response {
    let body = members([("cause", form.fields.text("cause"))]);
    execution(form.page, "/v1/executions/{id}/pause", "pause", &id, body).await
}

/// `POST /executions/{id}/resume`
pub async fn resume(Path(id): Path<String>, form: Form) -> Response {
    execution(form.page, "/v1/executions/{id}/resume", "resume", &id, members([])).await
}

/// `POST /executions/{id}/skip`
pub async fn skip(Path(id): Path<String>, form: Form) -> Response {
    let body = members([("cause", form.fields.text("cause"))]);
    execution(form.page, "/v1/executions/{id}/skip", "skip", &id, body).await
}

/// `POST /executions/{id}/resolve`
pub async fn resolve(Path(id): Path<String>, form: Form) -> Response {
    decide(form, &id, "/v1/executions/{id}/steps/{event}/resolve", "resolve").await
}

/// `POST /flows/{name}/start`
pub async fn start(Path(name): Path<String>, form: Form) -> Response {
    let (page, fields) = (form.page, form.fields);
    let begun = begin(&page, &name, &fields).await;
    page.lead(begun)
}

/// Starts what a form asks for. It is the version whose form was filled in.
async fn begin(page: &Page, name: &str, fields: &Fields) -> Result<String, PageRefusal> {
    let version = fields.get("version");
    let input = match fields.get("form") {
        "fields" => {
            let flow = page
                .ask
                .get("/v1/flows/{name}", &[name], &[("version", version)])
                .await?;
            let definition = flow.get("definition").unwrap_or(&Value::Null);
            filled_in(&form_fields(definition), fields).await?
        }
        _ => fields.json("input").await?,
    };
    // The execution knows by which form it was started, so that a form is not sent again to a later process either.
    let once_key = page.claim.as_ref().map(|claim| Text::from(claim.once_key()).into());
    let body = members([
        ("input", input),
        ("name", fields.text("name")),
        ("version", fields.json("version").await?),
        ("onceKey", once_key),
    ]);
    let begun = page
        .ask
        .post("/v1/flows/{name}/executions", &[name], Some(body))
        .await?;
    let id = begun.get("id").and_then(Value::as_str).unwrap_or_default();
    Ok(format!("/executions/{}?done=start", path_part(id)))
}

/// The input that a form was filled in with. What is empty is left out.
async fn filled_in(wanted: &[FormField], fields: &Fields) -> Result<Option<Value>, PageRefusal> {
    let mut input = Object::new();
    for field in wanted {
        let key = format!("field.{}", field.name);
        let wanted = match &field.kind {
            FieldKind::Number => "a number",
            FieldKind::Whole => "a whole number",
            FieldKind::Flag => "true or false",
            FieldKind::Text | FieldKind::OneOf(_) | FieldKind::Json => "",
        };
        let wrong = || Problem::bad(format!("{} must be {wanted}", quoted(&field.name)));
        let value = match &field.kind {
            FieldKind::Text | FieldKind::OneOf(_) => fields.text(&key),
            FieldKind::Json => fields.json(&key).await?,
            FieldKind::Number | FieldKind::Whole | FieldKind::Flag => fields.json(&key).await.map_err(|_| wrong())?,
        };
        let Some(value) = value else { continue };
        // The schema says whether a number has to be whole.
        let fits = match field.kind {
            FieldKind::Number | FieldKind::Whole => matches!(value, Value::Number(_)),
            FieldKind::Flag => matches!(value, Value::Bool(_)),
            FieldKind::Text | FieldKind::OneOf(_) | FieldKind::Json => true,
        };
        if !fits {
            return Err(wrong().into());
        }
        input.insert(Text::from(field.name.as_str()), value);
    }
    Ok(Some(input.into()))
}

/// Does something to a schedule, and leads back to the list.
async fn schedule(page: Page, route: &'static str, action: &str, name: &str) -> Response {
    let done = page.ask.post(route, &[name], None).await;
    page.lead(done.map(|_| format!("/schedules?done={action}")))
}

/// `POST /schedules/{name}/pause`
pub async fn pause_schedule(Path(name): Path<String>, form: Form) -> Response {
    schedule(form.page, "/v1/schedules/{name}/pause", "pause", &name).await
}

/// `POST /schedules/{name}/resume`
pub async fn resume_schedule(Path(name): Path<String>, form: Form) -> Response {
    schedule(form.page, "/v1/schedules/{name}/resume", "resume", &name).await
}

/// `POST /schedules/{name}/run`
pub async fn run_schedule(Path(name): Path<String>, form: Form) -> Response {
    schedule(form.page, "/v1/schedules/{name}/run", "start", &name).await
}
