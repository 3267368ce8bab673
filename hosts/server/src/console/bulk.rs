//! Bulk jobs: what one would be for, making it, and what became of it.

use super::acts::{members, ticked};
use super::answer::PageRefusal;
use super::asked::{Asked, Parameters};
use super::form::{Fields, Form};
use super::page::Page;
use axum::extract::Path;
use axum::response::Response;
use starbridge_console::{BULK_ACTIONS, FILTERS, JobParts, PreviewParts, is_typed, path_part};
use starbridge_flow::value::{Object, Text, Value};
use starbridge_node::problem::{Problem, quoted};

/// What a job is for: those that match, or those that were chosen one by one.
enum Chosen {
    Matching(Object),
    These(Value),
}

impl Chosen {
    /// What the list's form asks for.
    fn of(asked: &Asked) -> Result<Self, PageRefusal> {
        if asked.get("match") != Some("all") {
            let ids: Vec<Value> = asked.each("id").map(|id| Text::from(id).into()).collect();
            return match ids.is_empty() {
                false => Ok(Self::These(ids.into())),
                true => Err(Problem::bad("no execution is ticked: tick some, or \"all that match\"").into()),
            };
        }
        let filter = filter_object(asked.pairs(&[]))?;
        Ok(Self::Matching(filter))
    }

    /// What the preview's form gives back.
    async fn read(fields: &Fields) -> Result<Self, PageRefusal> {
        match (fields.json("executions").await?, fields.json("filter").await?) {
            (Some(ids), _) => Ok(Self::These(ids)),
            (None, Some(Value::Object(filter))) => Ok(Self::Matching(filter)),
            _ => Err(Problem::bad("the form says for no execution").into()),
        }
    }

    /// The request, with what else it says.
    fn body(&self, action: &str, more: Vec<(&'static str, Option<Value>)>) -> Value {
        let mut body = vec![("action", Some(Text::from(action).into()))];
        match self {
            Self::These(ids) => body.push(("executions", Some(ids.clone()))),
            Self::Matching(filter) => {
                body.push(("all", filter.is_empty().then_some(Value::Bool(true))));
                body.push(("filter", Some(filter.clone().into())));
            }
        }
        body.extend(more);
        members(body)
    }
}

/// What the list is filtered by, as an object.
pub(super) fn filter_object<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Object, PageRefusal> {
    let mut filter = Object::new();
    let (mut statuses, mut labels) = (Vec::new(), Object::new());
    for (key, value) in pairs.into_iter().filter(|(key, _)| FILTERS.contains(key)) {
        match key {
            "status" => statuses.extend(value.split(',').map(|word| Value::from(Text::from(word)))),
            "label" => {
                let label = value.split_once(':');
                let (label, value) = label.ok_or_else(|| Problem::bad("a label is written `key:value`"))?;
                labels.insert(label.into(), Text::from(value).into());
            }
            key => drop(filter.insert(key.into(), Text::from(value).into())),
        }
    }
    if !statuses.is_empty() {
        filter.insert("status".into(), statuses.into());
    }
    if !labels.is_empty() {
        filter.insert("labels".into(), labels.into());
    }
    Ok(filter)
}

fn known(action: Option<&str>) -> Result<&'static str, PageRefusal> {
    let action = action.unwrap_or_default();
    let found = BULK_ACTIONS.into_iter().find(|known| *known == action);
    found.ok_or_else(|| {
        let detail = format!(
            "there is no action {}: known are {}",
            quoted(action),
            BULK_ACTIONS.join(", ")
        );
        Problem::bad(detail).into()
    })
}

async fn previewed(page: &Page, action: &str, chosen: &Chosen) -> Result<Value, PageRefusal> {
    let body = chosen.body(action, vec![("dryRun", Some(true.into()))]);
    page.ask.post("/v1/bulk", &[], Some(body)).await
}

