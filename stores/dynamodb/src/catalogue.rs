//! Flows, and small texts stored by kind and name.

use crate::DynamoStore;
use crate::client::{QueryRequest, Written};
use crate::item::{Item, key_of, keys, number, text, text_of, time_of};
use crate::op::{ABSENT, Op, PRESENT};
use crate::payload::{self, WRITE};
use crate::table::FLOWS;
use aws_sdk_dynamodb::types::AttributeValue;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{AuditEntry, Catalogue, KeptFlow, KeyValue, StoreError};

fn partition(flow: &str) -> String {
    format!("F#{flow}")
}

impl DynamoStore {
    fn kept(&self, name: &str) -> Result<Vec<Item>, StoreError> {
        self.client.all(&QueryRequest::partition(
            &partition(name),
            Some(("#sk < :sk", crate::table::PARTS)),
        ))
    }

    fn flow_of(&self, item: &Item) -> Result<KeptFlow, StoreError> {
        let (pk, sk) = key_of(item);
        Ok(KeptFlow {
            name: Text::from(pk.get(2..).unwrap_or_default()),
            version: sk.parse().unwrap_or_default(),
            hash: Text::from(text_of(item, "hash").unwrap_or_default()),
            definition: payload::get_text(item, |pk, prefix| self.client.parts(pk, prefix))?,
            created: time_of(item, "created").unwrap_or_default(),
            hidden: item.contains_key("hidden"),
        })
    }

    fn hide(&self, items: &[Item], hidden: bool, audit: Option<&AuditEntry>) -> Result<bool, StoreError> {
        let mut audit = self.audit_ops(audit);
        let mut changed = false;
        for item in items.iter().filter(|item| item.contains_key("hidden") != hidden) {
            let op = if hidden {
                Op::update(key_of(item), "SET #hidden = :h").with(":h", AttributeValue::Bool(true))
            } else {
                Op::update(key_of(item), "REMOVE #hidden")
            };
            audit.insert(0, op.when(PRESENT));
            self.client.write(&std::mem::take(&mut audit), "")?;
            changed = true;
        }
        Ok(changed)
    }
}

impl Catalogue for DynamoStore {
    fn put_flow(
        &self,
        name: &str,
        definition: &str,
        hash: &str,
        now: Timestamp,
        audit: Option<&AuditEntry>,
    ) -> Result<(u64, bool), StoreError> {
        loop {
            let versions = self.kept(name)?;
            let latest = versions.last();
            let version: u64 = latest.map_or(0, |item| key_of(item).1.parse().unwrap_or_default());
            if let Some(latest) = latest
                && text_of(latest, "hash") == Some(hash)
            {
                let entry = audit.map(|entry| entry.clone().with("version", version));
                self.hide(&versions, false, entry.as_ref())?;
                return Ok((version, false));
            }
            self.hide(&versions, false, None)?;
            let version = version + 1;
            let (key, write) = ((partition(name), format!("{version:010}")), self.write_id());
            let mut item = keys(&key);
            item.insert("hash".to_owned(), text(hash));
            item.insert("created".to_owned(), number(now.0));
            item.insert(WRITE.to_owned(), text(&write));
            self.write_parts(&payload::put(&mut item, definition.as_bytes()))?;
            // Executions are listed flow by flow, so the flow must be known.
            self.client
                .write(&[Op::put(keys(&(FLOWS.to_owned(), name.to_owned())))], "")?;
            let entry = audit.map(|entry| entry.clone().with("version", version));
            let mut ops = vec![Op::put(item).when(ABSENT)];
            ops.extend(self.audit_ops(&entry));
            if self.client.write(&ops, &write)? == Written::Done || self.is_ours(&key, &write)? {
                return Ok((version, true));
            }
        }
    }

    fn hide_flow(&self, name: &str, audit: Option<&AuditEntry>) -> Result<bool, StoreError> {
        let versions = self.kept(name)?;
        self.hide(&versions, true, audit)
    }

    fn flows(&self) -> Result<Vec<KeptFlow>, StoreError> {
        let mut flows = Vec::new();
        for name in self.flows_known()? {
            flows.extend(self.versions(&name)?);
        }
        Ok(flows)
    }

    fn latest_flow(&self, name: &str) -> Result<Option<KeptFlow>, StoreError> {
        let ask = QueryRequest {
            backwards: true,
            limit: Some(1),
            ..QueryRequest::partition(&partition(name), Some(("#sk < :sk", crate::table::PARTS)))
        };
        let (items, _) = self.client.page(&ask, None)?;
        items.first().map(|item| self.flow_of(item)).transpose()
    }

    fn versions(&self, name: &str) -> Result<Vec<KeptFlow>, StoreError> {
        self.kept(name)?.iter().map(|item| self.flow_of(item)).collect()
    }
}

/// The key of a small text. A range key can't be empty.
fn place(kind: &str, name: &str) -> (String, String) {
    (format!("K#{kind}"), format!("N{name}"))
}

impl KeyValue for DynamoStore {
    fn put_value(&self, kind: &str, name: &str, text: &str, audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        let write = self.write_id();
        let mut item = keys(&place(kind, name));
        item.insert(WRITE.to_owned(), crate::item::text(&write));
        self.write_parts(&payload::put(&mut item, text.as_bytes()))?;
        let mut ops = vec![Op::put(item)];
        ops.extend(self.audit_ops(audit));
        self.client.write(&ops, &write).map(drop)
    }

    fn put_new_value(&self, kind: &str, name: &str, text: &str) -> Result<String, StoreError> {
        let write = self.write_id();
        let mut item = keys(&place(kind, name));
        item.insert(WRITE.to_owned(), crate::item::text(&write));
        self.write_parts(&payload::put(&mut item, text.as_bytes()))?;
        // A value that already exists is kept.
        self.client.write(&[Op::put(item).when(ABSENT)], &write)?;
        let kept = self.get_value(kind, name)?;
        kept.ok_or_else(|| StoreError::Unavailable(format!("`{name}` was deleted while it was kept")))
    }

    fn get_value(&self, kind: &str, name: &str) -> Result<Option<String>, StoreError> {
        let item = self.client.get(&place(kind, name))?;
        item.map(|item| payload::get_text(&item, |pk, prefix| self.client.parts(pk, prefix)))
            .transpose()
    }

    fn list_values(&self, kind: &str) -> Result<Vec<(String, String)>, StoreError> {
        let (pk, _) = place(kind, "");
        let items = self
            .client
            .all(&QueryRequest::partition(&pk, Some(("#sk < :sk", crate::table::PARTS))))?;
        let one = |item: &Item| {
            let name = key_of(item).1.get(1..).unwrap_or_default().to_owned();
            Ok((
                name,
                payload::get_text(item, |pk, prefix| self.client.parts(pk, prefix))?,
            ))
        };
        items.iter().map(one).collect()
    }

    fn delete_value(&self, kind: &str, name: &str, audit: Option<&AuditEntry>) -> Result<bool, StoreError> {
        let key = place(kind, name);
        let there = self.client.get(&key)?;
        let Some(item) = there else {
            return Ok(false);
        };
        if let Some(prefix) = payload::parts_of(&item) {
            for part in self.client.parts(&key.0, &prefix)? {
                self.client.write(&[Op::delete(key_of(&part))], "")?;
            }
        }
        let mut ops = vec![Op::delete(key)];
        ops.extend(self.audit_ops(audit));
        self.client.write(&ops, "")?;
        Ok(true)
    }
}
