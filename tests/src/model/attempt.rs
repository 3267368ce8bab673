//! One attempt of a step: its input, what it does, its output.

use super::condition::holds;
use super::data::{Roots, ceil_millis, find, instant, mapped, plain, rooted};
use super::scope::Scope;
use super::site::{Left, Site};
use super::undo::undo;
use super::world::Moment;
use super::{Fault, Object, Run, children, task};
use serde_json::{Value, json};
use std::future::poll_fn;
use std::task::Poll;

/// 2024-01-01T00:00:00Z
const BEGINNING: i64 = 1_704_067_200_000;

/// What an attempt sees.
pub struct Seen<'a> {
    pub parent: &'a Value,
    pub local: &'a Value,
    /// Both merged.
    pub data: Value,
    pub context: Value,
    /// The number of the visit.
    pub visit: u64,
}

/// The result of the inside: a local, and the target where the list continues.
type Inside = Result<(Value, Option<String>), Fault>;

/// Runs an attempt; `own` becomes its input.
pub async fn run(site: &Site, step: &Value, seen: &Seen<'_>, own: &mut Value) -> Result<Left, Fault> {
    *own = match step.get("inputMappings") {
        None => seen.data.clone(),
        Some(mappings) => {
            let roots = Roots {
                input: seen.parent,
                local: seen.local,
                context: &seen.context,
            };
            Value::Object(mapped(mappings, &roots, "FnF.InvalidInput")?)
        }
    };
    let composite: Run<Inside> = match step["type"].as_str().unwrap_or_default() {
        "task" => {
            let result = task::attempt(site, step, seen.visit, own).await?;
            return output(step, own, &result, &seen.context, None);
        }
        "wait" => {
            if let Some(due) = until(site, step, own)? {
                site.world.at(due, super::world::Order::Timer).await;
            }
            return output(step, own, &json!({}), &seen.context, None);
        }
        "fail" => return Err(failure(step, own)),
        "choice" => choice(site.clone(), step.clone(), own.clone()),
        "parallel" => children::parallel(site.clone(), step.clone(), own.clone()),
        "foreach" => children::foreach(site.clone(), step.clone(), own.clone()),
        _ => return output(step, own, &json!({}), &seen.context, None),
    };
    let deadline = step["timeoutSeconds"]
        .as_u64()
        .map(|seconds| site.world.after(seconds * 1000));
    let inside = bounded(&site.scope, composite, deadline).await;
    poll_fn(|_| {
        if site.scope.quiet_inside() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    let left = inside.and_then(|(local, goto)| output(step, own, &local, &seen.context, goto));
    match &left {
        Ok(_) => site.scope.absorb(),
        Err(fault) => {
            let pile = site.scope.take_inside();
            undo(&site.world, site.scope.clone(), pile, fault.clone()).await;
        }
    }
    left
}

/// The output of an attempt with this local.
fn output(step: &Value, own: &Value, local: &Value, context: &Value, goto: Option<String>) -> Result<Left, Fault> {
    let output = match step.get("outputMappings") {
        // For an array, the default output is empty.
        None => local.as_object().cloned().unwrap_or_default(),
        Some(mappings) => {
            let roots = Roots {
                input: own,
                local,
                context,
            };
            mapped(mappings, &roots, "FnF.InvalidOutput")?
        }
    };
    Ok(Left { output, goto })
}

/// The run inside a composite, until its time has passed. A rollback inside is not interrupted.
async fn bounded(scope: &Scope, mut inside: Run<Inside>, deadline: Option<Moment>) -> Inside {
    poll_fn(|context| {
        if deadline.as_ref().is_some_and(Moment::has_come) && scope.quiet_inside() {
            return Poll::Ready(Err(Fault::of_engine("FnF.TaskTimeout")));
        }
        inside.as_mut().poll(context)
    })
    .await
}

/// When a wait ends; nothing where it ends at once.
fn until(site: &Site, step: &Value, own: &Value) -> Result<Option<u64>, Fault> {
    let invalid = || Fault::of_engine("FnF.InvalidInput");
    let resolved = |value: &Value| match value.as_str().and_then(|text| text.strip_prefix('$')) {
        Some(path) => find(own, path),
        None => Some(value.clone()),
    };
    let now = site.world.now();
    let due = if let Some(duration) = step.get("duration") {
        let value = resolved(duration).ok_or_else(invalid)?;
        let seconds = match &value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        now + ceil_millis(seconds.ok_or_else(invalid)?)
    } else {
        let value = resolved(&step["timestamp"]).ok_or_else(invalid)?;
        let millis = value.as_str().and_then(instant).ok_or_else(invalid)?;
        u64::try_from(millis - BEGINNING).unwrap_or(0)
    };
    Ok((due > now).then_some(due))
}

/// The error of a `fail`.
fn failure(step: &Value, own: &Value) -> Fault {
    let nothing = Value::Null;
    let roots = Roots {
        input: own,
        local: &nothing,
        context: &nothing,
    };
    let text = |key: &str, default: &str| match step[key].as_str() {
        None => default.to_owned(),
        Some(text) => match rooted(text, &roots) {
            None => text.to_owned(),
            Some(found) => found.map_or_else(|| default.to_owned(), |value| plain(&value)),
        },
    };
    Fault::new(&text("error", "FnF.Failed"), &text("cause", ""))
}

fn choice(site: Site, step: Value, own: Value) -> Run<Inside> {
    Box::pin(async move {
        let arms = step["choices"].as_array().cloned().unwrap_or_default();
        let taken = arms
            .iter()
            .find(|arm| holds(arm["condition"].as_str().unwrap_or_default(), &own))
            .or(step.get("default"));
        let Some(arm) = taken else {
            return Ok((json!({}), None));
        };
        let goto = arm["goto"].as_str().map(str::to_owned);
        let Some(steps) = arm.get("steps") else {
            return Ok((json!({}), goto));
        };
        let inside = Site {
            scope: Scope::new(Some(site.scope.clone())),
            ..site
        };
        let input: Object = own.as_object().cloned().unwrap_or_default();
        let world = inside.world.clone();
        let local = inside.run(steps.clone(), input).await;
        world.turn().await;
        Ok((Value::Object(local?), goto))
    })
}
