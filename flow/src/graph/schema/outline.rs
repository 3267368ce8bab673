//! The parts of a schema that decide how much evaluating it costs.

use super::SchemaError;
use crate::regex_cost;
use regex::Regex;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The maximum depth of nested subschemas, with references followed: each level takes room on the
/// stack.
const MAX_LEVELS: usize = 300;
/// The maximum total cost of a schema's regular expressions: each is built together with the
/// schema.
const MAX_PATTERN_COST: usize = 100_000;
/// The cost of an empty expression, because it is compiled, too.
const PATTERN_COST: usize = 30;
/// Places that are looked at to find what references lead to.
const MAX_LOOK_STEPS: usize = 200_000;
/// The maximum number of times that an expression with look-around or back-references may backtrack
/// in one text, and the steps for that.
pub(super) const BACKTRACKS: usize = 20_000;
const BACKTRACKING: usize = BACKTRACKS / 16;
/// The address of the standard's own schemas; these are built in.
const STANDARD: &str = "://json-schema.org/";

/// The subschemas of a schema, by number; the first is the whole.
#[derive(Debug, Default)]
pub(super) struct Outline {
    pub(super) subs: Vec<Sub>,
    /// Whether some reference was not found.
    unknown: bool,
}

/// A subschema: its own cost, and the subschemas that it asks about parts of the value.
#[derive(Debug, Default)]
pub(super) struct Sub {
    /// Steps for any value: its keywords and names.
    pub(super) own: usize,
    /// The cost of its `pattern`.
    pub(super) pattern: Option<Expression>,
    /// The values it compares with.
    pub(super) compared: usize,
    /// Whether items are compared with each other.
    pub(super) unique: bool,
    /// Asked about the same value, together with it.
    pub(super) all: Vec<usize>,
    /// Asked about the same value: first whether it fits, then why not.
    pub(super) some: Vec<usize>,
    pub(super) properties: HashMap<String, usize>,
    pub(super) by_pattern: Vec<(Expression, Option<Regex>, usize)>,
    pub(super) additional: Option<usize>,
    pub(super) names: Option<usize>,
    pub(super) prefix: Vec<usize>,
    pub(super) items: Option<usize>,
    pub(super) contains: Option<usize>,
    /// Asked about members or items that nothing else was asked about. Finding these takes another
    /// walk.
    pub(super) unevaluated: Vec<usize>,
    /// Whether it is one of the standard's own.
    pub(super) standard: bool,
}

/// The cost of a regular expression for a text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Expression {
    weight: usize,
    looks: Looks,
}

/// How an expression looks around or back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Looks {
    /// Not at all: one walk through the text.
    #[default]
    No,
    /// Ahead this many times, and only from the beginning of the text: as many walks.
    FromBeginning(usize),
    /// From anywhere: a walk for each place in the text.
    Anywhere,
}

impl Expression {
    fn new(pattern: &str) -> Self {
        Self {
            weight: weight(pattern),
            looks: looks(pattern),
        }
    }

    pub(super) fn steps_for(self, bytes: usize) -> usize {
        let walk = regex_cost::walk(bytes, self.weight);
        match self.looks {
            Looks::No => 1 + walk,
            Looks::FromBeginning(times) => (1 + BACKTRACKING).saturating_add(walk.saturating_mul(1 + times)),
            Looks::Anywhere => (1 + BACKTRACKING).saturating_add(walk.saturating_mul(1 + bytes)),
        }
    }
}

fn looks(pattern: &str) -> Looks {
    if !looks_around(pattern) {
        return Looks::No;
    }
    // `^(?=…)(?!…)…`, the usual form of a rule for passwords.
    let mut times = 0;
    let mut rest = pattern.strip_prefix('^').unwrap_or_default();
    while rest.starts_with("(?=") || rest.starts_with("(?!") {
        let Some((inside, after)) = rest.get(3..).and_then(group) else {
            break;
        };
        if looks_around(inside) || after.starts_with(['*', '+', '?', '{']) {
            return Looks::Anywhere;
        }
        times += 1;
        rest = after;
    }
    match times == 0 || looks_around(rest) {
        true => Looks::Anywhere,
        false => Looks::FromBeginning(times),
    }
}

/// Whether an expression has more than groups, flags, classes and repetitions.
fn looks_around(pattern: &str) -> bool {
    let is_plain = |after: &str| {
        let after_flags = after.trim_start_matches(|letter: char| letter.is_ascii_alphabetic() || letter == '-');
        match after_flags.strip_prefix('<') {
            Some(name) => !name.starts_with(['=', '!']),
            None => after_flags.starts_with([':', ')']),
        }
    };
    let grouped = pattern.split("(?").skip(1).any(|after| !is_plain(after));
    grouped || pattern.contains("\\k") || (1..=9).any(|group| pattern.contains(&format!("\\{group}")))
}

