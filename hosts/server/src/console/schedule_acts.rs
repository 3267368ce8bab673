//! The page of a schedule, and the form that changes it.

use super::answer::{PageRefusal, html};
use super::asked::{Asked, Parameters};
use super::form::{Fields, Form};
use super::page::Page;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use starbridge_console::{SCHEDULE_FIELDS, ScheduleParts, path_part};
use starbridge_flow::value::{Object, Text, Value};

const SCHEDULE: &str = "/v1/schedules/{name}";
/// So many of the next times are shown.
const NEXT: &str = "5";

/// The schedule, with when it triggers next.
async fn found(page: &Page, name: &str) -> Result<Value, PageRefusal> {
    let schedule = page.ask.get(SCHEDULE, &[name], &[]).await?;
    let all = page.ask.get("/v1/schedules", &[], &[("next", NEXT)]).await?;
    let all = all.get("items").and_then(Value::as_array);
    let same = |item: &&Value| item.get("name").and_then(Value::as_str) == Some(name);
    let timed = all.and_then(|all| all.values().iter().find(same));
    Ok(timed.cloned().unwrap_or(schedule))
}

/// `GET /schedules/{name}`
pub async fn schedule(page: Page, Path(name): Path<String>, query: Parameters) -> Response {
    let made = async {
        let asked = Asked::of(query, &["done"])?;
        let parts = ScheduleParts {
            schedule: &found(&page, &name).await?,
            filled: None,
            refused: None,
            done: asked.get("done").unwrap_or_default(),
        };
        Ok(starbridge_console::schedule(&page.frame, &parts))
    };
    let made: Result<String, PageRefusal> = made.await;
    page.answer(made)
}

/// `POST /schedules/{name}/change`
pub async fn change(Path(name): Path<String>, form: Form) -> Response {
    let (page, fields) = (form.page, form.fields);
    let refusal = match changed(&page, &name, &fields).await {
        Ok(()) => return page.lead(Ok(format!("/schedules/{}?done=set", path_part(&name)))),
        Err(refusal) => refusal,
    };
    // What is wrong with a field is said where it stands, and what was written stays.
    let is_of_form = matches!(
        refusal.status,
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY
    );
    match found(&page, &name).await {
        Ok(schedule) if is_of_form => {
            let filled = fields.pairs().map(|(key, value)| (key.to_owned(), value.to_owned()));
            let parts = ScheduleParts {
                schedule: &schedule,
                filled: Some(&filled.collect::<Vec<_>>()),
                refused: Some((&refusal.code, &refusal.detail)),
                done: "",
            };
            html(refusal.status, starbridge_console::schedule(&page.frame, &parts))
        }
        _ => refusal.page(&page.frame),
    }
}

/// Asks for what differs from the schedule as it is.
async fn changed(page: &Page, name: &str, fields: &Fields) -> Result<(), PageRefusal> {
    let now = page.ask.get(SCHEDULE, &[name], &[]).await?;
    let mut changes = Object::new();
    for field in SCHEDULE_FIELDS {
        if fields.pairs().all(|(known, _)| known != field) {
            continue;
        }
        let wanted = match field {
            "payload" | "priority" | "startDeadlineSeconds" => fields.json(field).await?.unwrap_or_default(),
            _ => Text::from(fields.get(field).trim()).into(),
        };
        if wanted != now.get(field).cloned().unwrap_or_default() {
            changes.insert(field.into(), wanted);
        }
    }
    if !changes.is_empty() {
        page.ask.send("PATCH", SCHEDULE, &[name], Some(changes.into())).await?;
    }
    Ok(())
}
