//! Errors: their messages, and whether to repeat the request.

use starbridge_aws::{Fault, FaultKind};
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
pub(crate) fn passes(fault: &Fault) -> bool {
    match &fault.kind {
        FaultKind::ConnectionFailed | FaultKind::Throttled => true,
        FaultKind::Other(code) => PASSING.contains(&code.as_str()) || code.starts_with('5'),
        _ => false,
    }
}

/// Whether a transaction that was cancelled for this reason may succeed later.
pub(crate) fn reason_passes(code: &str) -> bool {
    PASSING_REASONS.contains(&code)
}

/// The error of a request to this table.
pub(crate) fn unavailable(table: &str, fault: &Fault) -> StoreError {
    let cause = &fault.cause;
    StoreError::Unavailable(match &fault.kind {
        FaultKind::Other(code) if code == "ResourceNotFoundException" => format!(
            "there is no table `{table}` with the indexes of this version in this account and region: make it, or name another"
        ),
        FaultKind::AccessDenied => format!("no permission for the table `{table}`: {cause}"),
        FaultKind::Throttled => format!("the table `{table}` has too many requests: {cause}"),
        FaultKind::ConnectionFailed => format!("DynamoDB, for the table `{table}`: {cause}"),
        FaultKind::CredentialsMissing | FaultKind::RegionMissing => cause.clone(),
        FaultKind::Other(code) => format!("the table `{table}`: {code}: {cause}"),
    })
}
