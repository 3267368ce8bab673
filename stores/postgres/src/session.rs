//! One connection, with the statements it has prepared.

use crate::fault::Failure;
use crate::wait::{Pending, all_in_order};
use rustc_hash::FxHashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, SimpleQueryMessage, Statement};

/// A value of a statement.
pub(crate) type Param<'a> = &'a (dyn ToSql + Sync);

/// A value that a statement owns.
pub(crate) type Owned<'a> = Box<dyn ToSql + Sync + 'a>;

/// A statement with its values, to be sent with others.
pub(crate) struct Sent<'a> {
    sql: &'static str,
    values: Vec<Owned<'a>>,
}

impl<'a> Sent<'a> {
    pub(crate) fn new(sql: &'static str, values: Vec<Owned<'a>>) -> Self {
        Self { sql, values }
    }
}

/// A column of rows that are written together.
pub(crate) fn column<'a, R, T: ToSql + Sync + 'a>(rows: &[R], of: impl Fn(&R) -> T) -> Owned<'a> {
    Box::new(rows.iter().map(of).collect::<Vec<T>>())
}

/// A connection. One caller at a time uses it.
pub(crate) struct Session {
    client: Client,
    statements: Mutex<FxHashMap<String, Statement>>,
}

/// How many statements a connection keeps prepared. Lists are asked for in many ways.
const STATEMENTS: usize = 512;

impl Session {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            statements: Mutex::default(),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Whether what is written here is kept: not by a copy of the database that only follows another.
    pub(crate) async fn takes_writes(&self) -> bool {
        let asked = "select not pg_is_in_recovery() and current_setting('transaction_read_only') = 'off'";
        let answer = self.first(asked, &[]).await;
        answer.is_ok_and(|row| row.is_some_and(|row| row.get::<_, bool>(0)))
    }

    /// Runs statements without values, one after the other.
    pub(crate) async fn run(&self, sql: &str) -> Result<(), Error> {
        self.client.batch_execute(sql).await
    }

    /// The process of the server that answers this connection now, asked without a prepared statement.
    pub(crate) async fn backend(&self) -> Result<String, Error> {
        let answers = self.client.simple_query("select pg_backend_pid()").await?;
        let pid = answers.iter().find_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        Ok(pid.unwrap_or_default())
    }

    async fn statement(&self, sql: &str) -> Result<Statement, Error> {
        let known = self.statements().get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        let mut kept = self.statements();
        if kept.len() >= STATEMENTS {
            kept.clear();
        }
        kept.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn statements(&self) -> MutexGuard<'_, FxHashMap<String, Statement>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn query(&self, sql: &str, values: &[Param<'_>]) -> Result<Vec<Row>, Error> {
        let statement = self.statement(sql).await?;
        self.client.query(&statement, values).await
    }

    /// A query that is not kept prepared.
    pub(crate) async fn query_now(&self, sql: &str) -> Result<Vec<Row>, Error> {
        self.client.query(sql, &[]).await
    }

    pub(crate) async fn first(&self, sql: &str, values: &[Param<'_>]) -> Result<Option<Row>, Error> {
        Ok(self.query(sql, values).await?.into_iter().next())
    }

    /// The row of a query that always has one.
    pub(crate) async fn only(&self, sql: &str, values: &[Param<'_>]) -> Result<Row, Failure> {
        let found = self.first(sql, values).await?;
        found.ok_or_else(|| Failure::corrupt("the database", &"a query that always has a row has none"))
    }

    pub(crate) async fn execute(&self, sql: &str, values: &[Param<'_>]) -> Result<u64, Error> {
        let statement = self.statement(sql).await?;
        self.client.execute(&statement, values).await
    }

    /// Prepares statements, so that they can be sent without a word between them.
    pub(crate) async fn prepare<'s>(&self, all: impl IntoIterator<Item = &'s str>) -> Result<(), Error> {
        for sql in all {
            self.statement(sql).await?;
        }
        Ok(())
    }

    /// Sends statements one after the other, and then waits for all answers. The first error is the one that counts: in a
    /// transaction all that come after it only say that there was one.
    pub(crate) async fn execute_all(&self, all: &[Sent<'_>]) -> Result<(), Error> {
        self.prepare(all.iter().map(|sent| sent.sql)).await?;
        let sent = all.iter().map(|sent| -> Pending<'_, Result<u64, Error>> {
            Box::pin(async move {
                let values: Vec<Param<'_>> = sent.values.iter().map(|value| &**value as Param<'_>).collect();
                self.execute(sent.sql, &values).await
            })
        });
        for answer in all_in_order(sent.collect()).await {
            answer?;
        }
        Ok(())
    }

    /// Asks several queries of one state of the database, at once and without waiting between them.
    pub(crate) async fn query_one_state(&self, all: &[(&str, &[Param<'_>])]) -> Result<Vec<Vec<Row>>, Error> {
        self.prepare(all.iter().map(|(sql, _)| *sql)).await?;
        let run = |sql: &'static str| -> Pending<'_, Result<Vec<Row>, Error>> {
            Box::pin(async move { self.run(sql).await.map(|()| Vec::new()) })
        };
        let mut sent = vec![run("begin isolation level repeatable read read only")];
        for &(sql, values) in all {
            sent.push(Box::pin(async move { self.query(sql, values).await }));
        }
        sent.push(run("commit"));
        let answers: Result<Vec<Vec<Row>>, Error> = all_in_order(sent).await.into_iter().collect();
        let mut answers = answers?;
        answers.pop();
        answers.remove(0);
        Ok(answers)
    }

    /// Asks several queries at once.
    pub(crate) async fn query_all(&self, all: &[(&str, &[Param<'_>])]) -> Result<Vec<Vec<Row>>, Error> {
        self.prepare(all.iter().map(|(sql, _)| *sql)).await?;
        let sent = all
            .iter()
            .map(|&(sql, values)| -> Pending<'_, Result<Vec<Row>, Error>> {
                Box::pin(async move { self.query(sql, values).await })
            });
        all_in_order(sent.collect()).await.into_iter().collect()
    }
}
