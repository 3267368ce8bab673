//! `serve`: runs flows for others, and keeps everything in a store.

#[cfg(feature = "postgres")]
mod cluster;
mod files;
mod logging;
mod memory;
mod server_output;
mod signals;

use crate::arguments::read_address;
use crate::definitions::server_config;
use crate::exit::Exit;
use crate::output::{Output, bad, fault};
use crate::supervisor::{keep_to_itself, own_supervisor};
use clap::Args;
use files::Files;
use server_output::ServerOutput;
use signals::Signals;
use starbridge_node::config::{Config, StoreConfig};
use starbridge_node::configured_store::open_configured;
use starbridge_node::node::{Node, NodeError, NodeSettings, discard_token_keys, rotate_token_keys};
use starbridge_node::stores::{Opened, in_memory};
use starbridge_ports::{Outbox, ReplySource, Store, StoreError};
use starbridge_server::{
    AnswerSettings, BindError, BodySettings, Built, ConnectionSettings, Drain, Server, ServerSettings, access_of,
};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The time for a flush in progress, in addition to the drain time for calls.
const LAST_FLUSH: Duration = Duration::from_secs(5);
/// The threads for work that reads much of the store. More of them would only wait for one another.
const BLOCKING_THREADS: usize = 64;

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
    /// The store: a file, or the URL of a PostgreSQL database
    #[arg(long, value_name = "FILE|URL")]
    pub db: Option<PathBuf>,
    /// Where to listen
    #[arg(long, value_name = "ADDR", value_parser = read_address)]
    pub listen: Option<SocketAddr>,
    /// The name of this node in a cluster: several servers over one PostgreSQL database are one
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// Signs task tokens with a new key from now on; those signed with the key before stay good
    #[arg(long)]
    pub rotate_token_keys: bool,
    /// Deletes the store's keys of task tokens, where `server.token_key` names another: tokens signed with them end
    #[arg(long, conflicts_with = "rotate_token_keys")]
    pub discard_token_keys: bool,
    /// Opens a store whose log was lost, with what is left: what was acknowledged last is gone
    #[arg(long)]
    pub accept_lost_log: bool,
    /// Prints the configuration as it would be used, and does nothing else
    #[arg(long)]
    pub print_config: bool,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    keep_to_itself();
    let config = configuration(options, output)?;
    if options.print_config {
        return output.result(&config.to_toml());
    }
    let _logging = logging::begin(&config.log, output)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| fault(output, &format!("the runtime can't be started: {error}"), ""))?;
    let messages = ServerOutput::of(config.log.format, output);
    let served = runtime.block_on(serve(&config, options, messages, output));
    runtime.shutdown_timeout(Duration::from_secs(1));
    served
}

fn configuration(options: &Options, output: Output) -> Result<Config, Exit> {
    let mut config = server_config(options.config.as_deref(), output)?;
    if let Some(db) = &options.db {
        match db.to_str().filter(|text| StoreConfig::is_url(text)) {
            Some(url) => url.clone_into(&mut config.store.url),
            None => {
                config.store.path = db.clone();
                config.store.url.clear();
            }
        }
    }
    if let Some(listen) = options.listen {
        config.server.listen = listen;
    }
    if let Some(node) = &options.node {
        node.clone_into(&mut config.cluster.node);
    }
    config.check_cluster().map_err(|error| bad(output, &error, ""))?;
    Ok(config)
}

