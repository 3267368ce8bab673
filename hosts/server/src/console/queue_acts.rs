//! What forms do to queues and keys.

use super::acts::members;
use super::answer::PageRefusal;
use super::form::{Fields, Form};
use super::page::Page;
use axum::extract::Path;
use axum::response::Response;
use starbridge_console::path_part;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_node::problem::Problem;
use starbridge_runtime::QueueSettings;

const QUEUE: &str = "/v1/queues/{queue}";

/// Sets some of a queue's settings. The API takes all of them, so they are read first.
async fn change(page: &Page, queue: &str, changes: Vec<(&'static str, Option<Value>)>) -> Result<String, PageRefusal> {
    let now = page.ask.get(QUEUE, &[queue], &[]).await?;
    let kept = QueueSettings::MEMBERS
        .into_iter()
        .filter(|key| changes.iter().all(|(changed, _)| changed != key))
        .filter_map(|key| Some((Text::from(key), now.get(key)?.clone())));
    let mut settings: Object = kept.collect();
    for (key, value) in changes {
        if let Some(value) = value {
            settings.insert(key.into(), value);
        }
    }
    page.ask.send("PUT", QUEUE, &[queue], Some(settings.into())).await?;
    Ok(format!("/queues/{}?done=set", path_part(queue)))
}

/// `POST /queues/{queue}/pause`
pub async fn pause(Path(queue): Path<String>, form: Form) -> Response {
    let done = change(&form.page, &queue, vec![("paused", Some(true.into()))]).await;
    form.page.lead(done)
}

/// `POST /queues/{queue}/resume`
pub async fn resume(Path(queue): Path<String>, form: Form) -> Response {
    let done = change(&form.page, &queue, vec![("paused", Some(false.into()))]).await;
    form.page.lead(done)
}

/// `POST /queues/{queue}/set`
pub async fn set(Path(queue): Path<String>, form: Form) -> Response {
    let (page, fields) = (form.page, form.fields);
    let done = async {
        let mut changes = Vec::new();
        for key in ["maxConcurrent", "ratePerSecond", "redeliver"] {
            changes.push((key, fields.json(key).await?));
        }
        change(&page, &queue, changes).await
    };
    let done: Result<String, PageRefusal> = done.await;
    page.lead(done)
}

/// `POST /queues/{queue}/dead`
pub async fn dead(Path(queue): Path<String>, form: Form) -> Response {
    let done = discard(&form.page, &queue, &form.fields).await;
    form.page.lead(done)
}

/// Queues dead tasks anew or drops them: those that are ticked, or all.
async fn discard(page: &Page, queue: &str, fields: &Fields) -> Result<String, PageRefusal> {
    let all = fields.get("all") == "true";
    let ticked = fields.each("task").map(|place| {
        let read = place.rsplit_once('/');
        let read = read.and_then(|(execution, call)| Some((execution, call.parse::<u64>().ok()?)));
        let (execution, call) = read.ok_or_else(|| Problem::bad("a task is given as EXECUTION/CALL"))?;
        Ok(members([
            ("execution", Some(Text::from(execution).into())),
            ("call", Some(call.into())),
        ]))
    });
    let ticked = ticked.collect::<Result<Vec<Value>, Problem>>()?;
    if ticked.is_empty() && !all {
        return Err(Problem::bad("no task is ticked: tick some, or \"all that are dead\"").into());
    }
    let tasks = (!all).then(|| Value::from(ticked));
    let (mut not_done, mut cursor) = (0, None);
    loop {
        let body = members([
            ("action", fields.text("action")),
            ("tasks", tasks.clone()),
            ("cursor", cursor),
        ]);
        let done = page.ask.post("/v1/queues/{queue}/dead", &[queue], Some(body)).await?;
        let count = done.get("notDone").and_then(Value::as_number);
        not_done += count.and_then(|count| count.as_u64()).unwrap_or(0);
        cursor = done.get("next").filter(|next| **next != Value::Null).cloned();
        if cursor.is_none() {
            break;
        }
    }
    let said = match (not_done, fields.get("action")) {
        (0, "drop") => "drop",
        (0, _) => "requeue",
        _ => "part",
    };
    Ok(format!("/queues/{}?tab=dead&done={said}", path_part(queue)))
}

/// `POST /keys/{pool}/{key}/set`
pub async fn set_key(Path((pool, key)): Path<(String, String)>, form: Form) -> Response {
    const KEY: &str = "/v1/keys/{pool}/{key}";
    let (page, fields) = (form.page, form.fields);
    let done = async {
        match fields.json("limit").await? {
            Some(limit) => {
                let body = members([("limit", Some(limit))]);
                page.ask.send("PUT", KEY, &[&pool, &key], Some(body)).await?;
            }
            // The definition's holds again.
            None => drop(page.ask.send("DELETE", KEY, &[&pool, &key], None).await?),
        }
        Ok("/keys?done=set".to_owned())
    };
    let done: Result<String, PageRefusal> = done.await;
    page.lead(done)
}
