//! Outboxes, over one whose database is a list in memory.

use crate::harness::{Running, asleep};
use crate::mailbox::eventually;
use serde_json::json;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{
    Outbox, OutboxError, OutboxFuture, OutboxRefusal, OutboxRights, OutboxRow, OutboxStanding, RefusedRow,
};
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;

/// How many bytes of rows are taken at a time.
const BYTES: usize = 4 << 20;

/// What is in the database.
#[derive(Default)]
struct Content {
    rows: Vec<OutboxRow>,
    taken: Vec<OutboxRow>,
    done: Vec<Text>,
    refused: Vec<RefusedRow>,
    away: bool,
    /// How often rows were taken while others were not finished.
    overlaps: u32,
}

#[derive(Default)]
struct Listed {
    rights: OutboxRights,
    content: Mutex<Content>,
    changed: Notify,
}

impl Listed {
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap()
    }

    fn write(&self, id: &str, action: &str, body: &serde_json::Value, again: bool) {
        let row = OutboxRow {
            id: id.into(),
            action: action.to_owned(),
            body: body.to_string(),
            by: "shop".into(),
            again,
        };
        self.lock().rows.push(row);
        self.changed.notify_one();
    }

    fn answer<T: Send + 'static>(&self, work: impl FnOnce(&mut Content) -> T) -> OutboxFuture<'_, T> {
        let mut content = self.lock();
        let answer = match content.away {
            true => Err(OutboxError("the database h:5432/d does not answer".to_owned())),
            false => Ok(work(&mut content)),
        };
        Box::pin(std::future::ready(answer))
    }

    /// Waits until nothing is left to do.
    async fn empty(&self) {
        loop {
            {
                let content = self.lock();
                if content.rows.is_empty() && content.taken.is_empty() {
                    return;
                }
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Outbox for Listed {
    fn name(&self) -> &str {
        "shop"
    }

    fn place(&self) -> &str {
        "h:5432/d"
    }

    fn rights(&self) -> &OutboxRights {
        &self.rights
    }

    fn take(&self, limit: usize) -> OutboxFuture<'_, Vec<OutboxRow>> {
        self.answer(|content| {
            let mut bytes = 0;
            let fits = |row: &&OutboxRow| {
                bytes += row.body.len();
                bytes <= BYTES || bytes == row.body.len()
            };
            let many = content.rows.iter().take(limit).take_while(fits).count();
            let taken: Vec<OutboxRow> = content.rows.drain(..many).collect();
            content.overlaps += u32::from(!content.taken.is_empty() && !taken.is_empty());
            content.taken.extend(taken.clone());
            taken
        })
    }

    fn wait(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.changed.notified())
    }

    fn done(&self, ids: Vec<Text>) -> OutboxFuture<'_, ()> {
        self.answer(|content| {
            content.taken.retain(|row| !ids.contains(&row.id));
            content.done.extend(ids);
        })
    }

    fn refuse(&self, rows: Vec<OutboxRefusal>) -> OutboxFuture<'_, u64> {
        self.answer(|content| {
            for OutboxRefusal { id, code, reason } in rows {
                let number = i64::try_from(content.refused.len()).unwrap() + 1;
                content.taken.retain(|row| row.id != id);
                content.refused.push(RefusedRow {
                    number,
                    id,
                    action: "start".to_owned(),
                    flow: Some("none".into()),
                    name: None,
                    by: "shop".into(),
                    written: Timestamp(0),
                    refused: Timestamp(1),
                    code: code.into(),
                    reason: reason.into(),
                });
            }
            0
        })
    }

    fn standing(&self) -> OutboxFuture<'_, OutboxStanding> {
        self.answer(|content| OutboxStanding {
            waiting: (content.rows.len() + content.taken.len()) as u64,
            oldest: None,
            refused: content.refused.len() as u64,
        })
    }

    fn refused(&self, below: Option<i64>, limit: usize) -> OutboxFuture<'_, Vec<RefusedRow>> {
        self.answer(|content| {
            let wanted = content.refused.iter().rev();
            let wanted = wanted.filter(|row| below.is_none_or(|below| row.number < below));
            wanted.take(limit).cloned().collect()
        })
    }

    fn refused_one(&self, id: Text) -> OutboxFuture<'_, Option<RefusedRow>> {
        self.answer(|content| content.refused.iter().find(|row| row.id == id).cloned())
    }
}

