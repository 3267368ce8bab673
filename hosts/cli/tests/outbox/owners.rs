//! Owners of an outbox who want to act as the server's role.

use crate::stand::{Stand, command, said};

/// What an owner can make run with each use of a table.
const TRAPS: &str = "
    create schema trap; grant usage on schema trap to public;
    create table trap.caught (by name); grant all on trap.caught to public;
    create function trap.f() returns boolean language plpgsql as $$
        begin if current_user = 'flows' then insert into trap.caught values (current_user); end if; return true; end $$;
    create function trap.number() returns bigint immutable language plpgsql as $$
        begin if current_user = 'flows' then insert into trap.caught values (current_user); end if; return 1; end $$;
    create function trap.t() returns trigger language plpgsql as $$ begin perform trap.f(); return null; end $$;
    create domain trap.reason as text check (trap.f())";

/// What is done to the tables, what the server says, and how it is undone.
const DONE: [(&str, &str, &str); 12] = [
    (
        "alter table starbridge.outbox enable row level security; create policy p on starbridge.outbox using (trap.f())",
        "the table starbridge.outbox has the policy p",
        "drop policy p on starbridge.outbox; alter table starbridge.outbox disable row level security",
    ),
    (
        "create trigger t before update on starbridge.outbox execute function trap.t()",
        "the table starbridge.outbox has the trigger t",
        "drop trigger t on starbridge.outbox",
    ),
    (
        "create table trap.child (id uuid references starbridge.outbox on delete cascade)",
        "the table starbridge.outbox has the trigger",
        "drop table trap.child",
    ),
    (
        "create rule r as on delete to starbridge.outbox do also select trap.f()",
        "the table starbridge.outbox has the rule r",
        "drop rule r on starbridge.outbox",
    ),
    (
        "alter table starbridge.outbox_refused add constraint c check (trap.f())",
        "the table starbridge.outbox_refused has the constraint c",
        "alter table starbridge.outbox_refused drop constraint c",
    ),
    (
        "alter table starbridge.outbox_refused add column more boolean default trap.f()",
        "the table starbridge.outbox_refused has a default of the column more",
        "alter table starbridge.outbox_refused drop column more",
    ),
    (
        "alter table starbridge.outbox_refused alter reason type trap.reason",
        "has the column reason of the type reason",
        "alter table starbridge.outbox_refused alter reason type text",
    ),
    (
        "create index i on starbridge.outbox ((number + trap.number()))",
        "the table starbridge.outbox has the index i",
        "drop index starbridge.i",
    ),
    (
        "create index i on starbridge.outbox (number) where trap.number() = 1",
        "the table starbridge.outbox has the index i",
        "drop index starbridge.i",
    ),
    (
        "create statistics trap.s on action, by from starbridge.outbox",
        "the table starbridge.outbox has the statistics s",
        "drop statistics trap.s",
    ),
    (
        "create table trap.child () inherits (starbridge.outbox)",
        "the table starbridge.outbox is inherited",
        "drop table trap.child",
    ),
    (
        "alter table starbridge.outbox rename to rows; create view starbridge.outbox as select * from starbridge.rows",
        "the table starbridge.outbox",
        "drop view starbridge.outbox; alter table starbridge.rows rename to outbox",
    ),
];

/// A database whose outbox belongs to the role `app`.
fn owned() -> Stand {
    let stand = Stand::installed();
    let admin = stand.session("starbridge");
    let roles = "drop schema starbridge cascade; create role app login; grant create on database postgres to app;
        create role shop login; grant starbridge_client to shop; create role flows login; grant starbridge_taker to flows";
    admin.run(roles).unwrap();
    drop(admin);
    let port = stand.service.port();
    let url = format!("postgres://app@127.0.0.1:{port}/postgres?sslmode=disable");
    let installed = command(stand.path(), &["outbox", "install", &url]);
    assert!(installed.status.success(), "{}", said(&installed));
    stand
}

