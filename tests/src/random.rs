//! Random test files: one valid flow of any shape, and a world that answers it in any way. The same seed and budget give
//! the same file; a smaller budget gives a smaller one.

#[path = "random/chance.rs"]
mod chance;
#[path = "random/data.rs"]
mod data;
#[path = "random/smaller.rs"]
mod smaller;

pub use chance::Chance;
pub use smaller::smaller;

use serde_json::{Map, Value, json};

/// Steps beyond this depth are no composites.
const DEPTH: u32 = 4;
/// Visits of a step in a random flow: loops that nothing else ends are ended by this.
const VISITS: u32 = 50;
/// Events of a random execution, so that loops inside loops end.
pub const EVENTS: u64 = 3_000;

/// A test file with one case; a flow of about `budget` steps.
pub fn test_file(seed: u64, budget: u32) -> Value {
    let mut maker = Maker {
        chance: Chance::new(seed),
        budget,
        named: 0,
        mocks: Map::new(),
    };
    let flow = maker.flow();
    let input = data::input(&mut maker.chance);
    let mut case = json!({"name": format!("random, seed {seed}"), "input": input, "mocks": maker.mocks});
    if maker.chance.of(15) {
        case["stop"] = data::stop(&mut maker.chance);
    }
    json!({"flow": flow, "limits": {"stepVisits": VISITS, "historyEvents": EVENTS}, "cases": [case]})
}

/// Makes the flow, and the answers of its tasks along the way.
struct Maker {
    chance: Chance,
    budget: u32,
    named: u32,
    mocks: Map<String, Value>,
}

/// The place of a step.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// Its list's names, and its own index there.
    names: &'a [String],
    index: usize,
    /// The known facts about its surroundings.
    around: Around,
}

/// The surroundings of a list.
#[derive(Clone, Copy)]
struct Around {
    /// Composites.
    depth: u32,
    /// Whether something ends what is inside when its time has passed.
    bounded: bool,
    /// Whether one of them is a foreach.
    foreach: bool,
}

impl Around {
    /// One composite deeper, which may have a timeout.
    fn deeper(self, bounded: bool) -> Self {
        Self {
            depth: self.depth + 1,
            bounded: self.bounded || bounded,
            foreach: self.foreach,
        }
    }
}

impl Maker {
    fn flow(&mut self) -> Value {
        let bounded = self.chance.of(20);
        let steps = self.list(Around {
            depth: 0,
            bounded,
            foreach: false,
        });
        let mut flow = json!({"version": "v1", "type": "flow", "steps": steps});
        if bounded {
            flow["timeoutSeconds"] = json!(self.chance.from(1, 40));
        }
        if self.chance.of(10) {
            flow["inputMappings"] = data::flow_input(&mut self.chance);
        }
        if self.chance.of(15) {
            flow["outputMappings"] = data::flow_output(&mut self.chance);
        }
        flow
    }

    /// The steps of a list, at least one.
    fn list(&mut self, around: Around) -> Vec<Value> {
        let count = 1 + self.chance.below(4.min(self.budget.max(1)));
        self.budget = self.budget.saturating_sub(count);
        let counted = count > 1 && self.chance.of(12);
        let names: Vec<String> = (0..count).map(|_| self.name()).collect();
        let mut steps = Vec::new();
        for index in 0..names.len() {
            let place = Place {
                names: &names,
                index,
                around,
            };
            let step = match (counted, index) {
                (true, 0) => {
                    json!({"type": "pass", "outputMappings": [{"target": "n", "source": "$context.step.visit"}]})
                }
                (true, _) if index + 1 == names.len() => {
                    let condition = format!("$.n < {}", self.chance.from(2, 4));
                    json!({"type": "choice", "choices": [{"condition": condition, "goto": names.first()}]})
                }
                _ => self.step(place),
            };
            steps.push(named(step, names.get(index).map_or("", String::as_str)));
        }
        steps
    }

    fn name(&mut self) -> String {
        self.named += 1;
        format!("s{}", self.named)
    }

