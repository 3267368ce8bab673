//! A flow as nodes, groups and edges: the source of pictures for other programs.

use super::icon::Icon;
use super::labels;
use super::status::{FlowStatus, Status, Way};
use super::text::{clean, shorten};
use super::words::Words;
use starbridge_flow::graph::{Catch, CatchTarget, Choice, Flow, ListId, Parallel, Step, StepId, StepKind};

/// How many levels of composites are shown.
const DEPTH: usize = 48;
/// The longest line, in characters.
const LINE: usize = 60;

/// A node, or the beginning or end of a group, in order.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// A group begins.
    Open {
        id: String,
        lines: Vec<String>,
        status: Option<Status>,
        /// Whether it is a branch or arm, and not a step.
        lane: bool,
    },
    /// The last group ends.
    Close,
    /// A step without steps inside, or a choice.
    Step {
        id: String,
        icon: Icon,
        lines: Vec<String>,
        status: Option<Status>,
    },
    /// The beginning of the flow.
    Begin,
    /// The end of the flow, after its last step.
    Finish,
}

/// An end of an edge.
#[derive(Clone, Debug)]
pub(super) struct End {
    /// A node.
    pub(super) id: String,
    /// The group around the node, if the edge ends there.
    pub(super) group: Option<String>,
}

/// What an edge means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EdgeKind {
    Next,
    Goto,
    Catch,
    Depends,
}

#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub(super) from: End,
    pub(super) to: End,
    pub(super) kind: EdgeKind,
    pub(super) label: String,
    pub(super) taken: bool,
    /// Whether it leads back.
    pub(super) back: bool,
}

/// A whole flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Outline {
    pub(super) title: String,
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
}

/// The node of the flow's beginning.
pub(super) const BEGIN: &str = "begin";
/// The node of the flow's end.
pub(super) const FINISH: &str = "finish";

/// A way from a step to the next one, or to the target of an arm's `goto`.
struct Out {
    from: End,
    label: String,
    taken: bool,
    goto: Option<StepId>,
}

/// A step whose nodes exist.
struct Shown {
    entry: End,
    /// Where errors leave it.
    whole: End,
    outs: Vec<Out>,
    /// The last node in it.
    last: String,
}

struct Outliner<'a> {
    flow: &'a Flow,
    status: Option<&'a FlowStatus>,
    drawn: Vec<bool>,
    outline: Outline,
}

impl Outline {
    /// The nodes and edges of a flow.
    pub(super) fn new(flow: &Flow, status: Option<&FlowStatus>) -> Self {
        let mut outliner = Outliner {
            flow,
            status,
            drawn: vec![false; flow.lists.len()],
            outline: Self {
                title: flow.name.as_ref().map(|name| clean(name)).unwrap_or_default(),
                ..Self::default()
            },
        };
        outliner.outline.nodes.push(Node::Begin);
        let (first, _) = outliner.list(ListId(0), 0, true);
        outliner.edge(
            End::node(BEGIN),
            first,
            EdgeKind::Next,
            String::new(),
            outliner.taken(Way::Begin),
            false,
        );
        outliner.outline
    }
}

impl End {
    fn node(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            group: None,
        }
    }

    fn group(id: impl Into<String>, group: &str) -> Self {
        Self {
            id: id.into(),
            group: Some(group.to_owned()),
        }
    }
}

fn id_of(step: StepId) -> String {
    format!("s{}", step.0)
}

