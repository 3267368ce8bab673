//! The way between a server and the database is cut, or the server is killed, at each of its statements.

use crate::stand::Stand;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// No statement.
const NEVER: i64 = i64::MAX;

/// What is between a server and its database: it counts what the server asks, and cuts the way where it is told to.
struct Way {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// How many statements are let through before the way is cut.
    left: AtomicI64,
    /// Whether the last one still gets to the database, so that only its answer is lost.
    passes: Mutex<bool>,
    cuts: AtomicU64,
}

impl Way {
    fn to(database: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        state.left.store(NEVER, Ordering::SeqCst);
        let shared = state.clone();
        std::thread::spawn(move || {
            for server in listener.incoming().map_while(Result::ok) {
                let Ok(database) = TcpStream::connect((Ipv4Addr::LOCALHOST, database)) else {
                    continue;
                };
                let state = shared.clone();
                let (mut from, mut to) = (database.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || {
                    // Whichever end is closed, the other one is told.
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
                std::thread::spawn(move || {
                    let _ = pass(&server, &database, &state);
                    let _ = (server.shutdown(Shutdown::Both), database.shutdown(Shutdown::Both));
                });
            }
        });
        Self { port, state }
    }

    /// The way is cut once, at a statement from now on.
    fn cut_at(&self, statement: i64, passes: bool) {
        *self.state.passes.lock().unwrap() = passes;
        self.state.left.store(statement, Ordering::SeqCst);
    }

    fn cuts(&self) -> u64 {
        self.state.cuts.load(Ordering::SeqCst)
    }
}

/// Passes on what a server says, message by message. An error or the end of the way ends it.
fn pass(mut server: &TcpStream, mut database: &TcpStream, state: &State) -> std::io::Result<()> {
    let mut first = true;
    loop {
        // The first message has no letter before its length.
        let mut head = vec![0; if first { 4 } else { 5 }];
        server.read_exact(&mut head)?;
        let length = u32::from_be_bytes(head[head.len() - 4..].try_into().unwrap());
        let mut message = vec![0; usize::try_from(length).unwrap() - 4];
        server.read_exact(&mut message)?;
        // `Q` and `S` end what is one statement to the database.
        let statement = !first && matches!(head[0], b'Q' | b'S');
        first = false;
        let last = statement && state.left.fetch_sub(1, Ordering::SeqCst) == 1;
        if !last || *state.passes.lock().unwrap() {
            database.write_all(&head)?;
            database.write_all(&message)?;
        }
        if last {
            // A statement that is through is carried out before the way ends.
            if *state.passes.lock().unwrap() {
                database.shutdown(Shutdown::Write)?;
            }
            state.cuts.fetch_add(1, Ordering::SeqCst);
            return Ok(());
        }
    }
}

/// A server that reaches its database over a way.
fn stand() -> (Stand, Way) {
    let mut stand = Stand::start();
    let way = Way::to(stand.service.port());
    stand.configure(stand.path(), way.port);
    stand.kill();
    stand.serve();
    (stand, way)
}

/// A start, another one with its name, a report that can't be, and a start that is rolled back.
fn ask(stand: &Stand, round: &str) {
    let shop = stand.session("shop");
    shop.order(round);
    shop.run(&format!(
        "begin; select starbridge.start_execution('order', name => 'not-{round}'); rollback"
    ))
    .unwrap();
    shop.run(&format!(
        "begin; select starbridge.start_execution('order', name => '{round}'), starbridge.succeed('none-{round}'); commit"
    ))
    .unwrap();
}

/// Waits for the cut. A server that is woken looks at once, so its statements come one after the other.
fn until_cut(stand: &Stand, way: &Way, cuts: u64) {
    let shop = stand.session("shop");
    stand.until("the way is cut", || {
        shop.run("notify starbridge_outbox").unwrap();
        way.cuts() > cuts
    });
}

/// Every round has started once, and nothing else; of each, two rows were refused.
fn check(stand: &Stand, rounds: &BTreeSet<String>) {
    stand.until_empty();
    let names = stand.names("order");
    assert_eq!(names.iter().collect::<BTreeSet<_>>(), rounds.iter().collect());
    assert_eq!(names.len(), rounds.len());
    let refused = stand
        .session("starbridge")
        .text("select count(*)::text from starbridge.outbox_refused");
    assert_eq!(refused, (2 * rounds.len()).to_string());
}

#[test]
fn a_way_that_is_cut_at_any_statement_loses_and_doubles_nothing() {
    let (stand, way) = stand();
    let mut rounds = BTreeSet::new();
    for passes in [false, true] {
        for statement in 1..=10 {
            let (round, cuts) = (format!("{passes}-{statement}"), way.cuts());
            way.cut_at(statement, passes);
            ask(&stand, &round);
            rounds.insert(round);
            until_cut(&stand, &way, cuts);
        }
    }
    check(&stand, &rounds);
}

#[test]
fn a_server_that_is_killed_at_any_statement_loses_and_doubles_nothing() {
    let (mut stand, way) = stand();
    let mut rounds = BTreeSet::new();
    for statement in 1..=10 {
        let (round, cuts) = (format!("k-{statement}"), way.cuts());
        way.cut_at(statement, statement % 2 == 0);
        ask(&stand, &round);
        rounds.insert(round);
        until_cut(&stand, &way, cuts);
        stand.kill();
        stand.serve();
    }
    check(&stand, &rounds);
}
