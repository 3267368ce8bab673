//! Redrives, skips and undos of successful executions that wait to be admitted. The execution has
//! ended, and its history stays unchanged until then.

use super::admission::{ended_message, message_to_admission};
use super::children::failed;
use super::{Outgoing, Shard};
use starbridge_flow::graph::DEFAULT_PRIORITY;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EditedInput, EventId, NewOrder, Rejection, Signal, Status};
use starbridge_ports::{
    Append, AuditEntry, AuditKind, DeclineReason, KeptRedrive, KeptUndo, LOCAL_OPERATOR, MessageBody, MessageId,
    RequestChange,
};

impl Shard {
    /// Takes a signal to an execution whose redrive waits or has to be admitted. Returns nothing if the machine takes it.
    pub(super) fn signal_asking(
        &mut self,
        id: &Text,
        signal: &Signal,
        message: Option<&MessageId>,
        now: Timestamp,
    ) -> Option<Result<(), Rejection>> {
        let live = self.executions.get(id).filter(|live| !live.deleted)?;
        if live.asking.is_some() {
            return match signal {
                Signal::Stop { .. } => Some(self.withdraw(id, message.cloned())),
                Signal::Redrive { .. } | Signal::Skip { .. } => Some(Err(Rejection::NotRedrivable)),
                Signal::Pause { .. } | Signal::Resume { .. } => Some(Err(Rejection::WaitsToGoOn)),
                Signal::Reorder { by, order } => {
                    Some(self.reorder_asking(id, by.clone(), order, message.cloned(), now))
                }
                _ => None,
            };
        }
        let going_on = going_on(signal, live.state.status())?;
        let ask = self.ask_of_redrive(id, live, now)?;
        let former = live.state.status();
        // It is refused now, or else it is carried out later.
        let mut tried = live.state.clone();
        if let Err(rejection) = tried.advance(&live.flow, signal.clone(), now, &mut Vec::new()) {
            return Some(Err(rejection));
        }
        let kept = KeptRedrive {
            asked: self.ask_number(now),
            requested: now,
            former,
            ..going_on
        };
        let question = message_to_admission(id, kept.asked, MessageBody::Ask(Box::new(ask)));
        let text = serde_json::to_string(&kept).unwrap_or_default();
        let append = self.asking_append(id, Some(kept), RequestChange::Replace(text), message.cloned())?;
        self.send_with(append, question);
        Some(Ok(()))
    }

    /// Gives a waiting redrive another place in line, or lets it wait for nobody to end.
    fn reorder_asking(
        &mut self,
        id: &Text,
        by: Option<String>,
        order: &NewOrder,
        message: Option<MessageId>,
        now: Timestamp,
    ) -> Result<(), Rejection> {
        if order.start_now {
            return Err(Rejection::AlreadyStarted);
        }
        let number = self.ask_number(now);
        let live = self.executions.get_mut(id).ok_or(Rejection::Unknown)?;
        let terms = &live.state.started().ok_or(Rejection::Unknown)?.terms;
        let mut kept = live.asking.clone().ok_or(Rejection::Unknown)?;
        let mut place = kept.place.take().unwrap_or_default();
        place.priority = order.priority.or(place.priority);
        place.order_time = order.order_time.or(place.order_time);
        place.by = by;
        let body = MessageBody::Reorder {
            priority: place.priority.or(terms.priority).unwrap_or(DEFAULT_PRIORITY),
            order: place.order_time.or(terms.order_time).unwrap_or(kept.requested.0),
            no_after: order.drop_after,
        };
        let is_new = place.priority.is_some() || place.order_time.is_some();
        kept.place = is_new.then_some(place);
        // It goes on with the definition that it had when it began to wait.
        let other = live.other.take();
        let text = serde_json::to_string(&kept).unwrap_or_default();
        let append = self.asking_append(id, Some(kept), RequestChange::Replace(text), message);
        if let Some(live) = self.executions.get_mut(id) {
            live.other = other;
        }
        let append = append.ok_or(Rejection::Unknown)?;
        self.send_with(append, message_to_admission(id, number, body));
        Ok(())
    }

    /// Returns an execution to its state before the redrive was requested.
    fn withdraw(&mut self, id: &Text, message: Option<MessageId>) -> Result<(), Rejection> {
        let asking = self.executions.get(id).and_then(|live| live.asking.clone());
        let asking = asking.ok_or(Rejection::Unknown)?;
        let append = self.asking_append(id, None, RequestChange::Drop, message);
        let append = append.ok_or(Rejection::Unknown)?;
        let forgotten = ended_message(id, asking.asked.next(), asking.former);
        self.send_with(append, forgotten);
        self.held.push(Outgoing::Ended {
            execution: id.clone(),
            status: asking.former,
        });
        Ok(())
    }

    /// An append that records whether an execution waits for a redrive.
    fn asking_append(
        &mut self,
        id: &Text,
        asking: Option<KeptRedrive>,
        request: RequestChange,
        message: Option<MessageId>,
    ) -> Option<Append> {
        let audit = self.audited.take();
        let live = self.executions.get_mut(id)?;
        live.asking = asking;
        live.other = None;
        live.watched = true;
        let standing = live.standing();
        live.kept = Some(standing.clone());
        live.unsettled += 1;
        Some(Append {
            execution: id.clone(),
            expected: live.state.last_event(),
            record: Some(live.record(&standing)),
            request,
            received: message.into_iter().collect(),
            audit: audit.into_iter().collect(),
            ..Append::default()
        })
    }

