//! Each service comes up, can be killed and started again, and is gone when it is dropped.

use starbridge_services::{Kind, Service};
use std::net::TcpStream;

fn listens(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

fn lives_and_dies(kind: Kind) {
    let mut service = Service::start(kind);
    let (port, folder) = (service.port(), service.folder().to_owned());
    assert!(listens(port));
    service.kill();
    assert!(!listens(port), "killed");
    service.start_again();
    assert_eq!(service.port(), port);
    assert!(listens(port), "started again");
    service.stop();
    assert!(!listens(port), "stopped");
    service.start_again();
    assert!(listens(port), "started again");
    drop(service);
    assert!(!listens(port), "dropped");
    assert!(!folder.exists(), "{}", folder.display());
}

#[test]
fn redis() {
    lives_and_dies(Kind::Redis);
}

#[test]
fn postgres() {
    lives_and_dies(Kind::Postgres);
}

#[test]
fn ministack() {
    lives_and_dies(Kind::Ministack);
}

#[test]
fn moto() {
    lives_and_dies(Kind::Moto);
}