fn id(number: u32) -> String {
    format!("0190b3e4-8c1d-7abc-9def-{number:012x}")
}

#[tokio::test]
pub async fn outbox_starts_what_it_can_and_says_why_not() {
    let outbox = Arc::new(Listed::default());
    let server = Running::taking(vec![outbox.clone()]).await;
    server.flow("f", asleep()).await;
    outbox.write(
        &id(1),
        "start",
        &json!({"flow": "f", "name": "one", "input": {"n": 1}}),
        false,
    );
    // What was taken before is not started again, and what was not is.
    outbox.empty().await;
    outbox.write(
        &id(1),
        "start",
        &json!({"flow": "f", "name": "one", "input": {"n": 1}}),
        true,
    );
    outbox.write(&id(2), "start", &json!({"flow": "f", "input": {}}), true);
    outbox.empty().await;
    for number in [1, 2] {
        assert_eq!(server.get(&format!("/v1/executions/{}", id(number))).await.status, 200);
    }
    let all = server.get("/v1/executions").await;
    assert_eq!(all.body["items"].as_array().unwrap().len(), 2);
    assert_eq!(outbox.lock().done.len(), 3);
    assert_eq!(outbox.lock().refused.len(), 0);
    stop_in_the_turn_of_its_start(&server, &outbox).await;
    refusals(&server, &outbox).await;
    what_is_shown(&server, &outbox).await;
}

async fn stop_in_the_turn_of_its_start(server: &Running, outbox: &Listed) {
    outbox.lock().rows.push(OutboxRow {
        id: id(4).as_str().into(),
        action: "stop".to_owned(),
        body: json!({"id": id(3), "cause": "no"}).to_string(),
        by: "shop".into(),
        again: false,
    });
    outbox.write(&id(3), "start", &json!({"flow": "f", "input": {}}), false);
    outbox.empty().await;
    let stopped = server.get(&format!("/v1/executions/{}", id(3))).await;
    assert_eq!(stopped.body["status"], "Stopped");
}

async fn refusals(server: &Running, outbox: &Listed) {
    for (number, action, body, code) in [
        (10, "start", json!({"flow": "none"}), "NoSuchFlow"),
        (11, "start", json!({"flow": "f", "version": 9}), "NoSuchFlow"),
        (12, "start", json!({"flow": "f", "nmae": "x"}), "BadRequest"),
        (13, "start", json!({"input": {}}), "BadRequest"),
        (14, "start", json!([]), "BadRequest"),
        (
            15,
            "start",
            json!({"flow": "f", "name": "one"}),
            "ExecutionAlreadyExists",
        ),
        (
            16,
            "start",
            json!({"flow": "f", "after": [id(99)]}),
            "UnknownDependency",
        ),
        (17, "succeed", json!({"token": "none", "output": {}}), "InvalidToken"),
        (18, "stop", json!({"id": id(98)}), "NoSuchExecution"),
        (19, "dance", json!({}), "BadRequest"),
    ] {
        outbox.write(&id(number), action, &body, false);
        outbox.empty().await;
        let last = outbox.lock().refused.last().cloned().unwrap();
        assert_eq!(
            (last.id.as_str(), last.code.as_str()),
            (id(number).as_str(), code),
            "{body}"
        );
    }
    let shown = server.get(&format!("/v1/executions/{}", id(10))).await;
    assert_eq!(shown.code(), (404, "StartRefused"));
    assert_eq!(
        (&shown.body["outbox"], &shown.body["reasonCode"]),
        (&json!("shop"), &json!("NoSuchFlow"))
    );
    assert_eq!(
        server.get(&format!("/v1/executions/{}", id(97))).await.code(),
        (404, "NoSuchExecution")
    );
}

