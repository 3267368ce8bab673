//! Pages of rows that are numbered in the order in which they were written, the newest first.

use starbridge_flow::value::Text;
use starbridge_ports::StoreError;

/// The number of the last row that the page before showed. A cursor is that number.
pub(crate) fn place(cursor: Option<&str>) -> Result<Option<i64>, StoreError> {
    let number = |cursor: &str| {
        let number = cursor.parse::<u64>().ok().and_then(|number| i64::try_from(number).ok());
        number.ok_or(StoreError::BadCursor)
    };
    cursor.map(number).transpose()
}

/// Cuts rows to a page; one more than fits was read. Returns the cursor of the next page, if there is one.
pub(crate) fn cut<T, N: ToString>(rows: &mut Vec<T>, limit: usize, number: impl Fn(&T) -> N) -> Option<Text> {
    let more = rows.len() > limit;
    rows.truncate(limit);
    let last = rows.last().filter(|_| more)?;
    Some(number(last).to_string().into())
}
