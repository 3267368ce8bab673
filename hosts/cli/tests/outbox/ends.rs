//! Clients, servers and databases that end in the middle.

use crate::server::Server;
use crate::stand::Stand;
use starbridge_services::Kind;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A client in a process of its own.
fn psql(stand: &Stand) -> Child {
    let program = std::env::var_os(Kind::Postgres.variable()).map(PathBuf::from).unwrap();
    let port = stand.service.port().to_string();
    let mut command = Command::new(program.with_file_name("psql"));
    command.args([
        "-X",
        "-q",
        "-h",
        "127.0.0.1",
        "-p",
        &port,
        "-U",
        "shop",
        "-d",
        "postgres",
    ]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
}

/// A client is killed before its commit, and after it.
#[test]
fn a_client_that_dies_starts_what_it_committed_and_nothing_else() {
    let stand = Stand::start();
    let admin = stand.session("starbridge");
    for (name, last) in [("before", "select 7 + 7"), ("after", "commit")] {
        let mut client = psql(&stand);
        let input = client.stdin.as_mut().unwrap();
        writeln!(
            input,
            "begin; select starbridge.start_execution('order', name => '{name}'); {last};"
        )
        .unwrap();
        input.flush().unwrap();
        // It has done the last of these and waits for more.
        let state = match name {
            "before" => "idle in transaction",
            _ => "idle",
        };
        let there = format!(
            "select count(*)::text from pg_stat_activity where usename = 'shop' and state = '{state}' and query like '%{last}%'"
        );
        stand.until("it is done", || admin.text(&there) == "1");
        client.kill().unwrap();
        client.wait().unwrap();
        stand.until("it is gone", || {
            admin.text("select count(*)::text from pg_stat_activity where usename = 'shop'") == "0"
        });
    }
    stand.until_names(&["after"]);
    stand.until_empty();
    assert_eq!(stand.names("order"), ["after"]);
}

/// A client is killed while the database commits: the commit waits for a standby that there is not.
#[test]
fn a_client_that_dies_in_its_commit_starts_what_it_committed() {
    let stand = Stand::start();
    let admin = stand.session("starbridge");
    let wait_for = |standby: &str| {
        admin
            .run(&format!("alter system set synchronous_standby_names = '{standby}'"))
            .unwrap();
        admin.run("select pg_reload_conf()").unwrap();
    };
    wait_for("nobody");
    stand.until("the setting is there", || {
        admin.text("show synchronous_standby_names") == "nobody"
    });
    let mut client = psql(&stand);
    let input = client.stdin.as_mut().unwrap();
    writeln!(
        input,
        "begin; select starbridge.start_execution('order', name => 'in'); commit;"
    )
    .unwrap();
    input.flush().unwrap();
    let waits = "select count(*)::text from pg_stat_activity where usename = 'shop' and wait_event = 'SyncRep'";
    stand.until("it commits", || admin.text(waits) == "1");
    client.kill().unwrap();
    client.wait().unwrap();
    assert_eq!(stand.names("order"), [""; 0]);
    wait_for("");
    stand.until_names(&["in"]);
    stand.until_empty();
    assert_eq!(stand.names("order"), ["in"]);
}

/// A standby takes no starts and gives none, and says so; when it is the primary, all goes on.
#[test]
fn a_standby_refuses_and_goes_on_as_the_primary() {
    let mut stand = Stand::start();
    stand.session("shop").order("before");
    stand.until_empty();
    stand.service.stop();
    let mark = stand.service.folder().join("data/standby.signal");
    std::fs::write(mark, "").unwrap();
    stand.service.start_again();
    let shop = stand.session("shop");
    let refusal = shop.refusal("select starbridge.start_execution('order')");
    assert!(
        refusal.contains("this transaction is read-only")
            && refusal.contains("This is a standby: connect to the primary"),
        "{refusal}"
    );
    let line = stand.server().says("target_session_attrs=read-write");
    assert!(
        line.contains("the outbox can't be used") && !line.contains("hidden"),
        "{line}"
    );
    stand.session("starbridge").run("select pg_promote()").unwrap();
    stand.server().says("the outbox can be used again");
    stand.session("shop").order("promoted");
    stand.until_names(&["before", "promoted"]);
}

/// What was taken and started, but not deleted when the server was killed, is not started again.
#[test]
fn a_server_killed_before_it_deletes_starts_nothing_twice() {
    let mut stand = Stand::start();
    let id = stand.session("shop").order("kept");
    stand.until_empty();
    stand.kill();
    // As if it had been killed before it deleted the row: the row is there again, taken for this store.
    let name = stand.taker();
    let row = format!(
        "insert into starbridge.outbox (id, action, body, bytes, by, taker)
            values ('{id}', 'start', '{{\"flow\": \"order\", \"name\": \"kept\", \"input\": {{\"id\": 7}}}}', 1, 'shop', '{name}')"
    );
    stand.session("starbridge").run(&row).unwrap();
    // One that was taken and not yet started.
    let other = row
        .replace(&id, "0190b3e4-8c1d-7abc-9def-0123456789ab")
        .replace("kept", "taken");
    stand.session("starbridge").run(&other).unwrap();
    stand.serve();
    stand.until_empty();
    assert_eq!(stand.names("order"), ["kept", "taken"]);
    assert_eq!(stand.refused().len(), 0);
}

/// What is ordered while the server is away runs when it is back.
#[test]
fn a_server_that_was_away_starts_what_waits() {
    let mut stand = Stand::start();
    stand.kill();
    {
        let shop = stand.session("shop");
        for number in 0..10 {
            shop.order(&format!("o{number}"));
        }
        shop.run("begin").unwrap();
        shop.order("rolled-back");
        shop.run("rollback").unwrap();
    }
    stand.serve();
    stand.until_names(&["o0", "o1", "o2", "o3", "o4", "o5", "o6", "o7", "o8", "o9"]);
}

/// Each row is carried out by one of two servers with stores of their own.
#[test]
fn two_servers_share_an_outbox() {
    let stand = Stand::start();
    let folder = tempfile::tempdir().unwrap();
    stand.configure(folder.path(), stand.service.port());
    let second = Server::start(folder.path(), &["--config", "server.toml"]);
    let flow = stand.path().join("order.json");
    assert!(
        second
            .ask(folder.path(), &["flow", "put", flow.to_str().unwrap()])
            .status
            .success()
    );
    let shop = stand.session("shop");
    for number in 0..300 {
        shop.order(&format!("o{number}"));
    }
    stand.until_empty();
    let listed = second.ask(folder.path(), &["list", "--flow", "order", "--all", "--json"]);
    let theirs = String::from_utf8(listed.stdout).unwrap();
    let ours = stand.names("order");
    let mut all: Vec<String> = (0..300).map(|number| format!("o{number}")).collect();
    all.sort();
    let of = |name: &String| (ours.contains(name), theirs.contains(&format!("\"name\":\"{name}\"")));
    let once = all
        .iter()
        .filter(|name| matches!(of(name), (true, false) | (false, true)))
        .count();
    assert_eq!(once, 300);
}

/// A copy of a store's file has the same name: of two such servers one takes.
#[test]
fn a_second_server_of_the_same_store_takes_nothing() {
    let mut stand = Stand::start();
    stand.kill();
    let folder = tempfile::tempdir().unwrap();
    for file in ["flows.db", "flows.db-wal"] {
        std::fs::copy(stand.path().join(file), folder.path().join(file)).unwrap();
    }
    stand.configure(folder.path(), stand.service.port());
    stand.serve();
    let shop = stand.session("shop");
    shop.order("first");
    stand.until_names(&["first"]);
    let second = Server::start(folder.path(), &["--config", "server.toml"]);
    let said = second.says("another process takes from the outbox");
    assert!(said.contains("the outbox can't be used"), "{said}");
}

#[test]
fn a_database_that_ends_and_comes_back_loses_nothing() {
    let mut stand = Stand::start();
    for round in 0..3 {
        let names: Vec<String> = (0..200).map(|number| format!("r{round}-{number}")).collect();
        {
            let shop = stand.session("shop");
            for name in &names {
                shop.order(name);
            }
        }
        stand.service.kill();
        stand.service.start_again();
    }
    stand.until("all run", || stand.names("order").len() == 600);
    stand.until_empty();
    assert_eq!(stand.names("order").len(), 600);
    assert_eq!(stand.refused().len(), 0);
}
