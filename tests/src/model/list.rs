//! Lists of steps, and the visits of a step: attempts, retries, catches.

use super::data::{Roots, mapped, merged};
use super::retries::{Retries, names};
use super::scope::Scope;
use super::site::{Left, Site};
use super::undo::undo;
use super::world::World;
use super::{Fault, Object, Run, attempt};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The whole flow.
pub fn flow(world: Rc<World>, scope: Rc<Scope>, flow: Value, input: Object) -> Run<Result<Object, Fault>> {
    Box::pin(async move {
        let site = Site {
            world: world.clone(),
            scope: scope.clone(),
            iterations: Vec::new(),
        };
        let result = flow_inside(site, &flow, input).await;
        if let Err(fault) = &result {
            undo(&world, scope.clone(), scope.take_all(), fault.clone()).await;
        }
        result
    })
}

async fn flow_inside(site: Site, flow: &Value, input: Object) -> Result<Object, Fault> {
    let context = json!({});
    let mut input = Value::Object(input);
    if flow.get("inputMappings").is_some() {
        let roots = Roots {
            input: &input,
            local: &Value::Null,
            context: &context,
        };
        input = Value::Object(mapped(&flow["inputMappings"], &roots, "FnF.InvalidInput")?);
    }
    let given = input.as_object().cloned().unwrap_or_default();
    let local = site.run(flow["steps"].clone(), given).await?;
    if flow.get("outputMappings").is_none() {
        return Ok(local);
    }
    let roots = Roots {
        input: &input,
        local: &Value::Object(local),
        context: &context,
    };
    mapped(&flow["outputMappings"], &roots, "FnF.InvalidOutput")
}

impl Site {
    /// A list: the merged outputs of its steps.
    pub fn run(self, steps: Value, input: Object) -> Run<Result<Object, Fault>> {
        Box::pin(async move {
            let steps = steps.as_array().cloned().unwrap_or_default();
            let index_of = |name: &str| steps.iter().position(|step| step["name"] == name);
            let mut local = Object::new();
            let mut visits: BTreeMap<usize, u64> = BTreeMap::new();
            let mut at = Some(0);
            while let Some((index, step)) = at.and_then(|at| Some((at, steps.get(at)?))) {
                self.world.entered(step["name"].as_str().unwrap_or_default());
                let number = visits.entry(index).or_default();
                *number += 1;
                if *number > self.world.most_visits {
                    return Err(Fault::of_engine("FnF.LimitExceeded"));
                }
                let left = visit(&self, step, &input, &local, *number).await?;
                local.extend(left.output);
                at = match left.goto {
                    Some(goto) => index_of(&goto),
                    None if step["type"] == "succeed" || step["end"] == true => None,
                    None => Some(index + 1),
                };
            }
            Ok(local)
        })
    }
}

/// One visit of a step.
async fn visit(site: &Site, step: &Value, input: &Object, local: &Object, number: u64) -> Result<Left, Fault> {
    let visit = site.world.number();
    let mut retries = Retries::default();
    for attempt in 1.. {
        let seen = attempt::Seen {
            parent: &Value::Object(input.clone()),
            local: &Value::Object(local.clone()),
            data: Value::Object(merged(input, local)),
            context: context(site, step, number, attempt),
            visit,
        };
        let mut own = json!({});
        let fault = match attempt::run(site, step, &seen, &mut own).await {
            Ok(left) => {
                let done = site.scope.landed(visit);
                site.scope.completed(site.world.number(), done);
                return Ok(left);
            }
            Err(fault) => fault,
        };
        if !fault.final_here
            && let Some(delay) = retries.next(&step["retry"], &fault)
        {
            site.world.after(delay).await;
            continue;
        }
        let done = site.scope.landed(visit);
        let caught = caught(step, &own, &seen.context, fault);
        if caught.is_err() {
            site.scope.failed(done);
        }
        return caught;
    }
    Err(Fault::of_engine("FnF.RuntimeError"))
}

/// The target where the list continues, if a clause names the error.
fn caught(step: &Value, own: &Value, context: &Value, fault: Fault) -> Result<Left, Fault> {
    let clauses = step["catch"].as_array().cloned().unwrap_or_default();
    let Some(clause) = clauses.iter().find(|clause| names(clause, &fault)) else {
        return Err(fault);
    };
    let roots = Roots {
        input: own,
        local: &fault.to_value(),
        context,
    };
    Ok(Left {
        output: mapped(&step["errorMappings"], &roots, "FnF.InvalidOutput")?,
        goto: clause["goto"].as_str().map(str::to_owned),
    })
}

fn context(site: &Site, step: &Value, visit: u64, attempt: u64) -> Value {
    let mut context = json!({"step": {"name": step["name"], "visit": visit, "attempt": attempt}});
    if let Some(index) = site.iterations.last() {
        context["foreach"] = json!({"index": index});
    }
    context
}
