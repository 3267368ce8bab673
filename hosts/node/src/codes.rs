//! Codes of problems that are also needed outside of the API.

use axum::http::StatusCode;
use starbridge_machine::Rejection;

/// The status and the code for a rejected signal.
pub(crate) fn of_rejection(rejection: &Rejection) -> (StatusCode, &'static str) {
    match rejection {
        Rejection::NotStarted => (StatusCode::CONFLICT, "NotStarted"),
        Rejection::Finished => (StatusCode::CONFLICT, "AlreadyEnded"),
        Rejection::NotRedrivable => (StatusCode::CONFLICT, "NotRedrivable"),
        Rejection::WaitsToGoOn => (StatusCode::CONFLICT, "NotRunning"),
        Rejection::NothingToSkip => (StatusCode::CONFLICT, "NothingToSkip"),
        Rejection::NotManual => (StatusCode::CONFLICT, "NotManual"),
        Rejection::NotEnteredAgain { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "NotEnteredAgain"),
        Rejection::OutputTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "OutputTooLarge"),
        Rejection::InvalidInput(_) => (StatusCode::UNPROCESSABLE_ENTITY, "InvalidInput"),
        Rejection::InputTooDeep { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "InputTooDeep"),
        Rejection::InputTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "InputTooLarge"),
        Rejection::Broken { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "Corrupt"),
        _ => (StatusCode::CONFLICT, "Rejected"),
    }
}
