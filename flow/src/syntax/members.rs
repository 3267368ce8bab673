//! Duplicate keys in an object.

use super::Member;

/// Objects up to this size are searched linearly, larger ones are sorted.
const LINEAR_SEARCH_MEMBERS: usize = 12;

/// Removes members with a repeated key, and passes each to `report` together with the one that
/// stays. Keeps the order.
pub(super) fn without_duplicates(members: &mut Vec<Member>, mut report: impl FnMut(&Member, &Member)) {
    let mut again = if members.len() <= LINEAR_SEARCH_MEMBERS {
        searched(members)
    } else {
        sorted(members)
    };
    if again.is_empty() {
        return;
    }
    again.sort_unstable_by_key(|&(second, _)| second);
    for &(second, first) in &again {
        if let (Some(first), Some(second)) = (members.get(first), members.get(second)) {
            report(first, second);
        }
    }
    let mut again = again.into_iter().map(|(second, _)| second).peekable();
    let mut index = 0;
    members.retain(|_| {
        let stays = again.next_if_eq(&index).is_none();
        index += 1;
        stays
    });
}

/// Pairs of (index of a repetition, index of the first member with that key).
fn searched(members: &[Member]) -> Vec<(usize, usize)> {
    let first = |index: usize, member: &Member| members.iter().take(index).position(|before| before.key == member.key);
    members
        .iter()
        .enumerate()
        .filter_map(|(index, member)| Some((index, first(index, member)?)))
        .collect()
}

/// The pairs of [`searched`], found by sorting. Unlike hashing, sorting can't be made slow by chosen keys.
fn sorted(members: &[Member]) -> Vec<(usize, usize)> {
    let mut order: Vec<(&str, usize)> = members
        .iter()
        .enumerate()
        .map(|(index, member)| (member.key.as_str(), index))
        .collect();
    order.sort_unstable();
    order
        .chunk_by(|(a, _), (b, _)| a == b)
        .filter_map(|same| same.split_first())
        .flat_map(|(&(_, first), rest)| rest.iter().map(move |&(_, second)| (second, first)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::{Node, NodeKind, Span};
    use crate::value::Text;

    fn member(key: &str, at: usize) -> Member {
        let span = Span { start: at, end: at };
        Member {
            key: Text::from(key),
            key_span: span,
            value: Node {
                span,
                kind: NodeKind::Null,
            },
        }
    }

    #[test]
    fn the_first_of_each_key_stays_in_its_place() {
        for filler in [0, 40] {
            let keys: Vec<String> = (0..filler).map(|index| format!("key {index}")).collect();
            let mut members: Vec<Member> = ["b", "a", "b", "c", "a", "b"]
                .into_iter()
                .chain(keys.iter().map(String::as_str))
                .enumerate()
                .map(|(at, key)| member(key, at))
                .collect();
            let mut pairs = Vec::new();
            without_duplicates(&mut members, |first, second| {
                pairs.push((first.key_span.start, second.key_span.start))
            });
            assert_eq!(pairs, [(0, 2), (1, 4), (0, 5)]);
            let left: Vec<usize> = members.iter().map(|member| member.key_span.start).take(3).collect();
            assert_eq!(left, [0, 1, 3]);
            assert_eq!(members.len(), 3 + filler);
        }
    }
}
