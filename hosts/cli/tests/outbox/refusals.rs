//! What can't be started: refused by the function at once, or kept aside with the reason; and what is wrong with a database.

use crate::server::Server;
use crate::stand::{Stand, command, said};

#[test]
fn the_function_refuses_what_it_can_see() {
    let stand = Stand::without_server();
    let shop = stand.session("shop");
    let start = |arguments: &str| format!("select starbridge.start_execution({arguments})");
    for (arguments, what) in [
        ("'order', '[7]'", "the input of `order` must be an object, not array"),
        ("'order', '7'", "must be an object, not number"),
        ("'an order'", "'an order' is no name of a flow 1 to 128"),
        ("null", "null is no name of a flow"),
        ("'order', name => '-7'", "'-7' is no name of an execution 1 to 128"),
        ("'order', name => ''", "'' is no name"),
        ("'order', labels => '[]'", "the labels must be an object"),
        ("'order', after => '{}'", "`after` must be a list"),
        ("'order', priority => 10", "from 0 to 9, not 10"),
        ("'order', delay_seconds => -1", "at least 0"),
        ("'order', delay_seconds => 1, start_at => now()", "give one of them"),
        (
            "'order', start_at => 'infinity'",
            "from the year 1 to 9999, not infinity",
        ),
        (
            "'order', start_at => '-infinity'",
            "not -infinity To start at once, leave it out",
        ),
        (
            "'order', start_at => '4713-01-01 BC'",
            "from the year 1 to 9999, not 4713",
        ),
        (
            "'order', start_at => '10000-01-01'",
            "from the year 1 to 9999, not 10000",
        ),
        ("'order', once_key => ''", "1 to 256 bytes"),
        (
            "'order', jsonb_build_object('id', repeat('x', 66 * 1024 * 1024))",
            "more than an outbox takes (64 MiB) Keep large",
        ),
        ("'order', nonsense => 1", "does not exist"),
    ] {
        let refusal = shop.refusal(&start(arguments));
        assert!(refusal.contains(what), "{arguments}: {refusal}");
    }
    for (call, what) in [
        ("succeed('', '{}')", "1 to 4096 bytes"),
        ("succeed('t', '[]')", "must be an object, not array"),
        ("fail('t', '')", "the name of the error is missing"),
        ("stop_execution(null)", "the id of the execution is missing"),
    ] {
        let refusal = shop.refusal(&format!("select starbridge.{call}"));
        assert!(refusal.contains(what), "{call}: {refusal}");
    }
    shop.run("begin read only").unwrap();
    let refusal = shop.refusal(&start("'order'"));
    assert!(
        refusal.contains("this transaction is read-only") && refusal.contains("begin read write"),
        "{refusal}"
    );
    shop.run("rollback").unwrap();
    assert_eq!(
        stand
            .session("starbridge")
            .text("select count(*)::text from starbridge.outbox"),
        "0"
    );
}

#[test]
fn a_client_has_no_right_on_any_table_and_others_have_none_at_all() {
    let stand = Stand::without_server();
    stand
        .session("starbridge")
        .run("create role stranger login; create table starbridge.order_copy ()")
        .unwrap();
    let (shop, stranger) = (stand.session("shop"), stand.session("stranger"));
    for table in ["outbox", "outbox_refused", "outbox_format"] {
        let refusal = shop.refusal(&format!("select * from starbridge.{table}"));
        assert!(refusal.contains("permission denied"), "{refusal}");
    }
    for sql in [
        "select starbridge.outbox_add(gen_random_uuid(), 'start', '{}')",
        "insert into starbridge.outbox (id, action, body, bytes, by) values (gen_random_uuid(), 'start', '{}', 1, 'x')",
    ] {
        assert!(shop.refusal(sql).contains("permission denied"), "{sql}");
    }
    let refusal = stranger.refusal("select starbridge.start_execution('order')");
    assert!(refusal.contains("permission denied for schema starbridge"), "{refusal}");
    // Nobody's schema comes before that of the functions.
    shop.run("create temp table outbox (id int); set search_path = pg_temp, public")
        .unwrap();
    shop.order("mine");
    assert_eq!(
        stand.session("starbridge").text("select by from starbridge.outbox"),
        "shop"
    );
}