async fn serve(config: &Config, options: &Options, messages: ServerOutput, output: Output) -> Result<(), Exit> {
    let signals = Signals::listen().map_err(|error| fault(output, &error, ""))?;
    change_of_keys(config, options, output)?;
    let calls = config.owners() * config.runtime.calls;
    let files = Files::raise(config.server.connections, calls, config.cluster.is_set());
    let server = bind(config, files, output).await?;
    // A mistake in the settings is found before a store is created.
    let settings = settings(config, in_memory()).map_err(|error| bad(output, &error, ""))?;
    config.outboxes("").map_err(|error| bad(output, &error, ""))?;
    #[cfg(feature = "postgres")]
    if config.cluster.is_set() {
        if options.rotate_token_keys || options.discard_token_keys {
            let help =
                "stop all nodes, start one without `cluster.node` to change the keys, and then all of them again";
            return Err(bad(
                output,
                "the keys of task tokens can't be changed by a node of a cluster",
                help,
            ));
        }
        files.log();
        tokio::spawn(memory::give_back());
        return cluster::serve(config, server, files.links(), signals, messages).await;
    }
    let replies = config.replies().map_err(|error| bad(output, &error, ""))?;
    let opened = open_configured(config, options.accept_lost_log);
    let opened = opened.map_err(|error| messages.fault(&error, ""))?;
    messages.say(&opened.said);
    files.log();
    let keys = change_keys(opened.store.as_ref(), options, messages);
    keys.map_err(|error| messages.fault(&error.to_string(), ""))?;
    let begun = begin(config, settings, opened, replies).map_err(|error| messages.fault(&error, ""))?;
    let node = begun.node;
    let server = server.taking_from(outboxes_of(config, &node).map_err(|error| messages.fault(&error, ""))?);
    if let Ok(address) = server.address() {
        let at = config.store.place();
        tracing::info!(version = env!("CARGO_PKG_VERSION"), %address, store = %at, "serving");
        messages.say(&format!("listening on http://{address}, everything is kept in {at}"));
    }
    tokio::spawn(memory::give_back());
    let drain = server.drain();
    let (end, ended) = oneshot::channel();
    let serving = tokio::spawn(server.run(node.clone(), ended));
    let over = until_the_end(
        &node,
        drain,
        Duration::from_secs(config.server.drain_seconds),
        signals,
        messages,
    )
    .await;
    // A server that has ended by itself needs no signal.
    let _ = end.send(());
    // Streams may still be open; their readers continue elsewhere.
    let _ = tokio::time::timeout(Duration::from_secs(1), serving).await;
    over
}

/// The outboxes from which rows are taken for the store of this node.
fn outboxes_of(config: &Config, node: &Node) -> Result<Vec<Arc<dyn Outbox>>, String> {
    if config.outboxes.is_empty() {
        return Ok(Vec::new());
    }
    let taker = tokio::task::block_in_place(|| node.outbox_taker()).map_err(|error| error.to_string())?;
    config.outboxes(&taker)
}

/// The settings of a node over this store.
fn settings(config: &Config, store: Arc<dyn Store>) -> Result<NodeSettings, String> {
    let mut settings = config.node(store)?;
    settings.begins_traces = logging::sends_traces();
    if config.serves_only_this_machine() {
        settings.http.guard = settings.http.guard.with_loopback();
    }
    if let Some(commands) = &mut settings.commands {
        commands.supervisor = own_supervisor();
    }
    Ok(settings)
}

/// A running node and its background tasks.
struct RunningNode {
    node: Arc<Node>,
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "only a node of a cluster outlives them")
    )]
    tasks: Vec<JoinHandle<()>>,
}

/// Begins to run what is in the store.
fn begin(
    config: &Config,
    mut settings: NodeSettings,
    opened: Opened,
    replies: Vec<Arc<dyn ReplySource>>,
) -> Result<RunningNode, String> {
    settings.store = opened.store;
    settings.asked = opened.asked;
    let started = tokio::task::block_in_place(|| Node::start(settings));
    let node = Arc::new(started.map_err(|error| error.to_string())?);
    // Long histories that operators delete are removed gradually, regardless of the retention of
    // others.
    let days = |days: u64| if days == 0 { u64::MAX } else { days };
    let mut tasks = vec![
        tokio::spawn(node.clone().keep_schedules()),
        tokio::spawn(node.clone().keep_bulk()),
        tokio::spawn(node.clone().clear_periodically(days(config.retention.days))),
        tokio::spawn(node.clone().clear_audit_periodically(days(config.audit.days))),
        tokio::spawn(node.clone().keep_stats_periodically()),
        tokio::spawn(node.clone().watch_queue_depths()),
    ];
    for source in replies {
        tasks.push(tokio::spawn(node.clone().keep_replies(source)));
    }
    Ok(RunningNode { node, tasks })
}

