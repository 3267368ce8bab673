//! What is not opened, and what is said of it.

use crate::nodes::until;
use crate::stand::Stand;
use starbridge_node::config::Config;
use starbridge_node::store_care::restored;
use starbridge_ports::{History, Listing, ShardSet, StoreError};
use starbridge_postgres::{PostgresSettings, PostgresStore, Preparing, prepare};
use starbridge_tests::stores::{more, start};

pub fn refused(settings: &PostgresSettings) -> String {
    let said = PostgresStore::open(settings)
        .expect_err("it must not be opened")
        .to_string();
    assert!(!said.contains("hidden"), "{said}");
    said
}

#[test]
fn a_second_process_is_refused_by_name() {
    let stand = Stand::start();
    let settings = stand.settings();
    let first = PostgresStore::open(&settings).unwrap();
    let said = refused(&settings);
    assert!(said.contains("in use by the node `tests` at 127.0.0.1"), "{said}");
    drop(first);
    let second = PostgresStore::open(&settings).unwrap();
    assert!(!second.is_new());
    // Another schema is another store.
    assert!(PostgresStore::open(&stand.settings()).is_ok());
}

#[test]
fn locks_of_a_stranger_stop_nobody() {
    let stand = Stand::start();
    let settings = stand.settings();
    stand.sql("create role passer login");
    let first = PostgresStore::open(&settings).unwrap();
    let seen = "from pg_locks where locktype = 'advisory' and pid <> pg_backend_pid()";
    assert_eq!(stand.sql(&format!("select count(*) {seen}")), "1");
    // It waits behind the owner, and has the lock as soon as that one is gone.
    let takes = format!("select pg_advisory_lock(classid::bigint << 32 | objid::bigint) {seen}");
    let mut passer = stand.psql("passer", "postgres", &takes);
    let mut passer = passer.args(["-c", "select pg_sleep(600)"]).spawn().unwrap();
    let count = |of: &str| stand.sql(&format!("select count(*) {seen} and {of}"));
    until(|| (count("not granted") == "1").then_some(()));
    drop(first);
    until(|| (count("granted") == "1").then_some(()));
    let second = PostgresStore::open(&settings).unwrap();
    assert!(refused(&settings).contains("in use by the node `tests`"));
    drop(second);
    passer.kill().unwrap();
    passer.wait().unwrap();
}

#[test]
fn a_former_owner_writes_nothing_any_more() {
    let stand = Stand::start();
    let settings = stand.settings();
    let first = PostgresStore::open(&settings).unwrap();
    assert_eq!(first.append(&[start("a")]), Ok(vec![]));
    // As if its machine had stood still: the session of the lock is over, the connection is not used.
    let schema = &settings.schema;
    stand.sql(&format!("update {schema}.writers set over = true"));
    let fenced = first.append(&[more("a", 2, 1)]);
    assert!(
        matches!(&fenced, Err(StoreError::Unavailable(why)) if why.contains("another process")),
        "{fenced:?}"
    );
    assert_eq!(stand.sql(&format!("select count(*) from {schema}.turns")), "1");
    assert!(first.append(&[start("b")]).is_err(), "for good");
}

#[test]
fn what_a_stay_has_counted_is_believed_by_the_next_one_only() {
    let stand = Stand::start();
    let settings = stand.settings();
    let schema = &settings.schema;
    let left = || {
        stand.sql(&format!(
            "select convert_from(text, 'UTF8') from {schema}.shelf where kind = 'left'"
        ))
    };
    let leave = |text: &str| {
        stand.sql(&format!(
            "update {schema}.shelf set text = convert_to('{text}', 'UTF8') where kind = 'left'"
        ))
    };
    let open = || PostgresStore::open(&settings).unwrap();
    let store = open();
    store.append(&[start("e")]).unwrap();
    let counted = store.counts().unwrap();
    drop(store);
    // A number that counting again would not give.
    let (mark, _) = left()
        .split_once(':')
        .map(|(mark, all)| (mark.to_owned(), all.to_owned()))
        .unwrap();
    leave(&format!("{mark}: 7"));
    let store = open();
    let all: u64 = store.counts().unwrap().iter().map(|(_, count)| count).sum();
    assert_eq!((all, left().as_str()), (7, ""));
    // A killed stay leaves nothing behind, so the next one counts.
    std::mem::forget(store);
    let backends = "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'starbridge%'";
    stand.sql(backends);
    let store = until(|| PostgresStore::open(&settings).ok());
    assert_eq!(store.counts().unwrap(), counted);
    drop(store);
    // Counts of another stay are not believed.
    leave(&format!("{mark}: 7"));
    assert_eq!(open().counts().unwrap(), counted);
}

