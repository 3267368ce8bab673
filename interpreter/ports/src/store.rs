//! What a store is.

use crate::admissions::Admissions;
use crate::audit::Audit;
use crate::bulk::BulkStore;
use crate::catalogue::Catalogue;
use crate::history::History;
use crate::listing::{KeyValue, Listing, Retention};
use crate::notices::Notices;
use crate::queueing::Queueing;

/// Everything a durable runtime needs of a store.
pub trait Store:
    History + Catalogue + Queueing + Notices + Audit + BulkStore + Admissions + Listing + Retention + KeyValue
{
}

impl<S> Store for S where
    S: History + Catalogue + Queueing + Notices + Audit + Admissions + BulkStore + Listing + Retention + KeyValue
{
}
