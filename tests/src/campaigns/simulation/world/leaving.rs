//! Output of a process, and how the world outside reacts to it.

use super::{Happening, World};
use crate::campaigns::simulation::fault::{Bug, Fault};
use crate::campaigns::simulation::outside::{self, Called, Key};
use starbridge_flow::value::Text;
use starbridge_machine::CallToSend;
use starbridge_ports::Refusal;
use starbridge_runtime::Outgoing;

impl World {
    /// Carries out what may leave. Answers whether there was anything.
    pub(super) fn carry_out(&mut self, seat: usize) -> bool {
        let Some(process) = &mut self.seats[seat].process else {
            return false;
        };
        let outgoing = process.shard.take_outgoing();
        let any = !outgoing.is_empty();
        for outgoing in outgoing {
            match outgoing {
                Outgoing::Started { execution, .. } => self.started(seat, &execution, execution.clone()),
                Outgoing::Refused {
                    execution,
                    refusal: Refusal::Exists { execution: known, .. },
                } => self.started(seat, &execution, known),
                Outgoing::Send { execution, call } => self.call(seat, execution, &call),
                Outgoing::Mark(number) => {
                    let Some(process) = &mut self.seats[seat].process else {
                        continue;
                    };
                    if let Some((shards, to)) = process.leaving.remove(&number) {
                        self.left(seat, shards, to);
                    } else if let Some(key) = process.marks.remove(&number) {
                        self.acknowledge(key);
                    }
                }
                _ => {}
            }
        }
        any
    }

    fn started(&mut self, seat: usize, id: &Text, known: Text) {
        let process = self.seats[seat].process.as_mut();
        if let Some(name) = process.and_then(|process| process.starts.remove(id))
            && !self.may(Fault::StartUnsure)
        {
            self.outside.acknowledged.insert(name, known);
        }
    }

    fn call(&mut self, seat: usize, execution: Text, call: &CallToSend) {
        let key = (execution, call.call);
        let known = self.outside.calls.contains_key(&key);
        if known && self.planted == Some(Bug::SendsNothingAgain) {
            return;
        }
        if self.store.turn_of(&key.0, key.1).is_none() && self.planted != Some(Bug::AcknowledgesEarly) {
            self.findings
                .problem(format!("{} left before it was durable", outside::name_of(&key)));
        }
        let called = self.outside.calls.entry(key.clone()).or_insert_with(|| Called {
            call: call.clone(),
            first: self.real,
            times: 0,
        });
        called.times += 1;
        let (times, changed) = (called.times, called.call != *call);
        if changed {
            self.findings
                .problem(format!("{} was sent again as another call", outside::name_of(&key)));
        }
        let fresh = if self.planted == Some(Bug::FreshKeys) {
            format!("/{times}")
        } else {
            String::new()
        };
        self.outside.keys.insert(outside::name_of(&key) + &fresh);
        let mut signal = outside::answer(call, &key);
        if &*call.resource == "witness:flaky" && self.may(Fault::AnswerLost) {
            signal = outside::lost(&key);
        }
        let late = if self.may(Fault::AnswerSlow) { 4_000 } else { 60 };
        let life = self.seats[seat].life;
        if self.may(Fault::AnswerTwice) {
            let again = Happening::Answer(seat, life, key.clone(), Box::new(signal.clone()));
            self.within(1, late, again);
        }
        self.within(1, late, Happening::Answer(seat, life, key.clone(), Box::new(signal)));
        if &*call.resource == "witness:later" && !known {
            self.outside.reports.insert(key.clone(), 0);
            self.within(1, 3_000, Happening::Report(key, false));
        }
    }

    pub(super) fn report(&mut self, key: Key, second: bool) {
        if self.outside.reported.contains(&key) && !second {
            return;
        }
        let now = self.now();
        let early = self.planted == Some(Bug::ReportsAcknowledgedEarly);
        let owner = self.table.owner_of(&key.0);
        let owner = owner.filter(|seat| self.seats[*seat].process.is_some() && !self.is_still(*seat));
        let Some(seat) = owner else {
            return self.within(50, 150, Happening::Report(key, second));
        };
        let Some(process) = &mut self.seats[seat].process else {
            return;
        };
        if process.shard.state(&key.0).is_none() {
            match process.load(&key.0, &self.store) {
                Ok(true) => {}
                Ok(false) => self
                    .findings
                    .problem(format!("{}: a report on nothing", outside::name_of(&key))),
                Err(problem) => self.findings.problem(problem),
            }
        }
        let tries = self.outside.reports.entry(key.clone()).or_insert(0);
        let taken = process.shard.signal(&key.0, outside::report(&key, second), now);
        if second {
            self.outside.second_taken += u64::from(taken.is_ok());
            return self.settle(seat);
        }
        if let (0, Err(rejection)) = (*tries, &taken) {
            let problem = format!("{}: its first report is refused: {rejection}", outside::name_of(&key));
            self.outside.problems.push(problem);
        }
        *tries += 1;
        process.next_mark += 1;
        process.marks.insert(process.next_mark, key.clone());
        process.shard.mark(process.next_mark);
        if early {
            self.acknowledge(key.clone());
        }
        self.within(400, 900, Happening::Report(key, false));
        self.settle(seat);
    }

    pub(super) fn acknowledge(&mut self, key: Key) {
        if self.outside.reported.contains(&key) || self.may(Fault::ReportUnsure) {
            return;
        }
        self.outside.reported.insert(key.clone());
        if self.may(Fault::ReportTwice) {
            self.within(1, 500, Happening::Report(key, true));
        }
    }
}