#[test]
fn what_cannot_start_is_kept_with_its_reason() {
    let stand = Stand::start();
    let shop = stand.session("shop");
    let none = shop.text("select starbridge.start_execution('nothing', name => 'n')::text");
    let unfit = shop.text("select starbridge.start_execution('order', '{\"id\": \"seven\"}')::text");
    shop.order("once");
    stand.until_empty();
    // The same name once more, with the same input and with another one.
    let again = shop.order("once");
    let other = shop.text("select starbridge.start_execution('order', '{\"id\": 8}', name => 'once')::text");
    let strange = shop.text("select starbridge.succeed('no-token')::text");
    let gone = shop.text("select starbridge.stop_execution(gen_random_uuid())::text");
    let labels = shop.text("select starbridge.start_execution('order', labels => '{\"a:b\": \"c\"}')::text");
    stand.until_empty();
    assert_eq!(stand.names("order"), ["once"]);
    let refused = stand.refused();
    for (id, code) in [
        (&none, "NoSuchFlow"),
        (&unfit, "InvalidInput"),
        (&again, "ExecutionAlreadyExists"),
        (&other, "ExecutionAlreadyExists"),
        (&strange, "InvalidToken"),
        (&gone, "NoSuchExecution"),
        (&labels, "BadRequest"),
    ] {
        let row = refused
            .iter()
            .find(|row| row["id"] == **id)
            .unwrap_or_else(|| panic!("{code}"));
        assert_eq!((&row["code"], &row["by"]), (&code.into(), &"shop".into()), "{row}");
    }
    assert_eq!(refused.len(), 7);
    assert!(
        !format!("{refused:?}").contains("no-token"),
        "a token is shown to nobody"
    );
    let shown = stand.get(&format!("/v1/executions/{none}"));
    assert_eq!(
        (&shown["code"], &shown["reasonCode"]),
        (&"StartRefused".into(), &"NoSuchFlow".into()),
        "{shown}"
    );
    assert!(
        shown["detail"]
            .as_str()
            .unwrap()
            .contains("the outbox `shop` asked for it"),
        "{shown}"
    );
    let table = stand.well(&["outbox", "refused", "shop"]);
    assert!(table.contains("NoSuchFlow") && table.contains(&none), "{table}");
    let paged = stand.well(&["outbox", "refused", "shop", "--limit", "3", "--json"]);
    assert_eq!(paged.matches("\"writtenTime\"").count(), 3, "{paged}");
    let metrics = stand.server().get("/metrics");
    for line in [
        "starbridge_outbox_up{outbox=\"shop\"} 1",
        "starbridge_outbox_waiting{outbox=\"shop\"} 0",
        "starbridge_outbox_started_total{outbox=\"shop\"} 1",
        "starbridge_outbox_refused{outbox=\"shop\"} 7",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let missing = stand.get("/v1/outboxes/other/refused");
    assert_eq!(missing["code"], "NoSuchOutbox");
}

#[test]
fn of_what_cannot_start_only_so_many_are_kept() {
    let mut stand = Stand::start();
    stand.kill();
    stand.configure_with(stand.path(), stand.service.port(), "keep_refused = 5\n");
    // What an earlier server refused.
    let old = "insert into starbridge.outbox_refused (id, action, body, by, time, code, reason)
        select gen_random_uuid(), 'start', '{}', 'shop', now(), 'NoSuchFlow', 'old' from generate_series(1, 20)";
    stand.session("starbridge").run(old).unwrap();
    stand.serve();
    let id = stand
        .session("shop")
        .text("select starbridge.start_execution('nothing')::text");
    let said = stand.server().says("the oldest are deleted (`keep_refused`)");
    assert!(said.contains("forgotten=16"), "{said}");
    stand.until_empty();
    let refused = stand.refused();
    assert_eq!((refused.len(), &refused[0]["id"]), (5, &id.as_str().into()));
    let metrics = stand.server().get("/metrics");
    assert!(
        metrics.contains("starbridge_outbox_forgotten_total{outbox=\"shop\"} 16"),
        "{metrics}"
    );
    // Later it is looked each thousand.
    stand
        .session("shop")
        .run("select starbridge.start_execution('nothing') from generate_series(1, 2500)")
        .unwrap();
    stand.until_emptied();
    assert!(stand.get("/v1/outboxes")["items"][0]["refused"].as_u64().unwrap() <= 1_005);
}

#[test]
fn an_outbox_that_is_not_fit_is_said_and_the_server_serves_on() {
    let mut stand = Stand::without_server();
    let admin = stand.session("starbridge");
    let broken = [
        (
            "alter schema starbridge rename to elsewhere",
            "outbox install",
            "alter schema elsewhere rename to starbridge",
        ),
        (
            "revoke starbridge_taker from flows",
            "grant starbridge_taker",
            "grant starbridge_taker to flows",
        ),
        (
            "update starbridge.outbox_format set version = 0",
            "has version 0",
            "update starbridge.outbox_format set version = 1",
        ),
        (
            "update starbridge.outbox_format set version = 2",
            "use a later version",
            "update starbridge.outbox_format set version = 1",
        ),
        (
            "alter role flows nologin",
            "not permitted to log in",
            "alter role flows login",
        ),
    ];
    admin.run(broken[0].0).unwrap();
    drop(admin);
    stand.server = Some(Server::start(stand.path(), &["--config", "server.toml"]));
    let end = "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'flows'";
    for (at, (damage, what, mend)) in broken.into_iter().enumerate() {
        let admin = stand.session("starbridge");
        if at > 0 {
            admin.run(damage).unwrap();
            admin.run(end).unwrap();
        }
        let line = stand.server().says(what);
        assert!(
            line.contains("the outbox can't be used") && !line.contains("hidden"),
            "{line}"
        );
        let listed = stand.get("/v1/outboxes");
        assert!(listed["items"][0]["problem"].as_str().is_some(), "{listed}");
        let table = stand.well(&["outbox", "list"]);
        assert!(table.contains("shop") && !table.contains("hidden"), "{table}");
        assert_eq!(stand.get("/v1/outboxes/shop/refused")["code"], "OutboxUnavailable");
        admin.run(mend).unwrap();
        stand.server().says("the outbox can be used again");
    }
}

#[test]
fn a_database_that_is_gone_at_the_start_is_waited_for() {
    let mut stand = Stand::without_server();
    stand
        .session("shop")
        .run("select starbridge.start_execution('order', name => 'waits')")
        .unwrap();
    stand.service.stop();
    stand.serve();
    let line = stand.server().says("the outbox can't be used");
    assert!(line.contains("serves on") && !line.contains("hidden"), "{line}");
    let flow = r#"{"version": "v1", "type": "flow", "steps": [{"type": "pass", "name": "p"}]}"#;
    std::fs::write(stand.path().join("order.json"), flow).unwrap();
    stand.well(&["flow", "put", "order.json"]);
    stand.service.start_again();
    stand.until_names(&["waits"]);
}

#[test]
fn installing_says_what_it_did_and_can_be_done_again() {
    let stand = Stand::without_server();
    let again = command(stand.path(), &["outbox", "install", &stand.service.url()]);
    assert!(
        again.status.success() && said(&again).contains("installed in 127.0.0.1"),
        "{}",
        said(&again)
    );
    let printed = command(stand.path(), &["outbox", "install", "--print"]);
    let sql = String::from_utf8(printed.stdout).unwrap();
    stand.session("starbridge").run(&sql).unwrap();
    let url = |user: &str| format!("postgres://{user}:hidden@127.0.0.1:{}/postgres", stand.service.port());
    stand
        .session("starbridge")
        .run("update starbridge.outbox_format set version = 2")
        .unwrap();
    for (url, what) in [
        (
            url("starbridge"),
            "has version 2, and this program knows versions up to 1",
        ),
        (url("shop"), "permission denied"),
        (url("stranger"), "role \"stranger\" does not exist"),
        ("postgres://u:hidden@127.0.0.1:1/d".to_owned(), "127.0.0.1:1/d"),
        ("mysql://u:hidden@h/d".to_owned(), "begins with `postgres://`"),
    ] {
        let refused = command(stand.path(), &["outbox", "install", &url]);
        let said = said(&refused);
        assert!(
            !refused.status.success() && said.contains(what) && !said.contains("hidden"),
            "{what}: {said}"
        );
    }
}
