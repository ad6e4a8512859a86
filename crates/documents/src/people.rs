//! People as attributes of what is found: one for each name, and one for each word of it.
//!
//! An attribute has one value and a document many authors, so that a name is the attribute and not its value.

/// The value of an attribute that names somebody.
pub(crate) const IS: &str = "yes";

/// Returns the attribute that stands for a name, however it is written.
pub(crate) fn key(name: &str) -> String {
    format!("person {}", words(name).join(" "))
}

/// Returns the attributes that an author is found by: the name and its words.
pub(crate) fn keys(name: &str) -> Vec<String> {
    let mut keys: Vec<String> = words(name).iter().map(|word| key(word)).collect();
    keys.push(key(name));
    keys
}

fn words(name: &str) -> Vec<String> {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_full_and_by_a_word_however_it_is_written() {
        let keys = keys("Ann  O'Hara");
        for given in ["ann o'hara", "ANN O HARA", "Ann", "hara"] {
            assert!(keys.contains(&key(given)), "{given}: {keys:?}");
        }
        assert!(!keys.contains(&key("Hara Ann")));
    }
}
