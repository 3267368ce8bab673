//! Rows as bytes: a visit that is over takes some 25 of them.

use super::{Call, Row, Span, SpanEnd, SpanKind, Status, Undo};
use starbridge_flow::graph::StepId;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{Child, EventId, Failure, PathItem, StepPath};
use std::sync::Arc;

/// Writes rows. Each is written by its difference to the row before it.
#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    /// The texts so far: each is written once.
    texts: Vec<Text>,
}

/// Reads what [`Writer`] wrote. After the end all numbers are 0.
struct Reader<'a> {
    bytes: std::slice::Iter<'a, u8>,
    texts: Vec<Text>,
}

/// What the next row is written relative to.
#[derive(Default)]
struct Former {
    event: u64,
    entered: i64,
    path: StepPath,
}

/// The rows as bytes.
pub(in crate::visits) fn pack(rows: &[Arc<Row>]) -> Box<[u8]> {
    let (mut writer, mut former) = (Writer::default(), Former::default());
    for row in rows {
        writer.row(row, &former);
        former = Former {
            event: row.event,
            entered: row.entered.0,
            path: row.path.clone(),
        };
    }
    writer.bytes.into_boxed_slice()
}

/// Reads the rows back. `names` are those of the flow's steps.
pub(in crate::visits) fn unpack(bytes: &[u8], count: usize, names: &[Text]) -> Vec<Arc<Row>> {
    let mut reader = Reader {
        bytes: bytes.iter(),
        texts: Vec::new(),
    };
    let mut former = Former::default();
    let rows = (0..count).map(|_| {
        let row = reader.row(&former, names);
        former = Former {
            event: row.event,
            entered: row.entered.0,
            path: row.path.clone(),
        };
        Arc::new(row)
    });
    rows.collect()
}

impl Writer {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// A number that may be negative.
    fn difference(&mut self, to: i64, from: i64) {
        let by = to.wrapping_sub(from);
        self.number(((by << 1) ^ (by >> 63)) as u64);
    }

    fn text(&mut self, text: &Text) {
        match self.texts.iter().position(|known| known == text) {
            Some(known) => self.number(known as u64 + 1),
            None => {
                self.number(0);
                self.number(text.len() as u64);
                self.bytes.extend_from_slice(text.as_bytes());
                self.texts.push(text.clone());
            }
        }
    }

    fn path(&mut self, path: &StepPath, former: &StepPath) {
        let (own, before) = (path.items(), former.items());
        let same = own.iter().zip(before).take_while(|(own, before)| own == before).count();
        self.number(same as u64);
        self.number((own.len() - same) as u64);
        for item in own.iter().skip(same) {
            self.number(item.step.0.into());
            let (kind, number) = match item.child {
                Child::Branch(number) => (0, number),
                Child::Iteration(number) => (1, number),
                Child::Arm(Some(number)) => (2, number),
                Child::Arm(None) => (3, 0),
            };
            self.number(kind | u64::from(number) << 2);
        }
    }

    fn failure(&mut self, failure: &Failure) {
        self.text(&failure.error);
        self.text(&failure.cause);
    }

    fn row(&mut self, row: &Row, former: &Former) {
        self.number(row.event.wrapping_sub(former.event));
        self.path(&row.path, &former.path);
        self.number(row.number.0.into());
        self.number(row.run.into());
        self.bytes.push(row.status as u8);
        self.number(row.attempts.into());
        let entered = row.entered.0;
        self.difference(entered, former.entered);
        self.difference(row.changed.0, entered);
        let is_plain = row.spans.left_out == 0 && row.spans.undone == (0, 0) && row.request.is_none();
        self.flags([
            row.ended.is_some(),
            row.until.is_some(),
            row.failure.is_some(),
            row.call.is_some(),
            row.child.is_some(),
            row.undo.is_some(),
            !is_plain,
        ]);
        for time in row.ended.iter().chain(&row.until) {
            self.difference(time.0, entered);
        }
        row.failure.iter().for_each(|failure| self.failure(failure));
        row.call.iter().for_each(|call| self.call(call, row));
        row.child.iter().for_each(|child| self.text(child));
        row.undo.iter().for_each(|undo| self.undo(undo, row));
        if !is_plain {
            self.number(row.spans.left_out);
            self.number(row.spans.undone.0.into());
            self.number(row.spans.undone.1.into());
            // 0 stands for none: the request comes after the row's first event.
            self.number(row.request.map_or(0, |request| request.0.wrapping_sub(row.event)));
        }
        self.number(row.spans.all.len() as u64);
        row.spans.all.iter().for_each(|span| self.span(span, row));
    }

