//! Measures an invocation: the function's start, a warm flow of ten steps compared with an event that is refused at
//! once, memory and sizes. Needs the emulator of Lambda's runtime and the program that is shipped: `cargo xtask
//! bench` names both.

use serde_json::{Value, json};
use starbridge_services::{Kind, Service, ask, resident};
use std::path::Path;
use std::time::Instant;

const STARTS: usize = 11;
const CALLS: usize = 400;

fn main() {
    let Some(program) = std::env::var_os("STARBRIDGE_BOOTSTRAP") else {
        println!("STARBRIDGE_BOOTSTRAP names no program: `cargo xtask bench` runs this");
        return;
    };
    let program = Path::new(&program);
    let package = tempfile::tempdir().unwrap();
    let own = package.path().join("bootstrap");
    std::fs::copy(program, &own).unwrap();
    let size = std::fs::metadata(&own).unwrap().len();
    println!("program: {:.1} MB (goal 16)", size as f64 / 1e6);
    let start = || {
        let root = package.path().to_str().unwrap();
        let environment = [("LAMBDA_TASK_ROOT", root), ("AWS_LAMBDA_FUNCTION_TIMEOUT", "30")];
        Service::start_in(Kind::Rie, &[own.to_str().unwrap()], &environment)
    };
    let mut inits = Vec::new();
    for _ in 0..STARTS {
        let service = start();
        invoke(&service, &ten());
        inits.push(init(&service));
    }
    println!(
        "start (init): median {:.1} ms, best {:.1} ms (goal 15)",
        median(&mut inits),
        inits[0]
    );
    let service = start();
    let (mut flows, mut refused) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        flows.push(timed(&service, &ten()));
        refused.push(timed(&service, &json!([])));
    }
    let (flow, none) = (median(&mut flows), median(&mut refused));
    println!(
        "ten steps: median {flow:.2} ms, an event that is refused {none:.2} ms: {:.2} ms more (goal 2)",
        flow - none
    );
    println!("resident: {:.1} MB (goal 30)", resident(&own) as f64 / 1e6);
}

fn ten() -> Value {
    let step = |number: u32| json!({"type": "pass", "name": format!("p{number}")});
    let steps: Vec<Value> = (0..10).map(step).collect();
    json!({"definition": {"version": "v1", "type": "flow", "steps": steps}})
}

fn invoke(service: &Service, event: &Value) -> Value {
    let url = format!("{}/2015-03-31/functions/function/invocations", service.url());
    let answer = ask("POST", &url, &[], event.to_string().as_bytes()).unwrap();
    serde_json::from_slice(&answer.body).unwrap()
}

fn timed(service: &Service, event: &Value) -> f64 {
    let begun = Instant::now();
    invoke(service, event);
    begun.elapsed().as_secs_f64() * 1e3
}

/// How long the function took until it asked for its first event, in milliseconds.
fn init(service: &Service) -> f64 {
    let said = std::fs::read_to_string(service.folder().join("log")).unwrap_or_default();
    let after = said.split("INIT REPORT(durationMs: ").nth(1).unwrap_or_default();
    after.split(')').next().unwrap_or_default().parse().unwrap_or(f64::NAN)
}

fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
