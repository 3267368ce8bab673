//! The limits that definitions give the keys of a pool. Flows that share a pool must give the same ones.

use starbridge_flow::graph::{Flow, Source};
use starbridge_flow::value::Text;
use std::sync::Arc;

/// Two definitions give a pool different limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Both definitions name it.
    pub pool: Text,
    /// The limit of the definition that was not stored.
    pub limit: u64,
    /// The other flow, and its limit.
    pub other: (String, u64),
}

/// A limit that a definition gives to keys of a pool.
struct Given {
    pool: Text,
    /// The key as the definition has it.
    key: String,
    limit: u64,
}

fn given(name: &str, flow: &Flow) -> Vec<Given> {
    let keys = flow.concurrency.iter().map(|wanted| Given {
        pool: wanted.pool.clone().unwrap_or_else(|| name.into()),
        key: match &wanted.key {
            Source::Constant(value) => value.to_plain_text(),
            Source::Lookup(lookup) => lookup.text().to_string(),
        },
        limit: wanted.limit,
    });
    keys.collect()
}

/// The limit that a definition gives to all keys of a pool, if there is only one.
fn single(all: &[Given], pool: &Text) -> Option<u64> {
    let mut limits = all.iter().filter(|given| given.pool == *pool).map(|given| given.limit);
    let first = limits.next()?;
    limits.all(|limit| limit == first).then_some(first)
}

/// The first limit of a definition that another flow sets differently. A definition may have
/// several kinds of keys in one pool, each with its own limit; in that case, keys with the same
/// text are compared.
pub(super) fn conflict(name: &str, flow: &Flow, others: &[(String, Arc<Flow>)]) -> Option<PoolLimits> {
    let own = given(name, flow);
    if own.is_empty() {
        return None;
    }
    for (other, flow) in others.iter().filter(|(other, _)| other != name) {
        let theirs = given(other, flow);
        for one in &own {
            let single_one = single(&own, &one.pool).is_some() && single(&theirs, &one.pool).is_some();
            let same = |known: &&Given| known.pool == one.pool && (single_one || known.key == one.key);
            let known = theirs.iter().filter(same).find(|known| known.limit != one.limit);
            if let Some(known) = known {
                return Some(PoolLimits {
                    pool: one.pool.clone(),
                    limit: one.limit,
                    other: (other.clone(), known.limit),
                });
            }
        }
    }
    None
}
