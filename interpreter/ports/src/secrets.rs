//! Secrets: named in flows, known only when a call leaves.

/// A secret. It shows itself to nobody who does not ask by name.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret itself, to be sent and not to be kept.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Where secrets come from.
pub trait Secrets: Send + Sync {
    /// The secret of that name.
    fn get(&self, name: &str) -> Option<Secret>;
}
