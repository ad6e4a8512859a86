//! An index in memory, as plain as can be: the list that the stored one must give as well.

use std::collections::BTreeMap;
use std::sync::Mutex;

use perihelion_recall::{Found, Hit, Item, Scope, Search, WordIndex};

/// Items by scope and kind; filters and vectors are left out.
#[derive(Default)]
pub struct Reference(Mutex<BTreeMap<(Scope, String), Space>>);

#[derive(Default)]
pub struct Space {
    words: WordIndex,
    /// By their numbers in `words`.
    pub items: Vec<Item>,
}

impl Space {
    fn add(&mut self, item: Item) {
        let fields: Vec<(f64, &str)> =
            item.fields.iter().map(|field| (field.weight, field.text.as_str())).collect();
        self.words.add(&fields);
        self.items.push(item);
    }

    /// Leaves items out and numbers the others again; returns how many went.
    pub fn drop_those(&mut self, goes: impl Fn(&Item) -> bool) -> u64 {
        let before = self.items.len();
        if self.items.iter().any(&goes) {
            let items = std::mem::take(self).items;
            items.into_iter().filter(|item| !goes(item)).for_each(|item| self.add(item));
        }
        (before - self.items.len()) as u64
    }
}

impl Reference {
    pub fn within<T>(&self, scope: &Scope, kind: &str, work: impl FnOnce(&mut Space) -> T) -> T {
        let mut spaces = self.0.lock().unwrap();
        work(spaces.entry((scope.clone(), kind.to_owned())).or_default())
    }

    pub fn put(&self, scope: &Scope, kind: &str, items: &[Item]) {
        self.within(scope, kind, |space| {
            space.drop_those(|known| items.iter().any(|item| item.id == known.id));
            items.iter().for_each(|item| space.add(item.clone()));
        });
    }

    pub fn search(&self, search: &Search) -> Found {
        let scope = &search.scopes[0];
        let hits = self.within(scope, &search.kind, |space| {
            let ranked = space.words.rank(&[(1.0, &search.text)]).into_iter().take(search.limit);
            let hit = |one: perihelion_recall::bm25::Scored| {
                let item = space.items[one.item as usize].clone();
                Hit {
                    id: item.id,
                    payload: item.payload,
                    score: one.score,
                    coverage: one.coverage,
                    similarity: None,
                }
            };
            ranked.map(hit).collect()
        });
        Found { hits, by_meaning: false }
    }
}
