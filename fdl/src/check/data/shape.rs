//! The known facts about data before a flow runs: the types of a value, the members of an object,
//! the items of a list.
//!
//! Shapes are shared by reference and bounded: an object keeps the names of its schema, up to [`MAX_DECLARED`], and
//! [`MAX_MEMBERS`] more, alternatives [`MAX_VALUES`] values, a schema's list of values [`MAX_LISTED`], and [`MAX_DEPTH`] of them stand inside
//! each other. The rest is unknown, which is always correct.

use crate::syntax::Span;
use crate::value::{Text, Value};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The maximum number of names kept of one object in addition to those of its schema. Steps set
/// these one by one, and ways through the flow copy them.
pub(in crate::check) const MAX_MEMBERS: usize = 128;
/// The maximum number of names kept of a schema.
pub(in crate::check) const MAX_DECLARED: usize = 4_096;
/// The maximum number of values kept if only certain values are possible.
const MAX_VALUES: usize = 32;
/// The maximum number of values kept of a schema that lists them. Each comparison looks at all of them.
pub(in crate::check) const MAX_LISTED: usize = 256;
/// The maximum depth of nested shapes.
const MAX_DEPTH: usize = 16;
/// The maximum number of members looked at when two shapes are merged.
const MAX_JOINED: usize = 512;

/// How many members may still be looked at while shapes are merged. Shapes share their contents, so
/// a shape of few bytes can be large. Without room, the result is unknown.
#[derive(Debug)]
pub(in crate::check) struct Room(usize);

/// Some of the six types of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::check) struct Kinds(u8);

/// What is known of a value. Cheap to copy.
#[derive(Clone, Debug, Default)]
pub(in crate::check) struct Shape {
    known: Option<Rc<Known>>,
    /// Whether it may be anything else as well. What is known is then good for suggestions only.
    doubted: bool,
}

/// What is known of a value that is not unknown.
#[derive(Clone, Debug)]
pub(in crate::check) struct Known {
    /// The place that defines it.
    pub(in crate::check) said: Option<Span>,
    pub(in crate::check) kinds: Kinds,
    /// The possible strings, numbers, booleans and null, if only certain ones are possible.
    pub(in crate::check) values: Option<Rc<[Value]>>,
    /// The minimum and the maximum of a number.
    pub(in crate::check) bounds: (Option<f64>, Option<f64>),
    /// The members, if it is an object.
    pub(in crate::check) members: Rc<Members>,
    /// The items, if it is a list.
    pub(in crate::check) items: Items,
    /// The depth of nested shapes here, including this one.
    depth: usize,
}

/// The items of a list.
#[derive(Clone, Debug)]
pub(in crate::check) enum Items {
    /// Any number of items of this shape.
    All(Shape),
    /// Exactly these.
    Each(Rc<Vec<Shape>>),
}

/// Whether an object may have members that are not named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::check) enum Others {
    /// No.
    None,
    /// Nothing forbids them, but the author of the members named none.
    Unnamed,
    /// Any members may be there.
    Any,
}

/// The members of an object.
#[derive(Clone, Debug)]
pub(in crate::check) struct Members {
    named: FxHashMap<Text, Member>,
    pub(in crate::check) others: Others,
    /// How often an unknown object was laid over it. Members that were set before are doubted.
    laid_over: u32,
    /// The maximum number of names that are kept.
    most: usize,
    /// Whether names were left out, or missing names must not be reported.
    pub(in crate::check) quiet: bool,
    /// The depth of the deepest member.
    depth: usize,
}

/// A member of an object.
#[derive(Clone, Debug)]
pub(in crate::check) struct Member {
    pub(in crate::check) shape: Shape,
    /// Whether every such object has it.
    pub(in crate::check) sure: bool,
    /// Where it is named.
    pub(in crate::check) said: Option<Span>,
    set: u32,
}

impl Room {
    pub(in crate::check) fn new() -> Self {
        Self(MAX_JOINED)
    }

    /// How much of it was used.
    pub(in crate::check) fn taken(&self) -> usize {
        MAX_JOINED - self.0
    }

