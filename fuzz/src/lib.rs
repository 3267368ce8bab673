//! The fuzz targets' bodies. They stand in the tests, which replay the corpora with them.

#[path = "../../tests/src/damage.rs"]
pub mod damage;
#[path = "../../tests/src/fuzzing.rs"]
pub mod fuzzing;
#[path = "../../tests/src/outstanding.rs"]
pub mod outstanding;
