//! Who sends a request.

use starbridge_flow::value::Text;

/// The name of the token a request came with; none where nobody needs one.
#[derive(Clone, Debug, Default)]
pub struct Caller(pub Option<Text>);
