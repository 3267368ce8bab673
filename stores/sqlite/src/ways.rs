//! The queries into which a list is parted, so that each follows an index.

use crate::record::SUCCEEDED_CODE;
use starbridge_ports::{Query, STATUS_CODES, WaitingReason, code_of};

/// One of the queries that together find what is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Way {
    /// The statuses; empty: any.
    pub(crate) statuses: Vec<usize>,
    /// The reason, or that there is none, if the index of statuses and reasons leads.
    pub(crate) reason: Option<Option<WaitingReason>>,
}

impl Way {
    /// Nothing else leads to these executions.
    pub(crate) fn filtered(statuses: Vec<usize>) -> Self {
        Self { statuses, reason: None }
    }
}

/// How to ask for statuses and reasons: each pair separately if their index has all of them, because its entries of one pair are
/// in the order of numbers. Otherwise together.
pub(crate) fn ways(query: &Query, few: bool) -> Vec<Way> {
    let mut codes: Vec<usize> = query.statuses.iter().map(|&status| code_of(status)).collect();
    codes.sort_unstable();
    codes.dedup();
    let running = query.reasons == [WaitingReason::Running];
    if few || !query.labels.is_empty() || in_family(query) || query.broken || running {
        return vec![Way::filtered(codes)];
    }
    if query.reasons.is_empty() && (codes.is_empty() || codes.contains(&SUCCEEDED_CODE)) {
        return vec![Way::filtered(codes)];
    }
    if codes.is_empty() {
        codes = (0..STATUS_CODES.len()).collect();
    }
    let is_open = |code: usize| STATUS_CODES.get(code).is_some_and(|status| !status.is_ended());
    let mut ways = Vec::new();
    for code in codes {
        let mut way = |reason| {
            ways.push(Way {
                statuses: vec![code],
                reason: Some(reason),
            });
        };
        match (is_open(code), query.reasons.is_empty()) {
            // What has ended waits for nothing.
            (false, true) => way(None),
            (false, false) => {}
            (true, true) => {
                way(None);
                let listed = WaitingReason::LISTED.iter().copied();
                listed
                    .filter(|reason| *reason != WaitingReason::Running)
                    .map(Some)
                    .for_each(way);
            }
            (true, false) => query.reasons.iter().copied().map(Some).for_each(way),
        }
    }
    ways
}

/// Whether the query asks for relatives of an execution. There are few of them, so such a query
/// begins with them.
pub(crate) fn in_family(query: &Query) -> bool {
    query.parent.is_some() || query.root.is_some()
}
