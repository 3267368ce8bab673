//! One field of a cron expression: a list of values, ranges and steps, as a set of bits.

/// What a field counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Month,
    Weekday,
}

/// The values that a field allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Bit n is set for the value n.
    pub(super) values: u64,
    /// Whether the field begins with `*`: every value, or every n-th.
    pub(super) star: bool,
}

/// What is wrong with a field: the part of the text, what is wrong with it, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldError {
    pub(super) start: usize,
    pub(super) len: usize,
    pub(super) message: String,
    pub(super) help: &'static str,
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Unit {
    /// The units of an expression with seconds, in their order.
    pub(super) const ALL: [Self; 6] = [
        Self::Second,
        Self::Minute,
        Self::Hour,
        Self::Day,
        Self::Month,
        Self::Weekday,
    ];

    /// The name of the unit in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day of month",
            Self::Month => "month",
            Self::Weekday => "day of week",
        }
    }

    /// The least and the greatest value. Sunday is both 0 and 7.
    fn bounds(self) -> (u32, u32) {
        match self {
            Self::Second | Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::Day => (1, 31),
            Self::Month => (1, 12),
            Self::Weekday => (0, 7),
        }
    }

    /// The value that a word like `MON` stands for.
    fn named(self, name: &str) -> Option<u32> {
        let (names, first): (&[&str], u32) = match self {
            Self::Month => (&MONTHS, 1),
            Self::Weekday => (&WEEKDAYS, 0),
            _ => return None,
        };
        (first..)
            .zip(names)
            .find(|(_, known)| known.eq_ignore_ascii_case(name))
            .map(|(value, _)| value)
    }
}

/// Reads the text of one field.
pub(super) fn parse(unit: Unit, text: &str) -> Result<Field, FieldError> {
    let mut field = Field {
        values: 0,
        star: text.starts_with(['*', '?']),
    };
    let mut start = 0;
    for item in text.split(',') {
        field.values |= item_values(unit, item, start)?;
        start += item.len() + 1;
    }
    // Sunday under its other number.
    if unit == Unit::Weekday && field.values & 1 << 7 != 0 {
        field.values = field.values & !(1 << 7) | 1;
    }
    Ok(field)
}

/// The values of one item of a field's list: `5`, `1-5`, `*/10`, `10-40/5`, `5/15`. `start` is its position in the
/// field.
fn item_values(unit: Unit, item: &str, start: usize) -> Result<u64, FieldError> {
    let (span, step) = match item.split_once('/') {
        Some((span, step)) => (span, Some(step)),
        None => (item, None),
    };
    let (least, most) = unit.bounds();
    let (low, high) = match span.split_once('-') {
        _ if span == "*" => (least, most),
        _ if span == "?" && matches!(unit, Unit::Day | Unit::Weekday) => (least, most),
        Some((low, high)) => range(unit, low, high, start)?,
        None => {
            let value = value(unit, span, start)?;
            (value, if step.is_some() { most } else { value })
        }
    };
    let step = step.map_or(Ok(1), |step| step_of(step, start + span.len() + 1))?;
    // Sunday counts once.
    let high = if unit == Unit::Weekday && low == 0 {
        high.min(6)
    } else {
        high
    };
    Ok((low..=high).step_by(step).fold(0, |values, value| values | 1 << value))
}

fn range(unit: Unit, low: &str, high: &str, start: usize) -> Result<(u32, u32), FieldError> {
    let from = value(unit, low, start)?;
    let mut to = value(unit, high, start + low.len() + 1)?;
    if unit == Unit::Weekday && to == 0 && from > 0 {
        to = 7;
    }
    if from > to {
        return Err(FieldError {
            start,
            len: low.len() + 1 + high.len(),
            message: format!("the range `{low}-{high}` ends before it begins"),
            help: "write two ranges with a comma between them",
        });
    }
    Ok((from, to))
}

fn value(unit: Unit, text: &str, start: usize) -> Result<u32, FieldError> {
    let wrong = |message: String, help: &'static str| FieldError {
        start,
        len: text.len(),
        message,
        help,
    };
    let (least, most) = unit.bounds();
    if let Some(value) = unit.named(text) {
        return Ok(value);
    }
    if text.is_empty() {
        return Err(wrong("a value is missing".to_owned(), "write `*` for every one"));
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let help = match unit {
            _ if text.contains(['L', 'W', '#']) => "`L`, `W` and `#` are not supported",
            Unit::Month => "months are 1-12 or JAN-DEC",
            Unit::Weekday => "days of the week are 0-7 or SUN-SAT",
            _ => "write numbers, ranges `a-b`, steps `*/n`, and `,` between them",
        };
        return Err(wrong(format!("`{text}` is no {}", unit.name()), help));
    }
    match text.parse() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(wrong(format!("`{text}` is not between {least} and {most}"), "")),
    }
}

fn step_of(text: &str, start: usize) -> Result<usize, FieldError> {
    match text.parse::<u16>() {
        Ok(step) if step > 0 && text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(usize::from(step)),
        _ => Err(FieldError {
            start,
            len: text.len(),
            message: format!("`{text}` is no step"),
            help: "a step is a whole number from 1",
        }),
    }
}
