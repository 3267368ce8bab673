//! What is counted of the last hour.

use crate::harness::Running;
use crate::mailbox::eventually;
use serde_json::json;

fn failing() -> serde_json::Value {
    json!([{"type": "fail", "name": "give-up", "error": "Shop.Closed", "cause": "it is Sunday"}])
}

#[tokio::test]
pub async fn stats_count_starts_ends_and_what_failed() {
    let server = Running::start().await;
    let empty = server.get("/v1/stats").await;
    assert_eq!(empty.status, 200);
    assert_eq!(empty.body["counts"]["started"], 0);
    assert_eq!(empty.body["minutes"].as_array().unwrap().len(), 60);
    server.flow("well", json!([{"type": "pass", "name": "a"}])).await;
    server.flow("ill", failing()).await;
    for _ in 0..3 {
        server.post("/v1/flows/well/executions?wait=10", json!({})).await;
    }
    for _ in 0..2 {
        server.post("/v1/flows/ill/executions?wait=10", json!({})).await;
    }
    // An end is counted just after it is told.
    let all_counted = || async {
        let stats = server.get("/v1/stats").await.body;
        let ended = &stats["counts"]["ended"];
        let is_all = (&ended["Succeeded"], &ended["Failed"]) == (&json!(3), &json!(2));
        is_all.then_some(stats)
    };
    let stats = eventually("the count of all ends", all_counted).await;
    assert_eq!(stats["counts"]["started"], 5);
    let minutes = stats["minutes"].as_array().unwrap();
    let sum = |key: &str| -> u64 { minutes.iter().map(|minute| minute[key].as_u64().unwrap()).sum() };
    assert_eq!((sum("started"), sum("ended"), sum("failed")), (5, 5, 2));
    let failure = &stats["failures"][0];
    assert_eq!(
        (&failure["flow"], &failure["error"], &failure["executions"]),
        (&json!("ill"), &json!("Shop.Closed"), &json!(2))
    );
    assert_eq!(stats["flows"].as_array().unwrap().len(), 2);
    let of_day = |stats: &serde_json::Value, key: &str| -> u64 {
        let quarters = stats["day"]["quarters"].as_array().unwrap();
        assert_eq!(quarters.len(), 96);
        quarters.iter().map(|quarter| quarter[key].as_u64().unwrap()).sum()
    };
    let day = ["started", "ended", "failed"].map(|key| of_day(&stats, key));
    assert_eq!(day, [5, 5, 2]);
    let ill = server.get("/v1/stats?flow=ill").await.body;
    assert_eq!(["started", "ended", "failed"].map(|key| of_day(&ill, key)), [2, 2, 2]);
    let one = server.get("/v1/stats?flow=well").await.body;
    assert_eq!(one["flows"].as_array().unwrap().len(), 1);
    assert_eq!(one["flows"][0]["started"], 3);
    assert!(one["flows"][0]["p95Ms"].is_u64(), "{one}");
    assert_eq!(one["failures"], json!([]));
    let step = &one["steps"][0];
    assert_eq!(
        (&step["step"], &step["attempts"], &step["failed"]),
        (&json!("a"), &json!(3), &json!(0)),
        "{one}"
    );
    assert!(step["medianMs"].is_u64() && step["since"].is_string(), "{one}");
    let step = &ill["steps"][0];
    assert_eq!(
        (&step["step"], &step["attempts"], &step["failed"]),
        (&json!("give-up"), &json!(2), &json!(2)),
        "{ill}"
    );
    assert_eq!(stats["steps"], json!([]));
    assert_eq!(server.get("/v1/stats?odd=1").await.code(), (400, "BadRequest"));
}
