//! Turns tokens into an expression and checks its types.

use super::lexer::{Comparison, Token, TokenKind, negative, tokens};
use crate::expression_error::ExpressionError;
use crate::path::Query;
use crate::value::Value;

/// The maximum depth of nested parentheses and `!`.
pub(super) const MAX_NESTING: usize = 64;

/// A parsed condition.
#[derive(Clone, Debug)]
pub(super) enum Expression {
    Constant(Value),
    Path(Query),
    Not(Box<Expression>),
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Compare(Box<Expression>, Comparison, Box<Expression>),
}

/// An expression and its place in bytes. Boxed like the errors, because parsers call each other deeply and each keeps room
/// for both.
struct Part {
    expression: Box<Expression>,
    start: usize,
    end: usize,
}

type Parsed<T> = Result<T, Box<ExpressionError>>;

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token],
    nesting: usize,
}

/// Parses a whole condition.
pub(super) fn parse(text: &str) -> Result<Expression, ExpressionError> {
    let tokens = tokens(text)?;
    if tokens.is_empty() {
        return Err(ExpressionError::new(0, text.len(), "the condition is empty")
            .help("write `true` for one that always holds"));
    }
    let mut parser = Parser {
        text,
        tokens: &tokens,
        nesting: 0,
    };
    let whole = parser.any().map_err(|error| *error)?;
    if let Some(token) = parser.tokens.first() {
        return Err(*parser.expected_operator(token));
    }
    if let Expression::Constant(value) = &*whole.expression
        && !matches!(value, Value::Bool(_))
    {
        let message = format!("a condition holds or not, and this is {}", value.kind());
        return Err(
            ExpressionError::new(whole.start, whole.end - whole.start, message).help("compare it with something")
        );
    }
    Ok(*whole.expression)
}

impl Part {
    fn new(expression: Expression, start: usize, end: usize) -> Self {
        Self {
            expression: Box::new(expression),
            start,
            end,
        }
    }
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Option<&'a Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    /// Takes the next token if it is an `&&` or `||` as `wanted` says.
    fn take(&mut self, wanted: fn(&TokenKind) -> bool) -> bool {
        let there = self.tokens.first().is_some_and(|token| wanted(&token.kind));
        if there {
            self.next();
        }
        there
    }

    fn any(&mut self) -> Parsed<Part> {
        self.joined(Self::all, |kind| matches!(kind, TokenKind::Or), Expression::Any)
    }

    fn all(&mut self) -> Parsed<Part> {
        self.joined(Self::comparison, |kind| matches!(kind, TokenKind::And), Expression::All)
    }

    /// Parts with an operator between them, or the only part there is.
    fn joined(
        &mut self,
        part: fn(&mut Self) -> Parsed<Part>,
        operator: fn(&TokenKind) -> bool,
        join: fn(Vec<Expression>) -> Expression,
    ) -> Parsed<Part> {
        let first = part(self)?;
        if !self.tokens.first().is_some_and(|token| operator(&token.kind)) {
            return Ok(first);
        }
        let (start, mut end) = (first.start, first.end);
        let mut parts = vec![*self.boolean(first)?];
        while self.take(operator) {
            let next = part(self)?;
            end = next.end;
            parts.push(*self.boolean(next)?);
        }
        Ok(Part::new(join(parts), start, end))
    }

    /// An operand of `&&`, `||` or `!`: a literal there is a boolean.
    fn boolean(&self, part: Part) -> Parsed<Box<Expression>> {
        match &*part.expression {
            Expression::Constant(value) if !matches!(value, Value::Bool(_)) => {
                let message = format!("{} beside `&&`, `||` or `!`", value.kind());
                Err(ExpressionError::boxed(part.start, part.end - part.start, message)
                    .with_help("compare it with something, as in `$.a == 1 || $.a == 2`"))
            }
            _ => Ok(part.expression),
        }
    }

    fn comparison(&mut self) -> Parsed<Part> {
        let left = self.unary()?;
        let Some(comparison) = self.comparison_ahead() else {
            return Ok(left);
        };
        self.next();
        let right = self.unary()?;
        self.no_chain(&left)?;
        let (start, end) = (left.start, right.end);
        Ok(Part::new(
            Expression::Compare(left.expression, comparison, right.expression),
            start,
            end,
        ))
    }

