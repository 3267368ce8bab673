//! The world of a simulation: one queue of what will happen, and chance.

mod leaving;
mod moving;
mod owning;
mod still;

use super::fault::{Bug, Fault};
use super::outside::{Key, Outside};
use super::process::{Process, SEATS};
use super::shelter::Shelter;
use crate::campaigns::Findings;
use crate::campaigns::kills::{FLOWS, definition};
use crate::chance::Chance;
use owning::REFUSED;
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::{Text, Value};
use starbridge_machine::Signal;
use starbridge_ports::{Append, Epoch, Incarnation, Refusal, ShardSet};
use starbridge_runtime::{FlowTable, PumpResult, ShardTable, StartRequest};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// 2024-01-01T00:00:00Z
const BEGINNING: i64 = 1_704_067_200_000;
/// Executions are started, and faults come, until then: true milliseconds.
const STARTS_UNTIL: u32 = 4_000;
const FAULTS_UNTIL: u32 = 8_000;
/// Batches of one process on their way at once, as an engine has them.
const UNDER_WAY: usize = 2;
/// Executions that only wait, kept by a process.
const HOT: usize = 4;
/// A world in which more happens does not come to its end.
const MOST: u64 = 50_000;

/// Something that will happen.
#[derive(Debug)]
enum Happening {
    /// Somebody starts an execution of that name.
    Start(String),
    /// A batch reaches the store.
    Write(usize, u32),
    /// A process hears that it is durable.
    Written(usize, u32),
    /// A batch of a process that is dead reaches the store.
    Late(Vec<Append>),
    /// Writes that the store has acknowledged become durable; only with a bug planted.
    Flush(usize),
    /// A function answers.
    Answer(usize, u32, Key, Box<Signal>),
    /// Somebody reports, for the first time or once more after it was taken.
    Report(Key, bool),
    Crash(usize),
    Restart(usize),
    /// A seat is to have these shards.
    Move(ShardSet, usize),
    /// A seat gets shards that nobody has.
    TakeIn(ShardSet, usize),
    /// A seat stands still.
    StandStill(usize),
    /// Another seat takes the shards of one that stands still.
    TakeOver(usize, u32),
    /// A timer may be due.
    Wake(usize, u32),
    Jump,
}

#[derive(Default)]
struct Seat {
    process: Option<Process>,
    life: u32,
    /// When its last batch reaches the store, or its answer comes: they come in order.
    last: u64,
    /// Until when it does nothing.
    still_until: u64,
    /// The last stay of a process of this seat.
    incarnation: Option<Incarnation>,
    unflushed: Option<Vec<Append>>,
}

pub(super) struct World {
    chance: Chance,
    planted: Option<Bug>,
    enabled: BTreeSet<Fault>,
    pub(super) store: Shelter,
    pub(super) flows: FlowTable,
    limits: Arc<Limits>,
    id_source: Arc<AtomicU64>,
    seats: Vec<Seat>,
    /// Which seat has which shard.
    table: ShardTable,
    /// By shard: who has claimed it last and is not over, and under which epoch.
    holders: BTreeMap<u8, (Incarnation, Epoch)>,
    /// To whom each epoch was given.
    given: BTreeMap<Epoch, Incarnation>,
    queue: BTreeMap<(u64, u64), Happening>,
    queued: u64,
    /// True milliseconds since the beginning, and how far the clock is from them.
    real: u64,
    skew: i64,
    /// When something was last appended.
    written: u64,
    pub(super) jumped: bool,
    pub(super) names: Vec<String>,
    pub(super) outside: Outside,
    pub(super) findings: Findings,
    trace: u64,
}

impl World {
    pub(super) fn new(seed: u64, planted: Option<Bug>) -> Self {
        let mut chance = Chance::new(seed);
        let enabled = Fault::ALL.into_iter().filter(|_| chance.of(60)).collect();
        let mut world = Self {
            chance,
            planted,
            enabled,
            store: Shelter::new(planted),
            flows: flows(),
            limits: Arc::new(Limits::default()),
            id_source: Arc::new(AtomicU64::new(1)),
            seats: (0..SEATS).map(|_| Seat::default()).collect(),
            table: ShardTable::even(SEATS.into()),
            holders: BTreeMap::new(),
            given: BTreeMap::new(),
            queue: BTreeMap::new(),
            queued: 0,
            real: 0,
            skew: 0,
            written: 0,
            jumped: false,
            names: Vec::new(),
            outside: Outside::default(),
            findings: Findings::default(),
            trace: 0xcbf2_9ce4_8422_2325,
        };
        world.plan();
        world
    }

