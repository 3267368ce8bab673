//! What an execution waits for before it begins, or goes on after a redrive: read from what admission keeps.

use super::keys::set_limit;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::Status;
use starbridge_ports::{
    Dependency, ExecutionRecord, FLOW_POOL, KeyView, OpenDependency, PoolKey, Store, StoreError, Waiter, WaitingReason,
};
use std::collections::HashMap;

/// How many holders of a key, and how many open dependencies, are shown.
const SHOWN: usize = 10;
/// A position in a line is counted up to this.
const MAX_POSITION: u64 = 10_000;

/// What an execution waits for that is blocked or queued.
pub(super) fn waiting_for(store: &dyn Store, id: &str, record: &ExecutionRecord) -> Result<Value, StoreError> {
    let waiter = store.waiter(id)?;
    let told = match &waiter {
        Some(waiter) if !waiter.open.is_empty() => dependencies(store, id, waiter)?,
        Some(waiter) => match &waiter.parked {
            Some(key) => parked(store, waiter, key)?,
            None => undecided(),
        },
        None => undecided(),
    };
    let mut shape = Object::new();
    shape.insert("reason".into(), told.reason.as_str().into());
    shape.insert("text".into(), told.text.into());
    shape.insert("since".into(), record.asked().to_string().into());
    if let Some(until) = record.wake_at {
        shape.insert("until".into(), until.to_string().into());
    }
    shape.insert("act".into(), told.act.map_or(Value::Null, Value::from));
    for (name, value) in told.members.iter() {
        shape.insert(name.clone(), value.clone());
    }
    Ok(shape.into())
}

/// The reasons of those that wait to be admitted. They follow from what admission keeps, and records do not have them.
pub(super) const OF_ADMISSION: [WaitingReason; 5] = [
    WaitingReason::Dependency,
    WaitingReason::Key,
    WaitingReason::FlowLimit,
    WaitingReason::FlowPaused,
    WaitingReason::Admission,
];

/// Why one of a list waits to be admitted.
pub(super) struct Brief {
    pub(super) reason: WaitingReason,
    /// The key, the flow, or the first of the executions.
    pub(super) of: Option<Text>,
    text: String,
}

/// What those of a list wait for. What is known of flows is asked for once.
pub(super) struct Briefs<'a> {
    store: &'a dyn Store,
    paused: HashMap<PoolKey, bool>,
}

impl<'a> Briefs<'a> {
    pub(super) fn new(store: &'a dyn Store) -> Self {
        Self {
            store,
            paused: HashMap::new(),
        }
    }

    /// Why it waits to be admitted; `None` if it does not, or something else comes first.
    pub(super) fn of(&mut self, id: &str, record: &ExecutionRecord) -> Result<Option<Brief>, StoreError> {
        let waits = matches!(record.status, Status::Queued | Status::Blocked);
        if !waits || record.broken.is_some() || record.paused.is_some() {
            return Ok(None);
        }
        let waiter = self.store.waiter(id)?;
        if let Some(open) = waiter.as_ref().and_then(|waiter| waiter.open.first()) {
            let Dependency { flow, execution, .. } = &open.dependency;
            let of = match flow {
                Some(flow) => Text::from(format!("{flow}/{execution}")),
                None => execution.clone(),
            };
            let text = format!("the execution `{of}`, which it waits for, has not ended");
            return Ok(Some(brief(WaitingReason::Dependency, Some(of), text)));
        }
        let Some(key) = waiter.and_then(|waiter| waiter.parked) else {
            let text = "whether it may run is not decided yet".to_owned();
            return Ok(Some(brief(WaitingReason::Admission, None, text)));
        };
        let PoolKey { pool, key: of } = &key;
        if *pool != *FLOW_POOL {
            let text = format!("it stands in the line of the key `{of}` in the pool `{pool}`");
            return Ok(Some(brief(WaitingReason::Key, Some(of.clone()), text)));
        }
        let paused = match self.paused.get(&key) {
            Some(paused) => *paused,
            None => {
                let paused = self.store.key(&key)?.kept.paused.is_some();
                self.paused.insert(key.clone(), paused);
                paused
            }
        };
        let of = of.clone();
        let (reason, text) = match paused {
            true => (WaitingReason::FlowPaused, format!("the flow `{of}` is paused")),
            false => (
                WaitingReason::FlowLimit,
                format!("as many executions of the flow `{of}` run as may"),
            ),
        };
        Ok(Some(brief(reason, Some(of), text)))
    }
}

fn brief(reason: WaitingReason, of: Option<Text>, text: String) -> Brief {
    Brief { reason, of, text }
}

impl Brief {
    /// Puts it into the shape of an execution.
    pub(super) fn tell(self, id: &str, record: &ExecutionRecord, shape: &mut Object) {
        let mut told = Object::new();
        told.insert("reason".into(), self.reason.as_str().into());
        told.insert("text".into(), self.text.into());
        told.insert("since".into(), record.asked().to_string().into());
        if let Some(until) = record.wake_at {
            told.insert("until".into(), until.to_string().into());
        }
        if let Some(of) = self.of {
            told.insert("of".into(), of.into());
        }
        told.insert("act".into(), format!("starbridge why {id}").into());
        shape.insert("waitingFor".into(), told.into());
    }
}

