//! Where a list runs, and what a visit in it leaves.

use super::Object;
use super::scope::Scope;
use super::world::World;
use std::rc::Rc;

/// Where a list runs.
#[derive(Clone)]
pub struct Site {
    pub world: Rc<World>,
    pub scope: Rc<Scope>,
    /// Numbers of the iterations around, from outside in.
    pub iterations: Vec<usize>,
}

/// What a visit leaves.
pub struct Left {
    pub output: Object,
    pub goto: Option<String>,
}