    fn plan(&mut self) {
        for seat in 0..self.seats.len() {
            self.at(0, Happening::Restart(seat));
        }
        for number in 0..self.chance.from(4, 14) {
            let (flow, ..) = self.chance.pick(&FLOWS[..5]);
            let name = format!("{flow}-{number}");
            self.names.push(name.clone());
            self.within(0, STARTS_UNTIL, Happening::Start(name));
        }
        for _ in 0..10 {
            if self.may(Fault::Crash) {
                let seat = self.chance.below(u32::from(SEATS)) as usize;
                self.within(1, FAULTS_UNTIL, Happening::Crash(seat));
            }
        }
        for _ in 0..10 {
            if self.may(Fault::ShardsMoved) {
                let parts = self.chance.from(1, 5) as usize;
                let shards = ShardSet::part(self.chance.below(5) as usize % parts, parts);
                let to = self.chance.below(u32::from(SEATS)) as usize;
                self.within(1, FAULTS_UNTIL, Happening::Move(shards, to));
            }
        }
        for _ in 0..6 {
            if self.may(Fault::StandsStill) {
                let seat = self.chance.below(u32::from(SEATS)) as usize;
                self.within(1, FAULTS_UNTIL, Happening::StandStill(seat));
            }
        }
        for _ in 0..2 {
            self.within(1, FAULTS_UNTIL, Happening::Jump);
        }
    }

    pub(super) fn run(&mut self) {
        let mut happened: u64 = 0;
        while let Some(((time, _), happening)) = self.queue.pop_first() {
            self.real = self.real.max(time);
            self.note(&format!("{time} {happening:?}"));
            self.happen(happening);
            happened += 1;
            if happened > MOST {
                return self.findings.problem("the world does not come to its end");
            }
        }
        self.findings.count("happenings", happened);
        self.findings.count("simulated seconds", self.written / 1000);
    }

    pub(super) fn trace(&self) -> u64 {
        self.trace
    }

