//! Views: filters of the list of executions that have a name and are there for everybody.

use super::Node;
use super::filter::{ExecutionFilter, FILTER_BYTES};
use super::operator::Operator;
use starbridge_flow::diagnostics::quoted;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_ports::{AuditKind, StoreError};
use std::sync::PoisonError;

/// The kind under which a store has views.
const KIND: &str = "view";
/// How many views there may be.
const MAX_VIEWS: usize = 100;
/// The longest name.
const NAME_CHARS: usize = 64;
/// The most memory that reading a stored view may take.
const READ_BYTES: usize = 1 << 20;

/// Has no control characters, and no space at either end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewName(Text);

impl ViewName {
    /// Reads a name.
    ///
    /// # Errors
    ///
    /// What is wrong with it, for people.
    pub fn read(name: &str) -> Result<Self, String> {
        let fits = (1..=NAME_CHARS).contains(&name.chars().count()) && !matches!(name, "." | "..");
        match fits && name.trim() == name && !name.contains(char::is_control) {
            true => Ok(Self(name.into())),
            false => Err(format!(
                "{} is no name of a view: 1 to {NAME_CHARS} characters without control characters, no space at either end",
                quoted(name)
            )),
        }
    }
}

/// A filter of the list of executions that has a name.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedView {
    /// Unique among the views of a store.
    pub name: Text,
    /// Which executions it shows.
    pub filter: Object,
    /// Who saved it.
    pub by: Text,
    /// When.
    pub time: Timestamp,
}

impl SavedView {
    fn to_text(&self) -> String {
        let members = [
            ("filter".into(), Value::from(self.filter.clone())),
            ("by".into(), self.by.clone().into()),
            ("time".into(), self.time.to_string().into()),
        ];
        Value::from(members.into_iter().collect::<Object>()).to_json()
    }

    fn read(name: &str, text: &str) -> Result<Self, StoreError> {
        let read = || {
            let value = Value::read_bounded(text.as_bytes(), READ_BYTES).ok()?;
            Some(Self {
                name: name.into(),
                filter: value.get("filter")?.as_object()?.clone(),
                by: value.get("by")?.as_text()?.clone(),
                time: Timestamp::parse(value.get("time")?.as_str()?)?,
            })
        };
        read().ok_or_else(|| StoreError::Corrupt(format!("the view {} can't be read", quoted(name))))
    }
}

/// Why a view is not saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutViewError {
    /// The filter is none; the text is for people.
    Filter(String),
    /// There are so many already.
    TooMany(usize),
    /// The error of the store.
    Store(StoreError),
}

impl From<StoreError> for PutViewError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Node {
    /// All views, by name.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub fn saved_views(&self) -> Result<Vec<SavedView>, StoreError> {
        let all = self.store.list_values(KIND)?;
        all.iter().map(|(name, text)| SavedView::read(name, text)).collect()
    }

    /// The view of this name; `None` if there is none.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub fn saved_view(&self, name: &str) -> Result<Option<SavedView>, StoreError> {
        let text = self.store.get_value(KIND, name)?;
        text.map(|text| SavedView::read(name, &text)).transpose()
    }

    /// Saves a view in place of an earlier one. Returns it, and whether it is new.
    ///
    /// # Errors
    ///
    /// Why it is not saved.
    pub fn put_view(
        &self,
        ViewName(name): &ViewName,
        filter: Object,
        operator: &Operator,
    ) -> Result<(SavedView, bool), PutViewError> {
        let read = ExecutionFilter::read(&filter).and_then(|read| read.check_texts());
        read.map_err(PutViewError::Filter)?;
        let view = SavedView {
            name: name.clone(),
            filter,
            by: operator.by.clone(),
            time: self.now(),
        };
        let text = view.to_text();
        if text.len() > FILTER_BYTES {
            let detail = format!("the filter of a view has at most {FILTER_BYTES} bytes");
            return Err(PutViewError::Filter(detail));
        }
        let _one = self.flow_puts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = self.store.get_value(KIND, name)?.is_none();
        if is_new && self.store.list_values(KIND)?.len() >= MAX_VIEWS {
            return Err(PutViewError::TooMany(MAX_VIEWS));
        }
        let audit = self.audit_entry(operator, "put", AuditKind::View, name);
        let audit = audit.with("filter", view.filter.clone());
        self.store.put_value(KIND, name, &text, Some(&audit))?;
        Ok((view, is_new))
    }

    /// Deletes a view. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub fn delete_view(&self, name: &str, operator: &Operator) -> Result<bool, StoreError> {
        let audit = self.audit_entry(operator, "delete", AuditKind::View, name);
        self.store.delete_value(KIND, name, Some(&audit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_views_can_be_seen_and_asked_for() {
        let long = "x".repeat(NAME_CHARS + 1);
        for name in ["failed in Berlin", "星桥", "a/b", "..."] {
            assert!(ViewName::read(name).is_ok(), "{name}");
        }
        for name in ["", ".", "..", " a", "a ", "a\nb", "a\u{7f}", &long] {
            assert!(ViewName::read(name).is_err(), "{name:?}");
        }
    }
}
