//! The sender of a request.

use axum::http::{HeaderMap, HeaderName};
use starbridge_flow::value::Text;
use starbridge_node::node::Operator;
use starbridge_ports::LOCAL_OPERATOR;

/// The name of the request's token; `None` if no token is needed.
#[derive(Clone, Debug, Default)]
pub struct Caller(pub Option<Text>);

/// Whether the sender may do everything, where that was found out before: a page has no token in its headers.
#[derive(Clone, Copy, Debug)]
pub struct MayAll(pub bool);

/// The header with the id that a sender gives its request.
static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// How many bytes of it are kept.
const REQUEST_ID_BYTES: usize = 128;

impl Caller {
    /// The operator that the audit list names for the request.
    pub fn operator(&self, headers: &HeaderMap) -> Operator {
        let request = headers.get(&REQUEST_ID).and_then(|id| id.to_str().ok());
        let request = request.filter(|id| !id.is_empty() && id.len() <= REQUEST_ID_BYTES);
        Operator {
            by: self.0.clone().unwrap_or_else(|| LOCAL_OPERATOR.into()),
            request: request.map(Text::from),
        }
    }
}
