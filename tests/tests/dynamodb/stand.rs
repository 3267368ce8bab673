//! A stand-in for DynamoDB, and stores on its tables.

use starbridge_aws::{Aws, AwsSettings};
use starbridge_dynamodb::{DynamoSettings, DynamoStore};
use starbridge_flow::time::Timestamp;
use starbridge_ports::{Clock, Secret};
use starbridge_services::{Kind, Service};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

/// A clock that a test sets.
pub struct SetClock(AtomicI64);

impl SetClock {
    pub fn at(ms: i64) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(ms)))
    }

    pub fn set(&self, ms: i64) {
        self.0.store(ms, Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

/// The noon from which on tests run.
pub const NOON: i64 = 1_800_000_000_000;

pub struct Stand {
    pub kind: Kind,
    /// Gone with this.
    _service: Service,
    pub aws: Aws,
    tables: AtomicU32,
}

impl Stand {
    pub fn start(kind: Kind) -> Self {
        let service = Service::start(kind);
        let aws = way(&service.url());
        Self {
            kind,
            _service: service,
            aws,
            tables: AtomicU32::new(0),
        }
    }

    /// A new table.
    pub fn table(&self) -> String {
        let name = format!("table-{}", self.tables.fetch_add(1, Ordering::SeqCst));
        self.store(&name, "maker").create_table().unwrap();
        name
    }

    /// A store on a table, for that owner, with a clock that is set to noon.
    pub fn store(&self, table: &str, owner: &str) -> DynamoStore {
        self.store_with(table, owner, SetClock::at(NOON))
    }

    pub fn store_with(&self, table: &str, owner: &str, clock: Arc<SetClock>) -> DynamoStore {
        let store = DynamoStore::new(self.aws.clone(), settings(table, owner, clock));
        match self.kind {
            // A transaction that is refused there puts back all tables as they were when it began.
            Kind::Moto => store.one_by_one(),
            _ => store,
        }
    }
}

pub fn settings(table: &str, owner: &str, clock: Arc<SetClock>) -> DynamoSettings {
    DynamoSettings {
        table: table.to_owned(),
        owner: owner.to_owned(),
        retention: None,
        clock,
    }
}

pub fn way(endpoint: &str) -> Aws {
    Aws::new(AwsSettings {
        endpoint: Some(endpoint.to_owned()),
        region: Some("us-east-1".to_owned()),
        access_key: Some(("test".to_owned(), Secret::new("test"))),
    })
}
