//! A full disk: a server runs on its own small file system. It must end, say why, and continue when
//! there is room.

use super::Findings;
use super::kills::{Load, Place, Process, Witness, audit_server, put_flows, wait_for_ends};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The file system at first, and when room was made.
const SMALL: &str = "size=1m";
const ROOMY: &str = "size=256m";
const PATIENCE: Duration = Duration::from_secs(120);

/// A file system in memory, for as long as this is held.
struct Disk(PathBuf);

impl Disk {
    /// Mounts one; nothing where that is not allowed.
    fn mount(folder: &Path) -> Option<Self> {
        let disk = folder.join("disk");
        std::fs::create_dir(&disk).ok()?;
        let mounted = mount(&["-t", "tmpfs", "-o", SMALL, "tmpfs"], &disk);
        mounted.then_some(Self(disk))
    }
}

fn mount(arguments: &[&str], disk: &Path) -> bool {
    let mut mount = Command::new("mount");
    let status = mount.args(arguments).arg(disk).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The remainder goes with the machine.
        drop(Command::new("umount").arg(&self.0).status());
    }
}

/// Fills the disk under a server. Without the right to mount there is nothing to see.
pub async fn run(program: &Path) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let Some(disk) = Disk::mount(folder.path()) else {
        findings.count("skipped: nothing can be mounted here", 1);
        return Ok(findings);
    };
    let place = Place::new(program, folder.path())?.keeping(disk.0.join("flows.db"));
    let witness = Witness::start(place.url()).await?;
    place.configure(witness.port())?;
    let mut process = Process::start(&place).await?;
    put_flows(&place.url()).await?;
    let load = Load::start(&place.url(), &witness);
    match process.wait(PATIENCE).await? {
        None => findings.problem("the server goes on with a full disk"),
        Some(status) => {
            findings.count("servers that ended", 1);
            let words = place.last_words();
            if status.code() != Some(3) {
                findings.problem(format!("the server ended with {status}: {words}"));
            }
            if !words.contains("no space") || !words.contains("flows.db") {
                findings.problem(format!("it does not say what is the matter: {words}"));
            }
        }
    }
    // Without room it must not pretend to work either; it may not even start.
    if let Ok(mut again) = Process::start(&place).await {
        let status = again.wait(Duration::from_secs(10)).await?;
        findings.count("servers started again without room", 1);
        if status.is_some_and(|status| status.success()) {
            findings.problem("the server ended well on a full disk");
        }
        again.kill()?;
    }
    let remount = format!("remount,{ROOMY}");
    if !mount(&["-o", &remount], &disk.0) {
        return Err("the file system can't be made larger".to_owned());
    }
    let mut process = Process::start(&place).await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let started = load.finish(PATIENCE).await;
    wait_for_ends(&place.url(), PATIENCE, &mut findings).await;
    witness.settle(PATIENCE).await;
    audit_server(&place.url(), &started, &witness, &mut findings).await;
    findings.problems.extend(process.stop().await?);
    Ok(findings)
}
