//! Random flows of any size with everything that can be drawn. The same seed gives the same flow.

use serde_json::{Value, json};

/// Words for names: short, long, wide, and without a place to break them.
const WORDS: [&str; 12] = [
    "pay",
    "reserve stock",
    "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW",
    "i",
    "検査する",
    "charge the customer's card again",
    "a-very-long-name-that-breaks-nowhere-at-all",
    "send",
    "\u{5e9}\u{5dc}\u{5d5}\u{5dd}",
    "🎵",
    "check",
    "write the invoice",
];
const ERRORS: [&str; 4] = ["FnF.ALL", "HTTP.500", "Payment.Refused.For.A.Reason.That.Is.Long", "E"];

/// Makes the flow of a seed.
pub(super) struct Random {
    noise: u64,
    /// How many steps are still to be made.
    left: usize,
    made: usize,
}

impl Random {
    /// A definition of about this many steps.
    pub(super) fn flow(seed: u64, steps: usize) -> String {
        let mut random = Self {
            noise: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            left: steps,
            made: 0,
        };
        let mut list = Vec::new();
        while random.left > 0 {
            list.extend(random.list(0));
        }
        json!({"version": "v1", "type": "flow", "name": format!("flow {seed}"), "steps": list}).to_string()
    }

    fn below(&mut self, bound: usize) -> usize {
        self.noise = self
            .noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.noise >> 33) as usize % bound
    }

    fn name(&mut self) -> String {
        self.made += 1;
        let word = WORDS[self.below(WORDS.len())];
        format!("{word} {}", self.made)
    }

    /// A list of steps. Names come first, so that each step may lead to any other.
    fn list(&mut self, depth: usize) -> Vec<Value> {
        let most = if depth == 0 { 12 } else { 4 };
        let count = (1 + self.below(most)).min(self.left.max(1));
        self.left = self.left.saturating_sub(count);
        let names: Vec<String> = (0..count).map(|_| self.name()).collect();
        (0..count).map(|index| self.step(&names, index, depth)).collect()
    }

    fn step(&mut self, names: &[String], index: usize, depth: usize) -> Value {
        let kinds = if depth > 3 || self.left == 0 { 5 } else { 9 };
        let mut step = match self.below(kinds) {
            0 => json!({"type": "wait", "duration": 5}),
            1 => json!({"type": "pass", "outputMappings": [{"target": "a", "source": "$input.b"}]}),
            2..=4 => self.task(names),
            5 => self.choice(names, depth),
            6 | 7 => self.parallel(depth),
            _ => {
                let steps = self.list(depth + 1);
                json!({"type": "foreach", "concurrency": 5, "steps": steps,
                    "iterationMapping": {"collection": "$.items", "item": "item"}})
            }
        };
        if index + 1 == names.len() && self.below(4) == 0 {
            step = [
                json!({"type": "succeed"}),
                json!({"type": "fail", "error": "E", "cause": "why"}),
            ][self.below(2)]
            .clone();
        } else if self.below(12) == 0 {
            step["end"] = json!(true);
        }
        step["name"] = json!(names[index]);
        step
    }

    fn task(&mut self, names: &[String]) -> Value {
        let mut task = json!({"type": "task", "resourceArn": "https://shop.example.com/api/v1/reservations/by-day"});
        for (key, value) in [
            ("rollback", json!({"resourceArn": "http://undo"})),
            ("timeoutSeconds", json!(30)),
            ("retry", json!([{"errors": ["FnF.ALL"], "maxAttempts": 5}])),
            ("pattern", json!("waitForCallback")),
        ] {
            if self.below(4) == 0 {
                task[key] = value;
            }
        }
        if self.below(3) == 0 {
            let clauses: Vec<Value> = (0..1 + self.below(3)).map(|_| self.catch(names)).collect();
            task["catch"] = json!(clauses);
        }
        task
    }

    fn catch(&mut self, names: &[String]) -> Value {
        let error = ERRORS[self.below(ERRORS.len())];
        if self.below(6) == 0 {
            return json!({"errors": [error], "manual": true});
        }
        json!({"errors": [error], "goto": names[self.below(names.len())]})
    }

    fn choice(&mut self, names: &[String], depth: usize) -> Value {
        let mut arms: Vec<Value> = (0..1 + self.below(4)).map(|_| self.arm(names, depth)).collect();
        for arm in &mut arms {
            arm["condition"] =
                json!(["$.a > 1", "$.amount >= 1000 && $.country in $.countries || !$.known"][self.below(2)]);
        }
        let mut choice = json!({"type": "choice", "choices": arms});
        if self.below(2) == 0 {
            choice["default"] = self.arm(names, depth);
        }
        choice
    }

    fn arm(&mut self, names: &[String], depth: usize) -> Value {
        let goto = json!(names[self.below(names.len())]);
        match self.below(3) {
            0 => json!({"goto": goto}),
            1 => json!({"steps": self.list(depth + 1)}),
            _ => json!({"steps": self.list(depth + 1), "goto": goto}),
        }
    }

    fn parallel(&mut self, depth: usize) -> Value {
        let graph = self.below(2) == 0;
        let branches: Vec<Value> = (0..1 + self.below(6))
            .map(|number| {
                let mut branch = json!({"steps": self.list(depth + 1)});
                if graph {
                    branch["name"] = json!(format!("n{number}"));
                    let before: Vec<String> = (0..number)
                        .filter(|_| self.below(3) == 0)
                        .map(|n| format!("n{n}"))
                        .collect();
                    branch["dependsOn"] = json!(before);
                }
                branch
            })
            .collect();
        json!({"type": "parallel", "branches": branches})
    }
}
