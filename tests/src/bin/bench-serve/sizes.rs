//! How large scenes are.

/// How large scenes are.
#[derive(Clone, Copy)]
pub struct Sizes {
    /// As large as their goals are written, which takes minutes.
    pub full: bool,
}

impl Sizes {
    pub fn of(self, short: usize, full: usize) -> usize {
        if self.full { full } else { short }
    }
}
