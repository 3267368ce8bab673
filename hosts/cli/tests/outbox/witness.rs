//! Clients write at once, servers are killed, and a witness counts: each committed row starts one execution.

use crate::stand::Stand;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many transactions and kills, where the environment says nothing else.
const USUAL: (usize, usize) = (3_000, 6);
const CLIENTS: usize = 8;

fn set(variable: &str, usual: usize) -> usize {
    std::env::var(variable).map_or(usual, |text| text.parse().unwrap())
}

/// What the witness found.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    committed: usize,
    started: usize,
    lost: usize,
    doubled: usize,
    /// Rolled back, and started nevertheless.
    never: usize,
}

#[test]
fn each_committed_row_starts_one_execution_however_servers_end() {
    let transactions = set("STARBRIDGE_OUTBOX_TRANSACTIONS", USUAL.0);
    let kills = set("STARBRIDGE_OUTBOX_KILLS", USUAL.1);
    let mut stand = Stand::start();
    let found = campaign(&mut stand, transactions, kills);
    println!("{transactions} transactions, {kills} kills: {found:?}");
    let Found { committed, .. } = found;
    let well = Found {
        committed,
        started: committed,
        lost: 0,
        doubled: 0,
        never: 0,
    };
    assert_eq!(found, well);
    assert_eq!(stand.refused().len(), 0);
}

/// A database that deletes each row as soon as it is taken, before its start is durable.
#[test]
fn the_witness_finds_a_row_that_is_deleted_too_early() {
    let mut stand = Stand::start();
    let planted = "create function public.planted() returns trigger language plpgsql security definer as
            'begin delete from starbridge.outbox where id = new.id; return null; end';
        create trigger planted after update of taker on starbridge.outbox for each row execute function public.planted()";
    stand.session("starbridge").run(planted).unwrap();
    let found = campaign(&mut stand, USUAL.0, 2 * USUAL.1);
    assert!(found.lost > 0, "{found:?}");
    assert_eq!((found.doubled, found.never), (0, 0));
}

fn campaign(stand: &mut Stand, transactions: usize, kills: usize) -> Found {
    // The witness does not ask the server: it writes down what a client was told.
    let (committed, rolled_back) = (Mutex::new(BTreeSet::new()), Mutex::new(BTreeSet::new()));
    let next = AtomicUsize::new(0);
    let url = format!("host=127.0.0.1 port={} user=shop dbname=postgres", stand.service.port());
    std::thread::scope(|scope| {
        let client = || client(&url, &next, transactions, &committed, &rolled_back);
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        for kill in 1..=kills {
            let part = transactions * kill / (kills + 1);
            // A client that failed takes no further number.
            while next.load(Ordering::SeqCst) < part && !clients.iter().any(|client| client.is_finished()) {
                std::thread::yield_now();
            }
            stand.kill();
            stand.serve();
        }
    });
    stand.until_empty();
    let (committed, rolled_back) = (committed.into_inner().unwrap(), rolled_back.into_inner().unwrap());
    let started = stand.ids("order");
    let distinct: BTreeSet<&String> = started.iter().map(|(_, number)| number).collect();
    let doubled = started.len() - distinct.len();
    let ids: BTreeSet<String> = started.iter().map(|(id, _)| id.clone()).collect();
    Found {
        committed: committed.len(),
        started: started.len(),
        lost: committed.difference(&ids).count(),
        doubled,
        never: rolled_back.intersection(&ids).count(),
    }
}

fn client(
    url: &str,
    next: &AtomicUsize,
    transactions: usize,
    committed: &Mutex<BTreeSet<String>>,
    rolled_back: &Mutex<BTreeSet<String>>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        loop {
            let number = next.fetch_add(1, Ordering::SeqCst);
            if number >= transactions {
                return;
            }
            let end = match number % 10 {
                3 => "rollback",
                _ => "commit",
            };
            client.batch_execute("begin").await.unwrap();
            let order = format!("insert into orders values ({number})");
            client.batch_execute(&order).await.unwrap();
            let start = format!(
                "select starbridge.start_execution('order', '{{\"id\": {number}}}', labels => '{{\"number\": \"{number}\"}}')::text"
            );
            let id: String = client.query_one(&start, &[]).await.unwrap().get(0);
            client.batch_execute(end).await.unwrap();
            let told = match end {
                "commit" => committed,
                _ => rolled_back,
            };
            told.lock().unwrap().insert(id);
        }
    });
}
