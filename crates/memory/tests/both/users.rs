//! Users are remembered as they wish.

use chrono::{DateTime, TimeDelta, Utc};
use perihelion_memory::{EntryKind, Error, Operation, Operations, UserMemory, Verb};
use perihelion_recall::Scope;

use crate::databases::on_each;

fn at(minutes: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap() + TimeDelta::minutes(minutes)
}

fn ada() -> Scope {
    Scope::new("acme", "ada").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_value_ends_the_old_value_which_keeps_its_dates() {
    on_each(|index| async move {
        let memory = UserMemory { index };
        let company = |value| (EntryKind::Fact, "Company name", value);
        memory.set(&ada(), company("Acme"), "cli", at(0)).await.unwrap();
        memory.set(&ada(), company("Acme"), "cli", at(1)).await.unwrap();
        memory.set(&ada(), company("Globex"), "cli", at(2)).await.unwrap();
        let current = memory.list(&ada()).await.unwrap();
        assert_eq!(current.len(), 1);
        assert_eq!(
            (current[0].key.as_str(), current[0].value.as_str()),
            ("company_name", "Globex")
        );
        let history = memory.history(&ada()).await.unwrap();
        assert_eq!(history.len(), 2);
        assert_eq!((history[0].since, history[0].until), (at(0), Some(at(2))));
        let bob = Scope::new("acme", "bob").unwrap();
        assert!(memory.list(&bob).await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn extracted_memories_are_applied_and_deleted_ones_are_gone() {
    on_each(|index| async move {
        let memory = UserMemory { index };
        let set = |key: &str, value: &str| Operation {
            op: Verb::Set,
            kind: EntryKind::Preference,
            key: key.to_owned(),
            value: Some(value.to_owned()),
        };
        let operations = Operations {
            operations: vec![set("tone", "brief"), set("", "x"), set("language", "German")],
        };
        for _ in 0..2 {
            assert_eq!(memory.apply(&ada(), &operations, "thread 1", at(0)).await.unwrap(), 2);
        }
        assert_eq!(
            memory.history(&ada()).await.unwrap().len(),
            2,
            "done again, it changes nothing"
        );
        memory.set(&ada(), (EntryKind::Preference, "tone", "long"), "cli", at(1)).await.unwrap();
        let forget = Operation { op: Verb::Forget, value: None, ..set("Tone", "") };
        memory
            .apply(&ada(), &Operations { operations: vec![forget] }, "thread 2", at(2))
            .await
            .unwrap();
        let history = memory.history(&ada()).await.unwrap();
        assert_eq!(history.len(), 1, "earlier values are gone as well");
        let prompt = memory.for_prompt(&ada(), "which tone?", None).await.unwrap();
        assert!(prompt.iter().all(|entry| entry.key != "tone"));
        assert!(matches!(memory.forget(&ada(), "tone", at(3)).await, Err(Error::UnknownKey(_))));
        memory.forget(&ada(), "language", at(3)).await.unwrap();
        assert!(memory.history(&ada()).await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
/// S3.03: constant at 10,000 facts.
async fn a_prompt_stays_bounded_and_contains_the_memories_that_match_the_question() {
    on_each(|index| async move {
        let memory = UserMemory { index };
        memory.set(&ada(), (EntryKind::Fact, "name", "Ada"), "cli", at(0)).await.unwrap();
        memory
            .set(&ada(), (EntryKind::Fact, "car", "a red convertible"), "cli", at(0))
            .await
            .unwrap();
        memory.set(&ada(), (EntryKind::Preference, "tone", "brief"), "cli", at(0)).await.unwrap();
        let filler = |n: i64| Operation {
            op: Verb::Set,
            kind: EntryKind::Fact,
            key: format!("note{n}"),
            // As long as it may be, and one word: what is measured is the prompt, not the index.
            value: Some("v".repeat(500)),
        };
        let mut sizes = Vec::new();
        for batch in 0..500 {
            let operations = (0..20).map(|n| filler(batch * 20 + n)).collect();
            memory.apply(&ada(), &Operations { operations }, "t", at(batch)).await.unwrap();
            if ![4, 49, 499].contains(&batch) {
                continue;
            }
            let prompt = memory.for_prompt(&ada(), "Where did I park my car?", None).await.unwrap();
            let keys: Vec<&str> = prompt.iter().map(|entry| entry.key.as_str()).collect();
            for key in ["name", "car", "tone"] {
                assert!(keys.contains(&key), "{keys:?}");
            }
            let chars: usize = prompt.iter().map(|entry| entry.value.len()).sum();
            sizes.push((prompt.len(), chars));
        }
        assert_eq!(memory.list(&ada()).await.unwrap().len(), 10_003);
        // 100, 1,000 and 10,000 facts: the same number of entries and of characters.
        assert!(sizes.iter().all(|size| *size == sizes[0]), "{sizes:?}");
        assert!(sizes[0].0 <= 30 && sizes[0].1 <= 2_000, "{sizes:?}");
    })
    .await;
}

/// The model takes longer over what was said before.
#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_memory_does_not_return_by_an_older_statement() {
    on_each(|index| async move {
        let memory = UserMemory { index };
        let operation = |op, key: &str| {
            let value = Some("Acme".to_owned()).filter(|_| op == Verb::Set);
            Operation { op, kind: EntryKind::Fact, key: key.to_owned(), value }
        };
        let apply = async |op, key, minute| {
            let operations = Operations { operations: vec![operation(op, key)] };
            memory.apply(&ada(), &operations, "thread", at(minute)).await.unwrap()
        };
        apply(Verb::Set, "company", 0).await;
        memory.forget(&ada(), "Company", at(2)).await.unwrap();
        // An older deletion, which another process makes later, shortens nothing.
        assert!(matches!(memory.forget(&ada(), "company", at(1)).await, Err(Error::UnknownKey(_))));
        apply(Verb::Forget, "city", 2).await;
        for key in ["company", "city"] {
            assert_eq!(apply(Verb::Set, key, 1).await, 0, "{key} was said before");
        }
        assert!(memory.history(&ada()).await.unwrap().is_empty());
        let bob = Scope::new("acme", "bob").unwrap();
        let operations = Operations { operations: vec![operation(Verb::Set, "company")] };
        assert_eq!(memory.apply(&bob, &operations, "thread", at(1)).await.unwrap(), 1);
        assert_eq!(apply(Verb::Set, "company", 3).await, 1, "it was said again");
    })
    .await;
}

/// The model took longer over the older one.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_statement_replaces_no_newer_one_and_two_at_once_are_both_stored() {
    on_each(|index| async move {
        let memory = UserMemory { index };
        let operation = |op, value: &str| {
            let key = "city".to_owned();
            let value = Some(value.to_owned()).filter(|_| op == Verb::Set);
            Operations { operations: vec![Operation { op, kind: EntryKind::Fact, key, value }] }
        };
        let city = async || memory.list(&ada()).await.unwrap().pop().map(|entry| entry.value);
        memory.apply(&ada(), &operation(Verb::Set, "Brno"), "thread 2", at(2)).await.unwrap();
        for op in [Verb::Set, Verb::Forget] {
            memory.apply(&ada(), &operation(op, "Bern"), "thread 1", at(1)).await.unwrap();
            assert_eq!(city().await.as_deref(), Some("Brno"));
        }
        let one = operation(Verb::Set, "Bonn");
        let two = operation(Verb::Set, "Basel");
        let scope = Scope::new("acme", "bob").unwrap();
        for minute in 3..13 {
            let (one, two) = tokio::join!(
                memory.apply(&scope, &one, "thread 3", at(minute)),
                memory.apply(&scope, &two, "thread 4", at(minute)),
            );
            assert_eq!((one.unwrap(), two.unwrap()), (1, 1), "{minute}");
        }
        assert_eq!(memory.list(&scope).await.unwrap().len(), 1);
    })
    .await;
}
