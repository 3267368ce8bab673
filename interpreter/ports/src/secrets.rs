//! The port for secrets: flows name them, and only a call that is sent contains them.

/// The value of a secret. Only [`Secret::reveal`] shows it; `Debug` does not.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The value itself. Send it, but do not store it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Gives the values of secrets.
pub trait Secrets: Send + Sync {
    /// The secret with this name; `None` if there is none.
    fn get(&self, name: &str) -> Option<Secret>;
}