#[test]
fn what_an_owner_puts_on_the_tables_does_not_run_as_the_server() {
    let mut stand = owned();
    let app = stand.session("app");
    app.run(TRAPS).unwrap();
    drop(app);
    stand.serve();
    // There is no such flow, so this row goes through both tables.
    stand.session("shop").order("before");
    stand.until_empty();
    for (done, what, undone) in DONE {
        let app = stand.session("app");
        app.run(done).unwrap_or_else(|error| panic!("{done}: {error:?}"));
        let line = stand.server().says("the outbox can't be used");
        assert!(
            line.contains(what) && line.contains("the rights of the server's role"),
            "{done}: {line}"
        );
        app.run(undone).unwrap_or_else(|error| panic!("{undone}: {error:?}"));
        stand.server().says("the outbox can be used again");
    }
    stand.session("shop").order("after");
    stand.until_empty();
    let caught = stand
        .session("starbridge")
        .text("select count(*)::text from trap.caught");
    assert_eq!(caught, "0");
    assert_eq!(stand.refused().len(), 2);
}

#[test]
fn a_role_that_may_more_is_not_given_to_an_owner() {
    let mut stand = owned();
    let more = [
        (
            "alter role flows createrole",
            "the server's role flows may make roles",
            "alter role flows nocreaterole",
        ),
        (
            "grant pg_monitor to flows",
            "the server's role flows is a member of the role pg_monitor",
            "revoke pg_monitor from flows",
        ),
        (
            "create database other owner flows",
            "the server's role flows owns the database other",
            "drop database other",
        ),
    ];
    let admin = stand.session("starbridge");
    admin.run(more[0].0).unwrap();
    drop(admin);
    stand.serve();
    for (at, (given, what, taken)) in more.into_iter().enumerate() {
        let admin = stand.session("starbridge");
        if at > 0 {
            admin.run(given).unwrap();
            admin
                .run("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'flows'")
                .unwrap();
        }
        let line = stand.server().says(what);
        assert!(line.contains("`starbridge_taker` and nothing else"), "{line}");
        admin.run(taken).unwrap();
        stand.server().says("the outbox can be used again");
    }
}

/// A right on a table can be granted without the table.
#[test]
fn a_trigger_of_another_role_on_a_table_of_superusers_is_found() {
    let mut stand = Stand::without_server();
    let admin = stand.session("starbridge");
    let given = "create role app login; grant create on database postgres to app;
        grant usage on schema starbridge to app; grant trigger on starbridge.outbox to app";
    admin.run(given).unwrap();
    drop(admin);
    stand.serve();
    let app = stand.session("app");
    app.run(TRAPS).unwrap();
    app.run("create trigger t before update on starbridge.outbox execute function trap.t()")
        .unwrap();
    stand
        .server()
        .says("the table starbridge.outbox has the trigger t, which could act");
    stand
        .session("starbridge")
        .run("drop trigger t on starbridge.outbox")
        .unwrap();
    stand.server().says("the outbox can be used again");
}

/// Every role that can connect may notify, and what it says must not stand before the answers to the server.
#[test]
fn what_a_stranger_notifies_ends_nothing_but_the_listening() {
    let stand = Stand::start();
    let admin = stand.session("starbridge");
    admin.run("create role stranger login").unwrap();
    let sessions = |name: &str| {
        let asked = format!("select count(*)::text from pg_stat_activity where application_name = '{name}'");
        admin.text(&asked)
    };
    stand.until("the server listens", || sessions("starbridge outbox listener") == "1");
    let taking = "select string_agg(pid::text, ' ') from pg_stat_activity where application_name = 'starbridge outbox'";
    let before = admin.text(taking);
    let flood =
        "select pg_notify('starbridge_outbox', repeat(number::text, 1000)) from generate_series(1, 5000) number";
    stand.session("stranger").run(flood).unwrap();
    stand.until("the server listens no more", || {
        sessions("starbridge outbox listener") == "0"
    });
    stand.session("shop").order("nevertheless");
    stand.until_names(&["nevertheless"]);
    assert_eq!(admin.text(taking), before);
}
