//! Clients that commit, roll back, come late, and die before, in and after their commit.

use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Error, NoTls};

/// The number of a second row with the name of another one is higher by this.
pub const FIRST_TWIN: i64 = 1_000_000_000;

/// How a transaction ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Commit,
    RollBack,
    /// The client dies before it says how.
    DieBefore,
    /// The client says that it commits, and dies at some time before it hears the answer.
    DieIn,
    DieAfter,
    /// Others pass meanwhile.
    Late,
}

impl End {
    fn of(number: usize, late: bool) -> Self {
        match number % 40 {
            n if n % 10 == 3 => Self::RollBack,
            7 => Self::DieBefore,
            17 | 18 => Self::DieIn,
            27 => Self::DieAfter,
            _ if late => Self::Late,
            _ => Self::Commit,
        }
    }
}

/// A connection, and what drives it: without that it is dead.
struct Buyer {
    client: Client,
    connection: JoinHandle<()>,
}

impl Drop for Buyer {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// The clients of a campaign.
pub struct Buyers {
    url: String,
    transactions: usize,
    next: AtomicUsize,
    /// Nobody takes a number from here on.
    allowed: AtomicUsize,
    running: AtomicUsize,
    /// How many died by themselves.
    pub dead: AtomicUsize,
}

impl Buyers {
    pub fn new(port: u16, transactions: usize) -> Self {
        Self {
            url: format!("host=127.0.0.1 port={port} user=shop dbname=postgres"),
            transactions,
            next: AtomicUsize::new(0),
            allowed: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            dead: AtomicUsize::new(0),
        }
    }

    /// Lets them go on up to this number.
    pub fn allow(&self, number: usize) {
        self.allowed.store(number, Ordering::SeqCst);
    }

    /// Whether nobody has anything to do until more is allowed.
    pub fn are_done(&self) -> bool {
        self.running.load(Ordering::SeqCst) == 0
            && self.next.load(Ordering::SeqCst) >= self.allowed.load(Ordering::SeqCst)
    }

    /// One client after the other, until all is done.
    pub fn buy(&self, late: bool) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut buyer = None;
            loop {
                self.running.fetch_add(1, Ordering::SeqCst);
                let taken = self.next.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |next| {
                    (next < self.allowed.load(Ordering::SeqCst)).then_some(next + 1)
                });
                if let Ok(number) = taken {
                    buyer = self.transact(buyer.take(), number, late).await;
                }
                self.running.fetch_sub(1, Ordering::SeqCst);
                match taken {
                    Ok(_) => {}
                    Err(next) if next >= self.transactions => return,
                    Err(_) => pause().await,
                }
            }
        });
    }

    /// One transaction, or two with one name. Returns the connection, if it still lives.
    async fn transact(&self, buyer: Option<Buyer>, number: usize, late: bool) -> Option<Buyer> {
        let buyer = match buyer {
            Some(buyer) => buyer,
            None => self.connect().await,
        };
        let end = End::of(number, late);
        let row = i64::try_from(number).unwrap();
        if number % 25 == 9 {
            let twin = self.order(&buyer, row + FIRST_TWIN, End::Commit).await;
            twin.ok()?;
        }
        match self.order(&buyer, row, end).await {
            // The database ended it, or what it read has changed.
            Err(_) => None,
            Ok(()) if matches!(end, End::DieBefore | End::DieIn | End::DieAfter) => {
                self.dead.fetch_add(1, Ordering::SeqCst);
                None
            }
            Ok(()) => Some(buyer),
        }
    }

    async fn order(&self, buyer: &Buyer, row: i64, end: End) -> Result<(), Error> {
        let client = &buyer.client;
        let number = row % FIRST_TWIN;
        let level = ["read committed", "repeatable read", "serializable"][usize::try_from(number % 3).unwrap()];
        client.batch_execute(&format!("begin isolation level {level}")).await?;
        let start = format!(
            "select starbridge.start_execution('order', '{{\"id\": {number}}}', name => 'n-{number}', labels => '{{\"number\": \"{number}\"}}')::text"
        );
        let id: String = client.query_one(&start, &[]).await?.get(0);
        let ledger = format!("insert into ledger values ({row}, '{id}')");
        client.batch_execute(&ledger).await?;
        match end {
            End::RollBack => client.batch_execute("rollback").await,
            End::DieBefore => Ok(()),
            End::DieIn => {
                let commit = client.batch_execute("commit");
                tokio::pin!(commit);
                // The commit is on its way, or not yet, or done: who knows.
                for _ in 0..number % 7 {
                    tokio::select! {
                        biased;
                        _ = &mut commit => break,
                        () = tokio::task::yield_now() => {}
                    }
                }
                Ok(())
            }
            End::Late => {
                let begun = self.next.load(Ordering::SeqCst);
                let until = (begun + 60).min(self.allowed.load(Ordering::SeqCst));
                while self.next.load(Ordering::SeqCst) < until {
                    pause().await;
                }
                client.batch_execute("commit").await
            }
            End::Commit | End::DieAfter => client.batch_execute("commit").await,
        }
    }

    /// A connection; a database that was killed is waited for.
    async fn connect(&self) -> Buyer {
        loop {
            match tokio_postgres::connect(&self.url, NoTls).await {
                Ok((client, connection)) => {
                    let connection = tokio::spawn(async move { drop(connection.await) });
                    return Buyer { client, connection };
                }
                Err(_) => pause().await,
            }
        }
    }
}

/// Neither a database nor other clients say when it goes on.
async fn pause() {
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
}
