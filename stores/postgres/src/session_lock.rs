//! Locks that end with their session: one process at a time has the store, a node's name, or the right to make tables.
//!
//! Anybody who may connect may take any advisory lock of the database, and `pg_locks` shows everybody which ones are held. So
//! a lock of ours is no single number that somebody else could take before us. A process first takes a number that nobody
//! knew, in the class of the lock; then it looks whether others hold one of that class, and goes back if so. What sessions
//! hold that may not write the store does not count.

use crate::fault::Failure;
use crate::session::Session;
use starbridge_flow::fnv::fnv1a_32;
use std::time::{Duration, Instant};

/// How long a process that just leaves is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// Says that this session is there. False if the number is somebody's by chance.
const PRESENT: &str = "select pg_try_advisory_lock(($1::bigint << 32) | floor(random() * 4294967296)::bigint)";

/// Two that came at the same moment both go back, and do not come again at the same moment.
const PAUSE: &str = "select pg_sleep(0.005 + random() * 0.03)";

const LEAVES: &str = "select pg_advisory_unlock(($1::bigint << 32) | l.objid::bigint) from pg_catalog.pg_locks l
    where l.locktype = 'advisory' and l.granted and l.objsubid = 1 and l.classid = $1::bigint::oid
        and l.pid = pg_backend_pid()";

/// Locks of a class, which is the first value, and their sessions. Before the store is made, only its role can be asked for.
const HELD: &str = "pg_catalog.pg_locks l join pg_catalog.pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'advisory' and l.granted and l.objsubid = 1 and l.classid = $1::bigint::oid
        and l.database = (select oid from pg_catalog.pg_database where datname = current_database())
        and coalesce(has_table_privilege(a.usesysid, to_regclass('writers')::oid, 'update'),
            pg_has_role(a.usesysid, current_user, 'member'))";

/// The class of a lock. `name`: what is locked, such as a schema.
pub(crate) fn class(name: &str) -> i64 {
    // So that other programs with locks have others.
    i64::from(fnv1a_32("starbridge ".bytes().chain(name.bytes())))
}

/// Does beforehand what can be done before a lock is taken.
pub(crate) async fn prepare(session: &Session, name: &str) -> Result<(), Failure> {
    session.prepare([PRESENT, LEAVES]).await?;
    is_held_by_others(session, class(name)).await.map(drop)
}

/// Takes a lock. One whose holder just leaves is waited for. `Some` says who has it.
pub(crate) async fn take(session: &Session, name: &str) -> Result<Option<String>, Failure> {
    let (class, begun) = (class(name), Instant::now());
    loop {
        let taken = session.only(PRESENT, &[&class]).await?.get::<_, bool>(0);
        if taken && !is_held_by_others(session, class).await? {
            return Ok(None);
        }
        session.query(LEAVES, &[&class]).await?;
        if begun.elapsed() > PATIENCE {
            return holder(session, class).await.map(Some);
        }
        session.query(PAUSE, &[]).await?;
    }
}

/// Gives a lock back before the session ends: the server may take a moment to see that end.
pub(crate) async fn give_back(session: &Session, name: &str) {
    // If this fails, the session has ended.
    let _ = session.query(LEAVES, &[&class(name)]).await;
}

/// Whether another session has a lock.
pub(crate) async fn is_held_by_others(session: &Session, class: i64) -> Result<bool, Failure> {
    let asked = format!("select exists (select from {HELD} and l.pid <> pg_backend_pid())");
    Ok(session.only(&asked, &[&class]).await?.get(0))
}

/// Whether somebody has the lock, as a part of a query whose first value is its class.
pub(crate) fn is_held() -> String {
    format!("exists (select from {HELD})")
}

/// Ends the sessions that have a lock if a condition holds, of which `$2` is the value. One of a role that this one may not
/// end stays.
pub(crate) async fn evict(session: &Session, name: &str, condition: &str, value: &str) -> Result<(), Failure> {
    let ends = format!(
        "select pg_terminate_backend(l.pid) from {HELD} and l.pid <> pg_backend_pid()
            and pg_has_role(a.usesysid, 'member') and {condition}"
    );
    session.query(&ends, &[&class(name), &value]).await?;
    Ok(())
}

/// Who has the lock, in words.
async fn holder(session: &Session, class: i64) -> Result<String, Failure> {
    let asked = format!(
        "select a.pid, coalesce(a.application_name, ''), coalesce(host(a.client_addr), 'a socket')
        from {HELD} and l.pid <> pg_backend_pid()"
    );
    let Some(row) = session.first(&asked, &[&class]).await? else {
        return Ok("another process".to_owned());
    };
    let (process, name, from): (i32, &str, &str) = (row.get(0), row.get(1), row.get(2));
    let name = match name.strip_prefix("starbridge ") {
        Some(node) => format!("the node `{node}`"),
        None => "another process".to_owned(),
    };
    Ok(format!("{name} at {from} (process {process} of the database)"))
}
