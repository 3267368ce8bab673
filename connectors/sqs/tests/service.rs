//! Queues of two stand-ins for SQS. Each test has a copy of its own.

#[path = "service/stand.rs"]
mod stand;

#[path = "service/failures.rs"]
mod failures;
#[path = "service/order.rs"]
mod order;
#[path = "service/replies.rs"]
mod replies;
#[path = "service/sending.rs"]
mod sending;

/// Runs tests on both stand-ins.
macro_rules! on_both {
    ($($test:ident),* $(,)?) => {
        mod ministack {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::stand::Stand::start(starbridge_services::Kind::Ministack)).await;
            })*
        }
        mod moto {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::stand::Stand::start(starbridge_services::Kind::Moto)).await;
            })*
        }
    };
}
pub(crate) use on_both;
