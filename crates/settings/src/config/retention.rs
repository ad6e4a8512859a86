//! The retention section: what a prune without options may take.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;

use super::invalid::Invalid;
use super::resolve::{Setting, any, if_any, positive, section};

section! {
    /// What is kept; a thread that is under way or waits for a person is kept in any case.
    Retention, RetentionFile, "retention" {
        /// Threads that were not touched for so long are deleted; none: of any age are kept.
        max_age: Option<Age> = None, "PERIHELION_RETENTION_MAX_AGE", any;
        /// The newest so many threads are kept; none: any number.
        max_threads: Option<u64> = None, "PERIHELION_RETENTION_MAX_THREADS", if_any(positive);
        /// Threads are shortened to their newest so many steps; none: of any length.
        max_steps: Option<u64> = None, "PERIHELION_RETENTION_MAX_STEPS", if_any(positive);
    }
}

impl Retention {
    /// Returns whether everything is kept.
    pub fn keeps_all(&self) -> bool {
        self.max_age.is_none() && self.max_threads.is_none() && self.max_steps.is_none()
    }
}

/// A length of time as people write it: `45s`, `10m`, `12h`, `30d` or `8w`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Age(pub TimeDelta);

impl Age {
    /// Returns the moment that lies so long before another; none before time began.
    pub fn before(self, moment: DateTime<Utc>) -> Option<DateTime<Utc>> {
        moment.checked_sub_signed(self.0)
    }

    /// Returns the moment that lies so long after another; none after time has ended.
    pub fn after(self, moment: DateTime<Utc>) -> Option<DateTime<Utc>> {
        moment.checked_add_signed(self.0)
    }
}

impl std::str::FromStr for Age {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        let (number, unit) =
            text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            "w" => 7 * 86_400,
            _ => return Err(Invalid::Age),
        };
        let number = number.trim().parse::<u32>().ok().map(i64::from);
        let length = number.and_then(|number| TimeDelta::try_seconds(number * seconds));
        length.map(Self).ok_or(Invalid::Age)
    }
}

impl TryFrom<String> for Age {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl Setting for Age {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_and_a_unit() {
        assert_eq!("30d".parse::<Age>().unwrap(), Age(TimeDelta::days(30)));
        assert_eq!(" 8w ".parse::<Age>().unwrap(), Age(TimeDelta::weeks(8)));
        for wrong in ["", "d", "30", "-1d", "1y", "3é", "99999999999d"] {
            assert!(wrong.parse::<Age>().is_err(), "{wrong}");
        }
    }
}
