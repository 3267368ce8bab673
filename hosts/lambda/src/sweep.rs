//! The sweep that a schedule of EventBridge starts: executions whose continuation was lost, schedules of flows that
//! are due, and retention, of the audit list too.

use crate::Failure;
use crate::continuations::Continuation;
use crate::environment::{Invocation, Running};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::{Object, Value};

/// How many executions are found at a time.
const SWEEP_BATCH: usize = 1_000;
/// An execution that is overdue by this much has lost its continuation.
const GRACE: Millis = Millis(60_000);

fn days_before(now: Timestamp, days: u64) -> Timestamp {
    now.minus(Millis::from_days(days))
}

/// Makes a sweep. Returns its results.
pub(crate) async fn take(running: &Running, invocation: Invocation) -> Result<Value, Failure> {
    let now = running.node.now();
    let mut stranded = 0;
    let mut cleared = 0;
    if let Some((continuations, leases)) = running.continuations.as_ref().zip(running.leases()) {
        let before = now.minus(GRACE);
        for execution in leases.stranded(before, SWEEP_BATCH)? {
            continuations.put(&Continuation { execution, at: now }, now).await?;
            stranded += 1;
        }
        // Executions that schedules start begin here and go on later, like every execution without
        // a waiting caller.
        running.node.pause_dispatch().await?;
    }
    // The handling of a trigger is stored at once, so its execution must be stored at once, too.
    running.choose_express(Some(false));
    running.node.fire_schedules().await?;
    running.quiesce(invocation.until).await?;
    if running.continuations.is_some() && running.retention_days > 0 {
        let before = days_before(now, running.retention_days);
        while running.node.now() < invocation.until {
            let some = running.node.clear_before(before).await?;
            if some == 0 {
                break;
            }
            cleared += some;
        }
    }
    if running.continuations.is_some() && running.audit_days > 0 {
        let before = days_before(now, running.audit_days);
        while running.node.now() < invocation.until && running.node.clear_audit_before(before).await? > 0 {}
    }
    let members = [
        ("continued".into(), Value::from(stranded as u64)),
        ("cleared".into(), Value::from(cleared as u64)),
    ];
    Ok(members.into_iter().collect::<Object>().into())
}
