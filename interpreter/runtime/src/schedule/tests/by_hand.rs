//! Random expressions against a cron that looks at its clock every minute, as crons do: a time that
//! it shows for the first time is due, a time that it shows again is not, and a repeating
//! expression is due each time.

use super::expression;
use jiff::civil::{Date, DateTime};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan};

/// Pseudorandom numbers that are the same in each run.
struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// The text of a field and the values it allows.
    fn field(&mut self, least: u64, most: u64) -> (String, Vec<u64>) {
        let all = most - least + 1;
        match self.below(6) {
            0 | 1 => ("*".to_owned(), (least..=most).collect()),
            2 => {
                let step = 1 + self.below(all / 2);
                (format!("*/{step}"), (least..=most).step_by(step as usize).collect())
            }
            3 => {
                let from = least + self.below(all);
                let to = from + self.below(most - from + 1);
                (format!("{from}-{to}"), (from..=to).collect())
            }
            _ => {
                let mut values: Vec<u64> = (0..1 + self.below(3)).map(|_| least + self.below(all)).collect();
                let words: Vec<String> = values.iter().map(u64::to_string).collect();
                values.sort_unstable();
                (words.join(","), values)
            }
        }
    }
}

struct Naive {
    /// The texts and values of minute, hour, day, month, weekday.
    fields: [(String, Vec<u64>); 5],
    zone: TimeZone,
}

impl Naive {
    fn means(&self, time: DateTime) -> bool {
        let [minute, hour, day, month, weekday] = &self.fields;
        let star = |field: &(String, Vec<u64>)| field.0.starts_with('*');
        let allows = |field: &(String, Vec<u64>), value: i8| field.1.contains(&(value as u64));
        let of_month = allows(day, time.day());
        let of_week = allows(weekday, time.weekday().to_sunday_zero_offset());
        let is_day = if star(day) || star(weekday) {
            of_month && of_week
        } else {
            of_month || of_week
        };
        is_day && allows(minute, time.minute()) && allows(hour, time.hour()) && allows(month, time.month())
    }

    /// The instants in a span, found minute by minute.
    fn instants(&self, from: Timestamp, to: Timestamp) -> Vec<i64> {
        let repeats = self.fields.iter().take(2).any(|field| field.0.starts_with('*'));
        let (mut now, mut shown) = (from, self.zone.to_datetime(from));
        let mut instants = Vec::new();
        while now < to {
            now = now.checked_add(1.minute()).unwrap();
            let clock = self.zone.to_datetime(now);
            let due = if repeats {
                self.means(clock)
            } else {
                let mut due = false;
                while shown < clock {
                    shown = shown.checked_add(1.minute()).unwrap();
                    due |= self.means(shown);
                }
                due
            };
            if due {
                instants.push(now.as_millisecond());
            }
        }
        instants
    }
}

#[test]
fn cron_agrees_with_one_that_looks_at_its_clock() {
    let zones = [
        ("Europe/Berlin", "2026-03-28", "2026-10-24"),
        ("America/New_York", "2026-03-07", "2026-10-31"),
        ("Australia/Lord_Howe", "2026-04-04", "2026-10-03"),
        ("America/Nuuk", "2026-03-27", "2026-10-23"),
        ("Asia/Shanghai", "2026-02-27", "2026-12-30"),
        ("Pacific/Apia", "2011-09-23", "2011-12-29"),
    ];
    let mut noise = Noise(11);
    let mut seen = 0;
    for round in 0..150 {
        let (zone, spring, autumn) = zones[round % zones.len()];
        let date: Date = if round % 2 == 0 { spring } else { autumn }.parse().unwrap();
        let naive = Naive {
            fields: [
                noise.field(0, 59),
                noise.field(0, 23),
                noise.field(1, 31),
                ("*".to_owned(), (1..=12).collect()),
                noise.field(0, 6),
            ],
            zone: TimeZoneDatabase::bundled().get(zone).unwrap(),
        };
        let from = naive.zone.to_zoned(date.at(0, 0, 0, 0)).unwrap().timestamp();
        let to = from.checked_add(72.hours()).unwrap();
        let fields: Vec<&str> = naive.fields.iter().map(|field| field.0.as_str()).collect();
        let text = format!("CRON_TZ={zone} {}", fields.join(" "));
        let expression = expression(&text);
        let mut found = Vec::new();
        let mut time = starbridge_flow::time::Timestamp(from.as_millisecond());
        while let Some(next) = expression.next_after(time).filter(|next| next.0 <= to.as_millisecond()) {
            found.push(next.0);
            time = next;
        }
        assert_eq!(found, naive.instants(from, to), "{text} from {from}");
        seen += found.len();
    }
    assert!(seen > 5_000, "only {seen} instants were compared");
}
