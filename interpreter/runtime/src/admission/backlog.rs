//! What is still to be done for those who wait for others. It is done in parts, so that nobody else waits for all of it.
//!
//! Names that appeared have a line of their own: whoever asks, or waits for an end, does not wait for all who wait for names.

use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{Message, MessageId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One thing that is still to be done.
#[derive(Debug)]
pub(super) enum Unfinished {
    /// A question whose waiter is durable: its names are to be looked up.
    Question(Message),
    /// An execution has ended: those who wait for it are to be told.
    End {
        execution: Text,
        status: Status,
        /// The message that told of it. It is handled once all are told.
        message: Option<MessageId>,
    },
    /// An execution was started under a name: those who wait for it are to be bound to it.
    Name(Text, Text),
}

impl Unfinished {
    fn line(&self) -> Line {
        match self {
            Self::Question(_) | Self::End { .. } => Line::Messages,
            Self::Name(..) => Line::Names,
        }
    }
}

/// What is kept in a line, without what questions ask for.
#[derive(Debug)]
enum Entry {
    Question(Text, EventId),
    Other(Unfinished),
}

/// The two lines of what is still to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Questions and ends.
    Messages,
    /// Names that appeared.
    Names,
}

/// What is still to be done, in each line in the order in which it came.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    messages: VecDeque<Entry>,
    appeared: VecDeque<Entry>,
    questions: BTreeMap<(Text, EventId), Message>,
    ends: BTreeSet<MessageId>,
    names: BTreeSet<(Text, Text)>,
}

impl Backlog {
    /// How many things are to be done in a line, at most.
    pub(super) fn len(&self, line: Line) -> usize {
        match line {
            Line::Messages => self.messages.len(),
            Line::Names => self.appeared.len(),
        }
    }

    /// How many things are to be done, at most.
    pub(super) fn total(&self) -> usize {
        self.messages.len().saturating_add(self.appeared.len())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.appeared.is_empty()
    }

    fn line_mut(&mut self, line: Line) -> &mut VecDeque<Entry> {
        match line {
            Line::Messages => &mut self.messages,
            Line::Names => &mut self.appeared,
        }
    }

    /// The names that are still to be looked for.
    pub(super) fn names(&self) -> &BTreeSet<(Text, Text)> {
        &self.names
    }

    /// Whether the rest of what a message asks for or tells of is to be done.
    pub(super) fn has(&self, message: &MessageId) -> bool {
        self.questions.contains_key(&(message.from.clone(), message.event)) || self.ends.contains(message)
    }

    /// Adds what comes after all others of its line.
    pub(super) fn add(&mut self, unfinished: Unfinished) {
        let line = unfinished.line();
        if let Some(entry) = self.entry(unfinished) {
            self.line_mut(line).push_back(entry);
        }
    }

    /// Gives back what was taken last and is not done.
    pub(super) fn put_back(&mut self, unfinished: Unfinished) {
        let line = unfinished.line();
        if let Some(entry) = self.entry(unfinished) {
            self.line_mut(line).push_front(entry);
        }
    }

    /// Notes what is to be done; `None` if it is noted already.
    fn entry(&mut self, unfinished: Unfinished) -> Option<Entry> {
        let is_new = match &unfinished {
            Unfinished::Question(message) => {
                let key = (message.id.from.clone(), message.id.event);
                let entry = Entry::Question(key.0.clone(), key.1);
                return self.questions.insert(key, message.clone()).is_none().then_some(entry);
            }
            Unfinished::End { message, .. } => message.clone().is_none_or(|message| self.ends.insert(message)),
            Unfinished::Name(flow, name) => self.names.insert((flow.clone(), name.clone())),
        };
        is_new.then_some(Entry::Other(unfinished))
    }

    /// Takes the first thing of a line; `None` if it is a question that was withdrawn, or if there is nothing.
    pub(super) fn take(&mut self, line: Line) -> Option<Unfinished> {
        match self.line_mut(line).pop_front()? {
            Entry::Question(from, event) => self.questions.remove(&(from, event)).map(Unfinished::Question),
            Entry::Other(other) => {
                match &other {
                    Unfinished::End {
                        message: Some(message), ..
                    } => drop(self.ends.remove(message)),
                    Unfinished::Name(flow, name) => drop(self.names.remove(&(flow.clone(), name.clone()))),
                    _ => {}
                }
                Some(other)
            }
        }
    }

    /// Withdraws the questions of an execution, and returns their messages.
    pub(super) fn withdraw(&mut self, execution: &Text) -> Vec<MessageId> {
        let of_it = self.questions.range((execution.clone(), EventId(0))..);
        let of_it = of_it.take_while(|((from, _), _)| from == execution);
        let messages: Vec<MessageId> = of_it.map(|(_, message)| message.id.clone()).collect();
        for message in &messages {
            self.questions.remove(&(message.from.clone(), message.event));
        }
        messages
    }
}
