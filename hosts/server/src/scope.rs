//! What tokens allow.

/// What a token lets its bearer do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Look at flows, executions and histories.
    Read,
    /// Start executions.
    Start,
    /// Hold and report tasks.
    Worker,
    /// Stop, redrive, fork, resolve.
    Operate,
    /// Put and delete flows and schedules; everything else as well.
    Admin,
}

impl Scope {
    /// The scope of that name.
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

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Start => "start",
            Self::Worker => "worker",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }
}
