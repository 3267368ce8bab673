//! What forms do to views.

use super::acts::members;
use super::answer::PageRefusal;
use super::bulk::filter_object;
use super::form::Form;
use axum::response::Response;
use starbridge_console::address_of;
use starbridge_node::node::filter_pairs;
use starbridge_node::problem::Problem;

const VIEW: &str = "/v1/views/{name}";

/// `POST /views`
pub async fn save(form: Form) -> Response {
    let (page, fields) = (form.page, form.fields);
    let done = async {
        let name = fields.get("view").trim();
        if name.is_empty() {
            return Err(Problem::bad("the view has no name: give it one").into());
        }
        let filter = filter_object(fields.pairs())?;
        let mut to = filter_pairs(&filter);
        let body = members([("filter", Some(filter.into()))]);
        page.ask.send("PUT", VIEW, &[name], Some(body)).await?;
        to.push(("done".to_owned(), "view".to_owned()));
        Ok(address_of(&to))
    };
    let done: Result<String, PageRefusal> = done.await;
    page.lead(done)
}

/// `POST /views/delete`
pub async fn delete(form: Form) -> Response {
    let (page, fields) = (form.page, form.fields);
    let done = page.ask.send("DELETE", VIEW, &[fields.get("view")], None).await;
    page.lead(done.map(|_| "/executions?done=unview".to_owned()))
}