    /// Takes room for this many members, if there is any left.
    fn take(&mut self, members: usize) -> bool {
        let room = self.0 > 0;
        self.0 = self.0.saturating_sub(members + 1);
        room
    }
}

impl Kinds {
    pub(in crate::check) const NULL: Self = Self(1);
    pub(in crate::check) const BOOL: Self = Self(2);
    pub(in crate::check) const NUMBER: Self = Self(4);
    pub(in crate::check) const STRING: Self = Self(8);
    pub(in crate::check) const ARRAY: Self = Self(16);
    pub(in crate::check) const OBJECT: Self = Self(32);
    pub(in crate::check) const NONE: Self = Self(0);
    pub(in crate::check) const ALL: Self = Self(63);
    const SCALARS: Self = Self(15);

    /// The type of a value.
    pub(in crate::check) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOL,
            Value::Number(_) => Self::NUMBER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    pub(in crate::check) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(in crate::check) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the two have a type in common.
    pub(in crate::check) fn meets(self, other: Self) -> bool {
        self.and(other) != Self::NONE
    }

    /// Whether there are no lists or objects among them.
    pub(in crate::check) fn only_scalars(self) -> bool {
        !self.meets(Self::ARRAY.or(Self::OBJECT))
    }

    /// In words, with their articles.
    pub(in crate::check) fn in_words(self) -> String {
        let words: Vec<&str> = [
            (Self::STRING, "a string"),
            (Self::NUMBER, "a number"),
            (Self::BOOL, "a boolean"),
            (Self::ARRAY, "a list"),
            (Self::OBJECT, "an object"),
            (Self::NULL, "null"),
        ]
        .into_iter()
        .filter_map(|(kind, word)| self.meets(kind).then_some(word))
        .collect();
        words.join(" or ")
    }
}

impl Shape {
    /// A shape with this knowledge; a shape that is too deep is unknown.
    pub(in crate::check) fn of(mut known: Known) -> Self {
        known.depth = 1 + known.members.depth.max(known.items.depth());
        Self {
            known: (known.depth <= MAX_DEPTH).then(|| Rc::new(known)),
            doubted: false,
        }
    }

    fn depth(&self) -> usize {
        self.known().map_or(0, |known| known.depth)
    }

    /// A value of certain types, of which nothing else is known.
    pub(in crate::check) fn kinds(kinds: Kinds, said: Option<Span>) -> Self {
        Self::of(Known::new(kinds, said))
    }

    /// An object with these members.
    pub(in crate::check) fn object(members: Rc<Members>, said: Option<Span>) -> Self {
        Self::of(Known {
            members,
            ..Known::new(Kinds::OBJECT, said)
        })
    }

    /// A list with such items, and where the text says so.
    pub(in crate::check) fn list(items: Items, said: Option<Span>) -> Self {
        Self::of(Known {
            items,
            ..Known::new(Kinds::ARRAY, said)
        })
    }

    /// The knowledge, doubted or not.
    pub(in crate::check) fn known(&self) -> Option<&Known> {
        self.known.as_deref()
    }

    /// The knowledge that is certain.
    pub(in crate::check) fn certain(&self) -> Option<&Known> {
        self.known().filter(|_| !self.doubted)
    }

    pub(in crate::check) fn is_doubted(&self) -> bool {
        self.doubted
    }

    /// The value may also be anything else: nothing is certain of it any more.
    #[must_use]
    pub(in crate::check) fn doubted(mut self) -> Self {
        self.doubted = self.known.is_some();
        self
    }

    /// [`Self::doubted`] if `doubt` says so.
    #[must_use]
    pub(in crate::check) fn doubted_if(self, doubt: bool) -> Self {
        if doubt { self.doubted() } else { self }
    }

    /// The shape of a value that has either shape.
    pub(in crate::check) fn or(&self, other: &Self) -> Self {
        self.or_within(other, &mut Room::new())
    }

