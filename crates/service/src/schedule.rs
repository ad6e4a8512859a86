//! When a cron's runs are due: an expression of five fields, by the clock of a time zone.

use chrono::{DateTime, Offset as _, SubsecRound as _, TimeDelta, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::errors::CronError;
use croner::parser::{CronParser, Seconds};

/// The largest step by which any time zone sets clocks back.
const LONGEST_TWICE: TimeDelta = TimeDelta::hours(3);

#[derive(Clone, Debug)]
pub struct Schedule {
    cron: Cron,
    zone: Tz,
}

/// Why there is no such schedule.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("unknown time zone, pass one such as Europe/Berlin: {0}")]
    Zone(String),
    #[error("a schedule has five fields, minute to weekday ({source}): {text}")]
    Fields { text: String, source: CronError },
}

impl Schedule {
    /// Reads an expression and the name of a time zone, UTC by default.
    pub fn read(text: &str, zone: Option<&str>) -> Result<Self, Unreadable> {
        let zone = match zone {
            None => Tz::UTC,
            Some(name) => name.parse().map_err(|_| Unreadable::Zone(name.to_owned()))?,
        };
        let parser = CronParser::builder().seconds(Seconds::Disallowed).build();
        let cron = parser.parse(text);
        let cron = cron.map_err(|source| Unreadable::Fields { text: text.to_owned(), source })?;
        Ok(Self { cron, zone })
    }

    /// Returns the first time after another, if there is one.
    ///
    /// An hour that a zone's clock shows twice has its times twice.
    pub fn after(&self, time: DateTime<Utc>) -> Option<DateTime<Utc>> {
        // Schedules have whole seconds.
        let time = time.trunc_subsecs(0);
        let of_zone = self.cron.find_next_occurrence(&time.with_timezone(&self.zone), false).ok();
        let of_zone = of_zone.map(|next| next.with_timezone(&Utc));
        // The parser knows the first of two hours alone: so each is looked for by a clock that is not changed, and counts
        // where the zone's clock is set alike.
        let offset_at = |time: DateTime<Utc>| time.with_timezone(&self.zone).offset().fix();
        let of_clocks = [time, time + LONGEST_TWICE].map(offset_at).map(|offset| {
            let next = self.cron.find_next_occurrence(&time.with_timezone(&offset), false).ok()?;
            let next = next.with_timezone(&Utc);
            (offset_at(next) == offset).then_some(next)
        });
        of_clocks.into_iter().flatten().chain(of_zone).filter(|next| *next > time).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &str, zone: Option<&str>, time: &str) -> Option<String> {
        let time: DateTime<Utc> = time.parse().unwrap();
        Schedule::read(text, zone).unwrap().after(time).map(|next| next.to_rfc3339())
    }

    #[test]
    fn a_time_is_that_of_the_zones_clock_over_changes_of_it() {
        let berlin = Some("Europe/Berlin");
        assert_eq!(
            after("0 9 * * *", berlin, "2026-03-27T10:00:00Z").as_deref(),
            Some("2026-03-28T08:00:00+00:00")
        );
        assert_eq!(
            after("0 9 * * *", berlin, "2026-03-28T10:00:00Z").as_deref(),
            Some("2026-03-29T07:00:00+00:00")
        );
        assert_eq!(
            after("0 0 1 1 *", None, "2026-11-20T15:07:36Z").as_deref(),
            Some("2027-01-01T00:00:00+00:00")
        );
    }

    #[test]
    fn a_repeated_hour_has_its_times_twice_and_no_time_is_in_the_past() {
        let zone = Some("Europe/Berlin");
        // 02:45 of summer time, and then 02:00 of winter time.
        for (time, next) in [
            ("2026-10-25T00:45:00.5Z", "2026-10-25T01:00:00+00:00"),
            ("2026-10-25T01:20:00Z", "2026-10-25T01:30:00+00:00"),
            ("2026-10-25T01:45:00Z", "2026-10-25T02:00:00+00:00"),
        ] {
            assert_eq!(after("*/15 * * * *", zone, time).as_deref(), Some(next), "after {time}");
        }
        let hourly = after("0 * * * *", zone, "2026-10-25T00:00:00Z");
        assert_eq!(hourly.as_deref(), Some("2026-10-25T01:00:00+00:00"));
    }

    #[test]
    fn an_invalid_schedule_is_refused_by_name() {
        for (text, zone, part) in [
            ("whenever", None, "five fields"),
            ("* * * * * *", None, "five fields"),
            ("61 * * * *", None, "61"),
            ("0 9 * * *", Some("Mars/Olympus"), "Mars/Olympus"),
        ] {
            let why = Schedule::read(text, zone).unwrap_err().to_string();
            assert!(why.contains(part), "{why}");
        }
        for never in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *"] {
            assert_eq!(
                after(never, Some("Europe/Berlin"), "2026-01-01T00:00:00Z"),
                None,
                "{never}"
            );
        }
    }
}
