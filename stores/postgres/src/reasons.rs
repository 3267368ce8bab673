//! How many executions do not move for which reason.

use crate::codec::Str;
use crate::fault::Failure;
use crate::list::RUNNING;
use crate::session::Session;
use starbridge_ports::{FLOW_POOL, WaitingReason};
use std::collections::BTreeMap;

/// Counts along indexes. Executions that have not ended are read, others are not.
pub(crate) async fn counts(session: &Session) -> Result<Vec<(WaitingReason, u64)>, Failure> {
    let code = |reason: WaitingReason| format!("{}::smallint", reason.number());
    let (running, dependency, key) = (
        code(WaitingReason::Running),
        code(WaitingReason::Dependency),
        code(WaitingReason::Key),
    );
    let (paused, limit) = (code(WaitingReason::FlowPaused), code(WaitingReason::FlowLimit));
    // A waiter that is paused counts as paused.
    let waiters = "from waiters w join executions e on e.id = w.execution and e.reason is null";
    // One with a claim stands in no line, and waits for one of its keys.
    let asked = format!(
        "select e.reason, count(*) from executions e where e.reason is not null and e.ended is null group by e.reason
        union all select {running}, count(*) from executions e where {RUNNING}
        union all select {dependency}, count(*) {waiters} where w.open is not null
        union all select {key}, count(*) {waiters} where w.open is null and w.key is null and w.claim is not null
        union all select case when w.pool <> $1 then {key} when k.paused_since is not null then {paused} else {limit} end,
                count(*)
            {waiters} left join keys k on k.pool = w.pool and k.key = w.key
            where w.open is null and w.key is not null group by 1"
    );
    let mut counts: BTreeMap<WaitingReason, u64> = BTreeMap::new();
    for row in session.query(&asked, &[&Str(FLOW_POOL)]).await? {
        let (number, count): (i16, i64) = (row.get(0), row.get(1));
        let known = WaitingReason::ALL
            .iter()
            .find(|reason| i16::from(reason.number()) == number);
        if let Some(reason) = known.filter(|_| count > 0) {
            *counts.entry(*reason).or_default() += count.unsigned_abs();
        }
    }
    Ok(counts.into_iter().collect())
}
