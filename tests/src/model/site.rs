//! The place where a list runs, and the result of a visit in it.

use super::Object;
use super::scope::Scope;
use super::world::World;
use std::rc::Rc;

/// The place where a list runs.
#[derive(Clone)]
pub struct Site {
    pub world: Rc<World>,
    pub scope: Rc<Scope>,
    /// Numbers of the iterations around, from outside in.
    pub iterations: Vec<usize>,
}

/// The result of a visit.
pub struct Left {
    pub output: Object,
    pub goto: Option<String>,
}
