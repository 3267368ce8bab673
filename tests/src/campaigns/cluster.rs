//! Three nodes of a cluster under load, while nodes, their ways to the database and the database itself fail. Clients write down
//! what they were told, and a checker holds that against the store in the end.

mod checker;
mod clients;
mod faults;
mod nodes;
mod proxy;

use super::kills::all;
use super::{Chance, Findings};
use crate::client;
use checker::{Final, check};
use clients::{Book, FLOWS, definition};
use faults::{Fault, Faults};
use nodes::{LEASE, NAMES, Node, Place};
use proxy::Way;
use starbridge_flow::value::{Object, Value};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The settings of a campaign.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program `starbridge`.
    pub program: PathBuf,
    /// The program `postgres`.
    pub postgres: PathBuf,
    /// The library that shows another time to a program: without it all nodes have the same time.
    pub faketime: Option<PathBuf>,
    /// For how long something fails each second.
    pub seconds: u64,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// Between two faults.
const PAUSE: Duration = Duration::from_secs(1);
/// The cluster must answer again, and all must have ended, within this time.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

struct Campaign {
    place: Place,
    nodes: Vec<Node>,
    findings: Findings,
    /// How long it took at most until all nodes were ready again, and after what.
    slowest: (Duration, &'static str),
}

/// Runs a campaign. An error says why it could not be carried through.
pub async fn run(options: &Options) -> Result<Findings, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (listener, witness) = clients::listen().await?;
    let place = Place::new(
        &options.program,
        &options.postgres,
        options.faketime.as_deref(),
        folder.path(),
    )?;
    let mut nodes = Vec::new();
    for name in NAMES {
        nodes.push(place.node(name, witness).await?);
    }
    let book = Book::new(nodes.iter().map(|node| (node.name, node.url())).collect());
    tokio::spawn(clients::witness(book.clone(), listener));
    let mut campaign = Campaign {
        place,
        nodes,
        findings: Findings::default(),
        slowest: (Duration::ZERO, ""),
    };
    campaign.wait_until_all_are_ready("their start").await?;
    campaign.slowest.0 = Duration::ZERO;
    put_flows(&campaign.nodes[0].url()).await?;
    let [starters, workers] = clients::begin(&book, options.seed);
    campaign.fail(options).await?;
    book.end();
    for starter in starters {
        starter.await.map_err(|error| error.to_string())?;
    }
    campaign.wait_for_ends().await?;
    book.close();
    for worker in workers {
        worker.await.map_err(|error| error.to_string())?;
    }
    campaign.audit(&book).await?;
    campaign.audit_times()?;
    let findings = &mut campaign.findings;
    findings.count("requests refused with 5xx", book.refused.load(Ordering::Relaxed));
    findings.count("requests without an answer", book.unanswered.load(Ordering::Relaxed));
    let (slowest, after) = campaign.slowest;
    let slowest = u64::try_from(slowest.as_millis()).unwrap_or(u64::MAX);
    findings.count(
        &format!("milliseconds until all nodes were ready again, at most, after: {after}"),
        slowest,
    );
    if !findings.problems.is_empty() {
        let kept = folder.keep();
        findings.problem(format!("the logs are kept in {}", kept.display()));
    }
    Ok(campaign.findings)
}

async fn put_flows(server: &str) -> Result<(), String> {
    for flow in FLOWS {
        let put = client()
            .put(format!("{server}/v1/flows/{flow}"))
            .header("content-type", "application/json")
            .body(definition(flow).to_string());
        let answer = put.send().await.map_err(|error| error.to_string())?;
        if !answer.status().is_success() {
            let why = answer.text().await.unwrap_or_default();
            return Err(format!("the flow `{flow}` is not taken: {why}"));
        }
    }
    Ok(())
}