    fn flags(&mut self, flags: [bool; 7]) {
        let set = flags.into_iter().rev().fold(0, |set, flag| set << 1 | u8::from(flag));
        self.bytes.push(set);
    }

    fn event(&mut self, event: EventId, row: &Row) {
        self.number(event.0.wrapping_sub(row.event));
    }

    fn call(&mut self, call: &Call, row: &Row) {
        self.event(call.number, row);
        self.difference(call.since.0, row.entered.0);
        self.text(&call.resource);
        let (timeout, child) = (call.timeout_at.is_some(), call.child.is_some());
        self.flags([call.reported, timeout, child, false, false, false, false]);
        call.timeout_at
            .iter()
            .for_each(|at| self.difference(at.0, row.entered.0));
        call.child.iter().for_each(|child| self.text(child));
    }

    fn undo(&mut self, undo: &Undo, row: &Row) {
        self.bytes.push(undo.status as u8);
        self.number(undo.attempts.into());
        self.number(undo.before.into());
        self.difference(undo.started.0, row.entered.0);
        self.difference(undo.changed.0, row.entered.0);
        let (ended, until) = (undo.ended.is_some(), undo.until.is_some());
        let (failure, call) = (undo.failure.is_some(), undo.call.is_some());
        self.flags([ended, until, failure, call, false, false, false]);
        for time in undo.ended.iter().chain(&undo.until) {
            self.difference(time.0, row.entered.0);
        }
        undo.failure.iter().for_each(|failure| self.failure(failure));
        undo.call.iter().for_each(|call| self.call(call, row));
    }

    fn span(&mut self, span: &Span, row: &Row) {
        let kind = SpanKind::ALL.iter().position(|kind| *kind == span.kind).unwrap_or(0);
        let end = SpanEnd::ALL.iter().position(|end| *end == span.end).unwrap_or(0);
        self.bytes.push((kind | end << 2) as u8 | u8::from(span.rollback) << 4);
        self.number(span.attempt.into());
        self.event(span.event, row);
        self.difference(span.from.0, row.entered.0);
        let (to, due) = (span.to.is_some(), span.due.is_some());
        let (call, failure) = (span.call.is_some(), span.failure.is_some());
        self.flags([
            to,
            due,
            call,
            span.result.is_some(),
            span.last.is_some(),
            span.worker.is_some(),
            failure,
        ]);
        for time in span.to.iter().chain(&span.due) {
            self.difference(time.0, span.from.0);
        }
        if let Some((call, resource)) = &span.call {
            self.event(*call, row);
            self.text(resource);
        }
        for event in span.result.iter().chain(&span.last) {
            self.event(*event, row);
        }
        if let Some(worker) = &span.worker {
            self.text(worker);
        }
        self.bytes.push(span.held.is_some().into());
        span.held.iter().for_each(|held| self.difference(held.0, span.from.0));
        span.failure.iter().for_each(|failure| self.failure(failure));
    }
}

