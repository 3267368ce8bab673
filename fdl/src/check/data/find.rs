//! What a path can find in data of which only the shape is known.

use super::shape::{Items, Kinds, Member, Members, Others, Room, Shape};
use crate::path::{FilterPath, PathPart};
use crate::syntax::Span;
use std::rc::Rc;

/// The value behind a root: a value, or an object laid over another, as a step sees its parent's
/// input and local.
#[derive(Clone, Debug)]
pub(in crate::check) enum Data {
    Value(Shape),
    Over(Rc<Layer>),
}

/// An object laid over data.
#[derive(Debug)]
pub(in crate::check) struct Layer {
    base: Data,
    over: Rc<Members>,
}

/// The result of a path.
#[derive(Clone, Debug, Default)]
pub(in crate::check) struct Found {
    pub(in crate::check) shape: Shape,
    /// Whether there always is a value.
    pub(in crate::check) sure: bool,
    /// Whether every member on the path is a named one.
    pub(in crate::check) named: bool,
}

/// A part of a path that finds nothing.
#[derive(Clone, Debug)]
pub(in crate::check) struct Miss {
    /// The place that defines what is there instead.
    pub(in crate::check) said: Option<Span>,
    pub(in crate::check) why: Why,
}

/// Why a path finds nothing.
#[derive(Clone, Debug)]
pub(in crate::check) enum Why {
    /// The object has no known member of that name.
    NoMember {
        key: String,
        /// The member that the path asks of it next.
        next: Option<String>,
        holder: Holder,
    },
    /// A path asks for a member of a value that is not an object.
    NotAnObject { key: String, kinds: Kinds },
    /// A path asks for an item of a value that is not a list.
    NotAList { kinds: Kinds },
    /// The list has fewer items.
    NoItem { index: i64, count: usize },
}

/// An object that lacks a member.
#[derive(Clone, Debug)]
pub(in crate::check) struct Holder {
    data: Data,
    /// Whether it may have members that are not named.
    pub(in crate::check) others: Others,
}

impl Data {
    /// This data with an object laid over it.
    pub(in crate::check) fn under(&self, over: &Rc<Members>) -> Self {
        if over.is_nothing() {
            return self.clone();
        }
        let base = self.clone();
        let over = over.clone();
        Self::Over(Rc::new(Layer { base, over }))
    }

    /// Its layers, the uppermost first, and the value below them.
    fn layers(&self) -> (Vec<&Members>, &Shape) {
        let mut layers = Vec::new();
        let mut data = self;
        loop {
            match data {
                Self::Value(shape) => return (layers, shape),
                Self::Over(layer) => {
                    layers.push(&*layer.over);
                    data = &layer.base;
                }
            }
        }
    }

    /// The number of members to look through.
    pub(in crate::check) fn len(&self) -> usize {
        let (layers, base) = self.layers();
        layers.iter().map(|layer| layer.len()).sum::<usize>() + base.known().map_or(0, |known| known.members.len())
    }

    /// Whether a member of that name is known, and where it is named.
    pub(in crate::check) fn named(&self, key: &str) -> Option<Option<Span>> {
        let (layers, base) = self.layers();
        let below = base.known().map(|known| &*known.members);
        let member = layers.into_iter().chain(below).find_map(|members| members.get(key))?;
        Some(member.said)
    }

    /// All of it as one shape.
    pub(in crate::check) fn to_shape(&self) -> Shape {
        let (layers, base) = self.layers();
        if layers.is_empty() {
            return base.clone();
        }
        let (mut whole, said) = match base.known() {
            Some(known) => ((*known.members).clone(), known.said),
            None => (Members::open(), None),
        };
        if base.is_doubted() {
            whole.lay_unknown();
        }
        let mut room = Room::new();
        layers.iter().rev().for_each(|layer| whole.lay(layer, &mut room));
        Shape::object(Rc::new(whole), said)
    }

