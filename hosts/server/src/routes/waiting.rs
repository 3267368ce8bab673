//! What an execution waits for before it begins or goes on after a redrive, according to admission.

use super::keys::set_limit;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_node::node::full_keys;
use starbridge_ports::{
    ExecutionRecord, FLOW_POOL, KeyView, OpenDependency, PoolKey, SCHEDULE_POOL, Store, StoreError, Waiter,
    WaitingReason,
};

/// How many holders of a key, and how many open dependencies, are shown.
const SHOWN: usize = 10;
/// Positions in a line are counted up to this.
const MAX_POSITION: u64 = 10_000;

/// What a blocked or queued execution waits for.
pub(super) fn waiting_for(store: &dyn Store, id: &str, record: &ExecutionRecord) -> Result<Value, StoreError> {
    let waiter = store.waiter(id)?;
    let told = match &waiter {
        Some(waiter) if !waiter.open.is_empty() => dependencies(store, id, waiter)?,
        Some(waiter) => match &waiter.parked {
            Some(key) => parked(store, waiter, key)?,
            None => claimed(store, waiter)?.unwrap_or_else(undecided),
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

/// A reason for waiting, with its explanation.
struct Reason {
    reason: WaitingReason,
    text: String,
    act: Option<String>,
    members: Object,
}

fn undecided() -> Reason {
    Reason {
        reason: WaitingReason::Admission,
        text: "whether it may run is not decided yet".into(),
        act: None,
        members: Object::new(),
    }
}

fn dependencies(store: &dyn Store, id: &str, waiter: &Waiter) -> Result<Reason, StoreError> {
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
    Ok(Reason {
        reason: WaitingReason::Dependency,
        text,
        // Running ones will end; the only remaining act is to stop waiting for them.
        act: act.or_else(|| Some(format!("starbridge order {id} --no-after"))),
        members,
    })
}

/// A waiter in the line of a key.
fn parked(store: &dyn Store, waiter: &Waiter, key: &PoolKey) -> Result<Reason, StoreError> {
    let view = store.key(key)?;
    let position = store.waiters_before(key, waiter.place(), MAX_POSITION)? + 1;
    let place = match position > MAX_POSITION {
        true => "more than 10,000 are before it in line".to_owned(),
        false => format!("it is number {position} in line"),
    };
    let mut told = at_key(store, &view, &place)?;
    told.members.insert("position".into(), position.into());
    let others = full_keys(store, waiter)?
        .into_iter()
        .filter(|other| other.kept.key != *key);
    tell_also_full(others, &mut told.members);
    Ok(told)
}

/// A waiter with a claim is in no line: it gets the next free slot of each of its keys.
fn claimed(store: &dyn Store, waiter: &Waiter) -> Result<Option<Reason>, StoreError> {
    if waiter.claim.is_none() {
        return Ok(None);
    }
    let mut full = full_keys(store, waiter)?.into_iter();
    let Some(first) = full.next() else {
        return Ok(None);
    };
    let mut told = at_key(
        store,
        &first,
        "it has waited longest, and the next free slot is its own",
    )?;
    told.members.insert("claim".into(), true.into());
    tell_also_full(full, &mut told.members);
    Ok(Some(told))
}

fn tell_also_full(others: impl Iterator<Item = KeyView>, members: &mut Object) {
    let others = others.map(|other| {
        let PoolKey { pool, key } = other.kept.key.clone();
        let limit = set_limit(other.kept.limit());
        let shape: Object = [
            ("pool".into(), Value::from(pool)),
            ("key".into(), key.into()),
            ("limit".into(), limit),
            ("held".into(), other.held.into()),
        ]
        .into_iter()
        .collect();
        Value::from(shape)
    });
    let others: Vec<Value> = others.collect();
    if !others.is_empty() {
        members.insert("alsoFull".into(), others.into());
    }
}

fn at_key(store: &dyn Store, view: &KeyView, place: &str) -> Result<Reason, StoreError> {
    let holders = store.holders(&view.kept.key, SHOWN)?;
    let mut told = match view.kept.key.pool.as_str() {
        FLOW_POOL => of_flow(view, place),
        SCHEDULE_POOL => of_schedule(view, holders.first(), place),
        _ => of_key(view, place),
    };
    told.members.insert("limit".into(), set_limit(view.kept.limit()));
    told.members.insert("held".into(), view.held.into());
    let holders: Vec<Value> = holders.into_iter().map(Value::from).collect();
    told.members.insert("holders".into(), holders.into());
    Ok(told)
}

fn of_key(view: &KeyView, place: &str) -> Reason {
    let PoolKey { pool, key } = &view.kept.key;
    let limit = view.kept.limit().unwrap_or_default();
    let members = [
        ("pool".into(), Value::from(pool.clone())),
        ("key".into(), key.clone().into()),
    ];
    Reason {
        reason: WaitingReason::Key,
        text: format!(
            "{} of {limit} slots of the key `{key}` in the pool `{pool}` are held; {place}",
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

/// It waits in the line of a schedule, whose limit nobody can set: the previous run has to end.
fn of_schedule(view: &KeyView, holder: Option<&Text>, place: &str) -> Reason {
    let PoolKey { pool, key } = &view.kept.key;
    let members = [
        ("pool".into(), Value::from(pool.clone())),
        ("key".into(), key.clone().into()),
    ];
    Reason {
        reason: WaitingReason::Key,
        text: format!("another run of the schedule `{key}` has not ended; {place}"),
        act: holder.map(|holder| format!("starbridge why {holder}")),
        members: members.into_iter().collect(),
    }
}

fn of_flow(view: &KeyView, place: &str) -> Reason {
    let flow = &view.kept.key.key;
    let members: Object = [("flow".into(), Value::from(flow.clone()))].into_iter().collect();
    if let Some(pause) = &view.kept.paused {
        let by = match pause.by.as_str() {
            "" => "an operator".to_owned(),
            by => format!("`{by}`"),
        };
        return Reason {
            reason: WaitingReason::FlowPaused,
            text: format!("{by} paused the flow `{flow}`; {place}"),
            act: Some(format!("starbridge flow set {flow} --resume")),
            members: with_by(members, &pause.by),
        };
    }
    let limit = view.kept.limit().unwrap_or_default();
    Reason {
        reason: WaitingReason::FlowLimit,
        text: match view.held {
            1 => format!("1 execution of the flow `{flow}` runs, and {limit} may; {place}"),
            held => format!("{held} executions of the flow `{flow}` run, and {limit} may; {place}"),
        },
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
