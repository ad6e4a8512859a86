//! How like two tasks are, by their words.

use std::collections::BTreeSet;

use perihelion_recall::words::{Language, terms};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_one_family_are_alike_whatever_their_values() {
        let skill = "How many orders came from {city}?";
        assert!(likeness(skill, "How many orders came from Lisbon?") > 0.8);
        assert!(likeness(skill, "Count the orders of Lisbon") < 0.5);
        assert_eq!(likeness(skill, "What is the weather like?"), 0.0);
        assert_eq!(likeness(skill, "How many orders came from {place}?"), 1.0);
    }
}
