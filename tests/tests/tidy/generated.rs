//! Generated files are what would be generated.

use super::nothing_wrong;
use starbridge_tests::{data, generated};

#[test]
fn generated_files_are_fresh() {
    let mut wrong = Vec::new();
    for (path, text) in generated::files() {
        let place = data::root().join(&path);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&place, &text).unwrap();
        }
        if std::fs::read_to_string(&place).unwrap_or_default() != text {
            wrong.push(format!("{path}: run `cargo xtask generate`"));
        }
    }
    nothing_wrong(&wrong);
}