    fn note(&mut self, what: &str) {
        for byte in what.bytes() {
            self.trace = (self.trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp(BEGINNING + i64::try_from(self.real).unwrap_or(0) + self.skew)
    }

    /// Whether a fault comes now.
    fn may(&mut self, fault: Fault) -> bool {
        let may = self.enabled.contains(&fault)
            && self.real < u64::from(FAULTS_UNTIL)
            && self.chance.below(1000) < fault.per_mille();
        let seen_later = matches!(
            fault,
            Fault::Crash | Fault::ShardsMoved | Fault::StandsStill | Fault::TakenOver
        );
        if may && !seen_later {
            self.findings.count(fault.as_str(), 1);
        }
        may
    }

    fn at(&mut self, time: u64, happening: Happening) {
        self.queued += 1;
        self.queue.insert((time, self.queued), happening);
    }

    fn within(&mut self, least: u32, most: u32, happening: Happening) {
        let time = self.real + u64::from(self.chance.from(least, most));
        self.at(time, happening);
    }

    fn process(&mut self, seat: usize, life: u32) -> Option<&mut Process> {
        let seat = self.seats.get_mut(seat)?;
        seat.process.as_mut().filter(|_| seat.life == life)
    }

    fn happen(&mut self, happening: Happening) {
        let Some(happening) = self.unless_still(happening) else {
            return;
        };
        match happening {
            Happening::Start(name) => self.start(name),
            Happening::Write(seat, life) => self.write(seat, life),
            Happening::Written(seat, life) => self.written(seat, life),
            Happening::Late(batch) => drop(self.keep(batch)),
            Happening::Flush(seat) => self.flush(seat),
            Happening::Answer(seat, life, (execution, _), signal) => {
                let now = self.now();
                if let Some(process) = self.process(seat, life) {
                    // A signal that nothing waits for any more has no effect.
                    let _ = process.shard.signal(&execution, *signal, now);
                    self.settle(seat);
                }
            }
            Happening::Report(key, second) => self.report(key, second),
            Happening::Crash(seat) => {
                if self.seats[seat].process.is_some() {
                    self.findings.count(Fault::Crash.as_str(), 1);
                    self.die(seat);
                }
            }
            Happening::Restart(seat) => self.restart(seat),
            Happening::Move(shards, to) => self.begin_to_move(&shards, to),
            Happening::TakeIn(shards, seat) => self.take_in(&shards, seat),
            Happening::StandStill(seat) => self.stand_still(seat),
            Happening::TakeOver(seat, life) => self.take_over(seat, life),
            Happening::Wake(seat, life) => self.wake(seat, life),
            Happening::Jump => self.jump(),
        }
    }

    fn start(&mut self, name: String) {
        if self.outside.acknowledged.contains_key(&name) {
            return;
        }
        let seat = self.chance.below(u32::from(SEATS)) as usize;
        let now = self.now();
        let flow = name.split('-').next().unwrap_or_default();
        let items: Value = vec![Value::from(1u32), Value::from(2u32), Value::from(3u32)].into();
        let request = StartRequest {
            flow: Text::from(flow),
            input: [("items".into(), items)].into_iter().collect(),
            name: Some(Text::from(name.as_str())),
            ..StartRequest::default()
        };
        let is_still = self.is_still(seat);
        let process = self.seats[seat].process.as_mut().filter(|_| !is_still);
        if let Some(process) = process.filter(|process| !process.shard.owned().is_empty()) {
            match process.shard.start(request, now) {
                Ok(id) => drop(process.starts.insert(id, name.clone())),
                Err(error) => self.findings.problem(format!("{name}: {error}")),
            }
        }
        self.within(300, 900, Happening::Start(name));
        if !is_still {
            self.settle(seat);
        }
    }

    /// Lets a process do all it can do now.
    fn settle(&mut self, seat: usize) {
        loop {
            let now = self.now();
            let Some(process) = &mut self.seats[seat].process else {
                return;
            };
            match process.shard.pump(now) {
                PumpResult::Missing(execution) => match process.load(&execution, &self.store) {
                    Ok(true) => {}
                    Ok(false) => process.shard.absent(execution),
                    Err(problem) => {
                        process.shard.absent(execution);
                        self.findings.problem(problem);
                    }
                },
                PumpResult::Decided if process.under_way >= UNDER_WAY => break,
                PumpResult::Decided => self.send_batch(seat),
                PumpResult::Idle if !self.carry_out(seat) => break,
                PumpResult::Idle => {}
            }
            self.carry_out(seat);
        }
        if let Some(process) = &mut self.seats[seat].process {
            let asleep = process.shard.trim(HOT, usize::MAX);
            let own = asleep
                .into_iter()
                .filter(|(_, execution)| process.shard.owns(execution));
            process.sleepers.extend(own);
        }
        self.plan_wake(seat);
    }

    fn send_batch(&mut self, seat: usize) {
        let time = self.real + u64::from(self.chance.from(1, 20));
        let planted = self.planted;
        let Seat {
            process, life, last, ..
        } = &mut self.seats[seat];
        let Some(process) = process else { return };
        process.unwritten.push_back(process.shard.take_batch());
        process.under_way += 1;
        if planted == Some(Bug::ReleasesEarly) {
            process.shard.committed(&[]);
        }
        *last = time.max(*last);
        let (time, life) = (*last, *life);
        self.at(time, Happening::Write(seat, life));
    }

    fn write(&mut self, seat: usize, life: u32) {
        let Some(batch) = self
            .process(seat, life)
            .and_then(|process| process.unwritten.pop_front())
        else {
            return;
        };
        let texts: Vec<String> = batch
            .iter()
            .filter_map(|append| Some(append.turn.as_ref()?.text.clone()))
            .collect();
        self.note(&texts.concat());
        self.look_at_times(&batch);
        if self.may(Fault::AppendFailed) {
            self.store.fail(batch);
            return self.die(seat);
        }
        if self.may(Fault::AppendUnsure) {
            self.keep(batch);
            return self.die(seat);
        }
        let refusals = if self.planted == Some(Bug::AcknowledgesEarly) {
            self.flush(seat);
            self.seats[seat].unflushed = Some(batch);
            self.within(200, 400, Happening::Flush(seat));
            Vec::new()
        } else {
            self.keep(batch)
        };
        if refusals.iter().any(|(_, refusal)| *refusal == Refusal::Conflict) {
            // Somebody else has written: what this process holds is no longer true.
            self.findings.problem(REFUSED);
            return self.die(seat);
        }
        let time = self.real + u64::from(self.chance.below(10));
        let last = &mut self.seats[seat].last;
        *last = time.max(*last);
        let time = *last;
        if let Some(process) = self.process(seat, life) {
            process.answers.push_back(refusals);
            self.at(time, Happening::Written(seat, life));
        }
    }

    /// No turn is from a time that has not come.
    fn look_at_times(&mut self, batch: &[Append]) {
        let now = self.now();
        for turn in batch.iter().filter_map(|append| append.turn.as_ref()) {
            if turn.time > now && !self.jumped {
                self.findings
                    .problem(format!("a turn is of {}, and it is {now}", turn.time));
            }
        }
    }

    fn flush(&mut self, seat: usize) {
        if let Some(batch) = self.seats[seat].unflushed.take() {
            self.keep(batch);
        }
    }

    fn written(&mut self, seat: usize, life: u32) {
        let released = self.planted == Some(Bug::ReleasesEarly);
        let heedless = self.planted == Some(Bug::AcknowledgesFenced);
        let Some(process) = self.process(seat, life) else {
            return;
        };
        let mut refusals = process.answers.pop_front().unwrap_or_default();
        process.under_way -= 1;
        if heedless {
            refusals.retain(|(_, refusal)| *refusal != Refusal::Fenced);
        }
        if !released {
            process.shard.committed(&refusals);
        }
        let fenced = process.shard.take_fenced();
        if !fenced.is_empty() {
            process.drop_fenced(&fenced);
        }
        self.carry_out(seat);
        self.settle(seat);
    }

    fn die(&mut self, seat: usize) {
        let Seat {
            process,
            life,
            unflushed,
            still_until,
            ..
        } = &mut self.seats[seat];
        let dead = process.take();
        *life += 1;
        *unflushed = None;
        *still_until = 0;
        // The next process of this seat goes on with what the dead one was about to give up, unless another one has taken it over.
        if let Some(dead) = &dead
            && !self.is_over(dead.incarnation)
        {
            for (shards, _) in dead.leaving.values() {
                self.table.give(shards, Some(seat));
            }
        }
        let back = self.chance.from(10, 500);
        self.within(back, back, Happening::Restart(seat));
        let Some(batch) = dead.and_then(|mut dead| dead.unwritten.pop_front()) else {
            return;
        };
        // Only the epoch tells it from those of the next process.
        if self.may(Fault::AppendLate) {
            self.within(1, 2 * back, Happening::Late(batch));
        }
    }

    fn restart(&mut self, seat: usize) {
        if self.seats[seat].process.is_some() {
            return;
        }
        if self.real > 0 && self.may(Fault::CrashOnTheWayBack) {
            return self.within(5, 50, Happening::Restart(seat));
        }
        let which = (u8::try_from(seat).unwrap_or(0), self.join(seat));
        let mut process = Process::new(&self.flows, &self.limits, which, &self.id_source);
        let shards = self.table.shards_of(seat);
        process.append_under(&self.claim(process.incarnation, &shards));
        if let Err(problem) = process.take_in(&shards, &self.store) {
            return self.findings.problem(problem);
        }
        self.seats[seat].process = Some(process);
        self.settle(seat);
    }

    fn jump(&mut self) {
        let far = i64::from(self.chance.from(1_000, 3_600_000));
        if self.may(Fault::ClockAhead) {
            self.skew += far;
            self.jumped = true;
        } else if self.may(Fault::ClockBack) {
            self.skew -= far;
            self.jumped = true;
        }
        for seat in 0..self.seats.len() {
            if let Some(process) = &mut self.seats[seat].process {
                process.wake = None;
            }
            self.plan_wake(seat);
        }
    }

    /// By how much timers are early.
    fn early(&self) -> Millis {
        if self.planted == Some(Bug::TimersEarly) {
            Millis(1_000)
        } else {
            Millis::ZERO
        }
    }

    fn plan_wake(&mut self, seat: usize) {
        let (clock, early) = (self.now().plus(self.early()), self.real);
        let Seat { process, life, .. } = &mut self.seats[seat];
        let Some(process) = process else { return };
        let Some(due) = process.next_due() else { return };
        let time = early + due.since(clock).0.max(1);
        if process.wake.is_none_or(|planned| planned > time) {
            process.wake = Some(time);
            let life = *life;
            self.at(time, Happening::Wake(seat, life));
        }
    }

    fn wake(&mut self, seat: usize, life: u32) {
        let now = self.now().plus(self.early());
        let Seat {
            process: Some(process),
            life: present,
            ..
        } = &mut self.seats[seat]
        else {
            return;
        };
        if *present != life {
            return;
        }
        process.wake = None;
        while let Some((due, execution)) = process.sleepers.first().cloned() {
            if due > now {
                break;
            }
            process.sleepers.pop_first();
            if process.shard.state(&execution).is_none()
                && let Err(problem) = process.load(&execution, &self.store)
            {
                self.findings.problem(problem);
            }
        }
        for _ in 0..256 {
            if !process.shard.fire_next(now) {
                break;
            }
        }
        self.settle(seat);
    }
}

/// The flows of the campaign with the killed server.
fn flows() -> FlowTable {
    let mut table = FlowTable::default();
    for flow in FLOWS.map(|(flow, ..)| flow).into_iter().chain(["leaf"]) {
        let source = Source::new(format!("{flow}.json"), definition(flow));
        if let Some(compiled) = starbridge_fdl::check(&source, &Limits::default()).flow {
            table.put(flow, compiled);
        }
    }
    table
}