impl Campaign {
    /// Starts what has ended, and waits until each node answers for the store.
    async fn wait_until_all_are_ready(&mut self, after: &'static str) -> Result<(), String> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let mut ready = 0;
            for node in &mut self.nodes {
                node.keep(&self.place)?;
                ready += usize::from(node.get("/v1/flows").await.is_some());
            }
            if ready == self.nodes.len() {
                let took = begun.elapsed();
                if took > self.slowest.0 {
                    self.slowest = (took, after);
                }
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
        Err(format!("the nodes are not ready again after {PATIENCE:?}"))
    }

    /// Lets something fail each second.
    async fn fail(&mut self, options: &Options) -> Result<(), String> {
        let begun = Instant::now();
        let mut chance = Chance::new(options.seed);
        let mut faults = Faults::new(&mut chance);
        while begun.elapsed() < Duration::from_secs(options.seconds) {
            tokio::time::sleep(PAUSE).await;
            let (fault, what) = faults.draw();
            self.cause(fault, &mut chance).await?;
            self.findings.count(what, 1);
            self.wait_until_all_are_ready(what).await?;
        }
        self.harvest(0..self.nodes.len()).await;
        Ok(())
    }

    /// The owner among the nodes; any other one if nobody says.
    async fn owner(&self) -> usize {
        for node in &self.nodes {
            if let Some(owner) = node.owner().await {
                return self.nodes.iter().position(|node| node.name == owner).unwrap_or(0);
            }
        }
        0
    }

    /// Counts what nodes count that are about to end.
    async fn harvest(&mut self, nodes: impl IntoIterator<Item = usize>) {
        for node in nodes {
            let fenced = self.nodes[node].fenced().await;
            self.findings.count("appends of former owners refused", fenced);
        }
    }

    /// Lets nothing through, or not all, for as long as it takes to be noticed.
    async fn fail_on_the_way(&self, fault: Fault, owner: usize) {
        let owner = &self.nodes[owner];
        let (way, long) = match fault {
            Fault::Silent => (Way::Silent, LEASE * 2),
            Fault::Deaf => (Way::Deaf, LEASE * 2),
            Fault::LinkDeaf => (Way::Deaf, LEASE),
            Fault::Slow => (Way::Slow, LEASE),
            Fault::Link => (Way::Cut, LEASE),
            Fault::Reset => (Way::Cut, Duration::ZERO),
            _ => (Way::Cut, PAUSE),
        };
        match fault {
            Fault::Link | Fault::LinkDeaf => owner.link.is_now(way),
            Fault::Slow | Fault::Reset => self.nodes.iter().for_each(|node| node.database(way)),
            _ => owner.database(way),
        }
        tokio::time::sleep(long).await;
    }

    async fn cause(&mut self, fault: Fault, chance: &mut Chance) -> Result<(), String> {
        let any = chance.below(3) as usize;
        let owner = self.owner().await;
        match fault {
            Fault::KillOwner | Fault::KillNode => {
                let node = if fault == Fault::KillOwner { owner } else { any };
                self.harvest([node]).await;
                self.nodes[node].kill()?;
            }
            Fault::Terminate => {
                self.harvest([any]).await;
                self.nodes[any].signal("-TERM")?;
            }
            Fault::StandStill => {
                self.nodes[owner].signal("-STOP")?;
                tokio::time::sleep(LEASE * 2).await;
                self.nodes[owner].signal("-CONT")?;
            }
            Fault::Cut | Fault::Silent | Fault::Deaf | Fault::Slow | Fault::Reset | Fault::Link | Fault::LinkDeaf => {
                self.fail_on_the_way(fault, owner).await
            }
            Fault::Backend => {
                let asked = "select pid from pg_stat_activity where application_name like 'starbridge %' order by random() limit 1";
                let process = self.place.sql(asked)?;
                let killed = std::process::Command::new("kill").args(["-KILL", &process]).status();
                killed.map_err(|error| error.to_string())?;
            }
            Fault::Database => {
                let database = &mut self.place.database;
                tokio::task::block_in_place(|| {
                    database.kill();
                    database.start_again();
                });
            }
            Fault::Promote => tokio::task::block_in_place(|| self.place.promote())?,
            Fault::Several => {
                self.harvest([owner]).await;
                for node in &self.nodes {
                    node.database(Way::Cut);
                    node.link.is_now(Way::Cut);
                }
                self.nodes[owner].kill()?;
                tokio::time::sleep(PAUSE).await;
            }
            Fault::Drain => {
                let url = format!("{}/v1/cluster/nodes/{}/drain", self.nodes[owner].url(), NAMES[any]);
                // One that can't be drained just now is left alone.
                let _ = client().post(url).timeout(nodes::ANSWER).body("{}").send().await;
                tokio::time::sleep(PAUSE).await;
            }
        }
        for node in &self.nodes {
            node.database(Way::Open);
            node.link.is_now(Way::Open);
        }
        Ok(())
    }

    /// Waits until nothing is left to do.
    async fn wait_for_ends(&mut self) -> Result<(), String> {
        self.wait_until_all_are_ready("the last one").await?;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let mut ended = true;
            // What nobody stopped goes on for a day.
            for flow in FLOWS.iter().filter(|flow| **flow != "stopped") {
                let path = format!("/v1/executions?flow={flow}&status=Running&limit=1");
                let text = self.nodes[0].get(&path).await.unwrap_or_default();
                let page: Object = serde_json::from_str(&text).unwrap_or_default();
                let items = page.get("items").and_then(Value::as_array);
                ended &= items.is_some_and(|items| items.values().is_empty());
            }
            if ended {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
        self.findings.problem("lost: some executions have not ended");
        Ok(())
    }

    /// Two of the nodes are an hour off, and nothing else is.
    fn audit_times(&mut self) -> Result<(), String> {
        let off = "select count(*) from starbridge.executions, (select extract(epoch from now()) * 1000 as now) as n
            where abs(started - n.now) > 3000000 or abs(coalesce(ended, started) - n.now) > 3000000";
        match self.place.sql(off)?.as_str() {
            "0" => {}
            count => self.findings.problem(format!(
                "{count} executions began or ended at a time that is not the database's"
            )),
        }
        Ok(())
    }

    /// Holds what clients and witness saw against the store.
    async fn audit(&mut self, book: &Book) -> Result<(), String> {
        let url = self.nodes[1].url();
        let mut finals = Vec::new();
        // The list has the newest first.
        for item in all(&format!("{url}/v1/executions"), "cursor").await?.iter().rev() {
            let text = |member: &str| item.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
            let id = text("id");
            let page = client()
                .get(format!("{url}/v1/executions/{id}/history?limit=1000"))
                .send()
                .await;
            let page = page.map_err(|error| error.to_string())?.text().await;
            let page: serde_json::Value =
                serde_json::from_str(&page.map_err(|error| error.to_string())?).map_err(|error| error.to_string())?;
            let events = page["items"]
                .as_array()
                .map(|items| items.iter().map(clients::shown).collect());
            let status = text("status");
            let expected = if text("flow") == "stopped" {
                "Stopped"
            } else {
                "Succeeded"
            };
            self.findings.count("executions", 1);
            if status != expected {
                // A client whose start was not acknowledged did not stop it.
                let left = text("flow") == "stopped" && status == "Running";
                match left {
                    true => self.findings.count("executions that nobody stopped", 1),
                    false => self.findings.problem(format!("{id} ({}) is {status}", text("flow"))),
                }
            }
            finals.push(Final {
                id,
                flow: text("flow"),
                name: text("name"),
                events: events.unwrap_or_default(),
            });
        }
        let said = book.said();
        self.findings
            .count("words of clients that were checked", said.len() as u64);
        self.findings.problems.extend(check(&said, &finals));
        let called = book.called();
        for last in finals.iter().filter(|last| last.flow == "called") {
            match called.get(&last.id).map_or(0, std::collections::BTreeSet::len) {
                1 => {}
                count => self
                    .findings
                    .problem(format!("doubled: {} was called under {count} keys", last.id)),
            }
        }
        let known = |id: &&String| finals.iter().any(|last| last.id == **id);
        let lost = called.keys().filter(|id| !known(id)).count();
        if lost > 0 {
            self.findings
                .problem(format!("lost: {lost} executions that called the witness"));
        }
        Ok(())
    }
}
