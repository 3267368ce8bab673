//! RFC 9535 filters: logical expressions, comparisons and functions, with their types checked.

use super::parse::{Parsed, Parser};
use super::pattern::Pattern;
use super::segment::{Comparison, Expression, Filter, Operand, Subquery, singular};
use crate::expression_error::ExpressionError;
use crate::value::{Number, Value};

/// The possible meanings of a name, a literal or a function.
enum Term {
    /// A value to compare: a literal, or the result of a function.
    Value(Operand),
    /// A query: tested, or compared if it is singular.
    Query(Subquery),
    /// A condition: the result of `match` or `search`.
    Holds(Filter),
}

impl Parser<'_> {
    /// An expression with `||`.
    pub(super) fn filter(&mut self) -> Parsed<Filter> {
        self.joined("||", Self::all_of, Filter::Or)
    }

    fn all_of(&mut self) -> Parsed<Filter> {
        self.joined("&&", Self::basic, Filter::And)
    }

    /// Parts with an operator between them, or the only part there is.
    fn joined(
        &mut self,
        operator: &str,
        part: fn(&mut Self) -> Parsed<Filter>,
        join: fn(Vec<Filter>) -> Filter,
    ) -> Parsed<Filter> {
        let mut parts = Vec::new();
        loop {
            parts.push(part(self)?);
            let before = self.at;
            self.blank();
            if !self.rest().starts_with(operator) {
                self.at = before;
                return Ok(one_or(parts, join));
            }
            self.at += operator.len();
            self.blank();
        }
    }

    /// An operand of `&&` and `||`.
    fn basic(&mut self) -> Parsed<Filter> {
        let start = self.at;
        let not = self.take(b'!');
        if not {
            self.blank();
        }
        let begin = self.at;
        if self.take(b'(') {
            let inside = self.nested(begin, Self::parenthesised)?;
            return Ok(negated(inside, not));
        }
        let term = self.term()?;
        match self.comparison_ahead() {
            Some((_, len)) if not => {
                let error = ExpressionError::boxed(start, self.at + len - start, "`!` stands before a comparison");
                Err(error.with_help("put the comparison in parentheses: `!(@.a == 1)`"))
            }
            Some((comparison, len)) => self.comparison(begin, term, comparison, len),
            None => self.test(begin, term).map(|filter| negated(filter, not)),
        }
    }

    fn parenthesised(&mut self) -> Parsed<Filter> {
        self.blank();
        let inside = self.filter()?;
        self.blank();
        if !self.take(b')') {
            return Err(self.unexpected("`&&`, `||` or `)`"));
        }
        match self.comparison_ahead() {
            Some((_, len)) => Err(ExpressionError::boxed(
                self.at,
                len,
                "a comparison has no parentheses on its sides",
            )),
            None => Ok(inside),
        }
    }

    /// The next comparison with its length; the blank space before it is skipped.
    fn comparison_ahead(&mut self) -> Option<(Comparison, usize)> {
        let before = self.at;
        self.blank();
        let found = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ]
        .into_iter()
        .find(|(sign, _)| self.rest().starts_with(sign));
        if found.is_none() {
            self.at = before;
        }
        found.map(|(sign, comparison)| (comparison, sign.len()))
    }

    fn comparison(&mut self, begin: usize, left: Term, comparison: Comparison, len: usize) -> Parsed<Filter> {
        let left = self.operand(begin, left, self.at)?;
        self.at += len;
        self.blank();
        let begin = self.at;
        let right = self.term()?;
        let right = self.operand(begin, right, self.at)?;
        Ok(Filter::Compare(Box::new(left), comparison, Box::new(right)))
    }

    /// A term that is compared or given to a function that takes a value; it stands from `begin` to
    /// `end`.
    fn operand(&self, begin: usize, term: Term, end: usize) -> Parsed<Operand> {
        match term {
            Term::Value(operand) => Ok(operand),
            Term::Query(query) if singular(&query.segments) => Ok(Operand::Query(query)),
            Term::Query(_) => Err(self
                .about(begin, end, "may find several values, and here is place for one")
                .with_help("use keys and indices only, or `count()` or `value()` around it")),
            Term::Holds(_) => Err(self.about(begin, end, "is true or false already and cannot be compared")),
        }
    }

    /// A term that stands by itself.
    fn test(&self, begin: usize, term: Term) -> Parsed<Filter> {
        match term {
            Term::Query(query) => Ok(Filter::Exists(query)),
            Term::Holds(filter) => Ok(filter),
            Term::Value(_) => Err(self
                .about(begin, self.at, "gives a value that must be compared")
                .with_help("compare it, as in `count(@.*) > 1`")),
        }
    }

    /// An error that begins with the text from `begin` to `end`.
    fn about(&self, begin: usize, end: usize, what: &str) -> Box<ExpressionError> {
        let written = self.text.get(begin..end).unwrap_or_default().trim_end();
        ExpressionError::boxed(begin, written.len(), format!("`{written}` {what}"))
    }

    fn term(&mut self) -> Parsed<Term> {
        match self.byte() {
            Some(b'@' | b'$') => self.query().map(Term::Query),
            Some(b'"' | b'\'') => Ok(Term::Value(Operand::Constant(Value::from(self.string()?)))),
            Some(b'-' | b'0'..=b'9') => self.number().map(|number| Term::Value(Operand::Constant(number))),
            Some(b'a'..=b'z') => self.word(),
            _ => Err(self
                .unexpected("a condition")
                .with_help("a filter compares or tests queries that begin with `@` or `$`: `[?@.price < 10]`")),
        }
    }

    fn query(&mut self) -> Parsed<Subquery> {
        let absolute = self.take(b'$');
        if absolute {
            self.absolute = true;
            if self.byte().is_some_and(|byte| byte.is_ascii_alphanumeric()) {
                return Err(self
                    .unexpected("`.` or `[` after `$`")
                    .with_help("inside a filter `$` alone stands for the root of the whole path"));
            }
        } else {
            self.at += 1;
        }
        let segments = self.segments()?;
        Ok(Subquery { absolute, segments })
    }

    /// A number literal; integers of the language stay exact.
    fn number(&mut self) -> Parsed<Value> {
        let begin = self.at;
        let digits = |parser: &mut Self| {
            let from = parser.at;
            while parser.byte().is_some_and(|byte| byte.is_ascii_digit()) {
                parser.at += 1;
            }
            parser.at > from
        };
        self.take(b'-');
        let mut sound = digits(self);
        if self.take(b'.') {
            sound &= digits(self);
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'-') || self.take(b'+');
            sound &= digits(self);
        }
        let written = self.text.get(begin..self.at).unwrap_or_default();
        // JSON's numbers have the same form, and its reader handles leading zeros.
        match written.parse::<Number>() {
            Ok(number) if sound => Ok(Value::Number(number)),
            _ => Err(self.about(begin, self.at, "is no number")),
        }
    }

    /// `true`, `false`, `null` or a function.
    fn word(&mut self) -> Parsed<Term> {
        let begin = self.at;
        let rest = self.rest();
        let len = rest
            .find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'))
            .unwrap_or(rest.len());
        let word = rest.get(..len).unwrap_or_default();
        self.at += len;
        let constant = match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            _ => {
                let arguments = Self::arguments_of(word).filter(|_| self.take(b'('));
                let unknown = || {
                    self.about(begin, self.at, "is not known here")
                        .with_help("text stands in quotes, and the functions are `length`, `count`, `value`, `match` and `search`, each with `(` behind it")
                };
                return self.nested(begin, arguments.ok_or_else(unknown)?);
            }
        };
        Ok(Term::Value(Operand::Constant(constant)))
    }

    /// The parser for the arguments of the function of that name, from after its `(` to after its
    /// `)`.
    fn arguments_of(name: &str) -> Option<fn(&mut Self) -> Parsed<Term>> {
        match name {
            "length" => Some(|parser| {
                let value = parser.value_argument()?;
                parser.close()?;
                Ok(Term::Value(Operand::Length(Box::new(value))))
            }),
            "count" => Some(|parser| Ok(Term::Value(Operand::Count(parser.query_argument()?)))),
            "value" => Some(|parser| Ok(Term::Value(Operand::Value(parser.query_argument()?)))),
            "match" => Some(|parser| parser.matching(true)),
            "search" => Some(|parser| parser.matching(false)),
            _ => None,
        }
    }

    fn value_argument(&mut self) -> Parsed<Operand> {
        self.blank();
        let begin = self.at;
        let term = self.term()?;
        let operand = self.operand(begin, term, self.at)?;
        self.blank();
        Ok(operand)
    }

    /// The one argument of a function that takes nodes.
    fn query_argument(&mut self) -> Parsed<Subquery> {
        self.blank();
        if !matches!(self.byte(), Some(b'@' | b'$')) {
            return Err(self.unexpected("a query that begins with `@` or `$`"));
        }
        let query = self.query()?;
        self.blank();
        self.close()?;
        Ok(query)
    }

    fn close(&mut self) -> Parsed<()> {
        if self.take(b')') {
            return Ok(());
        }
        Err(self.unexpected("`)`"))
    }

    /// The arguments of `match` (the whole string) and `search` (a part of it).
    fn matching(&mut self, whole: bool) -> Parsed<Term> {
        let value = self.value_argument()?;
        if !self.take(b',') {
            return Err(self.unexpected("`,` and a regular expression"));
        }
        self.blank();
        let begin = self.at;
        let pattern = match self.value_argument()? {
            Operand::Constant(Value::String(pattern)) => Expression::Written(Box::new(
                Pattern::new(&pattern, whole).map_err(|why| self.about(begin, self.at, why))?,
            )),
            Operand::Constant(_) => Expression::None,
            operand => Expression::Found(Box::new(operand), whole),
        };
        self.close()?;
        Ok(Term::Holds(Filter::Matches(Box::new(value), pattern)))
    }
}

fn negated(filter: Filter, not: bool) -> Filter {
    if not { Filter::Not(Box::new(filter)) } else { filter }
}

/// The only one of the list, or all in `many`.
fn one_or(mut filters: Vec<Filter>, many: fn(Vec<Filter>) -> Filter) -> Filter {
    match filters.pop() {
        Some(only) if filters.is_empty() => only,
        last => {
            filters.extend(last);
            many(filters)
        }
    }
}