    /// The member of that name.
    fn member(&self, key: &str) -> Result<Found, Holder> {
        let (layers, base) = self.layers();
        // What upper layers may have; the member may also be the one below.
        let mut perhaps: Option<Shape> = None;
        let mut doubt = false;
        let or = |perhaps: Option<Shape>, shape: Shape| match perhaps {
            Some(above) => above.or(&shape),
            None => shape,
        };
        for layer in &layers {
            match layer.get(key) {
                Some(member) if member.sure => {
                    let shape = or(perhaps, member.shape.doubted_if(doubt));
                    return Ok(Found {
                        shape,
                        sure: true,
                        named: true,
                    });
                }
                Some(member) => perhaps = Some(or(perhaps, member.shape.doubted_if(doubt))),
                None => {}
            }
            doubt |= layer.others == Others::Any;
        }
        let Some(known) = base.known() else {
            let named = perhaps.is_some();
            return Ok(Found {
                shape: or(perhaps, Shape::default()),
                sure: false,
                named,
            });
        };
        let doubt = doubt || base.is_doubted();
        match (known.members.get(key), perhaps) {
            (Some(member), perhaps) => Ok(Found {
                shape: or(perhaps, member.shape.doubted_if(doubt)),
                sure: member.sure && !base.is_doubted(),
                named: true,
            }),
            (None, Some(perhaps)) => Ok(Found {
                // If the members below are named, this one is taken for the one that was set.
                shape: perhaps.doubted_if(doubt || known.members.others == Others::Any),
                sure: false,
                named: true,
            }),
            (None, None) => {
                let all = || layers.iter().copied().chain([&*known.members]);
                if all().any(|members| members.quiet) {
                    return Ok(Found::default());
                }
                let doubted = doubt.then_some(Others::Any);
                let others = all().map(|members| members.others).chain(doubted).max();
                Err(Holder {
                    data: self.clone(),
                    others: others.unwrap_or(Others::Any),
                })
            }
        }
    }
}

impl Holder {
    fn all(&self) -> impl Iterator<Item = &Members> {
        let (layers, base) = self.data.layers();
        layers.into_iter().chain(base.known().map(|known| &*known.members))
    }

    /// The names of its members, in no particular order; a name in two layers is listed twice.
    pub(in crate::check) fn names(&self) -> impl Iterator<Item = &str> {
        self.all().flat_map(Members::names)
    }

    /// The member of that name; of two, the upper one.
    pub(in crate::check) fn member(&self, name: &str) -> Option<Member> {
        self.all().find_map(|members| members.get(name))
    }

    /// The number of members to look through.
    pub(in crate::check) fn len(&self) -> usize {
        self.data.len()
    }

    fn said(&self) -> Option<Span> {
        self.data.layers().1.known().and_then(|known| known.said)
    }
}

/// Follows a path from a root and adds the parts that find nothing to `misses`. With a miss, the
/// value is unknown.
pub(in crate::check) fn find<'q>(
    parts: impl Iterator<Item = PathPart<'q>>,
    root: &Data,
    misses: &mut Vec<Miss>,
) -> Found {
    follow(parts, root, root, misses)
}

// Filters inside a filter are not followed, so the recursion is one level deep.
fn follow<'q>(parts: impl Iterator<Item = PathPart<'q>>, from: &Data, root: &Data, misses: &mut Vec<Miss>) -> Found {
    let mut at = Way {
        data: from.clone(),
        sure: true,
        named: true,
        several: false,
    };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        let next = match part {
            PathPart::Key(key) => at.key(key, parts.peek()),
            PathPart::Index(index) => at.index(index),
            PathPart::All | PathPart::Slice => at.all(part),
            PathPart::Filter(filter) => {
                let next = at.all(part);
                if let Ok(Some(next)) = &next {
                    filter
                        .all()
                        .into_iter()
                        .for_each(|path| look(path, &next.data, root, misses));
                }
                next
            }
            PathPart::Several => Ok(None),
        };
        match next {
            Ok(Some(next)) => at = next,
            Ok(None) => return at.unknown(),
            Err(miss) => {
                misses.push(miss);
                return at.unknown();
            }
        }
    }
    let shape = at.data.to_shape();
    match at.several {
        true => Found {
            shape: Shape::list(Items::All(shape), None),
            sure: true,
            named: at.named,
        },
        false => Found {
            shape,
            sure: at.sure,
            named: at.named,
        },
    }
}

