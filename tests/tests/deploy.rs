//! The deployment files for Lambda define the table that the store needs.

use starbridge_dynamodb::table::{TABLE, TTL};
use starbridge_tests::data;

fn read(file: &str) -> String {
    std::fs::read_to_string(data::root().join("deploy").join(file)).unwrap()
}

#[test]
fn the_template_and_the_steps_make_the_stores_table() {
    let (template, steps) = (read("template.yaml"), read("README.md"));
    for (index, hash, range, more) in TABLE {
        for key in [hash, range] {
            let attribute = format!("{{AttributeName: {key}, AttributeType: S}}");
            assert!(template.contains(&attribute), "the template lacks `{attribute}`");
            let attribute = format!("AttributeName={key},AttributeType=S");
            assert!(steps.contains(&attribute), "the steps lack `{attribute}`");
        }
        let template_keys = format!("- {{AttributeName: {hash}, KeyType: HASH}}");
        assert!(
            template.contains(&template_keys),
            "the template lacks `{template_keys}`"
        );
        if index.is_empty() {
            continue;
        }
        let line = format!("NonKeyAttributes: [{}]", more.join(", "));
        assert!(template.contains(&line), "the template lacks `{line}` for `{index}`");
        let words = format!(
            "IndexName={index},KeySchema=[{{AttributeName={hash},KeyType=HASH}},{{AttributeName={range},KeyType=RANGE}}],\
             Projection={{ProjectionType=INCLUDE,NonKeyAttributes=[{}]}}",
            more.join(",")
        );
        assert!(steps.contains(&words), "the steps lack `{words}`");
    }
    assert!(template.contains(&format!("AttributeName: {TTL}")));
    assert!(steps.contains(&format!("Enabled=true,AttributeName={TTL}")));
}
