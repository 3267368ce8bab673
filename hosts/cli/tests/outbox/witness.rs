//! An outside witness counts: each committed row starts one execution.
//!
//! It asks no server and believes no client: each transaction that starts something writes the number and the id into a table of its
//! own as well, and what stands there when all is over was committed.

use crate::buyers::{Buyers, FIRST_TWIN};
use crate::stand::Stand;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

/// How many transactions and kills of the server, where the environment says nothing else.
const USUAL: (usize, usize) = (3_000, 6);
const CLIENTS: usize = 8;
/// So many kills of the server go with one of the database.
const DATABASE: usize = 5;

fn set(variable: &str, usual: usize) -> usize {
    std::env::var(variable).map_or(usual, |text| text.parse().unwrap())
}

/// What the witness found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// Rows that were committed.
    committed: usize,
    /// Rows whose name was taken by another one.
    twins: usize,
    started: usize,
    lost: usize,
    doubled: usize,
    /// Not committed, and started nevertheless.
    never: usize,
}

#[test]
fn each_committed_row_starts_one_execution_however_servers_end() {
    let transactions = set("STARBRIDGE_OUTBOX_TRANSACTIONS", USUAL.0);
    let kills = set("STARBRIDGE_OUTBOX_KILLS", USUAL.1);
    let mut stand = Stand::start();
    let (found, told) = campaign(&mut stand, transactions, kills);
    println!("{transactions} transactions, {told}, {found:?}");
    let Found { committed, twins, .. } = found;
    let well = Found {
        committed,
        twins,
        started: committed - twins,
        ..Found::default()
    };
    assert_eq!(found, well);
    assert!(committed > transactions / 2 && twins > 0, "{found:?}");
    let refused = stand
        .session("starbridge")
        .text("select count(*)::text from starbridge.outbox_refused");
    assert_eq!(refused, twins.to_string());
}

/// A database that deletes each row as soon as it is taken, before its start is durable.
#[test]
fn the_witness_finds_a_row_that_is_deleted_too_early() {
    let mut stand = Stand::start();
    let planted = "create function public.planted() returns trigger language plpgsql security definer as
            'begin delete from starbridge.outbox where id = new.id; return null; end';
        create trigger planted after update of taker on starbridge.outbox for each row execute function public.planted()";
    stand.session("starbridge").run(planted).unwrap();
    let (found, _) = campaign(&mut stand, USUAL.0 / 2, USUAL.1);
    assert!(found.lost > 0, "{found:?}");
    assert_eq!((found.doubled, found.never), (0, 0));
}

/// A database in which a look finds only rows with higher numbers than all that were seen: a late commit stays behind.
#[test]
fn the_witness_finds_rows_that_are_looked_for_by_the_highest_number_seen() {
    let mut stand = Stand::start();
    let planted = "create table public.seen (number bigint);
        insert into public.seen values (-1);
        alter table starbridge.outbox rename to outbox_rows;
        create view starbridge.outbox as select * from starbridge.outbox_rows
            where taker is not null or number > (select number from public.seen);
        grant select, update (taker), delete on starbridge.outbox to starbridge_taker;
        create function public.planted() returns trigger language plpgsql security definer as
            'begin update public.seen set number = greatest(number, new.number); return null; end';
        create trigger planted after update of taker on starbridge.outbox_rows
            for each row execute function public.planted()";
    stand.session("starbridge").run(planted).unwrap();
    let (found, _) = campaign(&mut stand, USUAL.0 / 2, USUAL.1 / 2);
    assert!(found.lost > 0, "{found:?}");
    assert_eq!((found.doubled, found.never), (0, 0));
}

/// A database that takes the names out of what is asked for: a name that is taken starts again.
#[test]
fn the_witness_finds_a_name_that_starts_twice() {
    let mut stand = Stand::start();
    let planted = "create function public.planted() returns trigger language plpgsql as
            'begin new.body = new.body - ''name''; return new; end';
        create trigger planted before insert on starbridge.outbox for each row execute function public.planted()";
    stand.session("starbridge").run(planted).unwrap();
    let (found, _) = campaign(&mut stand, USUAL.0 / 3, 1);
    assert!(found.doubled > 0, "{found:?}");
    assert_eq!((found.lost, found.never), (0, 0));
}

/// Runs clients, and kills servers and databases meanwhile. The text says what was killed.
fn campaign(stand: &mut Stand, transactions: usize, kills: usize) -> (Found, String) {
    let ledger =
        "create table public.ledger (number bigint primary key, id uuid not null); grant all on public.ledger to shop";
    stand.session("starbridge").run(ledger).unwrap();
    let buyers = Buyers::new(stand.service.port(), transactions);
    let mut databases = 0;
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let buyers = &buyers;
            scope.spawn(move || buyers.buy(number == 0));
        }
        for kill in 1..=kills {
            buyers.allow(transactions * kill / kills);
            let session = stand.session("starbridge");
            let taken = "select exists (select from starbridge.outbox where taker is not null)::text";
            // In the middle of its work, unless there is none left.
            stand.until("something is taken", || {
                session.text(taken) == "true" || buyers.are_done()
            });
            drop(session);
            stand.kill();
            if kill % DATABASE == 0 {
                databases += 1;
                stand.service.kill();
                stand.service.start_again();
            }
            stand.serve();
        }
    });
    stand.until_emptied();
    let dead = buyers.dead.load(Ordering::SeqCst);
    (
        compare(stand),
        format!("{kills} kills of servers, {databases} of databases, {dead} of clients"),
    )
}

fn compare(stand: &Stand) -> Found {
    let session = stand.session("starbridge");
    let ledger: BTreeMap<i64, String> = session
        .pairs("select number, id::text from public.ledger")
        .into_iter()
        .collect();
    let committed: BTreeSet<&String> = ledger.values().collect();
    let started = stand.ids("order");
    let ids: BTreeSet<&String> = started.iter().map(|(id, _)| id).collect();
    let labels: BTreeSet<&String> = started.iter().map(|(_, label)| label).collect();
    // Of two rows with one name one starts, whichever.
    let of = |number: &i64| ledger.get(number).is_some_and(|id| ids.contains(id));
    let twins = || {
        ledger
            .keys()
            .filter(|number| **number >= FIRST_TWIN && ledger.contains_key(&(**number - FIRST_TWIN)))
    };
    let lost = ledger.keys().filter(|number| match **number {
        twin if twin >= FIRST_TWIN => !of(&twin) && !of(&(twin - FIRST_TWIN)),
        first if ledger.contains_key(&(first + FIRST_TWIN)) => false,
        other => !of(&other),
    });
    Found {
        committed: ledger.len(),
        twins: twins().count(),
        started: started.len(),
        lost: lost.count(),
        doubled: started.len() - labels.len(),
        never: ids.difference(&committed).count(),
    }
}
