//! The data that each type of step makes.

use super::constant::shape_of_sample;
use super::find::Data;
use super::lists::Edge;
use super::shape::{Items, Kinds, Members, Room, Shape};
use super::{DataCheck, Roots};
use crate::check::cursor::Cursor;
use crate::expression::{Path, ResourceName, RetryNumber, Setting};
use crate::graph::{CatchTarget, Choice, Foreach, ListId, Parallel, Step, StepId, StepKind, WaitFor};
use crate::syntax::NodeKind;
use crate::time::Timestamp;
use crate::value::Value;
use std::rc::Rc;

/// The local after a step, and its other edges.
type Left = (Option<Rc<Members>>, Vec<Edge>);

impl DataCheck<'_, '_> {
    /// Checks one step. Returns what it leaves when it is caught, and where it leads otherwise.
    pub(super) fn step(&self, id: StepId, step: &Step, local: &Rc<Members>, input: &Data) -> Left {
        let Some(entry) = self.checker.outline.entry(id) else {
            return (None, Vec::new());
        };
        let cursor = Cursor::step(entry.node, &self.checker.outline, id);
        let around = Data::Value(Shape::object(local.clone(), None));
        let parents = Roots { input, local: &around };
        let own = match self.mapped(&cursor, "inputMappings", parents, false) {
            Some(made) => Data::Value(made),
            None => input.under(local),
        };
        self.retries(&cursor, parents);
        self.numbers(&cursor, &own);
        let mut edges = match &step.kind {
            StepKind::Choice(choice) => self.choice(&cursor, step, choice, &own),
            kind => self
                .own_local(&cursor, step, kind, &own)
                .map_or_else(Vec::new, |local| {
                    let told = !matches!(kind, StepKind::Task(_));
                    let output = self.output(&cursor, kind, &own, local, told);
                    vec![Edge {
                        target: step.next,
                        output,
                    }]
                }),
        };
        // An operator may end such a step with any output.
        if step
            .catch
            .iter()
            .any(|catch| matches!(catch.target, CatchTarget::Manual))
        {
            edges.push(Edge {
                target: step.next,
                output: Rc::new(Members::open()),
            });
        }
        let caught = (!step.catch.is_empty()).then(|| {
            // Unknown members of the error are reported where the paths are read.
            let error = Data::Value(error_shape(true));
            let roots = Roots {
                input: &own,
                local: &error,
            };
            let made = self.mapped(&cursor, "errorMappings", roots, false);
            made.map_or_else(|| Rc::new(Members::none()), |made| members_of(&made))
        });
        (caught, edges)
    }

    /// The local of a step without arms; `None` if the step never succeeds.
    fn own_local(&self, cursor: &Cursor<'_>, step: &Step, kind: &StepKind, own: &Data) -> Option<Shape> {
        match kind {
            StepKind::Task(_) => Some(self.task(cursor, step, own)),
            StepKind::Wait(_) => {
                self.wait(cursor, own);
                Some(empty())
            }
            StepKind::Parallel(parallel) => Some(self.parallel(parallel, own)),
            StepKind::Foreach(foreach) => Some(self.foreach(cursor, foreach, own)),
            StepKind::Fail(_) => {
                for field in ["error", "cause"].iter().filter_map(|field| cursor.member(field)) {
                    self.looked_up_at(&field, "$input", own);
                }
                None
            }
            StepKind::Pass | StepKind::Succeed | StepKind::Choice(_) => Some(empty()),
        }
    }

    /// The output of a step.
    fn output(&self, cursor: &Cursor<'_>, kind: &StepKind, own: &Data, local: Shape, told: bool) -> Rc<Members> {
        let data = Data::Value(local);
        let roots = Roots {
            input: own,
            local: &data,
        };
        match self.mapped(cursor, "outputMappings", roots, told) {
            Some(made) => members_of(&made),
            None if matches!(kind, StepKind::Parallel(_) | StepKind::Foreach(_)) => Rc::new(Members::none()),
            None => members_of(&data.to_shape()),
        }
    }

    /// Paths in place of numbers. They see the step's own input.
    fn numbers(&self, cursor: &Cursor<'_>, own: &Data) {
        for field in Setting::OF_STEP.map(Setting::field) {
            self.number(cursor, field, own);
        }
        let Some(retry) = cursor.member("retry") else { return };
        for policy in retry.entries() {
            for field in RetryNumber::ALL.map(RetryNumber::field) {
                self.number(&policy, field, own);
            }
        }
    }

    fn number(&self, cursor: &Cursor<'_>, field: &str, own: &Data) {
        if let Some(member) = cursor.member(field)
            && let Some(found) = self.looked_up_at(&member, "$", own)
        {
            self.warn_of_kind(&member, &found.shape, Kinds::NUMBER, "a number is needed here");
        }
    }

