//! The paths of a condition that find nothing, to explain why it does not hold.

use super::Condition;
use super::parser::Expression;
use crate::graph::Root;
use crate::value::Text;

impl Condition {
    /// The paths beside its comparisons that find nothing in this data, as written, each once. A
    /// path on its own is left out, because it asks whether there is a value.
    pub fn unfound(&self, data: Root<'_>) -> Vec<Text> {
        let mut unfound: Vec<Text> = Vec::new();
        let mut open = vec![&self.expression];
        while let Some(expression) = open.pop() {
            match expression {
                Expression::Constant(_) | Expression::Path(_) => {}
                Expression::Not(inside) => open.push(inside),
                Expression::All(parts) | Expression::Any(parts) => open.extend(parts.iter().rev()),
                Expression::Compare(left, _, right) => {
                    for side in [left, right] {
                        match &**side {
                            Expression::Path(path) if path.is_whole() || path.find_below(data).is_some() => {}
                            Expression::Path(path) if unfound.contains(path.text()) => {}
                            Expression::Path(path) => unfound.push(path.text().clone()),
                            other => open.push(other),
                        }
                    }
                }
            }
        }
        unfound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Object;

    #[test]
    fn paths_beside_comparisons_that_find_nothing_are_named() {
        let data: Object = serde_json::from_str(r#"{"total": 3, "flag": true}"#).unwrap();
        for (condition, expected) in [
            ("$.total > 10", &[][..]),
            ("$.toal > 10", &["$.toal"]),
            ("$.flg", &[]),
            ("!($.a == 1 && $.total < $.b) || $.a == 2", &["$.a", "$.b"]),
            ("$ == 1", &[]),
        ] {
            let mut unfound = Condition::parse(condition).unwrap().unfound(Root::Object(&data));
            unfound.sort();
            assert_eq!(unfound, expected, "{condition}");
        }
    }
}
