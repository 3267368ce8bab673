//! How many executions there are of each kind.

use crate::App;
use crate::answers::aside;
use axum::extract::State;
use axum::http::StatusCode;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_node::problem::Answer;
use starbridge_ports::StoreError;

/// `GET /v1/executions/counts`
pub async fn counts(State(app): State<App>) -> Answer {
    let (statuses, reasons) = aside(&app.node, |node| {
        let store = node.store();
        Ok::<_, StoreError>((store.counts()?, store.reason_counts()?))
    })
    .await??;
    let count = |word: &str, count: u64| (Text::from(word), Value::from(count));
    let statuses = statuses
        .into_iter()
        .map(|(status, number)| count(status.as_str(), number));
    let mut shape = Object::new();
    shape.insert("statuses".into(), statuses.collect::<Object>().into());
    let reasons = reasons.map(|reasons| {
        let reasons = reasons
            .into_iter()
            .map(|(reason, number)| count(reason.as_str(), number));
        Value::from(reasons.collect::<Object>())
    });
    shape.insert("reasons".into(), reasons.unwrap_or_default());
    app.answers.value(StatusCode::OK, shape.into()).await
}
