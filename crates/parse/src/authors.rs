//! Names of authors, of what properties write in one line.

/// Authors of one document at most; what names more is a list of something else.
const MOST: usize = 32;

/// Characters of a name at most.
const LONGEST: usize = 120;

/// Separates names: at semicolons, and at commas and `and` where what stands between has two words as names do.
pub(crate) fn names(words: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let parts = words.into_iter().flat_map(|line| {
        line.split(';').flat_map(|part| divided(part, ",")).collect::<Vec<String>>()
    });
    for name in parts.flat_map(|part| divided(&part, " and ")) {
        let name = crate::builder::one_line(&name);
        // A list ends with `, and`.
        let name = name.strip_prefix("and ").unwrap_or(&name).to_owned();
        let is_name = name.chars().any(char::is_alphabetic) && name.chars().count() <= LONGEST;
        if is_name && !found.contains(&name) && found.len() < MOST {
            found.push(name);
        }
    }
    found
}

fn divided(text: &str, by: &str) -> Vec<String> {
    let parts: Vec<&str> = text.split(by).map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.iter().all(|part| part.contains(char::is_whitespace)) {
        parts.into_iter().map(str::to_owned).collect()
    } else {
        vec![text.trim().to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn names_are_separated_and_no_name_is_taken_apart() {
        let of = |line: &str| names([line.to_owned()]);
        assert_eq!(of("Ann Archer; Ben Brook;"), ["Ann Archer", "Ben Brook"]);
        assert_eq!(of("Ann Archer, Ben Brook and Cy Cole"), ["Ann Archer", "Ben Brook", "Cy Cole"]);
        assert_eq!(
            of("Ann Archer, Ben Brook, and Cy Cole"),
            ["Ann Archer", "Ben Brook", "Cy Cole"]
        );
        assert_eq!(of("Archer, Ann"), ["Archer, Ann"]);
        assert_eq!(of("Brook and Sons"), ["Brook and Sons"]);
        assert!(of(" ; 12 ").is_empty());
        assert_eq!(names(["A B".to_owned(), "A B".to_owned()]), ["A B"]);
    }
}
