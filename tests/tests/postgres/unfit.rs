//! Databases that are not fit for a store: poolers, certificates, standbys, rights, versions and clocks. Each is told of at the
//! start, and left as it was.

use crate::nodes::until;
use crate::opening::refused;
use crate::stand::{Stand, psql_at};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use starbridge_ports::History;
use starbridge_postgres::{PostgresSettings, PostgresStore};
use starbridge_services::Pooler;
use starbridge_tests::stores::start;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Settings for the same store by another port.
fn by(settings: &PostgresSettings, port: u16) -> PostgresSettings {
    PostgresSettings {
        url: format!("postgres://starbridge:hidden@127.0.0.1:{port}/postgres?sslmode=disable"),
        ..settings.clone()
    }
}

/// How many schemas there are besides those of PostgreSQL.
fn schemas(stand: &Stand) -> String {
    stand.sql("select count(*) from pg_namespace where nspname !~ '^(pg_|information_schema|public)'")
}

#[test]
fn a_pooler_that_keeps_sessions_will_do() {
    let stand = Stand::start();
    let pooler = Pooler::before(stand.service.port(), "session", 20);
    let store = PostgresStore::open(&by(&stand.settings(), pooler.port())).unwrap();
    assert_eq!(store.append(&[start("a")]), Ok(vec![]));
}

#[test]
fn a_pooler_that_changes_sessions_is_found_at_the_start_and_left_as_it_was() {
    let stand = Stand::start();
    for mode in ["transaction", "statement"] {
        for sessions in [2, 20] {
            let pooler = Pooler::before(stand.service.port(), mode, sessions);
            let settings = by(&stand.settings(), pooler.port());
            let said = refused(&settings);
            assert!(said.contains("`pool_mode = session`"), "{mode}: {said}");
            // Others get the same sessions.
            let path = psql_at(pooler.port(), "starbridge", "postgres", "show search_path").output();
            assert_eq!(
                String::from_utf8_lossy(&path.unwrap().stdout).trim(),
                "\"$user\", public"
            );
            let mut node = Command::new(std::env::var_os("STARBRIDGE_COMMAND").unwrap());
            node.args(["serve", "--node", "a", "--listen", "127.0.0.1:0", "--db", &settings.url]);
            let node = node.env("STARBRIDGE_CLUSTER_LISTEN", "127.0.0.1:0").output().unwrap();
            let said = String::from_utf8_lossy(&node.stderr).into_owned();
            assert_eq!(node.status.code(), Some(3), "{said}");
            assert!(
                said.contains("`pool_mode = session`") && !said.contains("hidden"),
                "{said}"
            );
        }
    }
    assert_eq!(schemas(&stand), "0");
}

#[test]
fn a_pooler_with_too_few_sessions_is_found_at_the_start() {
    let stand = Stand::start();
    for (sessions, what) in [
        (1, "`default_pool_size`?"),
        (3, "it does not give 5 connections at once"),
    ] {
        let pooler = Pooler::before(stand.service.port(), "session", sessions);
        let said = refused(&by(&stand.settings(), pooler.port()));
        assert!(said.contains(what) && said.contains("`default_pool_size`"), "{said}");
    }
    assert_eq!(schemas(&stand), "0");
}

/// An authority that signs certificates.
fn authority(name: &str) -> (String, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, name.to_owned());
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    (pem, Issuer::new(params, key))
}

/// Lets the server show a certificate for this name, which is valid until this year.
fn show(stand: &Stand, by: &Issuer<'_, KeyPair>, name: &str, year: i32) {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(year, 1, 1);
    let key = KeyPair::generate().unwrap();
    let signed = params.signed_by(&key, by).unwrap();
    let data = stand.service.folder().join("data");
    let owner = std::fs::metadata(&data).unwrap();
    for (file, text) in [("server.crt", signed.pem()), ("server.key", key.serialize_pem())] {
        let file = data.join(file);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        std::os::unix::fs::chown(&file, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    stand.sql("alter system set ssl = on");
    stand.sql("select pg_reload_conf()");
}

#[test]
fn a_certificate_that_is_not_trusted_is_told_of() {
    let stand = Stand::start();
    let folder = tempfile::tempdir().unwrap();
    let (pem, ours) = authority("ours");
    let (other, _) = authority("other");
    let file = |name: &str, text: &str| -> PathBuf {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file
    };
    let (trusted, strange) = (file("ours.pem", &pem), file("other.pem", &other));
    let nothing = file("nothing.pem", "nothing");
    let of = |roots: Option<&Path>| {
        let roots = roots.map(|file| format!("&sslrootcert={}", file.display()));
        PostgresSettings {
            url: format!(
                "postgres://starbridge:hidden@127.0.0.1:{}/postgres?sslmode=require{}",
                stand.service.port(),
                roots.unwrap_or_default()
            ),
            ..stand.settings()
        }
    };
    assert!(refused(&of(Some(&trusted))).contains("the server has none"));
    assert!(refused(&of(Some(&nothing))).contains("there is no certificate in it"));
    // The server takes a moment to show another one.
    let told = |roots: Option<&Path>, what: &str| {
        until(|| {
            let said = refused(&of(roots));
            assert!(
                said.contains(&format!("127.0.0.1:{}/postgres", stand.service.port())),
                "{said}"
            );
            said.contains(what).then_some(())
        });
    };
    show(&stand, &ours, "127.0.0.1", 2100);
    told(Some(&strange), "name the authority that did with `sslrootcert=FILE`");
    told(None, "name the authority that did with `sslrootcert=FILE`");
    show(&stand, &ours, "db.internal", 2100);
    told(Some(&trusted), "its certificate is for another name");
    show(&stand, &ours, "127.0.0.1", 2001);
    told(Some(&trusted), "its certificate is not valid now");
    assert_eq!(schemas(&stand), "0");
    show(&stand, &ours, "127.0.0.1", 2100);
    until(|| PostgresStore::open(&of(Some(&trusted))).ok());
}

/// A way to the database on which the version that it tells is another one.
fn of_version(stand: &Stand, version: i32) -> u16 {
    let told: i32 = stand.sql("show server_version_num").parse().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, to) = (listener.local_addr().unwrap().port(), stand.service.port());
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(("127.0.0.1", to)).unwrap();
            let (mut asks, mut asked) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut asks, &mut asked);
                let _ = asked.shutdown(Shutdown::Both);
            });
            std::thread::spawn(move || rewritten(server, client, told.to_be_bytes(), version.to_be_bytes()));
        }
    });
    port
}

