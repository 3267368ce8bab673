//! An operator's settings of a queue.

use starbridge_flow::value::{Object, Value};

/// How many retries follow the end of a lease if neither the step nor the queue sets them.
const DEFAULT_REDELIVER: u32 = 3;
/// The largest number of retries that can be set.
const MAX_REDELIVER: u64 = 1_000;

/// An operator's settings of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueSettings {
    /// How many tasks workers may hold at a time; `None`: no limit.
    pub max_concurrent: Option<u64>,
    /// How many tasks may be taken in a second, on average; `None`: no limit.
    pub rate_per_second: Option<f64>,
    /// Whether no tasks are given out.
    pub paused: bool,
    /// How many retries follow the end of a lease if no policy of the step names the error.
    pub redeliver: u32,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            max_concurrent: None,
            rate_per_second: None,
            paused: false,
            redeliver: DEFAULT_REDELIVER,
        }
    }
}

/// Why settings are refused, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettingsError(pub String);

impl std::fmt::Display for QueueSettingsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for QueueSettingsError {}

impl QueueSettings {
    /// The names of the settings as JSON members.
    pub const MEMBERS: [&'static str; 4] = ["maxConcurrent", "ratePerSecond", "paused", "redeliver"];

    /// Reads an object of [`Self::MEMBERS`]. A member that is missing or null has its default.
    ///
    /// # Errors
    ///
    /// [`QueueSettingsError`] if a member is unknown or its value is out of range.
    pub fn read(object: &Object) -> Result<Self, QueueSettingsError> {
        let mut settings = Self::default();
        for (name, value) in object.iter().filter(|(_, value)| **value != Value::Null) {
            let wrong = |what: &str| QueueSettingsError(format!("`{name}` is not {what}"));
            let whole = |least: u64, most: u64, what: &str| {
                let number = value.as_number().and_then(|number| number.as_u64());
                let number = number.filter(|number| (least..=most).contains(number));
                number.ok_or_else(|| wrong(what))
            };
            match name.as_str() {
                "maxConcurrent" => settings.max_concurrent = Some(whole(1, u64::MAX, "a whole number from 1")?),
                "ratePerSecond" => {
                    let rate = value.as_number().and_then(|number| number.as_f64());
                    let rate = rate.filter(|rate| (0.001..=1e6).contains(rate));
                    settings.rate_per_second = Some(rate.ok_or_else(|| wrong("a number from 0.001 to 1000000"))?);
                }
                "paused" => match value {
                    Value::Bool(paused) => settings.paused = *paused,
                    _ => return Err(wrong("true or false")),
                },
                "redeliver" => {
                    let redeliver = whole(0, MAX_REDELIVER, "a whole number from 0 to 1000")?;
                    settings.redeliver = u32::try_from(redeliver).unwrap_or(DEFAULT_REDELIVER);
                }
                _ => {
                    let known = Self::MEMBERS.join(", ");
                    return Err(QueueSettingsError(format!(
                        "there is no setting `{name}`: there are {known}"
                    )));
                }
            }
        }
        Ok(settings)
    }

    /// Writes the settings as an object, the way [`Self::read`] reads them.
    pub fn write(&self) -> Object {
        let mut object = Object::new();
        object.insert(
            "maxConcurrent".into(),
            self.max_concurrent.map_or(Value::Null, Value::from),
        );
        object.insert(
            "ratePerSecond".into(),
            self.rate_per_second.map_or(Value::Null, Value::from),
        );
        object.insert("paused".into(), self.paused.into());
        object.insert("redeliver".into(), self.redeliver.into());
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<QueueSettings, QueueSettingsError> {
        QueueSettings::read(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn queue_settings_written_are_read() {
        for text in [
            "{}",
            r#"{"maxConcurrent": 3, "ratePerSecond": 0.5, "paused": true, "redeliver": 0}"#,
        ] {
            let settings = read(text).unwrap();
            let written = settings.write();
            let names: Vec<&str> = written.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, QueueSettings::MEMBERS);
            assert_eq!(QueueSettings::read(&written), Ok(settings));
        }
    }

    #[test]
    fn queue_settings_mistakes_are_named() {
        for (text, word) in [
            (r#"{"maxConcurrent": 0}"#, "from 1"),
            (r#"{"ratePerSecond": "fast"}"#, "a number"),
            (r#"{"paused": 1}"#, "true or false"),
            (r#"{"redeliver": -1}"#, "0 to 1000"),
            (r#"{"pause": true}"#, "no setting `pause`"),
        ] {
            assert!(read(text).unwrap_err().0.contains(word), "{text}");
        }
    }
}