/// A path in a filter over `item`.
fn look(path: FilterPath<'_>, item: &Data, root: &Data, misses: &mut Vec<Miss>) {
    let from = if path.is_absolute() { root } else { item };
    let plain = path
        .parts()
        .take_while(|part| matches!(part, PathPart::Key(_) | PathPart::Index(_)));
    follow(plain, from, root, misses);
}

/// How far a path was followed.
struct Way {
    data: Data,
    sure: bool,
    named: bool,
    /// Whether it finds a list of values.
    several: bool,
}

impl Way {
    fn to(&self, shape: Shape, sure: bool) -> Self {
        Self {
            data: Data::Value(shape),
            sure: self.sure && sure,
            named: self.named,
            several: self.several,
        }
    }

    fn unknown(&self) -> Found {
        match self.several {
            true => Found {
                shape: Shape::list(Items::All(Shape::default()), None),
                sure: true,
                named: false,
            },
            false => Found::default(),
        }
    }

    /// Follows the path to a member; `None` if nothing is known.
    fn key(&self, key: &str, then: Option<&PathPart<'_>>) -> Result<Option<Self>, Miss> {
        let mut sure = true;
        if let Data::Value(shape) = &self.data {
            let Some(known) = shape.known() else { return Ok(None) };
            if !known.kinds.meets(Kinds::OBJECT) {
                let (key, kinds) = (key.to_owned(), known.kinds);
                return miss(shape, Why::NotAnObject { key, kinds });
            }
            sure = known.kinds == Kinds::OBJECT;
        }
        match self.data.member(key) {
            Ok(found) => {
                let mut next = self.to(found.shape, found.sure && sure);
                next.named &= found.named;
                Ok(Some(next))
            }
            Err(holder) => Err(Miss {
                said: holder.said(),
                why: Why::NoMember {
                    key: key.to_owned(),
                    next: then.and_then(|part| match part {
                        PathPart::Key(key) => Some(key.as_str().to_owned()),
                        _ => None,
                    }),
                    holder,
                },
            }),
        }
    }

    fn index(&self, index: i64) -> Result<Option<Self>, Miss> {
        let shape = self.data.to_shape();
        let Some(known) = shape.known() else { return Ok(None) };
        if !known.kinds.meets(Kinds::ARRAY) {
            return miss(&shape, Why::NotAList { kinds: known.kinds });
        }
        match &known.items {
            Items::All(item) => Ok(Some(self.to(item.clone().doubted_if(shape.is_doubted()), false))),
            Items::Each(items) => {
                let count = items.len();
                let from_end = || count.checked_sub(usize::try_from(index.unsigned_abs()).ok()?);
                let place = if index < 0 {
                    from_end()
                } else {
                    usize::try_from(index).ok()
                };
                match place.and_then(|place| items.get(place)) {
                    Some(item) => {
                        let sure = known.kinds == Kinds::ARRAY;
                        Ok(Some(self.to(item.clone().doubted_if(shape.is_doubted()), sure)))
                    }
                    None => miss(&shape, Why::NoItem { index, count }),
                }
            }
        }
    }

    /// All items, or some of them.
    fn all(&self, part: PathPart<'_>) -> Result<Option<Self>, Miss> {
        let shape = self.data.to_shape();
        let several = |shape: Shape| Self {
            data: Data::Value(shape),
            sure: true,
            named: self.named,
            several: true,
        };
        let Some(known) = shape.known() else {
            return Ok(Some(several(Shape::default())));
        };
        let object = !matches!(part, PathPart::Slice) && known.kinds.meets(Kinds::OBJECT);
        match (known.kinds.meets(Kinds::ARRAY), object) {
            (true, false) => Ok(Some(several(known.items.any().doubted_if(shape.is_doubted())))),
            (_, true) => Ok(Some(several(Shape::default()))),
            (false, false) => miss(&shape, Why::NotAList { kinds: known.kinds }),
        }
    }
}

/// A part that finds nothing, unless the shape is doubted.
fn miss(shape: &Shape, why: Why) -> Result<Option<Way>, Miss> {
    if shape.is_doubted() {
        return Ok(None);
    }
    Err(Miss {
        said: shape.known().and_then(|known| known.said),
        why,
    })
}
