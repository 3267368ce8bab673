//! Roles of the database that want more than they were given.

use crate::stand::{Stand, command, said};

/// What an owner of the application's database can make before anybody installs.
const TRAP: &str = "
    create schema starbridge;
    create table starbridge.outbox_format (version integer primary key, time timestamptz not null default now());
    create function starbridge.trap() returns trigger language plpgsql as
        'begin if (select rolsuper from pg_roles where rolname = current_user) then execute ''alter role app superuser''; end if;
        return new; end';
    create trigger trap before insert on starbridge.outbox_format for each row execute function starbridge.trap();
    grant all on schema starbridge to public; grant all on all tables in schema starbridge to public";

/// A database without an outbox, in which the role `app` may make schemas.
fn without_outbox() -> Stand {
    let stand = Stand::installed();
    let admin = stand.session("starbridge");
    admin
        .run("drop schema starbridge cascade; create role app login; grant create on database postgres to app")
        .unwrap();
    drop(admin);
    stand
}

fn refused(stand: &Stand, url: &str, what: &str) {
    let refused = command(stand.path(), &["outbox", "install", url]);
    let said = said(&refused);
    assert!(!refused.status.success() && said.contains(what), "{what}: {said}");
}

#[test]
fn nothing_is_installed_over_what_somebody_else_made() {
    let stand = without_outbox();
    let (admin, app, url) = (stand.session("starbridge"), stand.session("app"), stand.service.url());
    app.run(TRAP).unwrap();
    refused(
        &stand,
        &url,
        "the schema starbridge belongs to the role app: nothing is installed",
    );
    refused(&stand, &url, "drop schema starbridge cascade");
    admin.run("alter schema starbridge owner to starbridge").unwrap();
    refused(&stand, &url, "starbridge.outbox_format belongs to the role app");
    admin
        .run("alter table starbridge.outbox_format owner to starbridge")
        .unwrap();
    refused(&stand, &url, "the function starbridge.trap belongs to the role app");
    admin
        .run("alter function starbridge.trap() owner to starbridge")
        .unwrap();
    refused(
        &stand,
        &url,
        "every role has the right `create` in the schema starbridge",
    );
    admin.run("revoke create on schema starbridge from public").unwrap();
    refused(&stand, &url, "the table starbridge.outbox_format has the trigger trap");
    let super_user = "select (select rolsuper from pg_roles where rolname = 'app')::text";
    assert_eq!(admin.text(super_user), "false");
    assert_eq!(admin.text("select count(*)::text from starbridge.outbox_format"), "0");
    admin.run("drop schema starbridge cascade").unwrap();
    let installed = command(stand.path(), &["outbox", "install", &url]);
    assert!(installed.status.success(), "{}", said(&installed));
}

/// The role of a store can install the outbox that shares its schema.
#[test]
fn the_owner_of_the_schema_installs_and_nobody_else() {
    let stand = without_outbox();
    let app = stand.session("app");
    app.run("create schema starbridge; create table starbridge.shelf (name text)")
        .unwrap();
    let own = format!(
        "postgres://app@127.0.0.1:{}/postgres?sslmode=disable",
        stand.service.port()
    );
    for _ in 0..2 {
        let installed = command(stand.path(), &["outbox", "install", &own]);
        assert!(installed.status.success(), "{}", said(&installed));
    }
    refused(
        &stand,
        &stand.service.url(),
        "the schema starbridge belongs to the role app",
    );
}

#[test]
fn the_server_takes_nothing_where_others_could_act() {
    let mut stand = Stand::without_server();
    let admin = stand.session("starbridge");
    admin.run("alter table starbridge.outbox owner to shop").unwrap();
    drop(admin);
    stand.serve();
    let line = stand
        .server()
        .says("the table starbridge.outbox belongs to the role shop");
    assert!(line.contains("install it into another database"), "{line}");
    let admin = stand.session("starbridge");
    // Whoever owns the schema can make the tables anew.
    admin
        .run("alter table starbridge.outbox owner to starbridge; alter schema starbridge owner to shop")
        .unwrap();
    stand.server().says("belongs to the role starbridge");
    admin.run("alter schema starbridge owner to starbridge").unwrap();
    stand.server().says("the outbox can be used again");
}

#[test]
fn a_database_with_another_encoding_is_refused() {
    let mut stand = Stand::without_server();
    let admin = stand.session("starbridge");
    admin
        .run("create database latin encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0")
        .unwrap();
    drop(admin);
    let url = |user: &str| {
        format!(
            "postgres://{user}@127.0.0.1:{}/latin?sslmode=disable",
            stand.service.port()
        )
    };
    refused(
        &stand,
        &url("starbridge"),
        "has the encoding LATIN1, and an outbox needs UTF8",
    );
    let text = format!("[[outboxes]]\nname = \"shop\"\nurl = \"{}\"\n", url("flows"));
    std::fs::write(stand.path().join("server.toml"), text).unwrap();
    stand.serve();
    stand.server().says("has the encoding LATIN1, and an outbox needs UTF8");
}

#[test]
fn locks_of_a_stranger_stop_nobody() {
    let mut stand = Stand::start();
    let shop = stand.session("shop");
    let seen = "from pg_locks where locktype = 'advisory'";
    let held = shop.pairs(&format!("select classid::bigint, objid::text {seen}"));
    assert!(!held.is_empty());
    drop(shop);
    let taker = stand.taker();
    stand.kill();
    stand.until("the server's session is over", || {
        stand.session("shop").text(&format!("select count(*)::text {seen}")) == "0"
    });
    let shop = stand.session("shop");
    shop.run(&format!("select pg_advisory_lock(1937007987, hashtext('{taker}'))"))
        .unwrap();
    for (class, object) in held {
        shop.run(&format!("select pg_advisory_lock({class} << 32 | {object})"))
            .unwrap();
    }
    // Its session stays.
    let _stranger = shop.client;
    stand.serve();
    stand.session("shop").order("nevertheless");
    stand.until_names(&["nevertheless"]);
}