    /// The paths of `retry`. They see the same data as `inputMappings`.
    fn retries(&self, cursor: &Cursor<'_>, roots: Roots<'_>) {
        let Some(retry) = cursor.member("retry") else { return };
        for policy in retry.entries() {
            let Some(values) = policy.member("values") else {
                continue;
            };
            let path = values.str().filter(|text| Path::is_path(text));
            if let Some(path) = path.and_then(|text| Path::parse(text).ok()) {
                let found = self.found(&values, 0, &path, roots, false);
                self.warn_of_kind(&values, &found.shape, Kinds::ARRAY, "a list of values is needed here");
            }
        }
    }

    fn task(&self, cursor: &Cursor<'_>, step: &Step, own: &Data) -> Shape {
        let result = self.result(&step.name);
        let data = Data::Value(result.clone());
        self.resource(cursor, own);
        if let Some(params) = cursor.member("serviceParams") {
            self.params(&params, own);
        }
        if let Some(poll) = cursor.member("poll") {
            for condition in ["until", "failWhen"].iter().filter_map(|field| poll.member(field)) {
                self.condition(&condition, &data);
            }
        }
        if let Some(rollback) = cursor.member("rollback") {
            let roots = Roots {
                input: own,
                local: &data,
            };
            let input = match self.mapped(&rollback, "inputMappings", roots, false) {
                Some(made) => Data::Value(made),
                None => own.under(&members_of(&result)),
            };
            self.resource(&rollback, &input);
            if let Some(params) = rollback.member("serviceParams") {
                self.params(&params, &input);
            }
        }
        result
    }

    /// The result of a task's resource: an object, with the members that examples show.
    fn result(&self, name: &str) -> Shape {
        let samples = self
            .samples
            .and_then(|samples| samples.get(name))
            .map_or(&[][..], Vec::as_slice);
        let shapes = samples
            .iter()
            .filter(|sample| matches!(sample, Value::Object(_)))
            .map(shape_of_sample);
        let any = shapes.reduce(|any, shape| any.or(&shape));
        any.unwrap_or_else(|| Shape::object(Rc::new(Members::open()), None))
    }

    /// The paths in the name of a resource.
    fn resource(&self, cursor: &Cursor<'_>, own: &Data) {
        for field in ["resourceArn", "resource", "action"] {
            let Some(field) = cursor.member(field) else { continue };
            let Some(Ok(Some(name))) = field.str().map(ResourceName::compile) else {
                continue;
            };
            for (offset, path) in name.paths() {
                self.looked_up(&field, offset, path.query(), own, None);
            }
        }
    }

    /// The paths in `serviceParams`. Its depth was already checked.
    fn params(&self, cursor: &Cursor<'_>, own: &Data) {
        match &cursor.node.kind {
            NodeKind::String(_) => {
                self.looked_up_at(cursor, "$", own);
            }
            NodeKind::Array(_) => cursor.items().for_each(|item| self.params(&item, own)),
            NodeKind::Object(_) => cursor.members().for_each(|(_, member)| self.params(&member, own)),
            _ => {}
        }
    }

    fn wait(&self, cursor: &Cursor<'_>, own: &Data) {
        if let Some(duration) = cursor.member("duration")
            && let Some(found) = self.looked_up_at(&duration, "$", own)
        {
            let seconds = |value: &Value| match value {
                Value::String(text) => text.trim().parse::<f64>().is_ok(),
                other => matches!(other, Value::Number(_)),
            };
            let needed = "a wait needs a number of seconds";
            self.warn_of_value(
                &duration,
                &found.shape,
                Kinds::NUMBER.or(Kinds::STRING),
                seconds,
                needed,
            );
        }
        if let Some(timestamp) = cursor.member("timestamp")
            && let Some(found) = self.looked_up_at(&timestamp, "$", own)
        {
            let time = |value: &Value| value.as_str().is_some_and(|text| Timestamp::parse(text).is_some());
            let needed = "a wait needs a point in time, as text";
            self.warn_of_value(&timestamp, &found.shape, Kinds::STRING, time, needed);
        }
    }

    fn choice(&self, cursor: &Cursor<'_>, step: &Step, choice: &Choice, own: &Data) -> Vec<Edge> {
        if let Some(choices) = cursor.member("choices") {
            for item in choices.entries() {
                if let Some(condition) = item.member("condition") {
                    self.condition(&condition, own);
                }
            }
        }
        let mut ways: Vec<(Option<StepId>, Rc<Members>)> = Vec::new();
        for arm in choice.arms.iter().chain(&choice.default) {
            let left = match arm.list {
                Some(list) => self.list(list, own),
                None => Some(Rc::new(Members::none())),
            };
            ways.extend(left.map(|left| (arm.goto.or(step.next), left)));
        }
        if choice.default.is_none() {
            ways.push((step.next, Rc::new(Members::none())));
        }
        if cursor.node.get("outputMappings").is_some() {
            let all = ways.iter().map(|(_, left)| left.clone());
            let any = all
                .reduce(|any, left| any.or(&left, &mut Room::new()))
                .unwrap_or_else(|| Rc::new(Members::open()));
            let output = self.output(cursor, &step.kind, own, Shape::object(any, None), false);
            ways.iter_mut().for_each(|(_, left)| *left = output.clone());
        }
        let edge = |(target, output)| Edge { target, output };
        ways.into_iter().map(edge).collect()
    }