/// Whether the keys of the store must be changed, checked against the configuration: they must
/// sign, or must not sign any more.
fn change_of_keys(config: &Config, options: &Options, output: Output) -> Result<(), Exit> {
    let configured = !config.server.token_key.is_empty();
    if configured && options.rotate_token_keys {
        let message = "task tokens are signed with `server.token_key`, not with a key of the store";
        let help = "write a new key before the others in that secret, with white space between them, and start again: the \
                    first signs, all are good";
        return Err(bad(output, message, help));
    }
    if !configured && options.discard_token_keys {
        let message = "without `server.token_key` task tokens are signed with the store's keys";
        return Err(bad(output, message, "`--rotate-token-keys` changes them"));
    }
    Ok(())
}

fn change_keys(store: &dyn Store, options: &Options, messages: ServerOutput) -> Result<(), NodeError> {
    if options.rotate_token_keys {
        rotate_token_keys(store)?;
        messages.say("task tokens are signed with a new key");
    }
    if options.discard_token_keys {
        discard_token_keys(store)?;
        messages.say("the store has no key of task tokens any more");
    }
    Ok(())
}

async fn bind(config: &Config, files: Files, output: Output) -> Result<Server, Exit> {
    let settings = ServerSettings {
        access: access_of(&config.tokens)
            .map_err(|error| bad(output, &error, "scopes are read, start, worker, operate and admin"))?,
        hosts: config.server.hosts.clone(),
        trusted_proxies: config.server.proxies().map_err(|error| bad(output, &error, ""))?,
        connections: connections_of(config, files),
        bodies: BodySettings {
            in_flight: config.server.body_bytes_in_flight,
            silence: Duration::from_secs(config.server.body_seconds),
        },
        answers: AnswerSettings {
            in_flight: config.server.answer_bytes_in_flight,
        },
        built: Built {
            features: features(),
            config: Some(config.to_toml_for_others()),
        },
        console: config.console.enabled,
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

/// The features that this program was built with.
fn features() -> Vec<&'static str> {
    let all = [
        ("aws", cfg!(feature = "aws")),
        ("console", cfg!(feature = "console")),
        ("otel", cfg!(feature = "otel")),
        ("postgres", cfg!(feature = "postgres")),
        ("redis", cfg!(feature = "redis")),
    ];
    let built = all.into_iter().filter(|(_, built)| *built);
    built.map(|(feature, _)| feature).collect()
}

fn connections_of(config: &Config, files: Files) -> ConnectionSettings {
    let server = &config.server;
    ConnectionSettings {
        most: files.connections(),
        head: Duration::from_secs(server.head_seconds),
        idle: Duration::from_secs(server.idle_seconds),
        unread: Duration::from_secs(server.write_seconds),
    }
}

/// Waits until the process is stopped or the node fails.
async fn until_the_end(
    node: &Node,
    drain: Drain,
    patience: Duration,
    mut signals: Signals,
    messages: ServerOutput,
) -> Result<(), Exit> {
    let mut ended = node.ended();
    tokio::select! {
        signal = signals.stop() => {
            let seconds = patience.as_secs();
            messages.say(&format!(
                "{signal}: waiting for calls under way, for up to {seconds} s; nothing new begins; once more stops at once"
            ));
        }
        _ = ended.wait_for(Option::is_some) => {}
    }
    drain.begin();
    let drained = tokio::select! {
        biased;
        drained = tokio::time::timeout(patience + LAST_FLUSH, node.drain(patience)) => drained,
        signal = signals.stop() => {
            messages.say(&format!(
                "{signal} again: stopped at once; what was acknowledged is safe, calls under way are sent again at the next start"
            ));
            return Err(Exit::Interrupted);
        }
    };
    match drained {
        Err(_) => {
            let why = match node.is_flushing() {
                true => "the store was being written and the disk did not answer",
                false => "something was being computed and did not come to its end",
            };
            let safe = "what was acknowledged is safe, the rest goes on at the next start";
            messages.say(&format!("stopped although {why}; {safe}"));
            Ok(())
        }
        Ok(Ok(())) => {
            messages.say("stopped; what has not ended goes on at the next start");
            Ok(())
        }
        Ok(Err(error)) => {
            let help = match error {
                // The message says what to do.
                NodeError::Store(StoreError::Corrupt(_)) => "",
                _ => "nothing that was acknowledged is lost: see to the cause and start again",
            };
            Err(messages.fault(&error.to_string(), help))
        }
    }
}
