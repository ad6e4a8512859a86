//! Values that must never become part of a skill.

/// Names of arguments whose values are always secret.
const NAMES: [&str; 11] = [
    "password",
    "passwd",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "privatekey",
    "accesskey",
    "cookie",
    "session",
];

/// Length from which a word of letters and digits counts as a key.
const LONG: usize = 20;

pub(super) fn is_secret_name(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    NAMES.iter().any(|secret| plain.contains(secret))
}

/// Replaces words that look like keys, and people's addresses, by their kind.
pub(super) fn without_secrets(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for word in text
        .split_inclusive(|letter: char| letter.is_whitespace() || "\"'`,;()[]{}<>".contains(letter))
    {
        let bare = word.trim_end_matches(|letter: char| {
            letter.is_whitespace() || "\"'`,;()[]{}<>".contains(letter)
        });
        let rest = &word[bare.len()..];
        clean.push_str(if looks_like_key(bare) {
            "{secret}"
        } else if looks_like_address(bare) {
            "{address}"
        } else {
            bare
        });
        clean.push_str(rest);
    }
    clean
}

fn looks_like_key(word: &str) -> bool {
    let word = word.rsplit(['=', ':']).next().unwrap_or(word);
    let is_of_key = |letter: char| letter.is_ascii_alphanumeric() || "-_./+=".contains(letter);
    let has = |test: fn(&char) -> bool| word.chars().any(|letter| test(&letter));
    let known = ["sk-", "pk-", "ghp_", "gho_", "xox", "AKIA", "eyJ", "glpat-"];
    let is_known = word.len() >= 12 && known.iter().any(|start| word.starts_with(start));
    let is_random = word.len() >= LONG
        && word.chars().all(is_of_key)
        && has(char::is_ascii_digit)
        && has(|letter| letter.is_ascii_alphabetic())
        // Paths and dotted names are long, too, and have vowels between their separators.
        && word.split(['/', '.', '_', '-']).any(|part| part.len() >= LONG || is_mixed(part));
    is_known || is_random
}

/// Returns whether a long word often alternates between digits and letters.
fn is_mixed(part: &str) -> bool {
    let letters: Vec<bool> = part.chars().map(|letter| letter.is_ascii_digit()).collect();
    let changes = letters.windows(2).filter(|pair| pair[0] != pair[1]).count();
    part.len() >= 12 && changes >= 4
}

fn looks_like_address(word: &str) -> bool {
    let Some((name, host)) = word.split_once('@') else { return false };
    !name.is_empty() && host.contains('.') && !host.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_addresses_of_people_are_removed_from_texts() {
        for secret in [
            "sk-proj-abcdefghijkl",
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "token=9f8e7d6c5b4a39281706f5e4d3c2b1a0",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0",
        ] {
            let clean = without_secrets(&format!("use {secret} here"));
            assert_eq!(clean, "use {secret} here", "{secret}");
        }
        assert_eq!(without_secrets("mail ada@example.com, now"), "mail {address}, now");
        for plain in [
            "SELECT count(*) FROM order_positions_2024",
            "/srv/data/reports/summary_2024.csv",
            "deployment.apps",
        ] {
            assert_eq!(without_secrets(plain), plain);
        }
    }

    #[test]
    fn arguments_are_secret_by_their_names() {
        for name in ["password", "apiKey", "api-key", "X-Auth-Token", "client_secret"] {
            assert!(is_secret_name(name), "{name}");
        }
        assert!(!is_secret_name("query") && !is_secret_name("path"));
    }
}