async fn what_is_shown(server: &Running, outbox: &Listed) {
    let page = server.get("/v1/outboxes/shop/refused?limit=9").await;
    let next = page.body["next"].as_str().unwrap();
    let rest = server
        .get(&format!("/v1/outboxes/shop/refused?limit=9&cursor={next}"))
        .await;
    assert_eq!(rest.body["items"].as_array().unwrap().len(), 1);
    assert_eq!(rest.body["next"], json!(null));
    assert_eq!(
        server.get("/v1/outboxes/shop/refused?cursor=x").await.code(),
        (400, "BadRequest")
    );
    assert_eq!(
        server.get("/v1/outboxes/none/refused").await.code(),
        (404, "NoSuchOutbox")
    );
    let listed = server.get("/v1/outboxes").await;
    assert_eq!(listed.body["items"][0]["refused"], 10);
    outbox.lock().away = true;
    let away = server.get("/v1/outboxes/shop/refused").await;
    assert_eq!(away.code(), (503, "OutboxUnavailable"));
    let listed = server.get("/v1/outboxes").await;
    assert!(
        listed.body["items"][0]["problem"]
            .as_str()
            .unwrap()
            .contains("does not answer")
    );
    let metrics = server.get("/metrics").await;
    assert!(
        metrics
            .body
            .as_str()
            .unwrap()
            .contains("starbridge_outbox_up{outbox=\"shop\"} 0")
    );
}

/// While the database is away nothing is lost, and what was started is not started again.
#[tokio::test]
async fn outbox_that_goes_away_between_start_and_deletion_starts_nothing_twice() {
    let outbox = Arc::new(Listed::default());
    let server = Running::taking(vec![outbox.clone()]).await;
    server.flow("f", asleep()).await;
    let body = json!({"flow": "f", "input": {}});
    for number in 0..50 {
        outbox.write(&id(number), "start", &body, false);
        // Some of these meet the moment between the start and the deletion.
        while outbox.lock().taken.is_empty() && !outbox.lock().rows.is_empty() {
            tokio::task::yield_now().await;
        }
        {
            let mut content = outbox.lock();
            let taken = std::mem::take(&mut content.taken);
            content
                .rows
                .extend(taken.into_iter().map(|row| OutboxRow { again: true, ..row }));
        }
        outbox.changed.notify_one();
    }
    outbox.empty().await;
    let all = server.get("/v1/executions?limit=1000").await;
    assert_eq!(all.body["items"].as_array().unwrap().len(), 50);
    assert_eq!(outbox.lock().refused.len(), 0);
}