#[test]
fn a_database_that_is_not_fit_is_not_touched() {
    let stand = Stand::start();
    let of = |database: &str, user: &str| PostgresSettings {
        url: format!("postgres://{user}:hidden@127.0.0.1:{}/{database}", stand.service.port()),
        ..stand.settings()
    };
    stand.sql("create database latin encoding 'LATIN1' locale 'C' template template0");
    stand.sql("create role nobody login");
    stand.sql("create role few login connection limit 4; grant create on database postgres to few");
    stand.sql("create database readonly");
    stand.sql("alter database readonly set default_transaction_read_only = on");
    for (settings, what) in [
        (of("latin", "starbridge"), "its encoding is LATIN1"),
        (of("readonly", "starbridge"), "it is read-only"),
        (of("none", "starbridge"), "there is no such database"),
        (of("postgres", "nobody"), "may not make a schema"),
        (of("postgres", "stranger"), "there is no such role"),
        (of("postgres", "few"), "it has 3 connections left, and 4 are needed"),
    ] {
        let said = refused(&settings);
        assert!(said.contains(what), "{what}: {said}");
    }
    assert_eq!(
        stand.sql("select count(*) from pg_namespace where nspname like 's%r%'"),
        "0"
    );
    let away = PostgresSettings {
        url: "postgres://u:hidden@127.0.0.1:1/d".to_owned(),
        ..stand.settings()
    };
    assert!(refused(&away).contains("are host and port right"));
}

#[test]
fn a_schema_of_somebody_else_and_a_newer_store_are_left_alone() {
    let stand = Stand::start();
    let settings = stand.settings();
    let schema = &settings.schema;
    stand.sql(&format!(
        "create schema {schema}; create table {schema}.theirs (a integer)"
    ));
    let place = format!("127.0.0.1:{}/postgres", stand.service.port());
    let said = refused(&settings);
    assert!(said.contains("not of a store") && said.contains(&place), "{said}");
    assert_eq!(
        stand.sql(&format!("select count(*) from pg_tables where schemaname = '{schema}'")),
        "1"
    );
    let settings = stand.settings();
    let schema = &settings.schema;
    drop(PostgresStore::open(&settings).unwrap());
    stand.sql(&format!("insert into {schema}.migrations values (99, '', 0)"));
    let said = refused(&settings);
    assert!(said.contains("format 99") && said.contains(&place), "{said}");
    stand.sql(&format!("delete from {schema}.migrations where number = 99"));
    stand.sql(&format!("update {schema}.migrations set checksum = 'x'"));
    assert!(refused(&settings).contains("unreleased"));
}

#[test]
fn a_server_that_may_lose_commits_is_refused() {
    let stand = Stand::start_with(&["-c", "fsync=off", "-c", "full_page_writes=off"]);
    let said = refused(&stand.settings());
    assert!(
        said.contains("`fsync` is off") && said.contains("`full_page_writes` is off"),
        "{said}"
    );
}

#[test]
fn a_server_without_a_synchronous_standby_is_refused_where_one_is_wanted() {
    let stand = Stand::start();
    let settings = PostgresSettings {
        require_synchronous: true,
        ..stand.settings()
    };
    assert!(refused(&settings).contains("no standby is synchronous"));
    let store = PostgresStore::open(&stand.settings()).unwrap();
    // Nobody may take over, so nothing is lost.
    assert_eq!(store.may_lose(), Ok(false));
}

#[test]
fn a_standby_is_refused() {
    let mut stand = Stand::start();
    let settings = stand.settings();
    drop(PostgresStore::open(&settings).unwrap());
    stand.service.stop();
    std::fs::write(stand.service.folder().join("data/standby.signal"), "").unwrap();
    stand.service.start_again();
    let said = refused(&settings);
    assert!(
        said.contains("it is a standby") && said.contains("target_session_attrs"),
        "{said}"
    );
}

#[test]
fn too_few_connections_are_told_at_the_start() {
    let stand = Stand::start_with(&["-c", "max_connections=6", "-c", "max_wal_senders=0"]);
    let settings = PostgresSettings {
        readers: 20,
        ..stand.settings()
    };
    assert!(refused(&settings).contains("connections left"));
}

/// Runs what was printed, for this role.
fn grant(stand: &Stand, rights: &[String], role: &str) {
    for right in rights {
        stand.sql(&right.replace("to ROLE;", &format!("to {role};")));
    }
}