    fn parallel(&self, parallel: &Parallel, own: &Data) -> Shape {
        let branches = &parallel.branches;
        let mut results: Vec<Option<Shape>> = vec![None; branches.len()];
        let mut waiting: Vec<usize> = branches.iter().map(|branch| branch.depends_on.len()).collect();
        let mut needed_by: Vec<Vec<usize>> = vec![Vec::new(); branches.len()];
        for (index, branch) in branches.iter().enumerate() {
            for &on in &branch.depends_on {
                needed_by.get_mut(on as usize).into_iter().for_each(|by| by.push(index));
            }
        }
        let ready = |waiting: &[usize]| {
            waiting
                .iter()
                .enumerate()
                .filter_map(|(index, on)| (*on == 0).then_some(index))
                .collect()
        };
        let mut open: Vec<usize> = ready(&waiting);
        while let Some(index) = open.pop() {
            let Some(branch) = branches.get(index) else { continue };
            let mut deps = Members::none();
            for &on in &branch.depends_on {
                let name = branches.get(on as usize).and_then(|branch| branch.name.clone());
                let result = results.get(on as usize).cloned().flatten();
                if let (Some(name), Some(result)) = (name, result) {
                    deps.set(name, result, true, None);
                }
            }
            let result = self.branch(branch.list, own, deps);
            results
                .get_mut(index)
                .into_iter()
                .for_each(|entry| *entry = Some(result.clone()));
            for &next in needed_by.get(index).into_iter().flatten() {
                if let Some(left) = waiting.get_mut(next) {
                    *left -= 1;
                    open.extend((*left == 0).then_some(next));
                }
            }
        }
        let all = parallel.wait_for == WaitFor::All;
        let other = error_shape(false).or(&Shape::kinds(Kinds::NULL, None));
        let item = |result: Option<Shape>| match (result.unwrap_or_default(), all) {
            (shape, true) => shape,
            (shape, false) => shape.or(&other),
        };
        Shape::list(Items::Each(Rc::new(results.into_iter().map(item).collect())), None)
    }

    fn branch(&self, list: ListId, own: &Data, deps: Members) -> Shape {
        let input = if deps.is_nothing() {
            own.clone()
        } else {
            let mut over = Members::none();
            over.set("deps".into(), Shape::object(Rc::new(deps), None), true, None);
            own.under(&Rc::new(over))
        };
        // The result of a branch that never ends is unknown.
        self.list(list, &input)
            .map_or_else(Shape::default, |left| Shape::object(left, None))
    }

    fn foreach(&self, cursor: &Cursor<'_>, foreach: &Foreach, own: &Data) -> Shape {
        let mapping = cursor.member("iterationMapping");
        let collection = mapping.as_ref().and_then(|mapping| mapping.member("collection"));
        let found = collection.and_then(|collection| {
            let found = self.looked_up_at(&collection, "$", own)?;
            self.warn_of_kind(&collection, &found.shape, Kinds::ARRAY, "a foreach needs a list");
            Some(found.shape)
        });
        let item = found.as_ref().map_or_else(Shape::default, |list| match list.known() {
            Some(known) => known.items.any().doubted_if(list.is_doubted()),
            None => Shape::default(),
        });
        let mut over = Members::none();
        let said = |field: &str| mapping.as_ref()?.node.get(field).map(|node| node.span);
        over.set(foreach.item.clone(), item, true, said("item"));
        if let Some(index) = &foreach.index {
            over.set(index.clone(), Shape::kinds(Kinds::NUMBER, None), true, said("index"));
        }
        let left = self.list(foreach.list, &own.under(&Rc::new(over)));
        let one = left.map_or_else(Shape::default, |left| Shape::object(left, None));
        let one = match foreach.tolerance {
            Some(_) => one.or(&error_shape(false)),
            None => one,
        };
        Shape::list(Items::All(one), None)
    }
}

/// `{}`
fn empty() -> Shape {
    Shape::object(Rc::new(Members::none()), None)
}

/// The members of an error; with `quiet`, unknown members are not reported.
fn error_shape(quiet: bool) -> Shape {
    let mut members = Members::none();
    members.quiet = quiet;
    for name in ["error", "cause"] {
        members.set(name.into(), Shape::kinds(Kinds::STRING, None), true, None);
    }
    Shape::object(Rc::new(members), None)
}

/// The members of an object.
fn members_of(shape: &Shape) -> Rc<Members> {
    match shape.certain() {
        Some(known) => known.members.clone(),
        None => Rc::new(Members::open()),
    }
}