    // The recursion shape → members and items → shape is bounded by their depth, and by the room.
    fn or_within(&self, other: &Self, room: &mut Room) -> Self {
        match (&self.known, &other.known) {
            (Some(a), Some(b)) if Rc::ptr_eq(a, b) => self.clone().doubted_if(other.doubted),
            (Some(_), None) => self.clone().doubted(),
            (None, Some(_)) => other.clone().doubted(),
            (Some(a), Some(b)) if room.take(a.members.len() + b.members.len()) => {
                Self::of(a.or(b, room)).doubted_if(self.doubted || other.doubted)
            }
            _ => Self::default(),
        }
    }
}

impl Known {
    pub(in crate::check) fn new(kinds: Kinds, said: Option<Span>) -> Self {
        Self {
            said,
            kinds,
            values: None,
            bounds: (None, None),
            members: Rc::new(Members::open()),
            items: Items::All(Shape::default()),
            depth: 1,
        }
    }

    /// The strings, numbers, booleans and null it can be, if only certain ones.
    fn scalars(&self) -> Option<&[Value]> {
        match self.values.as_deref() {
            None if !self.kinds.meets(Kinds::SCALARS) => Some(&[]),
            values => values,
        }
    }

    fn or(&self, other: &Self, room: &mut Room) -> Self {
        let values = self.scalars().zip(other.scalars()).and_then(|(a, b)| {
            let mut values = a.to_vec();
            values.extend(b.iter().filter(|value| !a.contains(value)).cloned());
            (values.len() <= MAX_VALUES).then(|| values.into())
        });
        let (a, b) = (self.kinds.meets(Kinds::NUMBER), other.kinds.meets(Kinds::NUMBER));
        let bounds = match (a, b) {
            (true, false) => self.bounds,
            (false, true) => other.bounds,
            _ => (
                self.bounds.0.zip(other.bounds.0).map(|(a, b)| a.min(b)),
                self.bounds.1.zip(other.bounds.1).map(|(a, b)| a.max(b)),
            ),
        };
        let members = match (self.kinds.meets(Kinds::OBJECT), other.kinds.meets(Kinds::OBJECT)) {
            (true, false) => self.members.clone(),
            (false, true) => other.members.clone(),
            _ => self.members.or(&other.members, room),
        };
        let items = match (self.kinds.meets(Kinds::ARRAY), other.kinds.meets(Kinds::ARRAY)) {
            (true, false) => self.items.clone(),
            (false, true) => other.items.clone(),
            _ => self.items.or(&other.items, room),
        };
        Self {
            said: self.said.or(other.said),
            kinds: self.kinds.or(other.kinds),
            values,
            bounds,
            members,
            items,
            depth: 1,
        }
    }
}

impl Items {
    fn depth(&self) -> usize {
        match self {
            Self::All(shape) => shape.depth(),
            Self::Each(shapes) => shapes.iter().map(Shape::depth).max().unwrap_or(0),
        }
    }

    /// The shape of a value that has any of the shapes.
    pub(in crate::check) fn any(&self) -> Shape {
        match self {
            Self::All(shape) => shape.clone(),
            Self::Each(shapes) => {
                let mut shapes = shapes.iter();
                let first = shapes.next().cloned().unwrap_or_default();
                shapes.fold(first, |any, shape| any.or(shape))
            }
        }
    }

    fn or(&self, other: &Self, room: &mut Room) -> Self {
        match (self, other) {
            (Self::Each(a), Self::Each(b)) if Rc::ptr_eq(a, b) => self.clone(),
            _ => Self::All(self.any().or_within(&other.any(), room)),
        }
    }
}

impl Members {
    /// An object without members.
    pub(in crate::check) fn none() -> Self {
        Self {
            named: FxHashMap::default(),
            others: Others::None,
            laid_over: 0,
            most: MAX_MEMBERS,
            quiet: false,
            depth: 0,
        }
    }

    /// An object whose schema has this many members, before they are set.
    pub(in crate::check) fn declared(count: usize) -> Self {
        Self {
            most: MAX_MEMBERS + count.min(MAX_DECLARED),
            ..Self::none()
        }
    }