/// A reason with its words.
struct Told {
    reason: WaitingReason,
    text: String,
    act: Option<String>,
    members: Object,
}

fn undecided() -> Told {
    Told {
        reason: WaitingReason::Admission,
        text: "whether it may run is not decided yet".into(),
        act: None,
        members: Object::new(),
    }
}

fn dependencies(store: &dyn Store, id: &str, waiter: &Waiter) -> Result<Told, StoreError> {
    let mut shapes: Vec<Value> = Vec::new();
    let mut act = None;
    for open in waiter.open.iter().take(SHOWN) {
        let OpenDependency { dependency, bound } = open;
        let mut shape = Object::new();
        let of = match &dependency.flow {
            Some(flow) => {
                shape.insert("flow".into(), flow.clone().into());
                shape.insert("name".into(), dependency.execution.clone().into());
                bound.as_ref()
            }
            None => Some(&dependency.execution),
        };
        let record = of.map(|id| store.record(id)).transpose()?.flatten();
        if let Some(of) = of {
            shape.insert("execution".into(), of.clone().into());
        }
        let status = record.map_or("notThere", |record| record.status.as_str());
        shape.insert("status".into(), status.into());
        if let (None, Some(flow), None) = (of, &dependency.flow, &act) {
            let name = &dependency.execution;
            act = Some(format!("starbridge start {flow} --name {name}"));
        }
        shapes.push(shape.into());
    }
    let open = waiter.open.len();
    let text = match open {
        1 => "an execution it waits for has not ended".to_owned(),
        open => format!("{open} executions it waits for have not ended"),
    };
    let mut members = Object::new();
    members.insert("executions".into(), shapes.into());
    members.insert("open".into(), (open as u64).into());
    Ok(Told {
        reason: WaitingReason::Dependency,
        text,
        // Those that run will end; the only act left is not to wait for them.
        act: act.or_else(|| Some(format!("starbridge order {id} --no-after"))),
        members,
    })
}

fn parked(store: &dyn Store, waiter: &Waiter, key: &PoolKey) -> Result<Told, StoreError> {
    let view = store.key(key)?;
    let holders = store.holders(key, SHOWN)?;
    let position = store.waiters_before(key, waiter.place(), MAX_POSITION)? + 1;
    let mut told = match key.pool.as_str() {
        FLOW_POOL => of_flow(&view, position),
        _ => of_key(&view, position),
    };
    let limit = set_limit(view.kept.limit());
    told.members.insert("limit".into(), limit);
    told.members.insert("held".into(), view.held.into());
    let holders: Vec<Value> = holders.into_iter().map(Value::from).collect();
    told.members.insert("holders".into(), holders.into());
    told.members.insert("position".into(), position.into());
    Ok(told)
}

fn of_key(view: &KeyView, position: u64) -> Told {
    let PoolKey { pool, key } = &view.kept.key;
    let limit = view.kept.limit().unwrap_or_default();
    let members = [
        ("pool".into(), Value::from(pool.clone())),
        ("key".into(), key.clone().into()),
    ];
    Told {
        reason: WaitingReason::Key,
        text: format!(
            "{} of {limit} slots of the key `{key}` in the pool `{pool}` are held; it is number {position} in line",
            view.held
        ),
        act: Some(format!(
            "starbridge key set {pool} {} --limit {}",
            quoted_word(key),
            limit.max(view.held) + 1
        )),
        members: members.into_iter().collect(),
    }
}

fn of_flow(view: &KeyView, position: u64) -> Told {
    let flow = &view.kept.key.key;
    let members: Object = [("flow".into(), Value::from(flow.clone()))].into_iter().collect();
    if let Some(pause) = &view.kept.paused {
        let by = match pause.by.as_str() {
            "" => "an operator".to_owned(),
            by => format!("`{by}`"),
        };
        return Told {
            reason: WaitingReason::FlowPaused,
            text: format!("{by} paused the flow `{flow}`; it is number {position} in line"),
            act: Some(format!("starbridge flow set {flow} --resume")),
            members: with_by(members, &pause.by),
        };
    }
    let limit = view.kept.limit().unwrap_or_default();
    Told {
        reason: WaitingReason::FlowLimit,
        text: format!(
            "{} executions of the flow `{flow}` run, and {limit} may; it is number {position} in line",
            view.held
        ),
        act: Some(format!(
            "starbridge flow set {flow} --max-running {}",
            limit.max(view.held) + 1
        )),
        members,
    }
}

fn with_by(mut members: Object, by: &Text) -> Object {
    members.insert("by".into(), by.clone().into());
    members
}

/// A word as a shell reads it.
fn quoted_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:@%+-".contains(c);
    match !word.is_empty() && !word.starts_with('-') && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
