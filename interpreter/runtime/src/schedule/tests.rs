//! Schedules: tables of their triggers, of errors in wrong expressions, and of triggers that start
//! an execution.

mod by_hand;
mod firing;
mod times;

use super::Expression;
use starbridge_flow::time::Timestamp;

fn expression(text: &str) -> Expression {
    Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap_or_else(|| panic!("{text} is no time"))
}

/// Wrong expressions: the part an error points at, and words of its message or help.
const WRONG: &[(&str, &str, &str)] = &[
    ("61 * * * *", "61", "minute: `61` is not between 0 and 59"),
    ("0 24 * * *", "24", "hour: `24` is not between 0 and 23"),
    ("0 0 0 * *", "0", "day of month: `0` is not between 1 and 31"),
    ("0 0 1,32 * *", "32", "day of month: `32` is not between 1 and 31"),
    ("0 0 * 13 *", "13", "month: `13` is not between 1 and 12"),
    ("0 0 * * 8", "8", "day of week: `8` is not between 0 and 7"),
    ("60 0 0 * * *", "60", "second: `60` is not between 0 and 59"),
    ("0 0 * foo *", "foo", "months are 1-12 or JAN-DEC"),
    ("0 0 * * mo", "mo", "days of the week are 0-7 or SUN-SAT"),
    ("0 jan * * *", "jan", "hour: `jan` is no hour"),
    ("0 0 L * *", "L", "`L`, `W` and `#` are not supported"),
    ("0 0 * * 5#2", "5#2", "`L`, `W` and `#` are not supported"),
    ("? * * * *", "?", "minute: `?` is no minute"),
    (
        "30-10 * * * *",
        "30-10",
        "minute: the range `30-10` ends before it begins",
    ),
    ("0 0 * * sat-mon", "sat-mon", "ends before it begins"),
    ("*/0 * * * *", "0", "minute: `0` is no step"),
    ("*/x * * * *", "x", "minute: `x` is no step"),
    ("1,,2 * * * *", "", "minute: a value is missing"),
    ("-5 * * * *", "", "minute: a value is missing"),
    ("+5 * * * *", "+5", "minute: `+5` is no minute"),
    ("0 0 30 2 *", "30", "day of month: no month it is for has such a day"),
    ("0 0 31 4,6,9,11 */2", "31", "no month it is for has such a day"),
    (
        "CRON_TZ=UTC 0  0 0 30  feb ?",
        "30",
        "no month it is for has such a day",
    ),
    ("* * * *", "* * * *", "five fields or six, not 4"),
    ("0 0 0 1 1 * 2026", "0 0 0 1 1 * 2026", "five fields or six, not 7"),
    ("", "", "five fields or six, not 0"),
    ("CRON_TZ=Europe/Berlin", "", "five fields or six, not 0"),
    (
        "CRON_TZ=Mars/Olympus 0 0 * * *",
        "Mars/Olympus",
        "no time zone is called `Mars/Olympus`",
    ),
    ("CRON_TZ= 0 0 * * *", "", "a time zone is missing"),
    ("TZ=Europe/Berlin 0 0 * * *", "TZ=Europe/Berlin", "write `CRON_TZ=`"),
    (
        "CRON_TZ=Europe/Berlin 0 99 * * *",
        "99",
        "hour: `99` is not between 0 and 23",
    ),
    ("@every", "", "a duration is missing"),
    ("@every 0s", "0s", "is not between a second and 365 days"),
    ("@every 8761h", "8761h", "is not between a second and 365 days"),
    ("@every 5", "5", "`5` is no duration"),
    ("@every 1m1h", "1m1h", "`1m1h` is no duration"),
    ("@every 500ms", "500ms", "`500ms` is no duration"),
    (
        "@every 99999999999999999999h",
        "99999999999999999999h",
        "is no duration",
    ),
    ("@every1m", "@every1m", "`@every1m` is not known"),
    ("@reboot", "@reboot", "`@reboot` is not known"),
    ("0 0 ä * *", "ä", "day of month: `ä` is no day of month"),
];

#[test]
fn cron_errors_point_at_the_field() {
    for &(text, place, said) in WRONG {
        let error = Expression::parse(text).unwrap_err();
        assert_eq!(text.get(error.place.clone()), Some(place), "{text}: {error}");
        assert!(error.to_string().contains(said), "{text}: {error}");
    }
    let long = format!("{} * * * *", vec!["1"; 300].join(","));
    assert!(
        Expression::parse(&long)
            .unwrap_err()
            .message
            .contains("more than the 512 allowed")
    );
}

#[test]
fn schedule_expressions_keep_their_text() {
    let text = "CRON_TZ=Asia/Shanghai 0 0 20 * * MON-FRI";
    assert_eq!(expression(&format!("  {text} ")).as_str(), text);
    assert_eq!(expression(text).to_string(), text);
}
