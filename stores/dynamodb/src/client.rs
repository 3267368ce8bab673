//! Requests: sent, repeated if that makes sense, and counted.

use crate::errors::{passes, reason_passes, unavailable};
use crate::item::{Item, Key, keys};
use crate::op::{Kind, Op, names, values};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Builder;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{AttributeValue, DeleteRequest, TransactWriteItem, WriteRequest};
use starbridge_aws::{Aws, ServiceError, ServiceErrorKind};
use starbridge_ports::{Backoff, StoreError};
use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long one try of a request may take.
const TRY_TIMEOUT: Duration = Duration::from_secs(5);
/// For how long a request is repeated.
const RETRY_FOR: Duration = Duration::from_secs(10);
/// The pauses between tries: half of each pause is random.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(25), Duration::from_secs(1)).with_jitter(50);

/// How many items DynamoDB deletes in one request.
const DELETE_BATCH: usize = 25;

/// Called with the operation of a request, before each request, and with `true` after each that was
/// answered. If it returns a fault, that replaces the request or its answer.
pub type FaultHook = Arc<dyn Fn(bool, &'static str) -> Option<ServiceError> + Send + Sync>;

/// How many requests and items were needed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Requests that read.
    pub reads: u64,
    /// Items written or deleted. Items that a transaction only checks do not count.
    pub written: u64,
    /// Transactions among the requests that write.
    pub transactions: u64,
}

#[derive(Default)]
struct Counters {
    reads: AtomicU64,
    written: AtomicU64,
    transactions: AtomicU64,
}

/// The result of a write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// It was written.
    Done,
    /// The conditions of the marked operations failed.
    Refused(Vec<bool>),
}

/// A query or a scan.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueryRequest {
    pub index: Option<&'static str>,
    /// The condition on the keys; without it the table is scanned.
    pub keys: Option<String>,
    pub filter: Option<String>,
    /// The wanted attributes; all if `None`.
    pub only: Option<&'static str>,
    pub values: Vec<(&'static str, AttributeValue)>,
    pub backwards: bool,
    /// How many items one request looks at.
    pub limit: Option<i32>,
}

impl QueryRequest {
    /// The items of a partition whose range keys match a condition such as `begins_with(#sk, :sk)`.
    pub(crate) fn partition(pk: &str, range: Option<(&str, &str)>) -> Self {
        let mut ask = Self {
            keys: Some("#pk = :pk".to_owned()),
            values: vec![(":pk", AttributeValue::S(pk.to_owned()))],
            ..Self::default()
        };
        if let Some((condition, sk)) = range {
            ask.keys = Some(format!("#pk = :pk AND {condition}"));
            ask.values.push((":sk", AttributeValue::S(sk.to_owned())));
        }
        ask
    }
}

/// The condition for [`QueryRequest::partition`] with a prefix.
pub(crate) const BEGINS: &str = "begins_with(#sk, :sk)";

enum Trouble {
    ServiceError(ServiceError),
    Refused(Vec<bool>),
}

/// The client for one table.
pub(crate) struct DynamoClient {
    aws: Aws,
    table: String,
    client: OnceLock<Client>,
    counters: Arc<Counters>,
    pub(crate) hook: Option<FaultHook>,
}

impl DynamoClient {
    pub(crate) fn new(aws: Aws, table: String) -> Self {
        Self {
            aws,
            table,
            client: OnceLock::new(),
            counters: Arc::default(),
            hook: None,
        }
    }

    pub(crate) fn table(&self) -> &str {
        &self.table
    }

    pub(crate) fn counted(&self) -> Counted {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counted {
            reads: of(&self.counters.reads),
            written: of(&self.counters.written),
            transactions: of(&self.counters.transactions),
        }
    }

