//! Steps and lists by number, in document order, a composite before its inside; names to numbers.

use super::kind::Kind;
use crate::diagnostics::shortened;
use crate::graph::{ListId, StepId};
use crate::syntax::{Node, NodeKind, Span};
use crate::value::Text;
use std::collections::HashMap;

/// All steps and lists of a definition.
pub(super) struct Outline<'t> {
    pub(super) root: &'t Node,
    pub(super) steps: Vec<Entry<'t>>,
    pub(super) lists: Vec<Listing>,
    /// The first step of each name.
    pub(super) names: HashMap<&'t str, StepId>,
    /// Composites beyond the nesting limit. Their contents are not looked at.
    pub(super) too_deep: Vec<StepId>,
}

/// A step before it is read.
pub(super) struct Entry<'t> {
    pub(super) node: &'t Node,
    pub(super) name: Option<&'t Text>,
    pub(super) kind: Option<Kind>,
    pub(super) list: ListId,
    pub(super) position: u32,
    /// The lists inside, in order of their slots.
    inside: Vec<(Slot, ListId)>,
}

/// A list of steps.
pub(super) struct Listing {
    /// The composite it belongs to; the flow's own has none.
    pub(super) parent: Option<(StepId, Slot)>,
    pub(super) steps: Vec<StepId>,
}

/// The position of a list in a composite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slot {
    /// `steps`
    Steps,
    /// `branches/n/steps`
    Branch(usize),
    /// `choices/n/steps`
    Arm(usize),
    /// `default/steps`
    Default,
}

impl<'t> Outline<'t> {
    /// Numbers everything; composites more than `nesting` deep are not entered.
    pub(super) fn of(root: &'t Node, nesting: usize) -> Self {
        let mut outline = Self {
            root,
            steps: Vec::new(),
            lists: Vec::new(),
            names: HashMap::default(),
            too_deep: Vec::new(),
        };
        if let Some(steps) = root.get("steps") {
            outline.list(steps, None, nesting);
        }
        outline
    }

    // The recursion list → step → list is bounded by `nesting`.
    fn list(&mut self, node: &'t Node, parent: Option<(StepId, Slot)>, nesting: usize) -> Option<ListId> {
        let items = steps_in(node)?;
        let id = ListId(number(self.lists.len()));
        self.lists.push(Listing {
            parent,
            steps: Vec::with_capacity(items.len()),
        });
        for (position, item) in items.iter().enumerate() {
            let step = self.step(item, id, position, nesting);
            if let Some(list) = self.lists.get_mut(id.0 as usize) {
                list.steps.push(step);
            }
        }
        Some(id)
    }

    fn step(&mut self, node: &'t Node, list: ListId, position: usize, nesting: usize) -> StepId {
        let id = StepId(number(self.steps.len()));
        let name = match node.get("name").map(|name| &name.kind) {
            Some(NodeKind::String(name)) => Some(name),
            _ => None,
        };
        let word = node.get("type").and_then(Node::as_str);
        let kind = word.and_then(|word| Kind::parse(word).or_else(|| Some(Kind::meant(word)?.0)));
        self.steps.push(Entry {
            node,
            name,
            kind,
            list,
            position: number(position),
            inside: Vec::new(),
        });
        if let Some(name) = name {
            self.names.entry(name.as_str()).or_insert(id);
        }
        if matches!(kind, Some(Kind::Choice | Kind::Parallel | Kind::Foreach)) {
            match nesting.checked_sub(1) {
                None => self.too_deep.push(id),
                Some(nesting) => self.inside(node, id, kind, nesting),
            }
        }
        id
    }

