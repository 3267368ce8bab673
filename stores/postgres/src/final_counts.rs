//! The counts that a stay leaves behind, so that the next stay need not count again.
//!
//! They are in the store as long as no node has it. The next owner removes them, and believes them only if the stay
//! before its own wrote them: any later stay may have changed them.

use crate::fault::Failure;
use crate::session::Session;
use starbridge_ports::STATUS_CODES;

/// How many executions have each status, by its code.
pub(crate) type Counts = [i64; STATUS_CODES.len()];

const KIND: &str = "left";

/// Stores the counts, in the last statement of a stay that ends by itself.
pub(crate) async fn leave(
    session: &Session,
    (incarnation, process): (i64, &str),
    counts: &Counts,
) -> Result<(), Failure> {
    let leaves = "insert into shelf select $1, '', $2 from
            (select 1 from writers where incarnation = $3 and writer = 0 and not over for update) as mine
        on conflict (kind, name) do update set text = excluded.text";
    let text = text_of(&mark(incarnation, process), counts);
    session
        .execute(leaves, &[&KIND, &text.as_bytes(), &incarnation])
        .await?;
    Ok(())
}

/// Removes what the previous stay left behind, before the new stay changes anything.
pub(crate) async fn take(session: &Session) -> Result<Option<Counts>, Failure> {
    let takes = "delete from shelf where kind = $1 and name = '' returning convert_from(text, 'UTF8')";
    let Some(row) = session.first(takes, &[&KIND]).await? else {
        return Ok(None);
    };
    let text: &str = row.get(0);
    let latest = "select w.incarnation, n.process::text from writers w join nodes n on n.incarnation = w.incarnation
        order by w.incarnation desc limit 1";
    let Some(row) = session.first(latest, &[]).await? else {
        return Ok(None);
    };
    Ok(counts_in(text, &mark(row.get(0), row.get(1))))
}

/// Different for each stay, even in copies of a database.
fn mark(incarnation: i64, process: &str) -> String {
    format!("{incarnation} {process}")
}

fn text_of(mark: &str, counts: &Counts) -> String {
    let counts = counts.iter().map(|count| format!(" {count}"));
    format!("{mark}:{}", counts.collect::<String>())
}

/// The counts in a text, if it has this mark. Of statuses that its writer did not know there were none.
fn counts_in(text: &str, mark: &str) -> Option<Counts> {
    let kept = text.strip_prefix(mark)?.strip_prefix(':')?;
    let mut counts = Counts::default();
    let mut all = counts.iter_mut();
    for count in kept.split_whitespace() {
        *all.next()? = count.parse().ok().filter(|count| *count >= 0)?;
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_stay_before_or_none() {
        let mut counts = Counts::default();
        (counts[0], counts[4]) = (7, 1_000_000);
        let text = text_of(&mark(12, "uuid"), &counts);
        assert_eq!(counts_in(&text, &mark(12, "uuid")), Some(counts));
        for other in [mark(1, "uuid"), mark(13, "uuid"), mark(12, "other"), mark(12, "uui")] {
            assert_eq!(counts_in(&text, &other), None, "{other}");
        }
        // A later version may know more statuses; anything else was not written by a node, and is not believed.
        assert_eq!(counts_in("1 p: 3", "1 p").map(|counts| counts[0]), Some(3));
        assert_eq!(counts_in("1 p: 3 x", "1 p"), None);
        assert_eq!(counts_in("1 p: -3", "1 p"), None);
        assert_eq!(
            counts_in(&format!("1 p:{}", " 1".repeat(counts.len() + 1)), "1 p"),
            None
        );
    }
}
