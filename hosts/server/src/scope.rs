//! The scopes of tokens.

use axum::http::StatusCode;
use starbridge_node::problem::Problem;

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Ask who one is: every token of the server allows it, so no token lists it.
    Any,
    /// Look at flows, executions and histories.
    Read,
    /// Start executions.
    Start,
    /// Hold and report tasks.
    Worker,
    /// Stop, redrive, fork, resolve.
    Operate,
    /// Put and delete flows and schedules; everything else too.
    Admin,
}

impl Scope {
    /// The scope with this name.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "read" => Self::Read,
            "start" => Self::Start,
            "worker" => Self::Worker,
            "operate" => Self::Operate,
            "admin" => Self::Admin,
            _ => return None,
        })
    }

    /// The name of the scope.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Read => "read",
            Self::Start => "start",
            Self::Worker => "worker",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }
}

/// Whether a token with these scopes allows what needs `wanted`.
pub(crate) fn allow(scopes: &[Scope], wanted: Scope) -> bool {
    wanted == Scope::Any || scopes.contains(&wanted) || scopes.contains(&Scope::Admin)
}

/// The problem with a token that does not allow enough.
pub(crate) fn lacks(scope: Scope) -> Problem {
    let detail = format!("this needs a token with the scope `{}`", scope.as_str());
    Problem::new(StatusCode::FORBIDDEN, "Forbidden", detail)
}
