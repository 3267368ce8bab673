//! Errors: their messages, and whether to repeat the request.

use starbridge_aws::{ServiceError, ServiceErrorKind};
use starbridge_ports::StoreError;

/// Codes of a service that is busy or in trouble. The same request may succeed later.
const PASSING: [&str; 9] = [
    "InternalServerError",
    "InternalFailure",
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "ReplicatedWriteConflictException",
    "ServiceUnavailable",
    "ServiceUnavailableException",
    "TransactionConflictException",
    "TransactionInProgressException",
];

/// Codes of reasons for cancelled transactions that may be gone the next time.
const PASSING_REASONS: [&str; 3] = [
    "TransactionConflict",
    "ThrottlingError",
    "ProvisionedThroughputExceeded",
];

/// Whether the same request may succeed later.
pub(crate) fn passes(fault: &ServiceError) -> bool {
    match &fault.kind {
        ServiceErrorKind::ConnectionFailed | ServiceErrorKind::Throttled => true,
        ServiceErrorKind::Other(code) => PASSING.contains(&code.as_str()) || code.starts_with('5'),
        _ => false,
    }
}

/// Whether a transaction that was cancelled for this reason may succeed later.
pub(crate) fn reason_passes(code: &str) -> bool {
    PASSING_REASONS.contains(&code)
}

/// The error of a request to this table.
pub(crate) fn unavailable(table: &str, fault: &ServiceError) -> StoreError {
    let cause = &fault.cause;
    StoreError::Unavailable(match &fault.kind {
        ServiceErrorKind::Other(code) if code == "ResourceNotFoundException" => format!(
            "there is no table `{table}` with the indexes of this version in this account and region: make it, or name another"
        ),
        ServiceErrorKind::AccessDenied => format!("no permission for the table `{table}`: {cause}"),
        ServiceErrorKind::Throttled => format!("the table `{table}` has too many requests: {cause}"),
        ServiceErrorKind::ConnectionFailed => format!("DynamoDB, for the table `{table}`: {cause}"),
        ServiceErrorKind::CredentialsMissing | ServiceErrorKind::RegionMissing => cause.clone(),
        ServiceErrorKind::Other(code) => format!("the table `{table}`: {code}: {cause}"),
    })
}
