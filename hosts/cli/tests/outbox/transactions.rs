//! Transactions of all kinds: what commits starts once, what does not starts never.

use crate::stand::Stand;

#[test]
fn what_commits_starts_and_what_is_rolled_back_does_not() {
    let stand = Stand::start();
    let shop = stand.session("shop");
    shop.run("begin; insert into orders values (1)").unwrap();
    let id = shop.order("committed");
    assert_eq!(stand.names("order"), [""; 0]);
    shop.run("commit").unwrap();
    shop.run("begin").unwrap();
    shop.order("rolled-back");
    shop.run("rollback").unwrap();
    shop.run("begin").unwrap();
    shop.order("before-savepoint");
    shop.run("savepoint s").unwrap();
    shop.order("in-savepoint");
    shop.run("rollback to s").unwrap();
    shop.order("after-savepoint");
    shop.run("savepoint t").unwrap();
    shop.order("released");
    shop.run("release t; commit").unwrap();
    for level in ["repeatable read", "serializable"] {
        shop.run(&format!("begin isolation level {level}; select count(*) from orders"))
            .unwrap();
        shop.order(&level.replace(' ', "-"));
        shop.run("commit").unwrap();
    }
    stand.until_empty();
    let names = [
        "after-savepoint",
        "before-savepoint",
        "committed",
        "released",
        "repeatable-read",
        "serializable",
    ];
    assert_eq!(stand.names("order"), names);
    // The id that the function made is that of the execution.
    let shown = stand.get(&format!("/v1/executions/{id}"));
    assert_eq!(
        (&shown["name"], &shown["input"]["id"]),
        (&"committed".into(), &7.into())
    );
    assert_eq!(stand.refused().len(), 0);
}

#[test]
fn a_bulk_in_an_outbox_that_was_empty_is_found_by_its_ids() {
    let mut stand = Stand::start();
    stand.kill();
    let admin = stand.session("starbridge");
    admin.run("vacuum (analyze) starbridge.outbox").unwrap();
    admin
        .run("alter role flows set session_preload_libraries = 'auto_explain'; alter role flows set auto_explain.log_min_duration = 0")
        .unwrap();
    drop(admin);
    // Its plans are made now.
    stand.serve();
    let shop = stand.session("shop");
    shop.run(
        "select starbridge.start_execution('order', '{\"id\": 7}', name => 'b-' || g) from generate_series(1, 300) g",
    )
    .unwrap();
    stand.until_empty();
    let said = std::fs::read_to_string(stand.service.folder().join("log")).unwrap();
    assert!(said.contains("update starbridge.outbox"), "{said}");
    let compares = |line: &&str| line.contains("Join Filter") && line.contains("f.id");
    let compared: Vec<&str> = said.lines().filter(compares).collect();
    assert!(compared.is_empty(), "each row is compared with each: {compared:?}");
}

#[test]
fn a_prepared_transaction_starts_when_it_is_committed() {
    let stand = Stand::start();
    let shop = stand.session("shop");
    shop.run("begin; set local starbridge.wake = off").unwrap();
    shop.order("prepared");
    shop.run("prepare transaction 'p'").unwrap();
    shop.run("begin; set local starbridge.wake = off").unwrap();
    shop.order("given-up");
    shop.run("prepare transaction 'g'").unwrap();
    // Others pass meanwhile.
    shop.order("meanwhile");
    stand.until_names(&["meanwhile"]);
    shop.run("commit prepared 'p'").unwrap();
    shop.run("rollback prepared 'g'").unwrap();
    stand.until_names(&["meanwhile", "prepared"]);
    // Without the setting the database forbids it, and says so.
    shop.run("begin").unwrap();
    shop.order("woken");
    let said = shop.refusal("prepare transaction 'w'");
    assert!(said.contains("NOTIFY"), "{said}");
}