/// While a full batch is started, the next one is taken; each row starts once nevertheless.
#[tokio::test]
async fn outbox_with_many_rows_is_taken_ahead() {
    let outbox = Arc::new(Listed::default());
    let server = Running::taking(vec![outbox.clone()]).await;
    server.flow("f", asleep()).await;
    let body = json!({"flow": "f", "input": {}}).to_string();
    let row = |number: u32| OutboxRow {
        id: id(number).as_str().into(),
        action: "start".to_owned(),
        body: body.clone(),
        by: "shop".into(),
        again: false,
    };
    outbox.lock().rows.extend((0..2_500).map(row));
    outbox.changed.notify_one();
    outbox.empty().await;
    assert_eq!(outbox.lock().overlaps, 2);
    let done = outbox.lock().done.iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!((done.len(), outbox.lock().done.len()), (2_500, 2_500));
    assert_eq!(outbox.lock().refused.len(), 0);
    let (mut started, mut cursor) = (0, String::new());
    loop {
        let page = server.get(&format!("/v1/executions?limit=1000{cursor}")).await;
        started += page.body["items"].as_array().unwrap().len();
        match page.body["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(started, 2_500);
}

/// A row in memory takes no more than a body of a request.
#[tokio::test]
async fn outbox_row_of_too_many_small_values_is_refused() {
    let outbox = Arc::new(Listed::default());
    let server = Running::taking(vec![outbox.clone()]).await;
    server.flow("f", asleep()).await;
    let many = |items: usize| json!({"flow": "f", "input": {"a": vec![json!({"": 0}); items]}});
    outbox.write(&id(1), "start", &many(1_000_000), false);
    outbox.write(&id(2), "start", &many(1_000), false);
    outbox.empty().await;
    let refused = outbox.lock().refused.clone();
    let codes: Vec<(&str, &str)> = refused.iter().map(|row| (row.id.as_str(), row.code.as_str())).collect();
    assert_eq!(codes, [(id(1).as_str(), "ValueTooLarge")]);
    assert_eq!(server.get(&format!("/v1/executions/{}", id(2))).await.status, 200);
}

#[tokio::test]
async fn outbox_asks_for_what_it_may_and_is_named() {
    let may = |flows: &[&str], actions: &[&str]| OutboxRights {
        flows: flows.iter().map(|&flow| flow.to_owned()).collect(),
        actions: actions.iter().map(|&action| action.to_owned()).collect(),
    };
    for (rights, start, stop, other) in [
        (OutboxRights::default(), true, true, true),
        (may(&["shop-*"], &["start", "stop"]), true, true, false),
        (may(&["shop-*"], &["start"]), true, false, false),
        (may(&["*"], &["stop"]), false, true, false),
        (may(&[], &OutboxRights::ACTIONS), false, false, false),
    ] {
        let outbox = Arc::new(Listed {
            rights: rights.clone(),
            ..Listed::default()
        });
        let server = Running::taking(vec![outbox.clone()]).await;
        server.flow("shop-order", asleep()).await;
        server.flow("other", asleep()).await;
        let begun = async |flow: &str| {
            let path = format!("/v1/flows/{flow}/executions");
            let started = server.post(&path, json!({"input": {}})).await;
            started.body["id"].as_str().unwrap().to_owned()
        };
        let (own, strange) = (begun("shop-order").await, begun("other").await);
        outbox.write(&id(1), "start", &json!({"flow": "shop-order", "input": {}}), false);
        outbox.write(&id(2), "stop", &json!({"id": own}), false);
        outbox.write(&id(3), "start", &json!({"flow": "other", "input": {}}), false);
        outbox.write(&id(4), "stop", &json!({"id": strange}), false);
        outbox.empty().await;
        let forbidden = |number: u32| {
            let content = outbox.lock();
            let row = content.refused.iter().find(|row| row.id == id(number).as_str());
            row.map(|row| (row.code.to_string(), row.reason.contains("the outbox `shop` may not")))
        };
        let expected = |allowed: bool| (!allowed).then(|| ("Forbidden".to_owned(), true));
        let both = rights.flows == ["*"] && rights.actions == ["stop"];
        assert_eq!(forbidden(1), expected(start), "{rights:?}");
        assert_eq!(forbidden(2), expected(stop), "{rights:?}");
        assert_eq!(forbidden(3), expected(other), "{rights:?}");
        assert_eq!(forbidden(4), expected(other || both), "{rights:?}");
        let stopped = server.get(&format!("/v1/executions/{own}")).await;
        assert_eq!(stopped.body["status"] == "Stopped", stop, "{rights:?}");
        let audit = server.get("/v1/audit").await.body.to_string();
        assert_eq!(audit.contains("\"by\":\"outbox shop: shop\""), stop, "{audit}");
    }
}

/// Rows for which there is no room stay in the database, and start once there is some.
#[tokio::test]
async fn outbox_with_large_rows_is_not_taken_into_memory() {
    const LARGE: usize = 2 << 20;
    let outbox = Arc::new(Listed::default());
    let server = Running::taking_with(vec![outbox.clone()], |settings| {
        settings.hot_bytes = LARGE / 2;
        settings.owners = 1;
    })
    .await;
    server.flow("f", asleep()).await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let call = format!("http://{}/f", silent.local_addr().unwrap());
    let call = json!([{"type": "task", "name": "call", "resourceArn": call,
        "inputMappings": [{"target": "n", "source": 1}]}]);
    server.flow("call", call).await;
    let input = json!({"text": "x".repeat(LARGE)});
    let running = server.post("/v1/flows/call/executions", json!({"input": input})).await;
    assert_eq!(running.status, 201, "{running:?}");
    for number in 0..20 {
        outbox.write(&id(number), "start", &json!({"flow": "f", "input": input}), false);
    }
    let taken = || outbox.lock().taken.len() * LARGE;
    eventually("rows that are taken", async || (taken() >= 16 << 20).then_some(())).await;
    // Time for rows that must not be taken.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert!(taken() <= (16 << 20) + BYTES, "{} bytes", taken());
    let running = format!("/v1/executions/{}/stop", running.body["id"].as_str().unwrap());
    assert_eq!(server.post(&running, json!({})).await.status, 200);
    eventually("a row that starts", async || {
        (!outbox.lock().done.is_empty()).then_some(())
    })
    .await;
    assert_eq!(outbox.lock().refused.len(), 0);
}