    /// Runs work on the thread for AWS and waits for it.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let done = self.aws.wait(work);
        done.map_err(|fault| unavailable(&self.table, &fault))
    }

    pub(crate) fn client(&self) -> Result<Client, StoreError> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let aws = self.aws.clone();
        let config = self.wait(async move { aws.config(None).await })?;
        let config = config.map_err(|fault| unavailable(&self.table, &fault))?;
        let limits = config
            .timeout_config()
            .map(TimeoutConfig::to_builder)
            .unwrap_or_default();
        // The store repeats requests itself: the second try may meet the effects of the first.
        let config = Builder::from(&config)
            .timeout_config(limits.operation_attempt_timeout(TRY_TIMEOUT).build())
            .retry_config(RetryConfig::disabled())
            .build();
        Ok(self.client.get_or_init(|| Client::from_conf(config)).clone())
    }

    /// Sends a request until it is answered. The inner `Err` says which conditions failed.
    fn ask<T, F, W>(&self, what: &'static str, request: F) -> Result<Result<T, Vec<bool>>, StoreError>
    where
        T: Send + 'static,
        F: Fn(Client) -> W + Send + 'static,
        W: Future<Output = Result<T, Trouble>> + Send + 'static,
    {
        let (client, hook) = (self.client()?, self.hook.clone());
        let answer = self.wait(async move {
            let begun = Instant::now();
            let mut failures = 0;
            loop {
                failures += 1;
                let injected = hook.as_ref().and_then(|hook| hook(false, what));
                let answer = match injected {
                    Some(fault) => Err(Trouble::ServiceError(fault)),
                    None => {
                        let answer = request(client.clone()).await;
                        let lost = hook.as_ref().and_then(|hook| hook(true, what));
                        lost.map_or(answer, |fault| Err(Trouble::ServiceError(fault)))
                    }
                };
                match answer {
                    Ok(answer) => return Ok(Ok(answer)),
                    Err(Trouble::Refused(which)) => return Ok(Err(which)),
                    Err(Trouble::ServiceError(fault))
                        if passes(&fault) && begun.elapsed() + BACKOFF.longest_after(failures) < RETRY_FOR => {}
                    Err(Trouble::ServiceError(fault)) => return Err(fault),
                }
                tokio::time::sleep(BACKOFF.pause_after(failures, random())).await;
            }
        })?;
        answer.map_err(|fault| unavailable(&self.table, &fault))
    }

    fn read<T, F, W>(&self, what: &'static str, request: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(Client) -> W + Send + 'static,
        W: Future<Output = Result<T, Trouble>> + Send + 'static,
    {
        self.counters.reads.fetch_add(1, Ordering::Relaxed);
        self.ask(what, request)?
            .map_err(|_| StoreError::Unavailable("a read was refused by a condition".to_owned()))
    }

    /// The item with this key, read consistently.
    pub(crate) fn get(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        let (table, key) = (self.table.clone(), keys(key));
        self.read("GetItem", move |client| {
            let request = client.get_item().table_name(&table).set_key(Some(key.clone()));
            async move {
                let answer = request.consistent_read(true).send().await;
                answer
                    .map(|answer| answer.item)
                    .map_err(|error| Trouble::ServiceError(ServiceError::of(&error)))
            }
        })
    }

    /// One page of items, and where the next page begins.
    pub(crate) fn page(&self, ask: &QueryRequest, from: Option<Item>) -> Result<(Vec<Item>, Option<Item>), StoreError> {
        let (table, ask) = (self.table.clone(), ask.clone());
        let expressions = [
            ask.keys.as_deref().unwrap_or_default(),
            ask.filter.as_deref().unwrap_or_default(),
            ask.only.unwrap_or_default(),
        ];
        let (names, values) = (names(&expressions), values(&ask.values));
        // Indexes can't be read consistently.
        let consistent = ask.index.is_none();
        if ask.keys.is_none() {
            return self.read("Scan", move |client| {
                let request = client
                    .scan()
                    .table_name(&table)
                    .set_index_name(ask.index.map(str::to_owned));
                let request = request
                    .consistent_read(consistent)
                    .set_filter_expression(ask.filter.clone());
                let request = request.set_projection_expression(ask.only.map(str::to_owned));
                let request = request.set_expression_attribute_names(names.clone());
                let request = request.set_expression_attribute_values(values.clone());
                let request = request.set_exclusive_start_key(from.clone());
                async move {
                    let answer = request
                        .send()
                        .await
                        .map_err(|error| Trouble::ServiceError(ServiceError::of(&error)))?;
                    Ok((answer.items.unwrap_or_default(), answer.last_evaluated_key))
                }
            });
        }
        self.read("Query", move |client| {
            let request = client
                .query()
                .table_name(&table)
                .set_index_name(ask.index.map(str::to_owned));
            let request = request
                .consistent_read(consistent)
                .set_filter_expression(ask.filter.clone());
            let request = request.set_projection_expression(ask.only.map(str::to_owned));
            let request = request.set_key_condition_expression(ask.keys.clone());
            let request = request.set_expression_attribute_names(names.clone());
            let request = request.set_expression_attribute_values(values.clone());
            let request = request.set_exclusive_start_key(from.clone());
            let request = request.scan_index_forward(!ask.backwards).set_limit(ask.limit);
            async move {
                let answer = request
                    .send()
                    .await
                    .map_err(|error| Trouble::ServiceError(ServiceError::of(&error)))?;
                Ok((answer.items.unwrap_or_default(), answer.last_evaluated_key))
            }
        })
    }

    /// All items, in order.
    pub(crate) fn all(&self, ask: &QueryRequest) -> Result<Vec<Item>, StoreError> {
        let (mut all, mut from) = (Vec::new(), None);
        loop {
            let (items, next) = self.page(ask, from)?;
            all.extend(items);
            if next.is_none() {
                return Ok(all);
            }
            from = next;
        }
    }

    /// The parts of a large item.
    pub(crate) fn parts(&self, pk: &str, prefix: &str) -> Result<Vec<Item>, StoreError> {
        self.all(&QueryRequest::partition(pk, Some((BEGINS, prefix))))
    }

    /// Writes everything or nothing. `token` identifies the write: DynamoDB does a repeated write only once, where it
    /// can see that.
    pub(crate) fn write(&self, ops: &[Op], token: &str) -> Result<Written, StoreError> {
        let written = ops.iter().filter(|op| !matches!(op.kind, Kind::Check(_))).count();
        let done = match ops {
            [op] if written == 1 => self.write_one(op.clone())?,
            ops => {
                let done = self.transact(ops, token)?;
                if done.is_ok() {
                    self.counters.transactions.fetch_add(1, Ordering::Relaxed);
                }
                done
            }
        };
        match done {
            Ok(()) => {
                self.counters.written.fetch_add(written as u64, Ordering::Relaxed);
                Ok(Written::Done)
            }
            Err(which) => Ok(Written::Refused(which)),
        }
    }

    /// Deletes items if they exist.
    pub(crate) fn delete_all(&self, all: &[Key]) -> Result<(), StoreError> {
        for some in all.chunks(DELETE_BATCH) {
            let delete = |key: &Key| {
                let delete = DeleteRequest::builder().set_key(Some(keys(key))).build().ok();
                WriteRequest::builder().set_delete_request(delete).build()
            };
            let (table, requests) = (self.table.clone(), some.iter().map(delete).collect::<Vec<_>>());
            let answered = self.ask("BatchWriteItem", move |client| {
                let request = client.batch_write_item().request_items(&table, requests.clone());
                async move {
                    let answer = request
                        .send()
                        .await
                        .map_err(|error| Trouble::ServiceError(ServiceError::of(&error)))?;
                    // Items that DynamoDB left over are sent again with the rest, after a pause.
                    let left = answer.unprocessed_items.is_some_and(|left| !left.is_empty());
                    let busy = ServiceError::new(ServiceErrorKind::Throttled, "some of a batch were not deleted");
                    if left { Err(Trouble::ServiceError(busy)) } else { Ok(()) }
                }
            })?;
            debug_assert!(answered.is_ok(), "a batch has no conditions");
            self.counters.written.fetch_add(some.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    fn write_one(&self, op: Op) -> Result<Result<(), Vec<bool>>, StoreError> {
        let table = self.table.clone();
        let what = match op.kind {
            Kind::Put(_) => "PutItem",
            Kind::Update(..) => "UpdateItem",
            _ => "DeleteItem",
        };
        self.ask(what, move |client| {
            let (op, table) = (op.clone(), table.clone());
            async move {
                let (names, values) = (op.names(), op.values());
                match op.kind {
                    Kind::Put(item) => {
                        let put = client.put_item().table_name(table).set_item(Some(item));
                        let put = put.set_condition_expression(op.condition);
                        let put = put.set_expression_attribute_names(names);
                        let answer = put.set_expression_attribute_values(values).send().await;
                        answer.map(drop).map_err(|error| of_one(ServiceError::of(&error)))
                    }
                    Kind::Update(key, change) => {
                        let update = client.update_item().table_name(table).set_key(Some(keys(&key)));
                        let update = update.update_expression(change).set_condition_expression(op.condition);
                        let update = update.set_expression_attribute_names(names);
                        let answer = update.set_expression_attribute_values(values).send().await;
                        answer.map(drop).map_err(|error| of_one(ServiceError::of(&error)))
                    }
                    Kind::Delete(key) | Kind::Check(key) => {
                        let delete = client.delete_item().table_name(table).set_key(Some(keys(&key)));
                        let delete = delete.set_condition_expression(op.condition);
                        let delete = delete.set_expression_attribute_names(names);
                        let answer = delete.set_expression_attribute_values(values).send().await;
                        answer.map(drop).map_err(|error| of_one(ServiceError::of(&error)))
                    }
                }
            }
        })
    }

    fn transact(&self, ops: &[Op], token: &str) -> Result<Result<(), Vec<bool>>, StoreError> {
        let items: Result<Vec<TransactWriteItem>, _> = ops.iter().map(|op| op.transacted(&self.table)).collect();
        let items = items.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let token = token.to_owned();
        self.ask("TransactWriteItems", move |client| {
            let request = client.transact_write_items().set_transact_items(Some(items.clone()));
            let request = request.client_request_token(&token);
            async move {
                let Err(error) = request.send().await else {
                    return Ok(());
                };
                let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = error.as_service_error()
                else {
                    return Err(Trouble::ServiceError(ServiceError::of(&error)));
                };
                let reasons = cancelled.cancellation_reasons();
                let codes = || reasons.iter().map(|reason| reason.code().unwrap_or_default());
                if codes().any(|code| code == "ConditionalCheckFailed") {
                    return Err(Trouble::Refused(
                        codes().map(|code| code == "ConditionalCheckFailed").collect(),
                    ));
                }
                let passing = codes().find(|code| reason_passes(code));
                let telling = reasons
                    .iter()
                    .find(|reason| !matches!(reason.code(), None | Some("None")));
                let code = telling
                    .and_then(|reason| reason.code())
                    .unwrap_or("TransactionCanceledException");
                let message = telling.and_then(|reason| reason.message()).unwrap_or_default();
                Err(Trouble::ServiceError(match passing {
                    Some(_) => ServiceError::of_code("TransactionConflictException", message),
                    None => ServiceError::of_code(code, message),
                }))
            }
        })
    }
}

/// A condition that failed is an answer, not an error.
fn of_one(fault: ServiceError) -> Trouble {
    match fault.kind.name() {
        "ConditionalCheckFailedException" => Trouble::Refused(vec![true]),
        _ => Trouble::ServiceError(fault),
    }
}

/// An unpredictable number: each hasher of the standard library has random keys.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
