//! The similarity of two tasks, by their words, and the value of a skill: its successes, and their age.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use perihelion_recall::words::{Language, terms};

use super::Skill;

/// Returns the share of words that two tasks have in common, 0 to 1; their parameters are no words.
pub(super) fn likeness(one: &str, other: &str) -> f64 {
    let one = terms_of(one);
    let other = terms_of(other);
    let all = one.len() + other.len();
    match all {
        0 => 1.0,
        all => 2.0 * one.intersection(&other).count() as f64 / all as f64,
    }
}

fn terms_of(task: &str) -> BTreeSet<String> {
    let mut plain = String::new();
    for (number, part) in task.split('{').enumerate() {
        let rest = match number {
            0 => part,
            _ => part.split_once('}').map_or(part, |(_, rest)| rest),
        };
        plain.push_str(rest);
        plain.push(' ');
    }
    terms(&plain, Language::of(&plain)).into_iter().collect()
}

/// Days after which an unused skill is worth half.
const HALF_LIFE_DAYS: f64 = 60.0;

/// Below this it is hidden.
pub(super) const LEAST: f64 = 0.3;

impl Skill {
    /// Returns its value, from 0 to 1: the share of its successful uses, with one of each assumed, reduced by its age.
    pub fn score(&self, now: DateTime<Utc>) -> f64 {
        let uses = self.successes.saturating_add(self.failures) as f64;
        let share = (self.successes as f64 + 1.0) / (uses + 2.0);
        let days = (now - self.used_at).num_seconds().max(0) as f64 / 86_400.0;
        share * 0.5_f64.powf(days / HALF_LIFE_DAYS)
    }

    pub fn is_usable(&self, now: DateTime<Utc>) -> bool {
        !self.is_stale && self.score(now) >= LEAST
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn tasks_of_one_family_are_similar_with_any_values() {
        let skill = "How many orders came from {city}?";
        assert!(likeness(skill, "How many orders came from Lisbon?") > 0.8);
        assert!(likeness(skill, "Count the orders of Lisbon") < 0.5);
        assert_eq!(likeness(skill, "What is the weather like?"), 0.0);
        assert_eq!(likeness(skill, "How many orders came from {place}?"), 1.0);
    }

    #[test]
    fn failures_lower_a_score_and_time_fades_it() {
        let now = DateTime::<Utc>::from_timestamp(1_800_000_000, 0).unwrap();
        let skill = |successes, failures, days| Skill {
            successes,
            failures,
            used_at: now - TimeDelta::days(days),
            ..Skill::default()
        };
        assert!(skill(1, 0, 0).is_usable(now));
        assert!(skill(1, 1, 0).score(now) < skill(1, 0, 0).score(now));
        assert!(!skill(1, 4, 0).is_usable(now), "it fails mostly");
        assert!(!skill(1, 0, 90).is_usable(now), "nobody used it for a quarter of a year");
        assert!(skill(20, 0, 90).is_usable(now), "what served often fades later");
        let stale = Skill { is_stale: true, ..skill(9, 0, 0) };
        assert!(!stale.is_usable(now));
    }
}
