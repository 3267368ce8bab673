//! Rows in parts that are not too long for one statement.

/// Bytes of long texts that one statement writes.
const BYTES: usize = 8 << 20;

/// Rows in parts that are not too long for one statement.
pub(crate) fn by_bytes<R>(rows: &[R], bytes: impl Fn(&R) -> usize) -> Vec<&[R]> {
    let (mut parts, mut begin, mut long) = (Vec::new(), 0, 0);
    for (at, row) in rows.iter().enumerate() {
        long += bytes(row);
        if long > BYTES && at > begin {
            parts.push(rows.get(begin..at).unwrap_or_default());
            (begin, long) = (at, bytes(row));
        }
    }
    let rest = rows.get(begin..).unwrap_or_default();
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_bounded_in_bytes_and_leave_nothing_out() {
        let third = BYTES / 3;
        let parts =
            |rows: &[usize]| -> Vec<usize> { by_bytes(rows, |row| *row).iter().map(|part| part.len()).collect() };
        assert_eq!(parts(&[]), [0; 0]);
        assert_eq!(parts(&[third; 7]), [3, 3, 1]);
        assert_eq!(parts(&[BYTES * 2, 1, BYTES * 2]), [1, 1, 1]);
    }
}
