//! Writes, each alone or several in a transaction.

use crate::item::{Item, Key, key_of, keys, size};
use crate::table::PK;
use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, Delete, Put, TransactWriteItem, Update};
use std::collections::HashMap;

/// The kind of a write.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// Writes an item; it replaces one with the same key.
    Put(Item),
    /// Changes an item by an expression.
    Update(Key, String),
    /// Deletes an item if it exists.
    Delete(Key),
    /// Writes nothing, but its condition must hold.
    Check(Key),
}

/// One write. In expressions, `#name` stands for the attribute with that name, so that reserved words can be used.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub kind: Kind,
    pub condition: Option<String>,
    pub values: Vec<(&'static str, AttributeValue)>,
}

impl Op {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            condition: None,
            values: Vec::new(),
        }
    }

    pub(crate) fn put(item: Item) -> Self {
        Self::new(Kind::Put(item))
    }

    /// Writes an item that must not exist.
    pub(crate) fn put_new(item: Item) -> Self {
        Self::put(item).when(ABSENT)
    }

    pub(crate) fn update(key: Key, change: impl Into<String>) -> Self {
        Self::new(Kind::Update(key, change.into()))
    }

    pub(crate) fn delete(key: Key) -> Self {
        Self::new(Kind::Delete(key))
    }

    pub(crate) fn check(key: Key) -> Self {
        Self::new(Kind::Check(key))
    }

    pub(crate) fn when(mut self, condition: impl Into<String>) -> Self {
        self.condition = Some(condition.into());
        self
    }

    pub(crate) fn with(mut self, name: &'static str, value: AttributeValue) -> Self {
        self.values.push((name, value));
        self
    }

    pub(crate) fn key(&self) -> Key {
        match &self.kind {
            Kind::Put(item) => key_of(item),
            Kind::Update(key, _) | Kind::Delete(key) | Kind::Check(key) => key.clone(),
        }
    }

    pub(crate) fn size(&self) -> usize {
        match &self.kind {
            Kind::Put(item) => size(item),
            _ => 200,
        }
    }

    pub(crate) fn values(&self) -> Option<HashMap<String, AttributeValue>> {
        values(&self.values)
    }

    /// The attributes that its expressions name.
    pub(crate) fn names(&self) -> Option<HashMap<String, String>> {
        let change = match &self.kind {
            Kind::Update(_, change) => change.as_str(),
            _ => "",
        };
        names(&[change, self.condition.as_deref().unwrap_or_default()])
    }

    pub(crate) fn transacted(&self, table: &str) -> Result<TransactWriteItem, BuildError> {
        let all = TransactWriteItem::builder();
        let (names, values, condition) = (self.names(), self.values(), self.condition.clone());
        Ok(match &self.kind {
            Kind::Put(item) => {
                let put = Put::builder().table_name(table).set_item(Some(item.clone()));
                let put = put
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names);
                all.put(put.set_expression_attribute_values(values).build()?)
            }
            Kind::Update(key, change) => {
                let update = Update::builder().table_name(table).set_key(Some(keys(key)));
                let update = update.update_expression(change).set_condition_expression(condition);
                let update = update.set_expression_attribute_names(names);
                all.update(update.set_expression_attribute_values(values).build()?)
            }
            Kind::Delete(key) => {
                let delete = Delete::builder().table_name(table).set_key(Some(keys(key)));
                let delete = delete
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names);
                all.delete(delete.set_expression_attribute_values(values).build()?)
            }
            Kind::Check(key) => {
                let check = ConditionCheck::builder().table_name(table).set_key(Some(keys(key)));
                let check = check
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names);
                all.condition_check(check.set_expression_attribute_values(values).build()?)
            }
        }
        .build())
    }
}

/// The condition that the item does not exist.
pub(crate) const ABSENT: &str = "attribute_not_exists(#pk)";
/// The condition that the item exists.
pub(crate) const PRESENT: &str = "attribute_exists(#pk)";

const _: () = assert!(PK.len() == 2, "the conditions above name the hash key");

/// The values of an expression, if it has any.
pub(crate) fn values(values: &[(&'static str, AttributeValue)]) -> Option<HashMap<String, AttributeValue>> {
    let named = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    Some(named.collect::<HashMap<_, _>>()).filter(|values| !values.is_empty())
}

/// The attributes that expressions name, if they name any.
pub(crate) fn names(expressions: &[&str]) -> Option<HashMap<String, String>> {
    let mut names = HashMap::new();
    for expression in expressions {
        for part in expression.split('#').skip(1) {
            let name: String = part.chars().take_while(char::is_ascii_alphanumeric).collect();
            names.insert(format!("#{name}"), name);
        }
    }
    Some(names).filter(|names| !names.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_names_are_found_in_expressions() {
        let op = Op::update((String::new(), String::new()), "SET #a = :a, #due = :d REMOVE #until").when(ABSENT);
        let mut found: Vec<String> = op.names().unwrap().into_values().collect();
        found.sort();
        assert_eq!(found, ["a", "due", "pk", "until"]);
        assert_eq!(Op::put(Item::new()).names(), None);
    }
}