    /// One step, without its name.
    fn step(&mut self, place: Place<'_>) -> Value {
        let inner = if place.around.depth < DEPTH && self.budget > 0 {
            1
        } else {
            0
        };
        let kind = self
            .chance
            .weighted(&[40, 15, 8, 12 * inner, 10 * inner, 10 * inner, 2, 4]);
        let mut step = match kind {
            0 => self.task(place),
            1 => json!({"type": "pass"}),
            2 => data::wait(&mut self.chance),
            3 => self.choice(place),
            4 => self.parallel(place),
            5 => self.foreach(place),
            6 => json!({"type": "succeed"}),
            _ => data::fail(&mut self.chance),
        };
        if self.chance.of(20) {
            step["inputMappings"] = data::input_mappings(&mut self.chance);
        }
        if self.chance.of(25) {
            step["outputMappings"] = match kind {
                4 | 5 => data::array_mappings(&mut self.chance),
                _ => data::output_mappings(&mut self.chance),
            };
        }
        if kind < 6 && place.index + 1 < place.names.len() && self.chance.of(4) {
            step["end"] = json!(true);
        }
        step
    }

    /// `timeoutSeconds`, `retry`, `catch` and `errorMappings`.
    fn guards(&mut self, step: &mut Value, place: Place<'_>, bounded: bool) {
        if bounded {
            step["timeoutSeconds"] = json!(self.chance.from(1, 12));
        }
        if self.chance.of(30) {
            step["retry"] = self.retry();
        }
        if self.chance.of(30) {
            step["catch"] = self.catch(place);
            if self.chance.of(50) {
                step["errorMappings"] = data::error_mappings(&mut self.chance);
            }
        }
    }

    fn retry(&mut self) -> Value {
        let mut policies = Vec::new();
        for errors in data::distinct_errors(&mut self.chance) {
            let mut policy = json!({"errors": errors, "maxAttempts": self.chance.below(3)});
            policy["intervalSeconds"] = self.chance.pick(&[json!(0), json!(1), json!(2.5), json!(0.1)]);
            match self.chance.below(4) {
                0 => policy["backoff"] = json!("fixed"),
                1 => policy["multiplier"] = self.chance.pick(&[json!(1), json!(1.5), json!(3)]),
                2 => policy["maxIntervalSeconds"] = json!(self.chance.from(1, 3)),
                _ => {}
            }
            policies.push(policy);
        }
        json!(policies)
    }

    fn catch(&mut self, place: Place<'_>) -> Value {
        let clauses: Vec<Value> = data::distinct_errors(&mut self.chance)
            .into_iter()
            .map(|errors| json!({"errors": errors, "goto": self.sibling(place)}))
            .collect();
        json!(clauses)
    }

    /// A step of the same list: mostly a later one.
    fn sibling(&mut self, place: Place<'_>) -> String {
        let later = place.names.get(place.index + 1..).unwrap_or_default();
        let from = if later.is_empty() || self.chance.of(15) {
            place.names
        } else {
            later
        };
        self.chance.pick(from)
    }

    fn task(&mut self, place: Place<'_>) -> Value {
        let mut task = json!({"type": "task", "resourceArn": "http://localhost/f"});
        let bounded = self.chance.of(25);
        self.guards(&mut task, place, bounded);
        if self.chance.of(8) {
            task["pattern"] = json!("waitForCallback");
            if self.chance.of(50) {
                task["heartbeatSeconds"] = json!(self.chance.from(1, 9));
            }
        } else if self.chance.of(8) {
            task["poll"] = self.poll();
        }
        if self.chance.of(15) {
            task["priority"] = json!(self.chance.below(10));
        }
        if self.chance.of(45) {
            let (rollback, answers) = self.rollback();
            task["rollback"] = rollback;
            self.answer(place, ".rollback", answers);
        }
        let answers = data::answers(&mut self.chance, bounded || place.around.bounded);
        self.answer(place, "", answers);
        task
    }

    fn answer(&mut self, place: Place<'_>, suffix: &str, answers: Value) {
        if let Some(name) = place.names.get(place.index) {
            self.mocks.insert(format!("{name}{suffix}"), answers);
        }
    }