/// The content of a group that has begun, and the rest after it. `None` if classes or escapes hide
/// its end.
fn group(text: &str) -> Option<(&str, &str)> {
    let (mut open, mut escaped, mut in_class) = (1_usize, false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' if in_class => return None,
            '[' => in_class = true,
            ']' => in_class = false,
            _ if in_class => {}
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some((text.get(..at)?, text.get(at + 1..)?));
        }
    }
    None
}

/// About how many characters an expression matches one by one, with its repetitions written out.
fn weight(pattern: &str) -> usize {
    let times = |what: &str| pattern.matches(what).count();
    let properties = times(r"\p").saturating_add(times(r"\P"));
    let classes = times(".").saturating_add(times("[")).saturating_add(times(r"\"));
    let mut weight = pattern
        .len()
        .saturating_add(classes * regex_cost::CLASS)
        .saturating_add(properties * regex_cost::PROPERTY);
    let numbers = pattern.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    for (inside, _) in numbers {
        let most = inside
            .split(',')
            .filter_map(|number| number.trim().parse::<usize>().ok());
        weight = weight.saturating_mul(most.max().unwrap_or(1).max(1));
    }
    weight
}

impl Outline {
    pub(super) fn of(schema: &Value) -> Result<Self, SchemaError> {
        let mut reader = Reader {
            root: schema,
            made: Self::default(),
            known: FxHashMap::default(),
            ids: Vec::new(),
            anchors: HashMap::default(),
            patterns: 0,
            looks: 0,
        };
        reader.collect(schema);
        reader.read(schema, MAX_LEVELS)?;
        Ok(reader.made)
    }

    /// Whether there is a part whose cost can't be counted.
    pub(super) fn is_unknown(&self) -> bool {
        self.unknown
    }
}

struct Reader<'s> {
    root: &'s Value,
    made: Outline,
    known: FxHashMap<*const Value, usize>,
    /// Subschemas with an `$id`.
    ids: Vec<(&'s str, &'s Value)>,
    anchors: HashMap<&'s str, Vec<&'s Value>>,
    patterns: usize,
    looks: usize,
}

impl<'s> Reader<'s> {
    /// Finds the possible targets of references. The depth was checked.
    fn collect(&mut self, value: &'s Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Object(members) => {
                if let Some(id) = members.get("$id").and_then(Value::as_str) {
                    self.ids.push((id, value));
                }
                for key in ["$anchor", "$dynamicAnchor"] {
                    if let Some(name) = members.get(key).and_then(Value::as_str) {
                        self.anchors.entry(name).or_default().push(value);
                    }
                }
                members.values().for_each(|member| self.collect(member));
            }
            _ => {}
        }
    }

    /// The number of a subschema.
    fn read(&mut self, schema: &'s Value, levels: usize) -> Result<usize, SchemaError> {
        if let Some(&known) = self.known.get(&std::ptr::from_ref(schema)) {
            return Ok(known);
        }
        let Some(levels) = levels.checked_sub(1) else {
            let why = format!("has more than {MAX_LEVELS} subschemas inside each other, its references followed");
            return Err(SchemaError::TooCostly(why));
        };
        let number = self.made.subs.len();
        self.known.insert(std::ptr::from_ref(schema), number);
        self.made.subs.push(Sub::default());
        if let Value::Object(members) = schema {
            let mut sub = Sub {
                own: members.len(),
                ..Sub::default()
            };
            self.read_plain(members, &mut sub)?;
            self.read_same(members, &mut sub, levels)?;
            self.read_members(members, &mut sub, levels)?;
            self.read_items(members, &mut sub, levels)?;
            if let Some(place) = self.made.subs.get_mut(number) {
                *place = sub;
            }
        }
        Ok(number)
    }

    fn read_plain(&mut self, members: &'s Map<String, Value>, sub: &mut Sub) -> Result<(), SchemaError> {
        for key in ["required", "type"] {
            sub.own += members.get(key).and_then(Value::as_array).map_or(0, Vec::len);
        }
        for names in members
            .get("dependentRequired")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::values)
        {
            sub.own += 1 + names.as_array().map_or(0, Vec::len);
        }
        sub.compared = members.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
        sub.compared += usize::from(members.contains_key("const"));
        sub.unique = members.get("uniqueItems") == Some(&Value::Bool(true));
        if let Some(pattern) = members.get("pattern").and_then(Value::as_str) {
            sub.pattern = Some(self.expression(pattern)?);
        }
        Ok(())
    }

    /// The subschemas that are asked about the same value.
    fn read_same(&mut self, members: &'s Map<String, Value>, sub: &mut Sub, levels: usize) -> Result<(), SchemaError> {
        for schema in members.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            sub.all.push(self.read(schema, levels)?);
        }
        for key in ["$ref", "$dynamicRef"] {
            let Some(reference) = members.get(key).and_then(Value::as_str) else {
                continue;
            };
            let targets = self.targets(reference)?;
            if targets.is_empty() && reference.contains(STANDARD) {
                sub.standard = true;
            } else if targets.is_empty() {
                self.made.unknown = true;
            }
            for target in targets {
                sub.all.push(self.read(target, levels)?);
            }
        }
        for key in ["anyOf", "oneOf"] {
            for schema in members.get(key).and_then(Value::as_array).into_iter().flatten() {
                sub.some.push(self.read(schema, levels)?);
            }
        }
        for key in ["not", "if", "then", "else"] {
            if let Some(schema) = members.get(key) {
                sub.some.push(self.read(schema, levels)?);
            }
        }
        for key in ["dependentSchemas", "dependencies"] {
            for schema in members
                .get(key)
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(Map::values)
            {
                sub.some.push(self.read(schema, levels)?);
            }
        }
        Ok(())
    }

    fn read_members(
        &mut self,
        members: &'s Map<String, Value>,
        sub: &mut Sub,
        levels: usize,
    ) -> Result<(), SchemaError> {
        for (name, schema) in members
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            sub.own += 1;
            let number = self.read(schema, levels)?;
            sub.properties.insert(name.clone(), number);
        }
        for (pattern, schema) in members
            .get("patternProperties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let expression = self.expression(pattern)?;
            let number = self.read(schema, levels)?;
            sub.by_pattern.push((expression, Regex::new(pattern).ok(), number));
        }
        sub.additional = self.read_at(members, "additionalProperties", levels)?;
        sub.names = self.read_at(members, "propertyNames", levels)?;
        for key in ["unevaluatedProperties", "unevaluatedItems"] {
            sub.unevaluated.extend(self.read_at(members, key, levels)?);
        }
        Ok(())
    }

    fn read_items(&mut self, members: &'s Map<String, Value>, sub: &mut Sub, levels: usize) -> Result<(), SchemaError> {
        for schema in members
            .get("prefixItems")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            sub.prefix.push(self.read(schema, levels)?);
        }
        sub.items = self.read_at(members, "items", levels)?;
        sub.contains = self.read_at(members, "contains", levels)?;
        Ok(())
    }

    fn read_at(
        &mut self,
        members: &'s Map<String, Value>,
        key: &str,
        levels: usize,
    ) -> Result<Option<usize>, SchemaError> {
        members.get(key).map(|schema| self.read(schema, levels)).transpose()
    }

    fn expression(&mut self, pattern: &str) -> Result<Expression, SchemaError> {
        let expression = Expression::new(pattern);
        self.patterns = self.patterns.saturating_add(expression.weight + PATTERN_COST);
        if self.patterns > MAX_PATTERN_COST {
            let why = "has regular expressions that are too long or repeat too much, together".to_owned();
            return Err(SchemaError::TooCostly(why));
        }
        Ok(expression)
    }

    /// All possible targets of a reference. If several have one name, only the evaluator knows
    /// which one is meant.
    fn targets(&mut self, reference: &str) -> Result<Vec<&'s Value>, SchemaError> {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let last = |id: &str| id.trim_end_matches('#').rsplit('/').next().map(str::to_owned);
        let documents: Vec<&Value> = if document.is_empty() {
            let inner = self.ids.iter().map(|&(_, schema)| schema);
            inner
                .chain((self.ids.is_empty() || fragment.starts_with('/')).then_some(self.root))
                .collect()
        } else {
            let wanted = last(document);
            self.ids
                .iter()
                .filter(|(id, _)| last(id) == wanted)
                .map(|&(_, schema)| schema)
                .collect()
        };
        let fragment = decoded(fragment);
        let named = self.anchors.get(&*fragment);
        let mut targets: Vec<&Value> = match named {
            _ if fragment.is_empty() => documents,
            Some(named) => named.clone(),
            None => documents
                .iter()
                .filter_map(|schema| schema.pointer(&fragment))
                .collect(),
        };
        self.looks = self.looks.saturating_add(self.ids.len() + targets.len() + 1);
        if self.looks > MAX_LOOK_STEPS {
            return Err(SchemaError::TooCostly("has too many references and names".to_owned()));
        }
        targets.sort_by_key(|target| std::ptr::from_ref::<Value>(target));
        targets.dedup_by_key(|target| std::ptr::from_ref::<Value>(target));
        Ok(targets)
    }
}

/// A fragment without its percent signs.
fn decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment;
    while let Some(at) = rest.find('%') {
        let (before, after) = rest.split_at(at);
        bytes.extend_from_slice(before.as_bytes());
        let byte = after.get(1..3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(b'%'));
        rest = after.get(if byte.is_some() { 3 } else { 1 }..).unwrap_or("");
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}
