//! Shapes from JSON Schemas: names, types and values. Other keywords are ignored, which leaves a
//! shape that allows more.

use super::shape::{Items, Kinds, Known, MAX_LISTED, Members, Others, Shape};
use crate::syntax::{Node, NodeKind, find};
use crate::value::{Text, Value};
use std::collections::HashMap;
use std::rc::Rc;

/// The maximum depth of nested schemas and followed references.
const MAX_DEPTH: usize = 16;
/// The maximum number of schemas that are read from one definition.
const MAX_SCHEMAS: usize = 2_000;

/// Reads one schema with everything in it.
struct Reader<'n> {
    root: &'n Node,
    left: usize,
    /// The targets of references; `None` while a target is being read, for a schema that contains
    /// itself.
    references: HashMap<&'n str, Option<Shape>>,
}

/// The shape of values that fit a schema.
pub(super) fn shape_of(schema: &Node) -> Shape {
    let mut reader = Reader {
        root: schema,
        left: MAX_SCHEMAS,
        references: HashMap::default(),
    };
    reader.schema(schema, MAX_DEPTH)
}

/// From here on, not every integer has a double of its own.
pub(super) const EXACT: f64 = 9_007_199_254_740_992.0;

impl<'n> Reader<'n> {
    // `depth` bounds the recursion schema → keywords → schema.
    fn schema(&mut self, node: &'n Node, depth: usize) -> Shape {
        let strange = !std::ptr::eq(node, self.root) && node.get("$id").is_some();
        if depth == 0 || self.left == 0 || node.members().is_empty() || strange {
            return Shape::default();
        }
        self.left -= 1;
        let mut whole = Some(self.own(node, depth - 1));
        if let Some(reference) = node.get("$ref").and_then(Node::as_str) {
            let there = self.reference(reference, depth - 1);
            whole = whole.and_then(|own| both(&own, &there));
        }
        for part in node.get("allOf").map_or(&[][..], Node::items) {
            let part = self.schema(part, depth - 1);
            whole = whole.and_then(|own| both(&own, &part));
        }
        for keyword in ["anyOf", "oneOf"] {
            let parts = node.get(keyword).map_or(&[][..], Node::items);
            let parts: Vec<Shape> = parts.iter().map(|part| self.schema(part, depth - 1)).collect();
            let any = parts.into_iter().reduce(|any, part| any.or(&part));
            whole = whole.and_then(|own| any.map_or(Some(own.clone()), |any| both(&own, &any)));
        }
        if node.get("if").is_some() {
            let mut branch = |keyword: &str| {
                node.get(keyword)
                    .map_or(Shape::default(), |part| self.schema(part, depth - 1))
            };
            let either = branch("then").or(&branch("else"));
            whole = whole.and_then(|own| both(&own, &either));
        }
        let Some(mut known) = whole else {
            return Shape::default();
        };
        let elsewhere = |to: &str| to != "#" && !to.starts_with("#/");
        let unread = node.get("if").is_some()
            || node.get("$dynamicRef").is_some()
            || node.get("$ref").and_then(Node::as_str).is_some_and(elsewhere);
        let is_closed = is_false(node.get("unevaluatedProperties"));
        if is_closed && !unread && known.members.others != Others::Any {
            Rc::make_mut(&mut known.members).others = Others::None;
        }
        if known.kinds == Kinds::NONE {
            return Shape::default();
        }
        Shape::of(known)
    }

    /// The keywords about the value itself.
    fn own(&mut self, node: &'n Node, depth: usize) -> Known {
        let head = ["properties", "type", "enum", "const", "items"];
        let said = head
            .iter()
            .find_map(|key| node.get(key))
            .map_or(node.span, |node| node.span);
        let mut known = Known::new(types(node), Some(said));
        known.members = Rc::new(self.members(node, depth));
        if let Some(items) = node.get("items").filter(|_| node.get("prefixItems").is_none()) {
            known.items = Items::All(self.schema(items, depth));
        }
        let bound = |keywords: [&str; 2]| {
            keywords.iter().find_map(|keyword| match &node.get(keyword)?.kind {
                // A rounded bound would not be the bound in the text.
                NodeKind::Number(number) => number.as_f64().filter(|bound| bound.abs() < EXACT),
                _ => None,
            })
        };
        known.bounds = (
            bound(["minimum", "exclusiveMinimum"]),
            bound(["maximum", "exclusiveMaximum"]),
        );
        let listed = match (node.get("const"), node.get("enum")) {
            (Some(only), _) => Some(std::slice::from_ref(only)),
            (None, Some(among)) => Some(among.items()),
            _ => None,
        };
        if let Some(listed) = listed {
            let values: Vec<Value> = listed.iter().map(Node::to_value).collect();
            let kinds = values.iter().map(Kinds::of).fold(Kinds::NONE, Kinds::or);
            known.kinds = known.kinds.and(kinds);
            let scalar = |value: &Value| !matches!(value, Value::Array(_) | Value::Object(_));
            let few = values.len() <= MAX_LISTED;
            known.values = few.then(|| values.into_iter().filter(scalar).collect());
        }
        known
    }