    fn poll(&mut self) -> Value {
        let mut poll =
            json!({"until": "$.t", "intervalSeconds": self.chance.from(1, 4), "maxAttempts": self.chance.from(1, 4)});
        if self.chance.of(40) {
            poll["failWhen"] = json!(data::condition(&mut self.chance));
        }
        if self.chance.of(40) {
            poll["multiplier"] = json!(2);
            poll["maxIntervalSeconds"] = json!(self.chance.from(4, 6));
        }
        poll
    }

    fn rollback(&mut self) -> (Value, Value) {
        let mut rollback = json!({"resourceArn": "http://localhost/undo"});
        let bounded = self.chance.of(20);
        if bounded {
            rollback["timeoutSeconds"] = json!(self.chance.from(1, 9));
        }
        if self.chance.of(40) {
            rollback["retry"] = self.retry();
        }
        if self.chance.of(20) {
            rollback["inputMappings"] = data::rollback_mappings(&mut self.chance);
        }
        (rollback, data::undo_answers(&mut self.chance, bounded))
    }

    fn choice(&mut self, place: Place<'_>) -> Value {
        let arms: Vec<Value> = (0..self.chance.from(1, 2))
            .map(|_| {
                let mut arm = self.arm(place);
                arm["condition"] = json!(data::condition(&mut self.chance));
                arm
            })
            .collect();
        let mut choice = json!({"type": "choice", "choices": arms});
        if self.chance.of(50) {
            choice["default"] = self.arm(place);
        }
        let bounded = self.chance.of(15);
        self.guards(&mut choice, place, bounded);
        choice
    }

    fn arm(&mut self, place: Place<'_>) -> Value {
        let mut arm = json!({});
        let steps = self.budget > 0 && self.chance.of(70);
        if steps {
            arm["steps"] = json!(self.list(place.around.deeper(false)));
        }
        if !steps || self.chance.of(20) {
            arm["goto"] = json!(self.sibling(place));
        }
        arm
    }

    fn parallel(&mut self, place: Place<'_>) -> Value {
        let bounded = self.chance.of(15);
        let count = self.chance.from(1, 4);
        let graph = self.chance.of(25);
        let mut branches = Vec::new();
        for number in 0..count {
            let mut branch = json!({"steps": self.list(place.around.deeper(bounded))});
            if graph {
                branch["name"] = json!(format!("b{number}"));
                let on: Vec<String> = (0..number)
                    .filter(|_| self.chance.of(40))
                    .map(|other| format!("b{other}"))
                    .collect();
                if !on.is_empty() {
                    branch["dependsOn"] = json!(on);
                }
            }
            branches.push(branch);
        }
        let mut parallel = json!({"type": "parallel", "branches": branches});
        if self.chance.of(30) {
            parallel["waitFor"] = match self.chance.below(3) {
                0 => json!("all"),
                1 => json!("any"),
                _ => json!(self.chance.from(1, count)),
            };
        }
        if self.chance.of(25) {
            parallel["concurrency"] = json!(self.chance.from(1, 3));
        }
        self.guards(&mut parallel, place, bounded);
        parallel
    }

    fn foreach(&mut self, place: Place<'_>) -> Value {
        let bounded = self.chance.of(15);
        let inside = Around {
            foreach: true,
            ..place.around.deeper(bounded)
        };
        let steps = self.list(inside);
        let collection = data::collection(&mut self.chance, place.around.foreach);
        let mut mapping = json!({"collection": collection, "item": "it"});
        if self.chance.of(40) {
            mapping["index"] = json!("i");
        }
        let mut foreach = json!({"type": "foreach", "iterationMapping": mapping, "steps": steps});
        if self.chance.of(50) {
            foreach["concurrency"] = json!(self.chance.from(1, 3));
        }
        match self.chance.below(6) {
            0 => foreach["tolerance"] = json!({"count": self.chance.below(3)}),
            1 => foreach["tolerance"] = json!({"percent": self.chance.pick(&[0, 34, 50, 100])}),
            _ => {}
        }
        self.guards(&mut foreach, place, bounded);
        foreach
    }
}

/// The step with its name in front.
fn named(mut step: Value, name: &str) -> Value {
    step["name"] = json!(name);
    step
}