    /// Carries out a redrive that is admitted.
    pub(super) fn redrive_admitted(&mut self, id: MessageId, now: Timestamp) {
        let to = id.to.clone();
        let Some(kept) = self.take_asking(&to, id.event) else {
            // It was withdrawn, and admission has been told.
            return self.drop_message(id);
        };
        let signal = signal_of(&kept);
        let turn = self.guarded(&to, now, |shard| {
            let live = shard.executions.get_mut(&to).ok_or(Rejection::Unknown)?;
            live.change = RequestChange::Begin;
            let other = live.other.take();
            let give = |shard: &mut Self| shard.turn(&to, signal, Some(id.clone()), now);
            match (other, &kept.definition) {
                (_, None) => give(shard),
                (Some(other), Some(_)) => shard.turn_with(&to, *other, give),
                // The definition is gone, or the history does not fit it.
                (None, Some(_)) => Err(Rejection::NotRedrivable),
            }
        });
        match (turn, kept.place.clone()) {
            (Some(Err(_)), _) => self.give_up_asking(&to, kept, id),
            (Some(Ok(())), Some(place)) => {
                let order = NewOrder {
                    priority: place.priority,
                    order_time: place.order_time,
                    ..NewOrder::default()
                };
                // One that has ended again has no place.
                let _ = self.signal(&to, Signal::Reorder { by: place.by, order }, now);
            }
            _ => {}
        }
    }

    /// Returns an execution whose redrive is not admitted to its former state.
    pub(super) fn redrive_declined(&mut self, id: MessageId, reason: &DeclineReason, now: Timestamp) {
        let to = id.to.clone();
        let Some(kept) = self.take_asking(&to, id.event) else {
            return self.drop_message(id);
        };
        let (error, cause) = self.decline_error(&to, reason);
        if let Some((parent, call)) = self.undoing.remove(&to) {
            self.send_signal(parent, failed(call, &error, &cause));
        }
        self.audited = Some(declined_entry(&to, &kept, &error, &cause, now));
        self.give_up_asking(&to, kept, id);
        self.audited = None;
    }

    fn give_up_asking(&mut self, id: &Text, kept: KeptRedrive, message: MessageId) {
        if let Some(live) = self.executions.get_mut(id) {
            live.change = RequestChange::None;
            live.asking = Some(kept);
        }
        // The execution is loaded and waits.
        let _ = self.withdraw(id, Some(message));
    }

    fn take_asking(&mut self, id: &Text, asked: EventId) -> Option<KeptRedrive> {
        let live = self.executions.get_mut(id)?;
        live.asking.take_if(|asking| asking.asked == asked)
    }

    /// Whether the redrive of a loaded execution waits to be admitted.
    pub(crate) fn waits_to_go_on(&self, execution: &str) -> bool {
        let live = self.executions.get(execution);
        live.is_some_and(|live| live.asking.is_some())
    }

    /// Appends, and sends a message to admission with that append.
    pub(super) fn send_with(&mut self, mut append: Append, message: starbridge_ports::Message) {
        append.sent.push(message.clone());
        self.held.push(Outgoing::Message(message));
        self.pending.push(append);
    }
}

/// The stored form of a signal that lets an execution that ended this way go on; nothing for any
/// other signal.
fn going_on(signal: &Signal, status: Status) -> Option<KeptRedrive> {
    let undoing = |by: &Option<String>, undo| KeptRedrive {
        by: by.clone(),
        undo: Some(undo),
        ..KeptRedrive::default()
    };
    match signal {
        Signal::Redrive { by, inputs, definition } => Some(KeptRedrive {
            by: by.clone(),
            inputs: inputs.iter().map(|edit| (edit.event, edit.input.clone())).collect(),
            definition: definition.clone(),
            ..KeptRedrive::default()
        }),
        Signal::Skip { by, cause } => Some(undoing(by, KeptUndo::Skip { cause: cause.clone() })),
        Signal::Stop {
            error,
            cause,
            by,
            rollback: true,
            with_parent: true,
        } if status == Status::Succeeded => {
            let (error, cause) = (error.clone(), cause.clone());
            Some(undoing(by, KeptUndo::All { error, cause }))
        }
        _ => None,
    }
}

/// The signal that waited.
fn signal_of(kept: &KeptRedrive) -> Signal {
    let by = kept.by.clone();
    match kept.undo.clone() {
        None => Signal::Redrive {
            by,
            inputs: kept.inputs.iter().cloned().map(edited).collect(),
            definition: kept.definition.clone(),
        },
        Some(KeptUndo::Skip { cause }) => Signal::Skip { by, cause },
        Some(KeptUndo::All { error, cause }) => Signal::Stop {
            error,
            cause,
            by,
            rollback: true,
            with_parent: true,
        },
    }
}

/// The audit entry of a request that is not carried out: nothing else records it.
fn declined_entry(id: &Text, kept: &KeptRedrive, error: &str, cause: &str, now: Timestamp) -> AuditEntry {
    let action = match &kept.undo {
        None => "redrive",
        Some(KeptUndo::Skip { .. }) => "skip",
        Some(KeptUndo::All { .. }) => "stop",
    };
    let entry = AuditEntry {
        time: now,
        by: kept.by.as_deref().unwrap_or(LOCAL_OPERATOR).into(),
        action: action.into(),
        kind: AuditKind::Execution,
        name: id.clone(),
        detail: starbridge_flow::value::Object::new(),
        request: None,
        bulk: None,
    };
    entry
        .with("declined", Text::from(error))
        .with("cause", Text::from(cause))
}

fn edited((event, input): (EventId, starbridge_flow::value::Value)) -> EditedInput {
    EditedInput { event, input }
}
