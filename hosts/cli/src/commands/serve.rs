//! `serve`: runs flows for others, and keeps everything in a store.

mod logging;

use crate::arguments::read_address;
use crate::exit::Exit;
use crate::output::{Output, bad, fault};
use clap::Args;
use starbridge_kit::config::Config;
use starbridge_kit::node::{Node, rotate_token_keys};
use starbridge_kit::stores::open_store;
use starbridge_kit::system::reason;
use starbridge_server::{BindError, Drain, Server, ServerSettings, access_of};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// What a flush under way may take beyond the patience with calls.
const LAST_FLUSH: Duration = Duration::from_secs(5);

/// Serves flows over HTTP, and loses none
///
/// Everything is kept in one file; what was running when the server stopped goes on when it starts again.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge serve --db flows.db\n  starbridge flow put order.json\n  starbridge start order --input '{\"id\": 7}' --wait 10"
)]
pub struct Options {
    /// The configuration, a TOML file; `--print-config` shows what can be set
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The store's file
    #[arg(long, value_name = "FILE")]
    pub db: Option<PathBuf>,
    /// Where to listen
    #[arg(long, value_name = "ADDR", value_parser = read_address)]
    pub listen: Option<SocketAddr>,
    /// Signs task tokens with a new key from now on; those signed with the key before stay good
    #[arg(long)]
    pub rotate_token_keys: bool,
    /// Prints the configuration as it would be used, and does nothing else
    #[arg(long)]
    pub print_config: bool,
}

/// Does it.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let config = configuration(options, output)?;
    if options.print_config {
        return output.result(&config.to_toml());
    }
    let _logging = logging::begin(&config.log, output)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| fault(output, &format!("the runtime can't be started: {error}"), ""))?;
    let served = runtime.block_on(serve(&config, options.rotate_token_keys, output));
    runtime.shutdown_timeout(Duration::from_secs(1));
    served
}

fn configuration(options: &Options, output: Output) -> Result<Config, Exit> {
    let (text, place) = match &options.config {
        None => (String::new(), "the environment".to_owned()),
        Some(file) => {
            let text = std::fs::read_to_string(file).map_err(|error| {
                bad(
                    output,
                    &format!("can't read `{}`: {}", file.display(), reason(&error)),
                    "",
                )
            })?;
            (text, format!("`{}`", file.display()))
        }
    };
    let mut config = Config::read(&text, std::env::vars()).map_err(|error| {
        let help = "`starbridge serve --print-config` shows every setting with its default";
        bad(output, &format!("{place}: {}", error.trim_end()), help)
    })?;
    if let Some(db) = &options.db {
        config.store.path = db.clone();
    }
    if let Some(listen) = options.listen {
        config.server.listen = listen;
    }
    Ok(config)
}

async fn serve(config: &Config, rotate: bool, output: Output) -> Result<(), Exit> {
    let server = bind(config, output).await?;
    let store = open_store(&config.store.path).map_err(|error| fault(output, &error, ""))?;
    if rotate {
        rotate_token_keys(store.as_ref()).map_err(|error| fault(output, &error.to_string(), ""))?;
        output.note("task tokens are signed with a new key");
    }
    let settings = config.node(store).map_err(|error| bad(output, &error, ""))?;
    let replies = config.replies().map_err(|error| bad(output, &error, ""))?;
    let started = tokio::task::block_in_place(|| Node::start(settings));
    let node = Arc::new(started.map_err(|error| fault(output, &error.to_string(), ""))?);
    if let Ok(address) = server.address() {
        let at = config.store.path.display();
        output.note(&format!("listening on http://{address}, everything is kept in {at}"));
    }
    tokio::spawn(node.clone().keep_schedules());
    for source in replies {
        tokio::spawn(node.clone().keep_replies(source));
    }
    if config.retention.days > 0 {
        tokio::spawn(node.clone().keep_tidy(config.retention.days));
    }
    let drain = server.drain();
    let (end, ended) = oneshot::channel();
    let serving = tokio::spawn(server.run(node.clone(), ended));
    let over = until_the_end(&node, drain, Duration::from_secs(config.server.drain_seconds), output).await;
    // A server that has ended by itself needs no word.
    let _ = end.send(());
    // Streams may still be open; who reads them begins again elsewhere.
    let _ = tokio::time::timeout(Duration::from_secs(1), serving).await;
    over
}

async fn bind(config: &Config, output: Output) -> Result<Server, Exit> {
    let settings = ServerSettings {
        access: access_of(&config.tokens)
            .map_err(|error| bad(output, &error, "scopes are read, start, worker, operate and admin"))?,
        hosts: config.server.hosts.clone(),
    };
    let server = Server::bind(config.server.listen, settings).await;
    server.map_err(|error| match error {
        BindError::Unprotected(_) => {
            let help = "name tokens in the configuration (`[[tokens]]`), or listen on 127.0.0.1";
            bad(output, &error.to_string(), help)
        }
        BindError::System(..) => fault(output, &error.to_string(), "choose another address with `--listen`"),
    })
}

/// Until somebody stops the process, or the node fails.
async fn until_the_end(node: &Node, drain: Drain, patience: Duration, output: Output) -> Result<(), Exit> {
    let mut ended = node.ended();
    tokio::select! {
        signal = stop_signal() => {
            output.note(&format!("{signal}: finishing what is under way"));
            tracing::info!(signal, "stopping");
        }
        _ = ended.wait_for(Option::is_some) => {}
    }
    drain.begin();
    let drained = tokio::time::timeout(patience + LAST_FLUSH, node.drain(patience)).await;
    match drained {
        Err(_) => {
            output.note(
                "stopped while the disk stood still; what was acknowledged is safe, the rest goes on at the next start",
            );
            Ok(())
        }
        Ok(Ok(())) => {
            output.note("stopped; what has not ended goes on at the next start");
            Ok(())
        }
        Ok(Err(error)) => {
            tracing::error!(%error, "the node failed");
            let help = "nothing that was acknowledged is lost: see to the cause and start again";
            Err(fault(output, &error.to_string(), help))
        }
    }
}

async fn stop_signal() -> &'static str {
    use tokio::signal::unix::{SignalKind, signal};
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => drop(terminate.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => "interrupted",
        () = terminated => "told to stop",
    }
}
