//! The commands. A new one is a file under `commands/` with `Options` and `run`, its `mod` and its word in the list.

mod audit;
mod bulk;
mod callback;
mod cluster;
mod completions;
mod data;
mod delete;
mod exec;
mod explain;
mod flow;
mod fork;
mod graph;
mod help;
mod history;
mod init;
mod key;
mod list;
mod logs;
mod man;
#[cfg(feature = "server")]
mod openapi;
mod order;
mod outbox;
mod pause;
mod queue;
mod redrive;
mod replay;
mod report;
mod resolve;
mod resume;
mod schedule;
mod schema;
#[cfg(feature = "server")]
mod serve;
mod show;
mod skip;
mod start;
mod stats;
mod stop;
#[cfg(feature = "server")]
mod store;
mod test;
mod validate;
mod view;
mod whoami;
mod why;
mod worker;

use crate::exit::Exit;
use crate::output::Output;
use clap::Subcommand;

macro_rules! commands {
    ($($heading:literal { $($(#[$when:meta])? $module:ident $variant:ident)* })*) => {
        /// A command with its options.
        #[derive(Debug, Subcommand)]
        pub enum Command {
            $($($(#[$when])? #[allow(missing_docs)] $variant($module::Options),)*)*
        }

        impl Command {
            /// Runs the command that was given.
            pub fn run(self, output: &Output) -> Result<(), Exit> {
                match self {
                    $($($(#[$when])? Self::$variant(options) => $module::run(&options, *output),)*)*
                }
            }
        }

        /// Headings of the help with the commands under them.
        pub const GROUPS: &[(&str, &[&str])] = &[$(($heading, &[$($(#[$when])? stringify!($module)),*])),*];
    };
}

commands! {
    "Write flows" {
        init Init
        validate Validate
        explain Explain
        schema Schema
    }
    "Run flows" {
        exec Exec
        test Test
        replay Replay
        graph Graph
    }
    "Serve flows" {
        #[cfg(feature = "server")]
        serve Serve
        flow Flow
        start Start
        list List
        stats Stats
        show Show
        why Why
        history History
        data Data
        logs Logs
        stop Stop
        pause Pause
        order Order
        resume Resume
        redrive Redrive
        skip Skip
        resolve Resolve
        report Report
        fork Fork
        delete Delete
        bulk Bulk
        view View
        audit Audit
        callback Callback
        schedule Schedule
        queue Queue
        key Key
        outbox Outbox
        worker Worker
        whoami Whoami
        cluster Cluster
        #[cfg(feature = "server")]
        store Store
        #[cfg(feature = "server")]
        openapi Openapi
    }
    "Set up" {
        help Help
        completions Completions
        man Man
    }
}
