//! The interpreter as a function of AWS Lambda.

use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use starbridge_flow::value::Value;
use starbridge_lambda_host::{Function, logging, settings};

fn main() -> Result<(), lambda_runtime::Error> {
    let config = settings::read();
    logging::begin(&config);
    let function = Function::new(config);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let function = &function;
    runtime.block_on(lambda_runtime::run(service_fn(
        |event: LambdaEvent<Value>| async move {
            let answered = function.take(event.payload, &event.context).await;
            answered.map_err(Diagnostic::from)
        },
    )))
}
