//! The words of conversations, by which threads and runs are found.
//!
//! A word is a number here, which its reader and its writer make in the same way; no text is stored.

use std::collections::BTreeSet;

use perihelion_database::Query;
use uuid::Uuid;

use crate::Kept;
use crate::sql::Statement;

impl Kept {
    /// Returns the statement that stores the words that messages of a run have, which ended at a step of the thread; of a
    /// deleted thread none.
    pub fn noting_words(&self, thread: Uuid, step: u64, words: BTreeSet<i64>) -> Query {
        let list = self.database.dialect().pick("json_each(?) AS w", "unnest(?) AS w (value)");
        let note = format!(
            "INSERT INTO conversation_word (word, thread_id, step) SELECT w.value, t.id, ? FROM thread t, {list} \
             WHERE t.id = ? AND t.tenant = ? ON CONFLICT DO NOTHING"
        );
        let words: Vec<i64> = words.into_iter().collect();
        let values = (step, words, thread, &self.tenant);
        let mut statement = self.statement("");
        statement.add(&note, values);
        statement.build().repeatable().planned_once()
    }
}

impl Statement {
    pub(crate) fn with_word(&mut self, thread: &str, word: &[i64]) {
        self.text(" AND ").text(thread);
        self.text(" IN (SELECT k.thread_id FROM conversation_word k WHERE ");
        self.one_of("k.word", word.iter().copied()).text(")");
    }

    pub(crate) fn with_word_of_run(&mut self, word: &[i64]) {
        self.with_word("r.thread_id", word);
        self.text(" AND EXISTS (SELECT 1 FROM conversation_word k WHERE k.thread_id = r.thread_id");
        self.text(" AND k.step > r.base_step AND k.step <= r.last_step AND ");
        self.one_of("k.word", word.iter().copied()).text(")");
    }
}
