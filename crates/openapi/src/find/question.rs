//! The wanted action of a question, and its objects.

use std::collections::BTreeSet;

use super::words::{stem, words};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    Read,
    Create,
    Update,
    Delete,
    /// Something else that changes them, such as a refund.
    Act,
}

#[derive(Debug)]
pub struct Question {
    pub intent: Intent,
    /// The stem of its first word if that is a command, such as `refund`.
    pub deed: Option<String>,
    /// The words that name things, as stems.
    pub things: Vec<String>,
    /// The words that only mean reading or changing.
    pub verbs: Vec<String>,
    plural: Vec<String>,
    /// Words of things after an article.
    single: Vec<String>,
    /// It asks for what belongs to the person who asks.
    pub is_own: bool,
}

/// Words that begin a request without a meaning for it.
const POLITE: [&str; 25] = [
    "please", "can", "could", "would", "will", "you", "we", "i", "want", "need", "like", "to",
    "how", "do", "does", "help", "me", "us", "let", "lets", "s", "must", "should", "now", "then",
];
pub const READS: [&str; 38] = [
    "list", "show", "get", "find", "fetch", "read", "retrieve", "search", "view", "display", "see",
    "look", "lookup", "check", "tell", "give", "count", "browse", "query", "what", "which", "who",
    "whose", "whom", "where", "when", "why", "are", "is", "was", "were", "has", "have", "did",
    "all", "any", "describe", "compare",
];
const CREATES: [&str; 10] =
    ["create", "add", "new", "make", "post", "insert", "register", "open", "start", "write"];
const UPDATES: [&str; 10] =
    ["update", "change", "edit", "modify", "set", "replace", "rename", "patch", "put", "adjust"];
pub const DELETES: [&str; 10] =
    ["delete", "remove", "destroy", "erase", "purge", "drop", "wipe", "unset", "clear", "revoke"];
const ARTICLES: [&str; 11] =
    ["a", "an", "the", "this", "that", "my", "our", "one", "its", "their", "your"];

impl Question {
    pub fn read(text: &str) -> Self {
        let lower = text.to_lowercase();
        let tokens: Vec<&str> =
            lower.split(|c: char| !c.is_alphanumeric()).filter(|token| !token.is_empty()).collect();
        let first = tokens.iter().position(|token| !POLITE.contains(token)).unwrap_or(0);
        let order = tokens.get(first..).unwrap_or_default();
        let counts = lower.contains("how many") || lower.contains("how much");
        let intent = if counts { Intent::Read } else { intent(order) };
        let (verbs, things): (Vec<&str>, Vec<&str>) =
            tokens.iter().partition(|token| is_verb(token));
        let stems = |tokens: Vec<&str>| -> Vec<String> {
            let stems: BTreeSet<String> = tokens.into_iter().flat_map(words).collect();
            stems.into_iter().collect()
        };
        let verbs = stems(verbs);
        let things = stems(things);
        let deed = order.first().filter(|_| intent != Intent::Read).map(|word| stem(word));
        let is_own = tokens.iter().any(|token| matches!(*token, "my" | "mine" | "i"));
        let mut question =
            Self { intent, deed, things, verbs, plural: Vec::new(), single: Vec::new(), is_own };
        question.read_numbers(&tokens);
        question
    }

    /// Notes things in the plural and after an article, with the words before them: `merge requests`.
    fn read_numbers(&mut self, tokens: &[&str]) {
        let mut phrase: Vec<String> = Vec::new();
        let mut is_after_article = false;
        for token in tokens.iter().chain(&["of"]) {
            let stem = stem(token);
            let is_thing = self.things.contains(&stem);
            if is_thing {
                phrase.push(stem.clone());
            }
            if is_thing && stem != *token {
                self.plural.append(&mut phrase);
            } else if !is_thing {
                let list = if is_after_article { &mut self.single } else { &mut Vec::new() };
                list.append(&mut phrase);
                is_after_article = ARTICLES.contains(token);
            }
        }
    }

    pub fn is_plural(&self, word: &str) -> bool {
        self.plural.iter().any(|known| known == word)
    }

    pub fn is_list(&self) -> bool {
        self.verbs.iter().any(|word| word == "list" || word == "all")
    }

    pub fn is_search(&self) -> bool {
        self.verbs.iter().any(|word| word == "search")
    }

    pub fn is_single(&self, word: &str) -> bool {
        self.single.iter().any(|known| known == word) && !self.is_plural(word)
    }
}

/// Returns whether a word names the action, and not its object.
fn is_verb(word: &str) -> bool {
    [&READS[..], &CREATES, &UPDATES, &DELETES].iter().any(|list| list.contains(&word))
}

/// Reads the action from the first words.
fn intent(tokens: &[&str]) -> Intent {
    let Some(first) = tokens.first() else { return Intent::Read };
    let is_on = |list: &[&str]| list.contains(first);
    // "Open merge requests" are things, and "open an issue" is an order.
    let has_object = tokens.get(1).is_some_and(|next| ARTICLES.contains(next) || *next == "all");
    if is_on(&DELETES) {
        Intent::Delete
    } else if is_on(&UPDATES) {
        Intent::Update
    } else if is_on(&CREATES) && (has_object || !matches!(*first, "open" | "new")) {
        Intent::Create
    } else if is_on(&READS) || !has_object {
        Intent::Read
    } else {
        Intent::Act
    }
}
