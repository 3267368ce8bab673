//! What executions wait for while admission has not taken their questions. A start that closes a circle with them is seen at once,
//! however much there is to decide before them.

use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{Dependency, Message, MessageBody, MessageId};
use std::collections::BTreeMap;

/// The questions of those that wait for others, from the moment they are durable until they are decided and the store has the rows.
#[derive(Debug, Default)]
pub(super) struct Undecided {
    after: BTreeMap<(Text, EventId), Vec<Dependency>>,
    /// How many wait for the execution of this flow with this name.
    names: BTreeMap<(Text, Text), usize>,
    /// Whether the store may have questions from before this process that are not here.
    pub(super) incomplete: bool,
}

impl Undecided {
    /// Whether this is a question that is kept here.
    pub(super) fn is_kept(message: &Message) -> bool {
        matches!(&message.body, MessageBody::Ask(ask) if !ask.after.is_empty())
    }

    /// A question is durable.
    pub(super) fn add(&mut self, message: &Message) {
        let MessageBody::Ask(ask) = &message.body else {
            return;
        };
        let key = (message.id.from.clone(), message.id.event);
        if ask.after.is_empty() || self.after.contains_key(&key) {
            return;
        }
        for name in ask.after.iter().filter_map(name_of) {
            *self.names.entry(name).or_default() += 1;
        }
        self.after.insert(key, ask.after.clone());
    }

    /// A question is decided.
    pub(super) fn remove(&mut self, question: &MessageId) {
        let after = self.after.remove(&(question.from.clone(), question.event));
        for name in after.iter().flatten().filter_map(name_of) {
            if let Some(count) = self.names.get_mut(&name) {
                *count -= 1;
                if *count == 0 {
                    self.names.remove(&name);
                }
            }
        }
    }

    /// Whether somebody may wait for the execution of this flow with this name.
    pub(super) fn awaits(&self, flow: &Text, name: &Text) -> bool {
        self.incomplete || !self.names.is_empty() && self.names.contains_key(&(flow.clone(), name.clone()))
    }

    /// What an execution waits for.
    pub(super) fn of(&self, execution: &Text) -> Vec<Dependency> {
        let asked = self.after.range((execution.clone(), EventId(0))..);
        let asked = asked.take_while(|((other, _), _)| other == execution);
        asked.flat_map(|(_, after)| after.iter().cloned()).collect()
    }
}

fn name_of(dependency: &Dependency) -> Option<(Text, Text)> {
    let flow = dependency.flow.clone()?;
    Some((flow, dependency.execution.clone()))
}