fn rewritten(mut from: TcpStream, mut to: TcpStream, what: [u8; 4], with: [u8; 4]) {
    let mut chunk = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut chunk) {
        let said = &mut chunk[..count];
        if let Some(at) = said.windows(4).position(|four| four == what) {
            said[at..at + 4].copy_from_slice(&with);
        }
        if to.write_all(said).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

#[test]
fn an_old_version_is_refused() {
    let stand = Stand::start();
    let said = refused(&by(&stand.settings(), of_version(&stand, 130_018)));
    assert!(said.contains("version 14 is the oldest that will do"), "{said}");
    assert_eq!(schemas(&stand), "0");
    assert!(PostgresStore::open(&by(&stand.settings(), of_version(&stand, 140_000))).is_ok());
}

#[test]
fn rights_and_tables_that_are_missing_are_found_at_the_start() {
    let stand = Stand::start();
    stand.sql("create role serving login");
    let settings = stand.settings();
    let schema = &settings.schema;
    let serving = PostgresSettings {
        url: settings.url.replace("starbridge@", "serving:hidden@"),
        ..settings.clone()
    };
    drop(PostgresStore::open(&settings).unwrap());
    stand.sql(&format!("grant usage on schema {schema} to serving"));
    stand.sql(&format!("grant select on all tables in schema {schema} to serving"));
    let wanted = format!("`grant select, insert, update, delete on all tables in schema {schema} to serving`");
    let said = refused(&serving);
    assert!(
        said.contains("`serving` may not read and write") && said.contains(&wanted),
        "{said}"
    );
    stand.sql(&format!(
        "grant select, insert, update, delete on all tables in schema {schema} to serving"
    ));
    // Heartbeats of a cluster.
    let said = refused(&serving);
    assert!(
        said.contains("`heartbeat_0`") && said.contains("on all sequences in schema"),
        "{said}"
    );
    stand.sql(&format!("grant usage on all sequences in schema {schema} to serving"));
    drop(PostgresStore::open(&serving).unwrap());
    stand.sql(&format!("revoke insert on {schema}.turns from serving"));
    assert!(refused(&serving).contains("may not read and write `turns`"));
    stand.sql(&format!("drop table {schema}.turns cascade"));
    assert!(refused(&settings).contains("has lost `turns`: put a backup back"));
}

#[test]
fn standbys_are_looked_at_before_anything_is_written() {
    let stand = Stand::start();
    let waiting = PostgresSettings {
        require_synchronous: true,
        ..stand.settings()
    };
    stand.sql("alter system set synchronous_standby_names = 'second'");
    stand.sql("select pg_reload_conf()");
    // Each commit would wait.
    until(|| {
        let said = refused(&waiting);
        said.contains("none of the standbys in `synchronous_standby_names` is connected")
            .then_some(())
    });
    assert_eq!(schemas(&stand), "0");
    let second = stand.service.standby("second", &[]).unwrap();
    let said = refused(&by(&waiting, second.port()));
    assert!(said.contains("it is a standby"), "{said}");
    let store = until(|| PostgresStore::open(&waiting).ok());
    assert_eq!((store.may_lose(), store.append(&[start("a")])), (Ok(false), Ok(vec![])));
    assert_eq!(store.warnings(), Vec::<String>::new());
    drop(store);
    stand.sql("alter system reset synchronous_standby_names");
    stand.sql("select pg_reload_conf()");
    until(|| refused(&waiting).contains("no standby is synchronous").then_some(()));
    let store = PostgresStore::open(&stand.settings()).unwrap();
    assert_eq!(store.may_lose(), Ok(true));
    assert!(store.warnings()[0].contains("none of them is synchronous"));
}

#[test]
fn a_clock_that_differs_is_told_of() {
    let stand = Stand::start();
    let library =
        std::env::var("STARBRIDGE_FAKETIME").expect("the variable STARBRIDGE_FAKETIME names libfaketime.so.1");
    let mut init = Command::new(std::env::var_os("STARBRIDGE_COMMAND").unwrap());
    init.args(["store", "init", &format!("{}?sslmode=disable", stand.service.url())]);
    let init = init.envs([
        ("LD_PRELOAD", library.as_str()),
        ("FAKETIME", "+3600s"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ]);
    let done = init.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}");
    assert!(
        said.contains("the clock of the database is") && said.contains("ms behind that of this machine"),
        "{said}"
    );
}