    /// Makes room for the names of another schema of the same object.
    pub(in crate::check) fn declare(&mut self, other: &Self) {
        self.most = (self.most + other.len()).min(MAX_MEMBERS + MAX_DECLARED);
    }

    /// An object of which nothing is known.
    pub(in crate::check) fn open() -> Self {
        Self {
            others: Others::Any,
            ..Self::none()
        }
    }

    /// Whether it can have no members at all.
    pub(in crate::check) fn is_nothing(&self) -> bool {
        self.named.is_empty() && self.others == Others::None
    }

    /// Whether no member is named.
    pub(in crate::check) fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    pub(in crate::check) fn len(&self) -> usize {
        self.named.len()
    }

    /// The member of that name.
    pub(in crate::check) fn get(&self, key: &str) -> Option<Member> {
        self.named.get(key).map(|member| self.seen(member))
    }

    /// All named members, in no particular order.
    pub(in crate::check) fn iter(&self) -> impl Iterator<Item = (&Text, Member)> {
        self.named.iter().map(|(name, member)| (name, self.seen(member)))
    }

    fn seen(&self, member: &Member) -> Member {
        Member {
            shape: member.shape.clone().doubted_if(member.set < self.laid_over),
            ..member.clone()
        }
    }

    /// Names a member. If there are too many, the last are not kept.
    pub(in crate::check) fn set(&mut self, key: Text, shape: Shape, sure: bool, said: Option<Span>) {
        if self.named.len() >= self.most && !self.named.contains_key(&key) {
            self.quiet = true;
            self.others = Others::Any;
            return;
        }
        self.depth = self.depth.max(shape.depth());
        let member = Member {
            shape,
            sure,
            said,
            set: self.laid_over,
        };
        self.named.insert(key, member);
    }

    /// Lays an unknown object over it.
    pub(in crate::check) fn lay_unknown(&mut self) {
        self.laid_over += 1;
        self.others = Others::Any;
    }

    /// Lays another object over it.
    pub(in crate::check) fn lay(&mut self, over: &Self, room: &mut Room) {
        if over.others == Others::Any {
            self.lay_unknown();
        }
        self.most = self.most.max(over.most);
        for (key, member) in over.iter() {
            let below = match (member.sure, self.get(key)) {
                (false, Some(below)) => Some(below),
                _ => None,
            };
            let sure = member.sure || below.as_ref().is_some_and(|below| below.sure);
            let shape = below.map_or_else(
                || member.shape.clone(),
                |below| below.shape.or_within(&member.shape, room),
            );
            let shape = shape.doubted_if(!member.sure && self.others == Others::Any);
            self.set(key.clone(), shape, sure, member.said);
        }
        self.others = self.others.max(over.others);
        self.quiet |= over.quiet;
    }

    /// Members of an object that is either of the two.
    pub(in crate::check) fn or(self: &Rc<Self>, other: &Rc<Self>, room: &mut Room) -> Rc<Self> {
        if Rc::ptr_eq(self, other) {
            return self.clone();
        }
        let mut both = Self {
            others: self.others.max(other.others),
            most: self.most.max(other.most),
            quiet: self.quiet || other.quiet,
            ..Self::none()
        };
        for (key, member) in self.iter() {
            match other.get(key) {
                Some(there) => {
                    let shape = member.shape.or_within(&there.shape, room);
                    both.set(
                        key.clone(),
                        shape,
                        member.sure && there.sure,
                        member.said.or(there.said),
                    );
                }
                None => both.set_perhaps(key, member, other.others),
            }
        }
        for (key, member) in other.iter() {
            if !self.named.contains_key(key) {
                both.set_perhaps(key, member, self.others);
            }
        }
        Rc::new(both)
    }

    /// Names members that only one of the two objects has; `others` says what the other one may
    /// have.
    fn set_perhaps(&mut self, key: &Text, member: Member, others: Others) {
        let shape = member.shape.doubted_if(others != Others::None);
        self.set(key.clone(), shape, false, member.said);
    }

    /// All names, in no particular order.
    pub(in crate::check) fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(Text::as_str)
    }
}
