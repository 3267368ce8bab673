//! The fuzz targets' bodies. They stand in the tests, which replay the corpora with them.

#[path = "../../tests/src/fuzzing.rs"]
pub mod fuzzing;
#[path = "../../tests/src/outstanding.rs"]
pub mod outstanding;
