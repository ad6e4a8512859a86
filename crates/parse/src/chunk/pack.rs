//! Puts atoms into children, and children into parents.

use std::collections::HashSet;
use std::ops::Range;

use super::atoms::Atom;
use super::{Child, Options, Parent};
use crate::Parsed;

/// Returns the atoms of each child. The text of an earlier chunk stays in one chunk.
pub(super) fn children(
    text: &str,
    atoms: &[Atom],
    options: Options,
    before: &HashSet<String>,
) -> Vec<Range<usize>> {
    let longest = before.iter().map(String::len).max().unwrap_or(0);
    let mut groups = Vec::new();
    let mut gap = 0;
    let mut at = 0;
    while at < atoms.len() {
        match known(text, atoms, at, before, longest) {
            Some(end) => {
                fill(atoms, gap..at, options, &mut groups);
                groups.push(at..end);
                at = end;
                gap = end;
            }
            None => at += 1,
        }
    }
    fill(atoms, gap..atoms.len(), options, &mut groups);
    groups
}

/// Finds the longest chunk of the last version that begins with an atom.
fn known(
    text: &str,
    atoms: &[Atom],
    at: usize,
    before: &HashSet<String>,
    longest: usize,
) -> Option<usize> {
    let start = atoms[at].start;
    let near = atoms[at..].iter().take_while(|atom| atom.end - start <= longest).count();
    (at + 1..=at + near).rev().find(|end| before.contains(&text[start..atoms[end - 1].end]))
}

fn fill(atoms: &[Atom], range: Range<usize>, options: Options, groups: &mut Vec<Range<usize>>) {
    let mut start = range.start;
    let mut size = 0;
    for index in range.clone() {
        let atom = &atoms[index];
        let full = size + atom.tokens > options.child_tokens;
        let only_headings = atoms[start..index].iter().all(|atom| atom.heading);
        if index > start && ((full && !only_headings) || atom.opens) {
            groups.push(start..index);
            start = index;
            size = 0;
        }
        size += atom.tokens;
    }
    if start < range.end {
        groups.push(start..range.end);
    }
}

/// Groups children to parents and notes in each which one is its.
pub(super) fn parents(parsed: &Parsed, children: &mut [Child], options: Options) -> Vec<Parent> {
    let mut parents: Vec<Parent> = Vec::new();
    let mut size = 0;
    for child in children {
        let own = tokens(&parsed.text[child.start..child.end]);
        let another = parents.last().is_none_or(|parent| {
            let elsewhere = parent.section != child.section && size * 2 >= options.parent_tokens;
            size + own > options.parent_tokens || elsewhere
        });
        match parents.last_mut() {
            Some(parent) if !another => {
                parent.end = child.end;
                size += own;
            }
            _ => {
                size = own;
                parents.push(Parent {
                    start: child.start,
                    end: child.end,
                    page: child.page,
                    section: child.section.clone(),
                });
            }
        }
        child.parent = parents.len() - 1;
    }
    parents
}

/// Letters of a word per token, on average of common vocabularies.
const LETTERS: usize = 5;

/// Estimates the tokens of a text, rather too many than too few; no model's vocabulary is right for all.
pub fn tokens(text: &str) -> usize {
    let mut count = 0;
    let mut word = 0;
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || (c.is_alphabetic() && u32::from(c) < 0x0590) {
            word += 1;
            continue;
        }
        count += usize::div_ceil(word, LETTERS);
        word = 0;
        // Scripts without spaces, and signs.
        count += usize::from(!c.is_whitespace());
    }
    count + usize::div_ceil(word, LETTERS)
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn estimates_are_near_the_counts_of_vocabularies() {
        assert_eq!(tokens(""), 0);
        assert_eq!(tokens("The quick brown fox."), 5);
        assert_eq!(tokens("internationalisation"), 4);
        assert_eq!(tokens("日本語"), 3);
    }
}
