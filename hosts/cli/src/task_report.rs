//! What is reported of a task that waits for somebody's answer: with its token, or in place of whoever has it.

use crate::definitions::read_object;
use crate::exit::Exit;
use crate::output::Output;
use clap::Subcommand;
use starbridge_flow::value::Object;

/// How a task ended.
#[derive(Debug, Subcommand)]
pub enum TaskReport {
    /// The task succeeded
    Succeed {
        /// Its output, a JSON object
        #[arg(long, value_name = "JSON", default_value = "{}")]
        output: String,
    },
    /// The task failed
    Fail {
        /// The error's name
        #[arg(long, value_name = "NAME")]
        error: String,
        /// Its cause
        #[arg(long, value_name = "TEXT", default_value = "")]
        cause: String,
    },
}

impl TaskReport {
    /// The word for it in requests.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Succeed { .. } => "succeed",
            Self::Fail { .. } => "fail",
        }
    }

    /// The members of a request that reports it.
    pub fn body(&self, output: Output) -> Result<Object, Exit> {
        let mut body = Object::new();
        match self {
            Self::Succeed { output: given } => {
                let given = read_object(given, "`--output`", "a task's output", output)?;
                body.insert("output".into(), given.into());
            }
            Self::Fail { error, cause } => {
                body.insert("error".into(), error.as_str().into());
                body.insert("cause".into(), cause.as_str().into());
            }
        }
        Ok(body)
    }
}
