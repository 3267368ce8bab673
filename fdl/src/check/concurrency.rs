//! The concurrency keys of a flow: how many executions with one key may run.

use super::Checker;
use super::cursor::Cursor;
use super::fields;
use super::paths::{helped, looked_up};
use crate::diagnostics::Code;
use crate::expression::{Path, Template};
use crate::graph::{Budget, ConcurrencyKey, Context, Fault, FaultKind, Lookup, Root, Scope, Source};
use crate::limits::{CONCURRENCY_KEY_BYTES, CONCURRENCY_KEYS, is_name};
use crate::path::Query;
use crate::syntax::NodeKind;
use crate::time::Timestamp;
use crate::value::{Text, Value};
use std::sync::Arc;

/// A key with parts that the execution's input fills in.
#[derive(Debug)]
struct KeyTemplate(Template);

/// Nothing: there is no execution yet.
struct NoContext;

impl Context for NoContext {
    fn member(&self, _: &str) -> Option<Value> {
        None
    }

    fn names(&self) -> Vec<&'static str> {
        Vec::new()
    }
}

impl Lookup for KeyTemplate {
    fn find(&self, data: Root<'_>, budget: &Budget) -> Result<Option<Value>, Fault> {
        let scope = Scope {
            input: data,
            variables: Root::Nothing,
            context: &NoContext,
            now: Timestamp::default(),
            seed: 0,
            budget,
        };
        for (_, path) in self.0.paths() {
            match budget.within(path.text(), path.find(&scope))? {
                None | Some(Value::String(_) | Value::Number(_)) => {}
                // As JSON it would be a key that nobody meant, `shard-null`.
                Some(other) => return Err(no_part(&self.0, path, &other)),
            }
        }
        Ok(self.0.render(&scope)?.map(Value::from))
    }

    fn text(&self) -> &Text {
        self.0.text()
    }
}

fn no_part(key: &Template, path: &Path, found: &Value) -> Fault {
    let cause = format!(
        "the concurrency key `{}` has `{}`, which is {}, not a string or a number",
        key.text(),
        path.text(),
        found.kind()
    );
    Fault::new(FaultKind::Input, cause)
}

impl Checker<'_> {
    pub(super) fn concurrency_keys(&self, root: &Cursor<'_>) -> Vec<ConcurrencyKey> {
        let Some(cursor) = root.member("concurrency") else {
            return Vec::new();
        };
        if !self.is_listed(&cursor, "limits, each with `key` and `limit`") {
            return Vec::new();
        }
        let many = cursor.entries().count();
        if many > CONCURRENCY_KEYS {
            let message = format!("`concurrency` has {many} keys; {CONCURRENCY_KEYS} are the most");
            let found = cursor.problem_of_key(Code::TooManyKeys, message);
            self.report(found.help("keys that always stand together can be one"));
            return Vec::new();
        }
        let mut seen: Vec<(Option<Text>, Text)> = Vec::new();
        let mut keys = Vec::new();
        for item in cursor.entries() {
            if !self.check_fields(&item, &fields::CONCURRENCY, &[]) {
                continue;
            }
            let limit = item.member("limit").and_then(|field| self.whole(&field, 1..=u64::MAX));
            let pool = item.member("pool").map(|field| self.pool(&field));
            let key = item.member("key").and_then(|field| {
                let key = self.concurrency_key(&field)?;
                let written = field
                    .str()
                    .map_or_else(|| field.node.to_value().to_plain_text(), str::to_owned);
                let one = (pool.clone().flatten(), Text::from(written));
                if seen.contains(&one) {
                    let message = format!("the key `{}` is given twice", one.1);
                    let found = field.problem(Code::DuplicateConcurrencyKey, message);
                    self.report(found.help("leave one of them out: the smaller limit is the one that counts"));
                }
                seen.push(one);
                Some(key)
            });
            if let (Some(key), Some(limit), Some(pool)) = (key, limit, pool.map_or(Some(None), |pool| pool.map(Some))) {
                keys.push(ConcurrencyKey { pool, key, limit });
            }
        }
        keys
    }

    /// The pool that several flows share: a constant.
    fn pool(&self, cursor: &Cursor<'_>) -> Option<Text> {
        let text = self.filled(cursor)?;
        if text.starts_with(['$', '@']) || text.contains("{$") {
            let message = format!("`pool` must be a constant that does not begin with `$` or `@`, not `{text}`");
            let found = cursor.problem(Code::BadName, message);
            self.report(found.help("the data goes into `key`: the pool says which flows share their keys"));
            return None;
        }
        if !self.stored && !is_name(&text) {
            self.check_identifier(cursor, &text);
            return None;
        }
        Some(text)
    }

    /// A constant key. It must not be longer than a key that is made from an input.
    fn constant_key(&self, cursor: &Cursor<'_>) -> Option<Source> {
        let key = cursor.node.to_value();
        let bytes = key.to_plain_text().len();
        if bytes > CONCURRENCY_KEY_BYTES && !self.stored {
            let message = format!("`key` has {bytes} bytes; {CONCURRENCY_KEY_BYTES} are the most");
            let found = cursor.problem(Code::OutOfRange, message);
            self.report(found.help("a shorter key that is as unique will do"));
            return None;
        }
        Some(Source::Constant(key))
    }

    /// A constant, a path on the execution's input, `$input.a` or `$.a`, or a template over it.
    fn concurrency_key(&self, cursor: &Cursor<'_>) -> Option<Source> {
        let text = match &cursor.node.kind {
            NodeKind::String(_) => self.filled(cursor)?,
            NodeKind::Number(_) => return self.constant_key(cursor),
            _ => {
                self.wrong_type(cursor, "a string, or a path");
                return None;
            }
        };
        if let Some(rest) = text.strip_prefix("$input").filter(|_| Path::is_path(&text)) {
            self.path(cursor, &text)?;
            return Query::parse(&format!("${rest}")).ok().map(looked_up);
        }
        if Path::is_path(&text) {
            self.sees_input_only(cursor, 0, &text);
            return None;
        }
        if text.starts_with('$') {
            return self.query(cursor, &text).map(looked_up);
        }
        match Template::parse(&text) {
            Ok(template) if template.paths().next().is_none() => self.constant_key(cursor),
            Ok(template) => {
                let mut others = template.paths().filter(|(_, path)| !path.text().starts_with("$input"));
                let other = others.next().map(|(offset, path)| (offset, path.text().clone()));
                drop(others);
                if let Some((offset, path)) = other {
                    self.sees_input_only(cursor, offset, &path);
                    return None;
                }
                Some(Source::Lookup(Arc::new(KeyTemplate(template))))
            }
            Err(error) => {
                let found = self.inside(cursor, Code::BadTemplate, error.offset, error.len, error.message);
                self.report(helped(found, error.help));
                None
            }
        }
    }

    fn sees_input_only(&self, cursor: &Cursor<'_>, offset: usize, path: &str) {
        let message = format!("`key` must be a constant or a path on the input, not `{path}`");
        let found = match offset {
            0 => cursor.problem(Code::PathExpected, message),
            _ => self.inside(cursor, Code::PathExpected, offset, path.len(), message),
        };
        self.report(found.help("nothing has run yet: only `$input`, the execution's input, can be seen here"));
    }
}
