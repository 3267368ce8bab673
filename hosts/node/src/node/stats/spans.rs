//! Spans of time, counted by their length.

use starbridge_flow::time::Millis;

/// Spans of time, counted by their length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spans(Vec<u64>);

impl Spans {
    /// The place of a length: four for each power of two.
    pub(super) fn place(span: Millis) -> usize {
        match span.0 {
            0..4 => usize::try_from(span.0).unwrap_or_default(),
            long => {
                let power = long.ilog2();
                let quarter = (long >> (power - 2)) & 3;
                usize::try_from(u64::from(power - 1) * 4 + quarter).unwrap_or_default()
            }
        }
    }

    /// The longest span that has this place.
    pub(super) fn longest(place: usize) -> Millis {
        let place = place as u64;
        match place {
            0..4 => Millis(place),
            _ => {
                let power = (place / 4 + 1).min(62);
                Millis((((place % 4) + 5) << (power - 2)).saturating_sub(1))
            }
        }
    }

    pub(super) fn see(&mut self, span: Millis) {
        let place = Self::place(span);
        if self.0.len() <= place {
            self.0.resize(place + 1, 0);
        }
        if let Some(count) = self.0.get_mut(place) {
            *count += 1;
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (sum, count) in self.0.iter_mut().zip(&other.0) {
            *sum += count;
        }
    }

    pub(super) fn within(&self, share: f64) -> Option<Millis> {
        let all: u64 = self.0.iter().sum();
        let wanted = (all as f64 * share).ceil() as u64;
        let mut seen = 0;
        let place = self.0.iter().position(|count| {
            seen += count;
            *count > 0 && seen >= wanted
        });
        place.map(Self::longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_at_most_a_quarter_too_long() {
        for length in (0..5_000).chain([86_400_000, 31_536_000_000]) {
            let longest = Spans::longest(Spans::place(Millis(length))).0;
            assert!(
                length <= longest && longest <= length + length / 4,
                "{length}: {longest}"
            );
        }
        let mut spans = Spans::default();
        assert_eq!(spans.within(0.5), None);
        for length in 1..=100 {
            spans.see(Millis(length));
        }
        assert_eq!(spans.within(0.5), Some(Millis(55)));
        assert_eq!(spans.within(1.0), Some(Millis(111)));
    }
}
