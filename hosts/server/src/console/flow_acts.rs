//! Putting a version of a flow: it is checked first, and what differs is shown.

use super::acts::members;
use super::answer::PageRefusal;
use super::form::Form;
use super::page::Page;
use axum::extract::Path;
use axum::response::Response;
use starbridge_console::{CheckParts, path_part};
use starbridge_flow::value::Value;
use starbridge_node::problem::Problem;

/// What was written into a form's field, with the line ends that forms give away.
fn definition(given: &str) -> Result<String, PageRefusal> {
    let text = given.replace("\r\n", "\n");
    match text.trim().is_empty() {
        false => Ok(text),
        true => Err(Problem::bad("there is no definition: write it as JSON or YAML").into()),
    }
}

/// The text of the latest version, if there is one.
async fn latest(page: &Page, name: &str) -> Result<String, PageRefusal> {
    let found = page.ask.get("/v1/flows/{name}", &[name], &[("text", "true")]).await;
    match found {
        Ok(flow) => Ok(flow.get("text").and_then(Value::as_str).unwrap_or_default().to_owned()),
        Err(refusal) if refusal.code == "NoSuchFlow" => Ok(String::new()),
        Err(refusal) => Err(refusal),
    }
}

/// `POST /flows/{name}/check`
pub async fn check(Path(name): Path<String>, form: Form) -> Response {
    let (page, fields) = (form.page, form.fields);
    let made = async {
        let text = definition(fields.get("definition"))?;
        let before = latest(&page, &name).await?;
        let route = "/v1/flows/{name}/check";
        let checked = page.ask.send_text("POST", route, &[&name], Some(text.clone())).await;
        let (checked, diagnostics) = match checked {
            Ok(checked) => {
                let diagnostics = checked.get("diagnostics").cloned().unwrap_or_default();
                (checked, diagnostics)
            }
            Err(refusal) if refusal.diagnostics != Value::Null => (Value::Null, refusal.diagnostics),
            Err(refusal) => return Err(refusal),
        };
        let parts = CheckParts {
            name: &name,
            text: &text,
            before: &before,
            checked: &checked,
            diagnostics: &diagnostics,
        };
        Ok(starbridge_console::flow_check(&page.frame, &parts))
    };
    let made: Result<String, PageRefusal> = made.await;
    page.answer(made)
}

/// `POST /flows/{name}/put`
pub async fn put(Path(name): Path<String>, form: Form) -> Response {
    let (page, fields) = (form.page, form.fields);
    let done = async {
        let text = definition(fields.get("definition"))?;
        page.ask
            .send_text("PUT", "/v1/flows/{name}", &[&name], Some(text))
            .await?;
        Ok(format!("/flows/{}?done=put", path_part(&name)))
    };
    let done: Result<String, PageRefusal> = done.await;
    page.lead(done)
}

/// Changes what is set for a flow.
async fn change(page: Page, name: &str, changes: Value, said: &str) -> Response {
    let done = page.ask.send("PATCH", "/v1/flows/{name}", &[name], Some(changes)).await;
    page.lead(done.map(|_| format!("/flows/{}?done={said}", path_part(name))))
}

/// `POST /flows/{name}/pause`
pub async fn pause(Path(name): Path<String>, form: Form) -> Response {
    change(form.page, &name, members([("paused", Some(true.into()))]), "set").await
}

/// `POST /flows/{name}/resume`
pub async fn resume(Path(name): Path<String>, form: Form) -> Response {
    change(form.page, &name, members([("paused", Some(false.into()))]), "set").await
}

/// `POST /flows/{name}/limit`
pub async fn limit(Path(name): Path<String>, form: Form) -> Response {
    let (page, fields) = (form.page, form.fields);
    match fields.json("maxRunning").await {
        Ok(limit) => {
            let limit = limit.unwrap_or(Value::Null);
            change(page, &name, members([("maxRunning", Some(limit))]), "set").await
        }
        Err(refusal) => page.lead(Err(refusal)),
    }
}

/// `POST /flows/{name}/hide`
pub async fn hide(Path(name): Path<String>, form: Form) -> Response {
    let page = form.page;
    let done = page.ask.send("DELETE", "/v1/flows/{name}", &[&name], None).await;
    page.lead(done.map(|_| "/flows?done=hide".to_owned()))
}
