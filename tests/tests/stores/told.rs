//! When owners hear what admission decided.

use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::Status;
use starbridge_memory::MemoryStore;
use starbridge_ports::{
    ADMISSION, ASKED_AT_START, Admissions, Append, Ask, AuditEntry, ExecutionRecord, History, Mark, Message,
    MessageBody, MessageId, NeededKey, PoolKey, Receivers, Refusal, RequestChange, ShardSet, StoreError, StoredHistory,
};
use starbridge_runtime::{AdmissionCommand, AdmissionEngine, AdmissionHandle, AdmissionSettings, Writer};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// How long something that never comes is waited for.
const NEVER: Duration = Duration::from_secs(60);

/// A store that makes an append when it is let.
struct Slow {
    store: Arc<MemoryStore>,
    go: Mutex<mpsc::Receiver<()>>,
}

impl History for Slow {
    fn append(&self, batch: &[Append]) -> Result<Vec<(usize, Refusal)>, StoreError> {
        let gone = |_| StoreError::Unavailable("nobody lets it".to_owned());
        self.go.lock().unwrap().recv().map_err(gone)?;
        self.store.append(batch)
    }

    fn load(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        self.store.load(execution)
    }

    fn load_whole(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        self.store.load_whole(execution)
    }

    fn parent_of(&self, execution: &str) -> Result<Option<Text>, StoreError> {
        self.store.parent_of(execution)
    }

    fn awake(&self, shards: &ShardSet) -> Result<Vec<Text>, StoreError> {
        self.store.awake(shards)
    }

    fn due(&self, shards: &ShardSet, before: Timestamp, limit: usize) -> Result<Vec<(Timestamp, Text)>, StoreError> {
        self.store.due(shards, before, limit)
    }

    fn mark(&self, marks: &[(Text, Mark)], audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        self.store.mark(marks, audit)
    }

    fn messages(&self, to: &Receivers) -> Result<Vec<Message>, StoreError> {
        self.store.messages(to)
    }
}

fn key() -> PoolKey {
    PoolKey {
        pool: "f".into(),
        key: "a".into(),
    }
}

/// An execution that asked for a slot.
fn waiting(id: &str) -> Append {
    let ask = Ask {
        flow: "f".into(),
        keys: vec![NeededKey { key: key(), limit: 1 }],
        after: Vec::new(),
        priority: 5,
        order: 0,
        requested: Timestamp(0),
        ancestors: Vec::new(),
    };
    Append {
        execution: id.into(),
        record: Some(ExecutionRecord {
            flow: "f".into(),
            name: id.into(),
            status: Status::Queued,
            ..ExecutionRecord::default()
        }),
        request: RequestChange::Keep(String::new()),
        sent: vec![Message {
            id: MessageId {
                from: id.into(),
                event: ASKED_AT_START,
                to: ADMISSION.into(),
            },
            body: MessageBody::Ask(Box::new(ask)),
        }],
        ..Append::default()
    }
}

#[test]
fn an_owner_hears_of_an_admission_while_it_is_being_appended() {
    let store = Arc::new(MemoryStore::new());
    assert_eq!(store.append(&[waiting("first"), waiting("second")]), Ok(Vec::new()));
    let (let_go, go) = mpsc::channel();
    let slow = Slow {
        store: store.clone(),
        go: Mutex::new(go),
    };
    let writer = Writer::start(Arc::new(slow)).unwrap();
    let (tell, told) = mpsc::channel();
    let deliver = Box::new(move |message: Message| {
        tell.send(message).unwrap();
        None
    });
    let (handle, inbox) = AdmissionHandle::new();
    let rows: Arc<dyn Admissions> = store.clone();
    let settings = AdmissionSettings::default();
    let engine = AdmissionEngine::new(settings, rows, deliver, &handle, inbox, &writer).unwrap();
    let serving = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(engine.serve())
    });
    let admit = told.recv_timeout(NEVER).unwrap();
    assert_eq!((admit.id.to.as_str(), &admit.body), ("first", &MessageBody::Admit));
    // The owner's own append stands behind this one.
    assert_eq!(store.slots_of("first"), Ok(Vec::new()), "nothing was let");
    let_go.send(()).unwrap();
    // There is nothing else to append.
    drop(let_go);
    handle.send(AdmissionCommand::Stop);
    serving.join().unwrap().unwrap();
    assert_eq!(store.slots_of("first"), Ok(vec![key()]));
    assert_eq!(store.slots_of("second"), Ok(Vec::new()));
    assert!(told.try_recv().is_err(), "it is told once");
}
