//! The cost of notifications for the flows: without a target, with one that never answers, and with
//! one that accepts all.

use crate::load;
use crate::scenes::{LONG, folder, passes, put};
use crate::server::Server;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

/// Rounds: what is compared is measured in turns, so that a machine that changes its pace changes it for all.
const ROUNDS: u32 = 3;

pub async fn throughput() -> Result<(), String> {
    let (silent, quick) = (silent().await?, load::function().await?);
    for round in 1..=ROUNDS {
        let Pass { flows: without, .. } = pass(None).await?;
        for (what, target) in [("never answers", silent), ("takes all", quick)] {
            let run = pass(Some(target)).await?;
            let with = run.flows;
            println!(
                "round {round}, ten pass steps, 64 clients: {without:.0}/s without notifications, {with:.0}/s with a target that {what}: {:.1} %",
                with / without * 100.0
            );
            if target == quick {
                drained(&run.server).await?;
            }
        }
    }
    Ok(())
}

/// A measured server that still runs, and where its file is.
struct Pass {
    flows: f64,
    server: Server,
    _folder: TempDir,
}

/// Flows per second while that target is told.
async fn pass(target: Option<SocketAddr>) -> Result<Pass, String> {
    let folder = folder()?;
    if let Some(target) = target {
        let text = format!("[[notifications]]\nname = \"bench\"\nto = \"http://{target}/told\"\n");
        std::fs::write(folder.path().join("serve.toml"), text).map_err(|error| error.to_string())?;
    }
    let server = Server::start(folder.path())?;
    put(&server, "ten", passes()).await?;
    let request = load::post("/v1/flows/ten/executions?wait=30", "{\"input\":{\"id\":7}}");
    let load = load::run(server.address, request, 64, LONG, usize::MAX).await?;
    Ok(Pass {
        flows: load.per_second(),
        server,
        _folder: folder,
    })
}

/// Shows how fast what is left is told once the flows have stopped.
async fn drained(server: &Server) -> Result<(), String> {
    let waiting = async || -> Result<u64, String> {
        let metrics = server.ask("GET", "/metrics", "").await?;
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix("starbridge_notifications_waiting{target=\"bench\"} "));
        line.and_then(|count| count.parse().ok())
            .ok_or_else(|| "no metric".to_owned())
    };
    let (begun, left) = (Instant::now(), waiting().await?);
    while waiting().await? > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let took = begun.elapsed().as_secs_f64();
    println!(
        "{left} notifications left over are told in {took:.2} s: {:.0}/s",
        left as f64 / took
    );
    Ok(())
}

/// A server that reads and never answers.
async fn silent() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
            });
        }
    });
    Ok(address)
}
