//! Puts long lists into columns, to be read like those of a newspaper.

use std::ops::Range;

/// A list that is not higher than this stays in one column: about forty steps.
const MAX_HEIGHT_PX: i32 = 2600;
/// The largest number of columns.
const MAX_COLUMNS: usize = 64;
/// The screen on which a picture should be readable.
const SCREEN: (f64, f64) = (1600.0, 1000.0);
/// The width of a column beyond its widest step.
const COLUMN_GAP_PX: i32 = 70;

/// Divides items into columns. `sizes` has the width of each, and its height with the gap after it.
#[expect(clippy::single_range_in_vec_init, reason = "one column is a list of one range")]
pub(super) fn divide(sizes: &[(i32, i32)]) -> Vec<Range<usize>> {
    let total: i64 = sizes.iter().map(|(_, h)| i64::from(*h)).sum();
    if total <= i64::from(MAX_HEIGHT_PX) {
        return vec![0..sizes.len()];
    }
    let mut best = (0.0, vec![0..sizes.len()]);
    for count in 2..=MAX_COLUMNS.min(sizes.len()) {
        let columns = cut(sizes, total, count);
        let scale = scale(sizes, &columns);
        if scale > best.0 {
            best = (scale, columns);
        }
    }
    best.1
}

/// How much a picture of these columns must shrink to be seen as a whole.
fn scale(sizes: &[(i32, i32)], columns: &[Range<usize>]) -> f64 {
    let (mut width, mut height) = (0.0, 1.0_f64);
    for column in columns {
        let items = &sizes[column.clone()];
        width += f64::from(items.iter().map(|(w, _)| *w).max().unwrap_or(0) + COLUMN_GAP_PX);
        height = height.max(items.iter().map(|(_, h)| f64::from(*h)).sum());
    }
    (SCREEN.0 / f64::max(width, 1.0)).min(SCREEN.1 / height)
}

/// Divides into at most `count` columns of about the same height.
fn cut(sizes: &[(i32, i32)], total: i64, count: usize) -> Vec<Range<usize>> {
    let mut columns = Vec::with_capacity(count);
    let (mut start, mut above) = (0, 0_i64);
    for (index, (_, h)) in sizes.iter().enumerate() {
        let middle = above + i64::from(*h) / 2;
        let due = total * (columns.len() as i64 + 1) / count as i64;
        if middle > due && index > start {
            columns.push(start..index);
            start = index;
        }
        above += i64::from(*h);
    }
    columns.push(start..sizes.len());
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forty_steps_are_one_column_and_more_are_several() {
        assert_eq!(divide(&[(200, 64); 40]), vec![0..40]);
        for steps in [60, 300, 10_000] {
            let columns = divide(&vec![(200, 64); steps]);
            assert!(columns.len() > 1, "{steps}");
            assert_eq!(columns.iter().map(Range::len).sum::<usize>(), steps);
            assert!(columns.windows(2).all(|pair| pair[0].end == pair[1].start));
            let longest = columns.iter().map(Range::len).max();
            let shortest = columns.iter().map(Range::len).min();
            assert!(longest.unwrap() - shortest.unwrap() <= 2);
        }
        assert_eq!(divide(&[]), vec![0..0]);
    }

    #[test]
    fn a_huge_step_is_a_column_of_its_own() {
        let columns = divide(&[(200, 60), (900, 5000), (200, 60), (200, 60)]);
        assert!(columns.iter().all(|column| !column.is_empty()));
    }
}