impl Outliner<'_> {
    fn taken(&self, way: Way) -> bool {
        self.status.is_some_and(|status| status.taken(way) > 0)
    }

    fn edge(&mut self, from: End, to: End, kind: EdgeKind, label: String, taken: bool, back: bool) {
        self.outline.edges.push(Edge {
            from,
            to,
            kind,
            label,
            taken,
            back,
        });
    }

    /// A list with its edges. Returns its beginning and its last node.
    fn list(&mut self, id: ListId, depth: usize, whole: bool) -> (End, String) {
        let flow = self.flow;
        let seen = self
            .drawn
            .get_mut(id.0 as usize)
            .is_none_or(|drawn| std::mem::replace(drawn, true));
        let ids: &[StepId] = flow.list(id).map_or(&[], |list| &list.steps);
        let steps: Vec<(StepId, &Step)> = ids
            .iter()
            .filter_map(|&id| flow.step(id).map(|step| (id, step)))
            .collect();
        if seen || depth > DEPTH || steps.is_empty() {
            return self.more(id);
        }
        let shown: Vec<Shown> = steps.iter().map(|(id, step)| self.step(*id, step, depth)).collect();
        let mut finishes = false;
        for ((id, step), from) in steps.iter().zip(&shown) {
            for out in &from.outs {
                let target = out.goto.or(step.next);
                let kind = if out.goto.is_some() {
                    EdgeKind::Goto
                } else {
                    EdgeKind::Next
                };
                match target.and_then(|target| find(flow, &shown, step, target)) {
                    Some((to, back)) => self.edge(out.from.clone(), to, kind, out.label.clone(), out.taken, back),
                    None if whole && target.is_none() => {
                        finishes = true;
                        self.edge(
                            out.from.clone(),
                            End::node(FINISH),
                            kind,
                            out.label.clone(),
                            out.taken,
                            false,
                        );
                    }
                    None => {}
                }
            }
            for catch in &step.catch {
                self.caught(*id, step, from, catch, &shown);
            }
        }
        if finishes {
            self.outline.nodes.push(Node::Finish);
        }
        let first = shown
            .first()
            .map_or_else(|| End::node(BEGIN), |shown| shown.entry.clone());
        (first, shown.last().map_or_else(String::new, |shown| shown.last.clone()))
    }

    /// A node in place of a list that is not shown.
    fn more(&mut self, list: ListId) -> (End, String) {
        let id = format!("more{}x{}", list.0, self.outline.nodes.len());
        self.outline.nodes.push(Node::Step {
            id: id.clone(),
            icon: Icon::Pass,
            lines: vec!["…".to_owned()],
            status: None,
        });
        (End::node(id.clone()), id)
    }

    fn caught(&mut self, id: StepId, step: &Step, from: &Shown, catch: &Catch, shown: &[Shown]) {
        let CatchTarget::Goto(target) = catch.target else {
            return;
        };
        if let Some((to, back)) = find(self.flow, shown, step, target) {
            let label = shorten(&labels::errors(catch, &self.flow.fault_names, Words::English), LINE);
            let taken = self.taken(Way::Catch(id, target));
            self.edge(from.whole.clone(), to, EdgeKind::Catch, label, taken, back);
        }
    }

    fn step(&mut self, id: StepId, step: &Step, depth: usize) -> Shown {
        match &step.kind {
            StepKind::Choice(choice) => self.choice(id, step, choice, depth),
            StepKind::Parallel(parallel) => {
                self.open(id, step);
                let last = self.branches(id, parallel, depth);
                self.grouped(id, last)
            }
            StepKind::Foreach(foreach) => {
                self.open(id, step);
                let (first, last) = self.list(foreach.list, depth + 1, false);
                self.grouped(id, (first.id, last))
            }
            kind => {
                self.node(id, step);
                let end = End::node(id_of(id));
                let goes_on = !matches!(kind, StepKind::Succeed | StepKind::Fail(_));
                let out = Out {
                    from: end.clone(),
                    label: String::new(),
                    taken: self.taken(Way::Next(id)),
                    goto: None,
                };
                Shown {
                    entry: end.clone(),
                    whole: end,
                    outs: goes_on.then_some(out).into_iter().collect(),
                    last: id_of(id),
                }
            }
        }
    }

    fn node(&mut self, id: StepId, step: &Step) {
        self.outline.nodes.push(Node::Step {
            id: id_of(id),
            icon: Icon::of(&step.kind),
            lines: self.lines(id, step),
            status: self.status.map(|status| status.marks(id).status),
        });
    }

    fn open(&mut self, id: StepId, step: &Step) {
        self.outline.nodes.push(Node::Open {
            id: id_of(id),
            lines: self.lines(id, step),
            status: self.status.map(|status| status.marks(id).status),
            lane: false,
        });
    }

    /// Ends the group of a step.
    fn grouped(&mut self, id: StepId, (first, last): (String, String)) -> Shown {
        self.outline.nodes.push(Node::Close);
        let group = id_of(id);
        let whole = End::group(last.clone(), &group);
        Shown {
            entry: End::group(first, &group),
            whole: whole.clone(),
            outs: vec![Out {
                from: whole,
                label: String::new(),
                taken: self.taken(Way::Next(id)),
                goto: None,
            }],
            last,
        }
    }

    /// The branches of a parallel with their dependencies. Returns the first and the last node.
    fn branches(&mut self, id: StepId, parallel: &Parallel, depth: usize) -> (String, String) {
        let mut ends: Vec<(End, End)> = Vec::with_capacity(parallel.branches.len());
        for (index, branch) in parallel.branches.iter().enumerate() {
            let group = format!("{}b{index}", id_of(id));
            self.outline.nodes.push(Node::Open {
                id: group.clone(),
                lines: vec![shorten(&labels::branch(branch, index, Words::English), LINE)],
                status: None,
                lane: true,
            });
            let (first, last) = self.list(branch.list, depth + 1, false);
            self.outline.nodes.push(Node::Close);
            ends.push((End::group(first.id, &group), End::group(last, &group)));
        }
        for (number, (branch, (to, _))) in (0..).zip(parallel.branches.iter().zip(&ends)) {
            for (from, on) in branch
                .depends_on
                .iter()
                .filter_map(|&on| ends.get(on as usize).map(|(_, from)| (from, on)))
            {
                let taken = self.taken(Way::Branch(id, number));
                self.edge(
                    from.clone(),
                    to.clone(),
                    EdgeKind::Depends,
                    String::new(),
                    taken,
                    on >= number,
                );
            }
        }
        match (ends.first(), ends.last()) {
            (Some((first, _)), Some((_, last))) => (first.id.clone(), last.id.clone()),
            _ => {
                let (end, last) = self.more(ListId(u32::MAX));
                (end.id, last)
            }
        }
    }

    /// Opens the group of an arm and returns its id.
    fn open_arm(&mut self, id: StepId, number: Option<u32>) -> String {
        let (group, name) = match number {
            None => (format!("{}d", id_of(id)), "otherwise".to_owned()),
            Some(number) => (
                format!("{}a{number}", id_of(id)),
                format!("arm {}", u64::from(number) + 1),
            ),
        };
        self.outline.nodes.push(Node::Open {
            id: group.clone(),
            lines: vec![name],
            status: None,
            lane: true,
        });
        group
    }

    fn choice(&mut self, id: StepId, step: &Step, choice: &Choice, depth: usize) -> Shown {
        self.node(id, step);
        let own = End::node(id_of(id));
        let (mut outs, mut last) = (Vec::new(), id_of(id));
        let arms = choice
            .arms
            .iter()
            .enumerate()
            .map(|(number, arm)| (u32::try_from(number).ok(), arm));
        for (number, arm) in arms.chain(choice.default.iter().map(|arm| (None, arm))) {
            let label = shorten(&labels::condition(&arm.text, number, Words::English), LINE);
            let (entered, left) = (self.taken(Way::Arm(id, number)), self.taken(Way::Goto(id, number)));
            let Some(list) = arm.list else {
                let taken = entered && (arm.goto.is_none() || left);
                outs.push(Out {
                    from: own.clone(),
                    label,
                    taken,
                    goto: arm.goto,
                });
                continue;
            };
            let group = self.open_arm(id, number);
            let (first, end) = self.list(list, depth + 1, false);
            self.outline.nodes.push(Node::Close);
            self.edge(
                own.clone(),
                End::group(first.id, &group),
                EdgeKind::Next,
                label,
                entered,
                false,
            );
            outs.push(Out {
                from: End::group(end.clone(), &group),
                label: String::new(),
                taken: entered
                    && if arm.goto.is_some() {
                        left
                    } else {
                        self.taken(Way::Next(id))
                    },
                goto: arm.goto,
            });
            last = end;
        }
        if choice.default.is_none() {
            let label = "otherwise".to_owned();
            outs.push(Out {
                from: own.clone(),
                label,
                taken: false,
                goto: None,
            });
        }
        Shown {
            entry: own.clone(),
            whole: own,
            outs,
            last,
        }
    }

    /// The lines of text about a step.
    fn lines(&self, id: StepId, step: &Step) -> Vec<String> {
        let mut lines = vec![format!("{} {}", Icon::of(&step.kind).character(), clean(&step.name))];
        lines.extend(
            labels::details(step, Words::English)
                .into_iter()
                .map(|detail| detail.text),
        );
        let badges = labels::badges(step, Words::English);
        if !badges.is_empty() {
            lines.push(badges.join(" · "));
        }
        let manual = step.catch.iter().filter(|catch| catch.target == CatchTarget::Manual);
        lines.extend(manual.map(|catch| {
            format!(
                "on {} → operator",
                labels::errors(catch, &self.flow.fault_names, Words::English)
            )
        }));
        if let Some(status) = self.status {
            let marks = status.marks(id);
            lines.push(format!("{} {}", Icon::State(marks.status).character(), marks.words()));
        }
        lines.into_iter().map(|line| shorten(&line, LINE)).collect()
    }
}

/// The sibling that an edge leads to, and whether it leads back.
fn find(flow: &Flow, shown: &[Shown], step: &Step, target: StepId) -> Option<(End, bool)> {
    let target = flow.step(target).filter(|target| target.list == step.list)?;
    let to = shown.get(target.position as usize)?;
    Some((to.entry.clone(), target.position <= step.position))
}