impl Reader<'_> {
    fn byte(&mut self) -> u8 {
        self.bytes.next().copied().unwrap_or(0)
    }

    fn number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return number;
            }
            shift += 7;
        }
    }

    fn small(&mut self) -> u32 {
        self.number() as u32
    }

    fn time(&mut self, from: Timestamp) -> Timestamp {
        let by = self.number();
        Timestamp(from.0.wrapping_add((by >> 1) as i64 ^ -((by & 1) as i64)))
    }

    fn time_if(&mut self, is_there: bool, from: Timestamp) -> Option<Timestamp> {
        is_there.then(|| self.time(from))
    }

    fn text(&mut self) -> Text {
        match self.number() {
            0 => {
                let len = usize::try_from(self.number()).unwrap_or(0);
                let bytes = self.bytes.as_slice();
                let (own, rest) = bytes.split_at_checked(len).unwrap_or((bytes, &[]));
                self.bytes = rest.iter();
                let text = Text::from(std::str::from_utf8(own).unwrap_or_default());
                self.texts.push(text.clone());
                text
            }
            known => {
                let known = usize::try_from(known - 1).ok().and_then(|known| self.texts.get(known));
                known.cloned().unwrap_or_default()
            }
        }
    }

    fn text_if(&mut self, is_there: bool) -> Option<Text> {
        is_there.then(|| self.text())
    }

    fn path(&mut self, former: &StepPath) -> StepPath {
        let (same, more) = (self.number() as usize, self.number());
        if more == 0 && same == former.items().len() {
            return former.clone();
        }
        let mut items: Vec<PathItem> = former.items().iter().take(same).copied().collect();
        for _ in 0..more {
            let step = StepId(self.small());
            let child = self.number();
            let number = (child >> 2) as u32;
            let child = match child & 3 {
                0 => Child::Branch(number),
                1 => Child::Iteration(number),
                2 => Child::Arm(Some(number)),
                _ => Child::Arm(None),
            };
            items.push(PathItem { step, child });
        }
        StepPath::from(items)
    }

    fn failure(&mut self) -> Failure {
        Failure {
            error: self.text(),
            cause: self.text(),
        }
    }

    fn failure_if(&mut self, is_there: bool) -> Option<Failure> {
        is_there.then(|| self.failure())
    }

    fn flags(&mut self) -> [bool; 7] {
        let set = self.byte();
        std::array::from_fn(|at| set >> at & 1 == 1)
    }

    fn status(&mut self) -> Status {
        let status = Status::ALL.get(usize::from(self.byte()));
        status.copied().unwrap_or(Status::Entered)
    }

    fn event(&mut self, event: u64) -> EventId {
        EventId(event.wrapping_add(self.number()))
    }

    fn row(&mut self, former: &Former, names: &[Text]) -> Row {
        let event = former.event.wrapping_add(self.number());
        let path = self.path(&former.path);
        let number = StepId(self.small());
        let (run, status, attempts) = (self.small(), self.status(), self.small());
        let entered = self.time(Timestamp(former.entered));
        let changed = self.time(entered);
        let [has_ended, waits, failed, has_call, has_child, has_undo, is_long] = self.flags();
        let mut row = Row {
            event,
            step: names.get(number.0 as usize).cloned().unwrap_or_default(),
            number,
            path,
            run,
            status,
            attempts,
            entered,
            changed,
            ended: self.time_if(has_ended, entered),
            until: self.time_if(waits, entered),
            failure: self.failure_if(failed),
            call: has_call.then(|| self.call(event, entered)),
            child: self.text_if(has_child),
            undo: has_undo.then(|| Box::new(self.undo(event, entered))),
            request: None,
            spans: super::Spans::default(),
        };
        if is_long {
            row.spans.left_out = self.number();
            row.spans.undone = (self.small(), self.small());
            row.request = match self.number() {
                0 => None,
                after => Some(EventId(event.wrapping_add(after))),
            };
        }
        let spans = self.number();
        row.spans.all = (0..spans).map(|_| self.span(event, entered)).collect();
        row
    }

    fn call(&mut self, event: u64, entered: Timestamp) -> Call {
        let (number, since, resource) = (self.event(event), self.time(entered), self.text());
        let [reported, has_timeout, has_child, ..] = self.flags();
        Call {
            number,
            since,
            resource,
            reported,
            timeout_at: self.time_if(has_timeout, entered),
            child: self.text_if(has_child),
        }
    }

    fn undo(&mut self, event: u64, entered: Timestamp) -> Undo {
        let (status, attempts, before) = (self.status(), self.small(), self.small());
        let (started, changed) = (self.time(entered), self.time(entered));
        let [has_ended, waits, failed, has_call, ..] = self.flags();
        Undo {
            status,
            attempts,
            before,
            started,
            changed,
            ended: self.time_if(has_ended, entered),
            until: self.time_if(waits, entered),
            failure: self.failure_if(failed),
            call: has_call.then(|| self.call(event, entered)),
        }
    }

    fn span(&mut self, event: u64, entered: Timestamp) -> Span {
        let words = self.byte();
        let kind = SpanKind::ALL.get(usize::from(words & 3));
        let end = SpanEnd::ALL.get(usize::from(words >> 2 & 3));
        let (attempt, begun, from) = (self.small(), self.event(event), self.time(entered));
        let [has_to, has_due, called, has_result, has_last, has_worker, failed] = self.flags();
        let (to, due) = (self.time_if(has_to, from), self.time_if(has_due, from));
        let call = called.then(|| (self.event(event), self.text()));
        let result = has_result.then(|| self.event(event));
        let last = has_last.then(|| self.event(event));
        let worker = self.text_if(has_worker);
        let is_held = self.byte() == 1;
        Span {
            kind: kind.copied().unwrap_or(SpanKind::Attempt),
            attempt,
            rollback: words >> 4 & 1 == 1,
            event: begun,
            from,
            to,
            end: end.copied().unwrap_or(SpanEnd::Open),
            due,
            call,
            result,
            last,
            worker,
            held: self.time_if(is_held, from),
            failure: self.failure_if(failed),
        }
    }
}
