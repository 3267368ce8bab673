//! Faults between a store and DynamoDB, and what people are told of those that stay.

use crate::on_both;
use crate::stand::{NOON, SetClock, Stand, settings, way};
use starbridge_aws::{ServiceError, ServiceErrorKind};
use starbridge_dynamodb::{DynamoStore, FaultHook};
use starbridge_ports::{History, ShardSet, StoreError};
use starbridge_services::{Answering, Said};
use starbridge_tests::stores::start;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

on_both!(a_missing_table_is_named);

/// When a request fails.
type Decide = dyn FnMut(bool, &'static str) -> Option<ServiceError> + Send;

/// The requests that fail.
#[derive(Clone)]
pub struct Plan {
    decide: Arc<Mutex<Box<Decide>>>,
    count: Arc<AtomicU64>,
}

impl Plan {
    pub fn new(decide: impl FnMut(bool, &'static str) -> Option<ServiceError> + Send + 'static) -> Self {
        Self {
            decide: Arc::new(Mutex::new(Box::new(decide))),
            count: Arc::default(),
        }
    }

    /// Some of all requests are throttled, collide with others, or are done without an answer.
    pub fn random(seed: u64) -> Self {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self::new(move |after, _| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            match (state % 100, after) {
                (0..2, false) => Some(ServiceError::of_code("ThrottlingException", "slower")),
                (2..4, false) => Some(ServiceError::of_code("TransactionConflictException", "collided")),
                (0..5, true) => Some(lost()),
                _ => None,
            }
        })
    }

    /// The first request of that kind is done, but its answer is lost.
    pub fn lose_one(what: &'static str) -> Self {
        let mut over = false;
        Self::new(move |after, asked| {
            let now = after && asked == what && !over;
            over |= now;
            now.then(lost)
        })
    }

    /// After so many requests that write nothing works any more.
    pub fn die_after(writes: u64) -> Self {
        let mut done = 0;
        Self::new(move |after, what| {
            if after || matches!(what, "GetItem" | "Query" | "Scan") {
                return None;
            }
            done += 1;
            (done > writes).then(|| ServiceError::new(ServiceErrorKind::Other("Dead".to_owned()), "dead"))
        })
    }

    pub fn hook(&self) -> FaultHook {
        let plan = self.clone();
        Arc::new(move |after, what| {
            let fault = (plan.decide.lock().unwrap())(after, what);
            plan.count.fetch_add(u64::from(fault.is_some()), Ordering::SeqCst);
            fault
        })
    }

    pub fn faults(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }
}

fn lost() -> ServiceError {
    ServiceError::new(ServiceErrorKind::ConnectionFailed, "the answer was lost")
}

fn why(error: StoreError) -> String {
    match error {
        StoreError::Unavailable(why) => why,
        other => panic!("{other:?}"),
    }
}

fn a_missing_table_is_named(stand: &Stand) {
    let store = stand.store("nowhere", "one");
    for error in [
        store.load("a").map(drop).unwrap_err(),
        store.append(&[start("a")]).map(drop).unwrap_err(),
        store.awake(&ShardSet::ALL).map(drop).unwrap_err(),
    ] {
        let why = why(error);
        assert!(why.contains("there is no table `nowhere`"), "{why}");
    }
}

/// A store on a service that says the same to everything.
fn told(status: u16, body: &'static str) -> (String, usize) {
    let heard = Arc::new(AtomicU64::new(0));
    let counted = heard.clone();
    let service = Answering::start(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        let kind = ("Content-Type", "application/x-amz-json-1.0".to_owned());
        Said::Answer(status, vec![kind], body.to_owned())
    })
    .unwrap();
    let store = DynamoStore::new(way(&service.url()), settings("table", "one", SetClock::at(NOON)));
    let error = store.load("a").map(drop).unwrap_err();
    (why(error), usize::try_from(heard.load(Ordering::SeqCst)).unwrap())
}

#[test]
fn a_missing_permission_is_named() {
    let (why, requests) = told(
        400,
        r#"{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"User: arn:aws:iam::1:user/u is not authorized to perform: dynamodb:Query on resource: arn:aws:dynamodb:us-east-1:1:table/table"}"#,
    );
    assert!(why.starts_with("no permission for the table `table`"), "{why}");
    assert!(why.contains("dynamodb:Query"), "{why}");
    assert_eq!(requests, 1);
}

#[test]
fn wrong_credentials_are_no_permission() {
    let (why, requests) = told(
        400,
        r#"{"__type":"com.amazon.coral.service#UnrecognizedClientException","message":"The security token included in the request is invalid."}"#,
    );
    assert!(
        why.contains("The security token included in the request is invalid"),
        "{why}"
    );
    assert_eq!(requests, 1);
}

#[test]
fn who_is_throttled_gives_up_after_a_while() {
    let (why, requests) = told(
        400,
        r#"{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slower"}"#,
    );
    assert!(why.contains("slower"), "{why}");
    assert!((5..40).contains(&requests), "{requests}");
}
