//! Dead letters: messages that can't be handled, sent to a queue that people watch.

use crate::clients::Clients;
use crate::failure;
use crate::lane;
use crate::message::{Attribute, MESSAGE_BYTES, id, legal};
use crate::queue::Queue;
use starbridge_aws::{ServiceError, ServiceErrorKind};

/// How many characters a reason has at most.
const REASON_CHARS: usize = 1024;

/// A message that can't be handled.
pub(crate) struct DeadLetter<'a> {
    /// The queue through which it came.
    pub source: &'a str,
    /// The body of the message.
    pub body: &'a str,
    /// Why it can't be handled.
    pub reason: &'a str,
}

/// Sends a letter to a queue.
pub(crate) async fn dead_letter(
    clients: &Clients,
    queue: &Queue,
    url: &str,
    letter: DeadLetter<'_>,
) -> Result<(), ServiceError> {
    let client = clients.of_region(queue.region.as_deref()).await?;
    let mut request = client.send_message().queue_url(url).message_body(letter.body);
    let reason: String = legal(letter.reason).chars().take(REASON_CHARS).collect();
    // A message of the maximum size has no room for a reason, which may have four bytes a character.
    if !reason.is_empty() && letter.body.len() + 5 * REASON_CHARS < MESSAGE_BYTES {
        let reason = Attribute::text("reason", "String", reason);
        request = request.message_attributes("reason", lane::value(reason)?);
    }
    if queue.is_fifo() {
        // Sending the same message again gives the same letter.
        let group = id(letter.source);
        let same = id(&format!("{} {}", letter.source, letter.body));
        request = request.message_group_id(group).message_deduplication_id(same);
    }
    let sent = request.send().await;
    sent.map(drop)
        .map_err(|error| dead_letter_fault(queue, ServiceError::of(&error)))
}

/// A fault about the dead-letter queue, with words that distinguish it from the reply queue.
pub(crate) fn dead_letter_fault(queue: &Queue, fault: ServiceError) -> ServiceError {
    let fault = failure::in_words_of_queues(fault);
    let cause = format!("its dead-letter {}: {}", queue.shown(), fault.cause);
    ServiceError::new(ServiceErrorKind::Other("DeadLetters".to_owned()), cause)
}
