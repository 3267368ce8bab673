//! A snapshot that is held while an hour's work leaves dead rows behind: as a backup or a report would hold it.

use crate::database;
use crate::load;
use crate::scenes::{folder, put};
use crate::server::Server;
use crate::sizes::Sizes;
use serde_json::json;
use std::time::{Duration, Instant};

/// For how long the pace is measured.
const WHILE: Duration = Duration::from_secs(8);
const CLIENTS: usize = 64;

pub async fn held(sizes: Sizes) -> Result<(), String> {
    let folder = folder()?;
    let Some((_, schema)) = database::place(folder.path()) else {
        return Ok(());
    };
    let function = load::function().await?;
    let server = Server::start(folder.path())?;
    let call = json!([{"type": "task", "name": "t", "resourceArn": format!("http://{function}/f")}]);
    put(&server, "call", call).await?;
    let request = load::post("/v1/flows/call/executions?wait=30", "{}");
    let pace = async |server: &Server| load::run(server.address, request.clone(), CLIENTS, WHILE, usize::MAX).await;
    let before = pace(&server).await?.per_second();
    let held = database::hold_a_snapshot()?;
    // An hour of 1,000 flows a second, each of which wakes and ends.
    let many = sizes.of(100_000, 3_600_000);
    let begun = Instant::now();
    database::leave_dead_rows(&schema, many)?;
    println!(
        "{many} dead rows under a snapshot, made in {:.0} s",
        begun.elapsed().as_secs_f64()
    );
    let after = pace(&server).await?.per_second();
    println!(
        "pace before {before:.0}/s, with dead rows {after:.0}/s: {:.2}",
        after / before
    );
    server.kill();
    let server = Server::start(folder.path())?;
    println!(
        "a new start over them is ready after {:.2} s",
        server.ready.as_secs_f64()
    );
    drop(held);
    Ok(())
}
