//! What admission hears of a batch while it is being appended.

use super::*;

/// What admission was told, with the sender of each message, and whether it was told ahead.
fn told(world: &mut World) -> Vec<(Text, bool)> {
    let mut told = Vec::new();
    while let Ok(command) = world.inbox.try_recv() {
        match command {
            AdmissionCommand::Deliver(message) => told.push((kind(&message), false)),
            AdmissionCommand::DeliverAhead(message) => told.push((kind(&message), true)),
            other => panic!("{other:?}"),
        }
    }
    told
}

fn kind(message: &Message) -> Text {
    let body = match &message.body {
        MessageBody::Ask(_) => "asks",
        MessageBody::Ended { .. } => "has ended",
        other => panic!("{other:?}"),
    };
    Text::from(format!("{} {body}", message.id.from))
}

/// Hands what was decided to the writer, who has not made it durable yet.
fn hand_over(world: &mut World) {
    assert_eq!(world.shard.pump(world.now), PumpResult::Decided);
    let batch = world.shard.take_batch();
    world.kept.append(&batch).unwrap();
    world.shard.tell_ends_ahead();
}

fn request() -> StartRequest {
    StartRequest {
        flow: "f".into(),
        input: [("shard".into(), "a".into())].into_iter().collect(),
        ..StartRequest::default()
    }
}

fn stop() -> Signal {
    Signal::Stop {
        error: None,
        cause: "no longer wanted".to_owned(),
        by: None,
        rollback: false,
        with_parent: false,
    }
}

#[test]
fn an_end_is_told_once_while_it_is_being_appended() {
    let mut world = World::new(0);
    world.answers = false;
    let id = world.start("a", |_| {});
    let (_, call) = world.calls.remove(0);
    world.shard.signal(&id, succeeded(call), world.now).unwrap();
    hand_over(&mut world);
    assert_eq!(told(&mut world), [(Text::from(format!("{id} has ended")), true)]);
    // The next batch has nothing to tell, and does not tell of this one again.
    let other = world.shard.start(request(), world.now).unwrap();
    hand_over(&mut world);
    assert_eq!(told(&mut world), []);
    world.shard.committed(&[]);
    assert_eq!(told(&mut world), []);
    world.shard.committed(&[]);
    assert_eq!(told(&mut world), [(Text::from(format!("{other} asks")), false)]);
}

#[test]
fn an_end_waits_for_the_question_before_it() {
    for together in [true, false] {
        let mut world = World::new(0);
        let id = world.shard.start(request(), world.now).unwrap();
        if !together {
            hand_over(&mut world);
        }
        // The start may still be refused, because its name is taken.
        world.shard.signal(&id, stop(), world.now).unwrap();
        hand_over(&mut world);
        assert_eq!(told(&mut world), [], "together: {together}");
        world.shard.committed(&[]);
        if !together {
            world.shard.committed(&[]);
        }
        let [asks, ended] = ["asks", "has ended"].map(|what| (Text::from(format!("{id} {what}")), false));
        assert_eq!(told(&mut world), [asks, ended], "together: {together}");
    }
}