/// `GET /bulk/new`
pub async fn preview(page: Page, query: Parameters) -> Response {
    let parameters: Vec<&str> = FILTERS.into_iter().chain(["action", "id", "match"]).collect();
    let made = async {
        let asked = Asked::of(query, &parameters)?;
        let action = known(asked.get("action"))?;
        let chosen = Chosen::of(&asked)?;
        let preview = previewed(&page, action, &chosen).await?;
        let (filter, executions) = match &chosen {
            Chosen::Matching(filter) => (Some(filter), None),
            Chosen::These(ids) => (None, Some(ids)),
        };
        let parts = PreviewParts {
            action,
            filter,
            executions,
            preview: &preview,
        };
        Ok(starbridge_console::bulk_preview(&page.frame, &parts))
    };
    let made: Result<String, PageRefusal> = made.await;
    page.answer(made)
}

/// `POST /bulk/new`
pub async fn make(form: Form) -> Response {
    let made = made(&form.page, &form.fields).await;
    form.page.lead(made)
}

async fn made(page: &Page, fields: &Fields) -> Result<String, PageRefusal> {
    let action = known(Some(fields.get("action")))?;
    let chosen = Chosen::read(fields).await?;
    let preview = previewed(page, action, &chosen).await?;
    let now = preview.get("executions").and_then(Value::as_number);
    let now = now.and_then(|number| number.as_u64()).unwrap_or_default();
    // Whoever typed a number meant that many.
    if is_typed(action, now) && fields.get("typed").trim() != now.to_string() {
        let detail = format!(
            "this is for {now} executions now: type that number to confirm it, not {}",
            quoted(fields.get("typed"))
        );
        return Err(Problem::bad(detail).into());
    }
    let mut arguments = Object::new();
    if let Some(cause) = fields.text("cause") {
        arguments.insert("cause".into(), cause);
    }
    if let Some(rollback) = ticked(fields, "rollback") {
        arguments.insert("rollback".into(), rollback);
    }
    let more = vec![
        ("arguments", Some(arguments.into())),
        ("ratePerSecond", fields.json("rate").await?),
    ];
    let job = page.ask.post("/v1/bulk", &[], Some(chosen.body(action, more))).await?;
    let id = job.get("id").and_then(Value::as_str).unwrap_or_default();
    Ok(format!("/bulk/{}?done=bulk", path_part(id)))
}

/// `GET /bulk/{id}`
pub async fn job(page: Page, Path(id): Path<String>, query: Parameters) -> Response {
    let made = async {
        let asked = Asked::of(query, &["result", "cursor", "done"])?;
        let job = page.ask.get("/v1/bulk/{id}", &[&id], &[]).await?;
        let query = asked.pairs(&[("limit", "100")]);
        let items = page.ask.get("/v1/bulk/{id}/items", &[&id], &query).await?;
        let parts = JobParts {
            job: &job,
            items: &items,
            result: asked.get("result").unwrap_or_default(),
            done: asked.get("done").unwrap_or_default(),
        };
        Ok(starbridge_console::bulk_job(&page.frame, &parts))
    };
    let made: Result<String, PageRefusal> = made.await;
    page.answer(made)
}

async fn change(page: Page, route: &'static str, id: &str) -> Response {
    let done = page.ask.post(route, &[id], None).await;
    page.lead(done.map(|_| format!("/bulk/{}", path_part(id))))
}

/// `POST /bulk/{id}/suspend`
pub async fn suspend(Path(id): Path<String>, form: Form) -> Response {
    change(form.page, "/v1/bulk/{id}/suspend", &id).await
}

/// `POST /bulk/{id}/resume`
pub async fn resume(Path(id): Path<String>, form: Form) -> Response {
    change(form.page, "/v1/bulk/{id}/resume", &id).await
}

/// `POST /bulk/{id}/cancel`
pub async fn cancel(Path(id): Path<String>, form: Form) -> Response {
    change(form.page, "/v1/bulk/{id}/cancel", &id).await
}
