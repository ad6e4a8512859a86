//! Skills are learned, merged, shown, trusted less, and forgotten.

use chrono::{DateTime, TimeDelta, Utc};
use perihelion_memory::{Call, Error, Question, Skill, Skills, ToolHashes, distil};
use perihelion_recall::Scope;
use serde_json::{Value, json};

use crate::databases::on_each;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn tools() -> ToolHashes {
    [("query".to_owned(), "h1".to_owned()), ("list".to_owned(), "h2".to_owned())].into()
}

fn call(tool: &str, arguments: Value) -> Call {
    Call { tool: tool.to_owned(), arguments, result: String::new(), is_step: true }
}

fn learned(task: &str, city: &str, source: &str) -> Skill {
    let calls = [call("query", json!({ "city": city }))];
    let lesson = distil(task, &calls).unwrap();
    Skill {
        agent: "mcp_agent_db".to_owned(),
        server: "db".to_owned(),
        task: lesson.task,
        steps: lesson.steps,
        tools: [("query".to_owned(), "h1".to_owned())].into(),
        outcome: "APPROVED".to_owned(),
        successes: 1,
        source: source.to_owned(),
        made_at: now(),
        used_at: now(),
        ..Skill::default()
    }
}

fn scope() -> Scope {
    Scope::new("acme", "mcp_agent_db").unwrap()
}

async fn asked(skills: &Skills, scope: &Scope, task: &str, tools: &ToolHashes) -> Vec<String> {
    let question = Question { task, tools, vector: None, limit: 3 };
    let found = skills.recall(scope, question, now()).await.unwrap();
    found.into_iter().map(|skill| skill.task).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_similar_to_a_solved_one_gets_its_method_and_another_task_does_not() {
    on_each(|index| async move {
        let skills = Skills { index };
        let skill = learned("How many orders came from Berlin?", "Berlin", "t1");
        skills.learn(skill, "acme", now()).await.unwrap();
        let found = asked(&skills, &scope(), "How many orders came from Lisbon?", &tools()).await;
        assert_eq!(found, ["How many orders came from {city}?"]);
        assert!(asked(&skills, &scope(), "What is the weather like?", &tools()).await.is_empty());
        let other_agent = Scope::new("acme", "mcp_agent_mail").unwrap();
        let other_tenant = Scope::new("rival", "mcp_agent_db").unwrap();
        for other in [other_agent, other_tenant] {
            assert!(
                asked(&skills, &other, "How many orders came from Lisbon?", &tools())
                    .await
                    .is_empty()
            );
        }
    })
    .await;
}

/// S1.11
#[tokio::test(flavor = "multi_thread")]
async fn near_duplicates_become_one_skill_and_the_same_work_teaches_once() {
    on_each(|index| async move {
        let skills = Skills { index };
        for (city, source) in [("Berlin", "t1"), ("Paris", "t2"), ("Paris", "t2")] {
            let task = format!("How many orders came from {city}?");
            skills.learn(learned(&task, city, source), "acme", now()).await.unwrap();
        }
        let all = skills.list("acme").await.unwrap();
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!((all[0].successes, all[0].source.as_str()), (2, "t2"));
        // A way around is the same skill, and does not replace the shorter one.
        let detour = [("list", json!({})), ("query", json!({ "city": "Rome" }))]
            .map(|(tool, arguments)| call(tool, arguments));
        let lesson = distil("How many orders came from Rome?", &detour).unwrap();
        let longer = Skill {
            steps: lesson.steps,
            ..learned("How many orders came from Rome?", "Rome", "t3")
        };
        skills.learn(longer, "acme", now()).await.unwrap();
        let all = skills.list("acme").await.unwrap();
        assert_eq!((all.len(), all[0].steps.len(), all[0].successes), (1, 1, 3));
        let found = asked(&skills, &scope(), "How many orders came from Oslo?", &tools()).await;
        assert_eq!(found, ["How many orders came from {city}?"]);
    })
    .await;
}

/// S1.11
#[tokio::test(flavor = "multi_thread")]
async fn failures_take_a_skill_out_of_use_and_so_does_a_changed_tool() {
    on_each(|index| async move {
        let skills = Skills { index };
        let task = "How many orders came from Berlin?";
        let kept = skills.learn(learned(task, "Berlin", "t1"), "acme", now()).await.unwrap();
        let changed: ToolHashes = [("query".to_owned(), "another".to_owned())].into();
        assert!(asked(&skills, &scope(), task, &changed).await.is_empty());
        assert!(skills.list("acme").await.unwrap()[0].is_stale);
        assert_eq!(
            asked(&skills, &scope(), task, &tools()).await.len(),
            1,
            "the tool is as it was again"
        );
        for _ in 0..4 {
            skills.used(&scope(), std::slice::from_ref(&kept.id), false, now()).await.unwrap();
        }
        assert!(asked(&skills, &scope(), task, &tools()).await.is_empty());
        for _ in 0..9 {
            skills.used(&scope(), std::slice::from_ref(&kept.id), true, now()).await.unwrap();
        }
        assert_eq!(asked(&skills, &scope(), task, &tools()).await.len(), 1);
        let question = Question { task, tools: &tools(), vector: None, limit: 3 };
        let later = now() + TimeDelta::days(365);
        assert!(skills.recall(&scope(), question, later).await.unwrap().is_empty(), "it faded");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn skills_are_listed_searched_exported_imported_and_deleted() {
    on_each(|index| async move {
        let skills = Skills { index };
        skills
            .learn(learned("How many orders came from Berlin?", "Berlin", "t1"), "acme", now())
            .await
            .unwrap();
        skills
            .learn(learned("Cancel the subscription in Rome", "Rome", "t2"), "acme", now())
            .await
            .unwrap();
        let found = skills.search("acme", "subscriptions", 5).await.unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(skills.show("acme", &found[0].id[..6]).await.unwrap(), found[0]);
        assert!(matches!(skills.show("rival", &found[0].id).await, Err(Error::UnknownSkill(_))));
        let lines = skills.export("acme").await.unwrap();
        assert_eq!(skills.import("other", &lines, now()).await.unwrap(), 2);
        assert_eq!(skills.import("other", &lines, now()).await.unwrap(), 2);
        assert_eq!(skills.list("other").await.unwrap().len(), 2);
        let bad = skills.import("other", "{\"agent\": 1}", now()).await.unwrap_err();
        assert!(bad.to_string().starts_with("line 1 "), "{bad}");
        let huge = lines.replacen("\"successes\":1", "\"successes\":18446744073709551615", 1);
        let bad = skills.import("other", &huge, now()).await.unwrap_err();
        assert!(bad.to_string().starts_with("line 1 "), "{bad}");
        skills.forget("acme", &found[0].id).await.unwrap();
        assert_eq!(skills.list("acme").await.unwrap().len(), 1);
        assert!(skills.search("acme", "subscriptions", 5).await.unwrap().is_empty());
        assert!(matches!(skills.forget("acme", &found[0].id).await, Err(Error::UnknownSkill(_))));
    })
    .await;
}