    fn inside(&mut self, node: &'t Node, id: StepId, kind: Option<Kind>, nesting: usize) {
        let items = |key: &str| node.get(key).map_or(&[][..], entries);
        let mut slots: Vec<(Slot, &'t Node)> = Vec::new();
        match kind {
            Some(Kind::Foreach) => slots.extend(node.get("steps").map(|steps| (Slot::Steps, steps))),
            Some(Kind::Parallel) => {
                for (index, branch) in items("branches").iter().enumerate() {
                    slots.extend(own_steps(branch).map(|steps| (Slot::Branch(index), steps)));
                }
            }
            Some(Kind::Choice) => {
                for (index, arm) in items("choices").iter().enumerate() {
                    slots.extend(arm.get("steps").map(|steps| (Slot::Arm(index), steps)));
                }
                let default = node.get("default").and_then(own_steps);
                slots.extend(default.map(|steps| (Slot::Default, steps)));
            }
            _ => {}
        }
        for (slot, steps) in slots {
            if let Some(list) = self.list(steps, Some((id, slot)), nesting)
                && let Some(entry) = self.steps.get_mut(id.0 as usize)
            {
                entry.inside.push((slot, list));
            }
        }
    }

    /// The step of that number.
    pub(super) fn entry(&self, id: StepId) -> Option<&Entry<'t>> {
        self.steps.get(id.0 as usize)
    }

    /// The list of that number.
    pub(super) fn listing(&self, id: ListId) -> Option<&Listing> {
        self.lists.get(id.0 as usize)
    }

    /// The name of a step; empty if it has none.
    pub(super) fn name(&self, id: StepId) -> &str {
        self.entry(id).and_then(|entry| entry.name).map_or("", Text::as_str)
    }

    /// Where a step's name stands, or the step itself.
    pub(super) fn name_span(&self, id: StepId) -> Span {
        self.entry(id).map_or_else(Span::default, |entry| {
            entry.node.get("name").map_or(entry.node.span, |name| name.span)
        })
    }

    /// The JSON pointer of a step.
    pub(super) fn pointer(&self, id: StepId) -> String {
        let Some(entry) = self.entry(id) else {
            return String::new();
        };
        let list = match self.listing(entry.list).and_then(|list| list.parent) {
            None => "/steps".to_owned(),
            Some((parent, slot)) => self.pointer(parent) + &slot.pointer(),
        };
        format!("{list}/{}", entry.position)
    }

    /// Where a list is, in words.
    pub(super) fn whereabouts(&self, list: ListId) -> String {
        match self.listing(list).and_then(|list| list.parent) {
            None => "at the top level".to_owned(),
            Some((parent, slot)) => {
                let name = shortened(self.name(parent));
                match slot {
                    Slot::Steps => format!("inside `{name}`"),
                    Slot::Branch(index) => format!("in branch {index} of `{name}`"),
                    Slot::Arm(index) => format!("in choice {index} of `{name}`"),
                    Slot::Default => format!("in the default of `{name}`"),
                }
            }
        }
    }

    /// The step of that name in that list.
    pub(super) fn sibling(&self, list: ListId, name: &str) -> Option<StepId> {
        let id = *self.names.get(name)?;
        self.entry(id).filter(|entry| entry.list == list).map(|_| id)
    }
}

impl Entry<'_> {
    /// The list in a slot.
    pub(super) fn list_in(&self, slot: Slot) -> Option<ListId> {
        let index = self.inside.binary_search_by_key(&slot, |(slot, _)| *slot).ok()?;
        self.inside.get(index).map(|(_, list)| *list)
    }
}

impl Slot {
    fn pointer(self) -> String {
        match self {
            Self::Steps => "/steps".to_owned(),
            Self::Branch(index) => format!("/branches/{index}/steps"),
            Self::Arm(index) => format!("/choices/{index}/steps"),
            Self::Default => "/default/steps".to_owned(),
        }
    }
}

/// The items of a list, or the one object that is given in place of a list.
pub(super) fn entries(node: &Node) -> &[Node] {
    match &node.kind {
        NodeKind::Array(items) => items,
        NodeKind::Object(_) => std::slice::from_ref(node),
        _ => &[],
    }
}

/// The steps of a list, or the one step that is given in place of a list.
pub(super) fn steps_in(node: &Node) -> Option<&[Node]> {
    match &node.kind {
        NodeKind::Array(items) => Some(items),
        NodeKind::Object(_) => node.get("type").is_some().then(|| std::slice::from_ref(node)),
        _ => None,
    }
}

/// The `steps` of a branch or a default, or the list of steps that is given in its place.
pub(super) fn own_steps(node: &Node) -> Option<&Node> {
    match &node.kind {
        NodeKind::Array(_) => Some(node),
        _ => node.get("steps"),
    }
}

/// A count as an id. The size of a definition keeps it far below the maximum.
pub(super) fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
