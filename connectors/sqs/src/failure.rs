//! Names of faults of queues.

use starbridge_aws::{ServiceError, ServiceErrorKind};

/// The name of the fault that a queue does not exist.
pub(crate) const NO_QUEUE: &str = "QueueDoesNotExist";

/// This fault under the name that flows know. The service's older names become its current ones.
pub(crate) fn in_words_of_queues(mut fault: ServiceError) -> ServiceError {
    let ServiceErrorKind::Other(code) = &fault.kind else {
        return fault;
    };
    let too_long = code == "InvalidParameterValue" && fault.cause.contains("must be shorter than");
    let name = match code.as_str() {
        "NonExistentQueue" | NO_QUEUE => {
            fault.cause = "there is no such queue, or none these credentials may know of".to_owned();
            NO_QUEUE
        }
        "BatchRequestTooLong" => "MessageTooLarge",
        _ if too_long => "MessageTooLarge",
        _ => return fault,
    };
    fault.kind = ServiceErrorKind::Other(name.to_owned());
    fault
}

/// Whether a fault says that the queue does not exist.
pub(crate) fn is_no_queue(fault: &ServiceError) -> bool {
    matches!(&fault.kind, ServiceErrorKind::Other(code) if code == NO_QUEUE || code == "NonExistentQueue")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_names_lead_to_present_ones() {
        for (code, message, name) in [
            ("AWS.SimpleQueueService.NonExistentQueue", "x", "QueueDoesNotExist"),
            ("QueueDoesNotExist", "x", "QueueDoesNotExist"),
            ("AWS.SimpleQueueService.BatchRequestTooLong", "x", "MessageTooLarge"),
            (
                "InvalidParameterValue",
                "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes.",
                "MessageTooLarge",
            ),
            ("InvalidParameterValue", "x", "InvalidParameterValue"),
            (
                "AWS.SimpleQueueService.UnsupportedOperation",
                "x",
                "UnsupportedOperation",
            ),
            ("AccessDenied", "x", "AccessDenied"),
        ] {
            let fault = in_words_of_queues(ServiceError::of_code(code, message));
            assert_eq!(fault.kind.name(), name, "{code}");
        }
    }
}