    fn members(&mut self, node: &'n Node, depth: usize) -> Members {
        let properties = node.get("properties").map_or(&[][..], Node::members);
        let required = node.get("required").map_or(&[][..], Node::items);
        let mut members = Members::declared(properties.len().max(required.len()));
        for property in properties {
            let shape = self.schema(&property.value, depth);
            members.set(property.key.clone(), shape, false, Some(property.key_span));
        }
        for name in required {
            let Some(key) = name.as_str() else { continue };
            let (shape, said) = match members.get(key) {
                Some(member) => (member.shape, member.said),
                None => (Shape::default(), Some(name.span)),
            };
            members.set(Text::from(key), shape, true, said);
        }
        let more = ["patternProperties", "dependentSchemas", "dependencies"];
        members.others = match node.get("additionalProperties") {
            _ if node.get("patternProperties").is_some() => Others::Any,
            more if is_false(more) => Others::None,
            Some(_) => Others::Any,
            None if members.is_empty() || more.iter().any(|key| node.get(key).is_some()) => Others::Any,
            None => Others::Unnamed,
        };
        members
    }

    /// The shape at the target of a reference into the same schema.
    fn reference(&mut self, reference: &'n str, depth: usize) -> Shape {
        if let Some(there) = self.references.get(reference) {
            return there.clone().unwrap_or_default();
        }
        let pointer = reference
            .strip_prefix('#')
            .filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let Some(node) = pointer.and_then(|pointer| find(self.root, pointer)) else {
            return Shape::default();
        };
        self.references.insert(reference, None);
        let shape = self.schema(node, depth);
        self.references.insert(reference, Some(shape.clone()));
        shape
    }
}

fn is_false(node: Option<&Node>) -> bool {
    matches!(node.map(|node| &node.kind), Some(NodeKind::Bool(false)))
}

/// The types that `type` allows.
fn types(node: &Node) -> Kinds {
    let Some(given) = node.get("type") else {
        return Kinds::ALL;
    };
    let kind = |word: &Node| match word.as_str() {
        Some("null") => Kinds::NULL,
        Some("boolean") => Kinds::BOOL,
        Some("number" | "integer") => Kinds::NUMBER,
        Some("string") => Kinds::STRING,
        Some("array") => Kinds::ARRAY,
        Some("object") => Kinds::OBJECT,
        _ => Kinds::ALL,
    };
    match &given.kind {
        NodeKind::Array(words) => words.iter().map(kind).fold(Kinds::NONE, Kinds::or),
        _ => kind(given),
    }
}

/// The shape of values that have both shapes.
fn both(known: &Known, other: &Shape) -> Option<Known> {
    let mut whole = known.clone();
    let Some(more) = other.known() else {
        return Some(whole);
    };
    if !other.is_doubted() {
        whole.kinds = whole.kinds.and(more.kinds);
        whole.values = whole.values.or_else(|| more.values.clone());
        whole.bounds = (whole.bounds.0.or(more.bounds.0), whole.bounds.1.or(more.bounds.1));
    }
    if let (Items::All(items), true) = (&whole.items, matches!(more.items, Items::All(_)))
        && items.known().is_none()
    {
        whole.items = more.items.clone();
    }
    if more.members.is_empty() && more.members.others == Others::Any {
        return Some(whole);
    }
    let neutral = whole.members.is_empty() && whole.members.others == Others::Any;
    let members = Rc::make_mut(&mut whole.members);
    members.declare(&more.members);
    for (key, member) in more.members.iter() {
        let member_shape = member.shape.clone().doubted_if(other.is_doubted());
        let (shape, sure) = match members.get(key) {
            Some(own) if own.shape.known().is_some() => (own.shape, own.sure || member.sure),
            Some(own) => (member_shape, own.sure || member.sure),
            None => (member_shape, member.sure && !other.is_doubted()),
        };
        members.set(key.clone(), shape, sure, member.said);
    }
    members.others = match (members.others, more.members.others) {
        (_, others) if neutral => others,
        (Others::None, _) | (_, Others::None) => Others::None,
        (own, others) => own.max(others),
    };
    members.quiet |= more.members.quiet;
    Some(whole)
}
