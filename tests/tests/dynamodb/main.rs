//! The store in DynamoDB, as two stand-ins for it have it: the suite of all stores, random runs with faults, and what only it does.

mod counts;
mod faults;
mod large;
mod leases;
mod retention;
mod stand;
mod suite;

/// Runs tests on both stand-ins.
macro_rules! on_both {
    ($($test:ident),* $(,)?) => {
        mod ministack {
            $(#[test]
            fn $test() {
                super::$test(&crate::stand::Stand::start(starbridge_services::Kind::Ministack));
            })*
        }
        mod moto {
            $(#[test]
            fn $test() {
                super::$test(&crate::stand::Stand::start(starbridge_services::Kind::Moto));
            })*
        }
    };
}
pub(crate) use on_both;
