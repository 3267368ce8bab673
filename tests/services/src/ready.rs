//! Whether a service answers.

use crate::Kind;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long a service may take to come up; a machine may have much else to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until it answers, with a bound; stops if the program ends first.
#[expect(clippy::disallowed_methods, reason = "a program does not say when it listens")]
pub(crate) fn wait(kind: Kind, port: u16, mut is_over: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if is_over() {
            return false;
        }
        if answers(kind, port).unwrap_or(false) {
            // Another program may have taken the port, and ours be about to end for that reason.
            std::thread::sleep(Duration::from_millis(20));
            return !is_over();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Waits for what nobody tells of.
#[expect(
    clippy::disallowed_methods,
    reason = "processes that end do not say when they have ended"
)]
pub(crate) fn pause() {
    std::thread::sleep(Duration::from_millis(100));
}

/// What a client of PostgreSQL says first: how long that is, the version of the protocol, and who wants which database.
fn begin_session() -> Vec<u8> {
    let said = format!("user\0{}\0database\0postgres\0\0", crate::database::USER);
    let length = u32::try_from(said.len() + 8).unwrap_or_default();
    let mut message = length.to_be_bytes().to_vec();
    message.extend(196_608_u32.to_be_bytes());
    message.extend(said.as_bytes());
    message
}

fn answers(kind: Kind, port: u16) -> std::io::Result<bool> {
    let get = |path: &str| format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").into_bytes();
    let (question, answer) = match kind {
        Kind::Redis => (b"PING\r\n".to_vec(), "+PONG"),
        // While it begins it answers, with an error.
        Kind::Postgres => (begin_session(), "R"),
        Kind::Ministack => (get("/_ministack/health"), "HTTP/1."),
        Kind::Moto => (get("/moto-api/data.json"), "HTTP/1."),
        // It answers a path that it does not know with an error; the function is not started by
        // that.
        Kind::Rie => (get("/"), "HTTP/1."),
    };
    let limit = Duration::from_secs(5);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.write_all(&question)?;
    let mut begin = [0; 12];
    let expected = begin
        .get_mut(
            ..match kind {
                Kind::Redis => 5,
                Kind::Postgres => 1,
                _ => 12,
            },
        )
        .unwrap_or_default();
    stream.read_exact(expected)?;
    let said = String::from_utf8_lossy(expected).into_owned();
    let any = matches!(kind, Kind::Redis | Kind::Postgres | Kind::Rie);
    Ok(said.starts_with(answer) && (any || said.ends_with(" 200")))
}
