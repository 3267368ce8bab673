//! The names of children.

use super::Shard;
use starbridge_flow::fnv::fnv1a_32;
use starbridge_flow::limits::{NAME_CHARS, is_execution_name};
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{CallToSend, EventId};

impl Shard {
    /// The name of a child without a given name. `taken`: whether its default name is taken.
    pub(super) fn default_name_of_child(&self, execution: &Text, call: &CallToSend, taken: bool) -> Option<Text> {
        if taken {
            return Some(reserved_name(execution, call.call));
        }
        let started = self.state(execution).and_then(|state| state.started());
        started.map(|started| default_name(&started.name, execution, call.call))
    }
}

/// The name that a call gives its child. The error says what is wrong with it.
pub(super) fn given_name(name: &Value) -> Result<Text, String> {
    match name {
        Value::String(name) if is_execution_name(name) => Ok(name.clone()),
        Value::String(_) => Err(format!(
            "the child's `ExecutionName` is no name: it has 1 to {NAME_CHARS} of A-Z, a-z, 0-9, `_` and `-`, and does not begin with `-`"
        )),
        other => Err(format!("the child's `ExecutionName` is {}, not a string", other.kind())),
    }
}

/// The default name of a child: its parent's name and the number of the call. A long parent's name
/// is replaced by its beginning and a hash of the parent's id, which distinguishes names that begin
/// alike.
pub(super) fn default_name(parent: &str, parent_id: &Text, call: EventId) -> Text {
    let name = format!("{parent}-{call}");
    if name.len() <= NAME_CHARS {
        return Text::from(name);
    }
    let end = format!("-{:08x}-{call}", fnv1a_32(parent_id.as_str().bytes()));
    let begin: String = parent.chars().take(NAME_CHARS - end.len()).collect();
    Text::from(begin + &end)
}

/// The name of a child without a given name whose default name is taken. It contains a `.`, so no
/// one can give it to another execution.
pub(super) fn reserved_name(parent_id: &Text, call: EventId) -> Text {
    Text::from(format!("{parent_id}.{call}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_can_give_a_reserved_name() {
        let reserved = reserved_name(&"0190b3e4-8c1d-7abc-9def-0123456789ab".into(), EventId(7));
        assert!(reserved.len() <= NAME_CHARS && !is_execution_name(&reserved));
        assert!(given_name(&Value::String(reserved)).is_err());
    }
}
