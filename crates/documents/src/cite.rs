//! Citations: a `[n]` in an answer names a passage, or it is removed.

use std::collections::BTreeSet;

/// An answer whose citations all name something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    pub text: String,
    /// Numbers of passages that are cited, in order.
    pub cited: Vec<usize>,
    /// Citations that named nothing and were removed.
    pub removed: usize,
}

/// Removes citations that name none of `passages` passages; `[1, 3]` and `[1][3]` are both read.
pub fn check(answer: &str, passages: usize) -> Checked {
    let mut text = String::with_capacity(answer.len());
    let mut cited = BTreeSet::new();
    let mut removed = 0;
    let mut rest = answer;
    while let Some(open) = rest.find('[') {
        let (before, from) = rest.split_at(open);
        text.push_str(before);
        let Some(close) = from.find(']') else {
            rest = from;
            break;
        };
        let inside = &from[1..close];
        // A link's text and anything else in brackets is left alone.
        let is_link = from[close + 1..].starts_with('(');
        match numbers(inside).filter(|_| !is_link) {
            Some(numbers) => {
                let (known, unknown): (Vec<usize>, Vec<usize>) =
                    numbers.into_iter().partition(|number| (1..=passages).contains(number));
                removed += unknown.len();
                if known.is_empty() {
                    // The space before it goes with it.
                    text.truncate(text.trim_end_matches(' ').len());
                } else {
                    let shown: Vec<String> = known.iter().map(usize::to_string).collect();
                    text.push_str(&format!("[{}]", shown.join(", ")));
                    cited.extend(known);
                }
            }
            None => text.push_str(&from[..=close]),
        }
        rest = &from[close + 1..];
    }
    text.push_str(rest);
    Checked { text, cited: cited.into_iter().collect(), removed }
}

fn numbers(inside: &str) -> Option<Vec<usize>> {
    let numbers: Option<Vec<usize>> =
        inside.split(',').map(|part| part.trim().parse().ok()).collect();
    numbers.filter(|numbers| numbers.iter().all(|number| *number < 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_that_name_nothing_are_removed_and_counted() {
        let checked =
            check("Rents rose [1]. Wages fell [4][2, 9]. See [the list](x) and a[0], [note].", 3);
        assert_eq!(checked.text, "Rents rose [1]. Wages fell[2]. See [the list](x) and a, [note].");
        assert_eq!(checked.cited, [1, 2]);
        assert_eq!(checked.removed, 3);
    }

    #[test]
    fn text_without_citations_stays_as_it_is() {
        for text in ["", "plain", "open [1", "[2031] is a year", "配置 [x]"] {
            assert_eq!(check(text, 2).text, text);
        }
    }
}