#[test]
fn a_store_that_another_role_made_is_used_by_one_that_makes_no_tables() {
    let stand = Stand::start();
    stand.sql("create role serving login");
    let settings = stand.settings();
    let schema = &settings.schema;
    let serving = PostgresSettings {
        url: settings.url.replace("starbridge@", "serving@"),
        ..settings.clone()
    };
    assert!(refused(&serving).contains("may not make a schema"));
    // What is only printed changes nothing, and makes a store when it is run.
    let printed = prepare(&settings, Preparing::Init, false).unwrap();
    assert_eq!(printed.had, 0);
    let there = format!("select count(*) from pg_namespace where nspname = '{schema}'");
    assert_eq!(stand.sql(&there), "0");
    stand.sql(&printed.sql);
    let made = prepare(&settings, Preparing::Init, true).unwrap();
    assert_eq!((made.had, made.sql.as_str()), (made.has, ""));
    let without = refused(&serving);
    assert!(
        without.contains("may not make tables") && without.contains("store init"),
        "{without}"
    );
    grant(&stand, &made.rights, "serving");
    let store = PostgresStore::open(&serving).unwrap();
    assert!(!store.is_new());
    assert_eq!(store.append(&[start("a")]), Ok(vec![]));
    assert_eq!(store.append(&[more("a", 2, 1)]), Ok(vec![]));
    assert!(store.record("a").unwrap().is_some());
}

#[test]
fn a_store_of_the_first_format_is_upgraded_by_whoever_may() {
    let stand = Stand::start();
    let settings = stand.settings();
    let schema = &settings.schema;
    let missing = prepare(&settings, Preparing::Upgrade, true).unwrap_err().to_string();
    assert!(missing.contains("`starbridge store init`"), "{missing}");
    let made = prepare(&settings, Preparing::Init, true).unwrap();
    assert!(made.had == 0 && made.has >= 2);
    // As the version before the one with clusters left it.
    let sequences: Vec<String> = (0..16)
        .map(|slot| format!("drop sequence {schema}.heartbeat_{slot};"))
        .collect();
    stand.sql(&format!(
        "{} drop index {schema}.nodes_slots; drop index {schema}.nodes_named; delete from {schema}.migrations where number > 1",
        sequences.concat()
    ));
    let old = prepare(&settings, Preparing::Init, true).unwrap();
    assert_eq!((old.had, old.has), (1, 1), "making one changes no other");
    stand.sql("create role other login");
    grant(&stand, &made.rights, "other");
    let other = PostgresSettings {
        url: settings.url.replace("starbridge@", "other@"),
        ..settings.clone()
    };
    assert!(refused(&other).contains("`starbridge store init` or `upgrade`"));
    let done = prepare(&settings, Preparing::Upgrade, true).unwrap();
    assert_eq!((done.had, done.has), (1, made.has));
    grant(&stand, &done.rights, "other");
    assert!(PostgresStore::open(&other).is_ok());
    let again = prepare(&settings, Preparing::Upgrade, true).unwrap();
    assert_eq!((again.had, again.sql.as_str()), (made.has, ""));
}

#[test]
fn what_was_running_in_a_restored_store_waits_for_a_word() {
    let stand = Stand::start();
    let settings = stand.settings();
    let mut config = Config::default();
    config.store.url.clone_from(&settings.url);
    config.store.schema.clone_from(&settings.schema);
    let missing = restored(None, &config).unwrap_err();
    assert!(missing.contains("there is no store"), "{missing}");
    let store = PostgresStore::open(&settings).unwrap();
    assert_eq!(store.append(&[start("a"), start("b")]), Ok(vec![]));
    let awake = store.awake(&ShardSet::ALL).unwrap();
    assert!(!awake.is_empty());
    let taken = restored(None, &config).unwrap_err();
    assert!(taken.contains("in use"), "{taken}");
    drop(store);
    let done = restored(None, &config).unwrap();
    assert!(done.place.contains(&settings.schema));
    let mut found: Vec<_> = done.aside.iter().map(|one| one.id.clone()).collect();
    found.sort();
    assert_eq!(found, awake);
    let store = PostgresStore::open(&settings).unwrap();
    assert_eq!(
        store.awake(&ShardSet::ALL).unwrap(),
        Vec::<starbridge_flow::value::Text>::new()
    );
    for id in &awake {
        let record = store.record(id).unwrap().unwrap();
        assert!(record.broken.unwrap().cause.contains("restored"));
    }
    drop(store);
    assert_eq!(restored(None, &config).unwrap().aside, []);
}