    fn no_chain(&self, left: &Part) -> Parsed<()> {
        match self.tokens.first() {
            Some(token) if self.comparison_ahead().is_some() => {
                let len = token.offset + token.len - left.start;
                Err(ExpressionError::boxed(left.start, len, "a chain of comparisons")
                    .with_help("join comparisons with `&&`: `1 < $.a && $.a < 5`, or put one in parentheses"))
            }
            _ => Ok(()),
        }
    }

    fn comparison_ahead(&self) -> Option<Comparison> {
        match self.tokens.first()?.kind {
            TokenKind::Compare(comparison) => Some(comparison),
            _ => None,
        }
    }

    /// A value, or something in parentheses, with `!` or `-` before it.
    fn unary(&mut self) -> Parsed<Part> {
        let token = self.next().ok_or_else(|| self.ends())?;
        match &token.kind {
            TokenKind::Not => {
                let inside = self.nested(token, Self::unary)?;
                self.negated(token, inside)
            }
            TokenKind::Open => {
                let inside = self.nested(token, Self::any)?;
                self.close(token, inside)
            }
            TokenKind::Minus => self.negative(token),
            _ => self.value(token),
        }
    }

    fn ends(&self) -> Box<ExpressionError> {
        ExpressionError::boxed(self.text.len(), 0, "the condition ends where a value should stand")
    }

    fn negated(&self, not: &Token, inside: Part) -> Parsed<Part> {
        let end = inside.end;
        let inside = self.boolean(inside)?;
        Ok(Part::new(Expression::Not(inside), not.offset, end))
    }

    fn value(&self, token: &Token) -> Parsed<Part> {
        let expression = match &token.kind {
            TokenKind::Literal(value) => Expression::Constant(value.clone()),
            TokenKind::Path(query) => Expression::Path(query.clone()),
            _ => {
                let message = format!("expected a value, found `{}`", self.shown(token));
                return Err(ExpressionError::boxed(token.offset, token.len, message));
            }
        };
        Ok(Part::new(expression, token.offset, token.offset + token.len))
    }

    fn negative(&mut self, minus: &Token) -> Parsed<Part> {
        if let Some(token) = self.tokens.first()
            && matches!(token.kind, TokenKind::Literal(Value::Number(_)))
            && let Some(value) = negative(self.shown(token))
        {
            self.next();
            return Ok(Part::new(
                Expression::Constant(value),
                minus.offset,
                token.offset + token.len,
            ));
        }
        Err(
            ExpressionError::boxed(minus.offset, minus.len, "`-` before what is no number")
                .with_help("there is no arithmetic in conditions: compute the value in a task"),
        )
    }

    fn close(&mut self, open: &Token, inside: Part) -> Parsed<Part> {
        match self.next() {
            Some(token) if matches!(token.kind, TokenKind::Close) => Ok(Part {
                expression: inside.expression,
                start: open.offset,
                end: token.offset + token.len,
            }),
            Some(token) => Err(self.expected_operator(token)),
            None => {
                Err(ExpressionError::boxed(open.offset, open.len, "`(` is not closed").with_help("close it with `)`"))
            }
        }
    }

    /// Bounds every recursion here, and every walk over the expression.
    fn nested(&mut self, begin: &Token, parse: fn(&mut Self) -> Parsed<Part>) -> Parsed<Part> {
        if self.nesting == MAX_NESTING {
            let message = format!("more than {MAX_NESTING} parentheses and `!` inside each other");
            return Err(ExpressionError::boxed(begin.offset, begin.len, message));
        }
        self.nesting += 1;
        let parsed = parse(self);
        self.nesting -= 1;
        parsed
    }

    /// The error for a token where only an operator could continue the expression.
    fn expected_operator(&self, token: &Token) -> Box<ExpressionError> {
        let (message, help) = match token.kind {
            TokenKind::Close => ("`)` without `(`".to_owned(), None),
            TokenKind::Minus => (
                "`-` between values".to_owned(),
                Some("there is no arithmetic in conditions: compute the value in a task"),
            ),
            _ => (
                format!("expected an operator, found `{}`", self.shown(token)),
                Some("put `&&`, `||` or a comparison between"),
            ),
        };
        let error = ExpressionError::boxed(token.offset, token.len, message);
        match help {
            Some(help) => error.with_help(help),
            None => error,
        }
    }

    /// The token as written.
    fn shown(&self, token: &Token) -> &'a str {
        self.text
            .get(token.offset..token.offset + token.len)
            .unwrap_or_default()
    }
}