/// The transaction that writes first commits last, when all who wrote after it are long gone.
#[test]
fn a_late_commit_behind_many_is_not_lost() {
    let stand = Stand::start();
    let (late, later, shop) = (stand.session("shop"), stand.session("shop"), stand.session("shop"));
    late.run("begin").unwrap();
    late.order("late");
    // It has a number, and writes only after many others have committed.
    later.run("begin; insert into orders values (2)").unwrap();
    let many =
        "select starbridge.start_execution('order', jsonb_build_object('id', n)) from generate_series(1, 3000) n";
    shop.run(many).unwrap();
    stand.until_empty();
    assert_eq!(stand.names("order").len(), 3_000);
    later.order("later");
    late.run("commit").unwrap();
    stand.until("the late one runs", || {
        stand.names("order").contains(&"late".to_owned())
    });
    later.run("commit").unwrap();
    stand.until("the later one runs", || {
        stand.names("order").contains(&"later".to_owned())
    });
    assert_eq!(stand.names("order").len(), 3_002);
}

#[test]
fn the_members_of_a_start_are_those_of_http() {
    let stand = Stand::start();
    let shop = stand.session("shop");
    let id = shop.text(
        "select starbridge.start_execution('order', '{\"id\": 7, \"none\": null}', name => 'o', version => 1, labels => '{\"shop\": \"7\"}',
            priority => 3, order_time => 5, delay_seconds => 86400, start_deadline_seconds => 10, once_key => 'k',
            traceparent => '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01')::text",
    );
    stand.until_empty();
    let shown = stand.get(&format!("/v1/executions/{id}"));
    assert_eq!(shown["status"], "Delayed", "{shown}");
    assert_eq!(shown["input"], serde_json::json!({"id": 7, "none": null}));
    // Who asked for it stands in the history.
    let once = shop.order("by");
    stand.until_empty();
    // Whatever the session demands of functions in PL/pgSQL.
    shop.run("set plpgsql.extra_errors = 'all'").unwrap();
    shop.order("strict");
    shop.text("select starbridge.start_execution('order', priority => 3)::text");
    let history = stand.server().get(&format!("/v1/executions/{once}/history"));
    assert!(history.contains("\"by\":\"outbox shop: shop\""), "{history}");
    assert_eq!(
        (&shown["labels"]["shop"], &shown["priority"]),
        (&"7".into(), &3.into()),
        "{shown}"
    );
    let after = shop.text(&format!(
        "select starbridge.start_execution('order', after => '[{{\"execution\": \"{id}\"}}]')::text"
    ));
    stand.until_empty();
    assert_eq!(stand.get(&format!("/v1/executions/{after}"))["status"], "Blocked");
}

/// A callback that is completed with the result that its transaction writes, and a stop.
#[test]
fn a_report_and_a_stop_go_with_a_transaction() {
    let mut stand = Stand::start();
    let start = "select starbridge.start_execution('work')::text";
    let [done, failed, stopped] = [(); 3].map(|()| stand.session("shop").text(start));
    stand.until_empty();
    let tasks = stand.take_tasks("q", 3);
    // Whoever goes on reads what the start wrote.
    stand.kill();
    stand.serve();
    let shop = stand.session("shop");
    let token = |id: &str| tasks.iter().find(|(of, _)| of == id).unwrap().1.clone();
    shop.run(&format!(
        "begin; insert into orders values (3); select starbridge.succeed('{}', '{{\"ok\": true}}')",
        token(&done)
    ))
    .unwrap();
    assert_eq!(stand.get(&format!("/v1/executions/{done}"))["status"], "Running");
    shop.run("commit").unwrap();
    shop.run(&format!(
        "select starbridge.fail('{}', 'Shop.Closed', 'on Sundays')",
        token(&failed)
    ))
    .unwrap();
    shop.run(&format!("select starbridge.stop_execution('{stopped}', 'not wanted')"))
        .unwrap();
    shop.run(&format!(
        "begin; select starbridge.stop_execution('{stopped}'); rollback"
    ))
    .unwrap();
    stand.until_empty();
    let status = |id: &str| stand.get(&format!("/v1/executions/{id}"));
    assert_eq!(status(&done)["output"]["ok"], true);
    assert_eq!(status(&failed)["error"], "Shop.Closed");
    assert_eq!(status(&stopped)["status"], "Stopped");
    let history = stand.server().get(&format!("/v1/executions/{stopped}/history"));
    assert!(
        history.contains("\"by\":\"outbox shop: shop\"") && history.contains("not wanted"),
        "{history}"
    );
    assert_eq!(stand.refused().len(), 0);
}
