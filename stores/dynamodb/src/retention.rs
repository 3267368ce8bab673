//! Deleting executions that have been kept long enough.

use crate::DynamoStore;
use crate::client::{QueryRequest, Written};
use crate::head::{Attached, Head};
use crate::item::{Key, key_of, text, text_of};
use crate::op::Op;
use crate::record::id_of;
use crate::start::places;
use crate::table::{self, DUE, HEAD, SK};
use aws_sdk_dynamodb::types::AttributeValue;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{Append, Refusal, Retention, ShardSet, StoreError};

impl Retention for DynamoStore {
    fn clear(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        if limit == 0 {
            return Ok(0);
        }
        let mut cleared = 0;
        for item in self.watched(&ShardSet::ALL, true, Some(before), None, limit)? {
            if cleared >= limit {
                break;
            }
            if self.clear_one(&id_of(&item), text_of(&item, DUE).unwrap_or_default(), &[])? {
                cleared += 1;
            }
        }
        Ok(cleared)
    }
}

impl DynamoStore {
    /// Deletes an execution on an operator's request, unless it has gone on since. Returns the same
    /// result as an append.
    pub(crate) fn delete(&self, execution: &Text, append: &Append) -> Result<(usize, Option<Refusal>), StoreError> {
        let conflict = Ok((0, Some(Refusal::Conflict)));
        let session = match self.sessions.get(execution) {
            Some(session) => session,
            None => match self.attach(execution)? {
                Attached::Here(session) => *session,
                Attached::Elsewhere | Attached::Nowhere => return conflict,
            },
        };
        if session.last != append.expected || session.record.ended.is_none() {
            return conflict;
        }
        let Some(item) = self.client.get(&(table::execution(execution), HEAD.to_owned()))? else {
            return conflict;
        };
        let audit = self.audit_ops(&append.audit);
        if !self.clear_one(execution, text_of(&item, DUE).unwrap_or_default(), &audit)? {
            return conflict;
        }
        self.forget_notices_of(execution)?;
        Ok((1, None))
    }

    /// Deletes an execution that ended at that time, and adds the audit entry. Returns false if it
    /// has gone on since.
    fn clear_one(&self, execution: &str, due: &str, audit: &[Op]) -> Result<bool, StoreError> {
        let key = (table::execution(execution), HEAD.to_owned());
        // INVARIANT: from here on it is invisible, and it stays in the index until nothing else of
        // it is left.
        let gone = Op::update(key.clone(), "SET #gone = :gone").when("#due = :due");
        let gone = gone.with(":gone", AttributeValue::Bool(true)).with(":due", text(due));
        if self.client.write(&[&[gone], audit].concat(), &self.write_id())? != Written::Done {
            return Ok(false);
        }
        self.sessions.forget(execution);
        let Some(item) = self.client.get(&key)? else {
            return Ok(true);
        };
        let head = Head::of(&item)?;
        for key in places(execution, &head.record) {
            let place = Op::delete(key).when("#execution = :id").with(":id", text(execution));
            self.client.write(&[place], "")?;
        }
        self.clear_tasks(execution)?;
        self.clear_rows(execution)?;
        let head = Op::delete(key).when("#life = :life").with(":life", text(&head.run_id));
        self.client.write(&[head], "")?;
        Ok(true)
    }

    /// Deletes everything of an execution except its head.
    pub(crate) fn clear_rows(&self, execution: &str) -> Result<(), StoreError> {
        let ask = QueryRequest {
            only: Some("#pk, #sk"),
            ..QueryRequest::partition(&table::execution(execution), None)
        };
        let items = self.client.all(&ask)?;
        let rows = items.iter().filter(|item| text_of(item, SK) != Some(HEAD));
        let keys: Vec<Key> = rows.map(key_of).collect();
        self.client.delete_all(&keys)
    }
}
