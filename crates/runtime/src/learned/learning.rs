//! Skills: shown before work, learned after it. Memories: the user's words become facts and preferences, in parallel with
//! the run and never before it.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use perihelion_memory::{Call, Operations, Question, Skill, Skills, ToolHashes, distil};
use perihelion_recall::Scope;

use super::{Error, MemoryService, NOTHING_LEARNED, Shared, embed};
use perihelion_engine::clock;
use perihelion_llm::{self as llm, ChatRequest, Role};
use perihelion_mcp::{ServerInfo, ToolDefinition};
use perihelion_star::{CallRecord, ShownSkill, Statement, Work, is_built_in};
use serde_json::json;

const SHOWN: usize = 3;

impl MemoryService {
    pub(super) async fn similar(
        &self,
        tenant: &str,
        agent: &str,
        server: &ServerInfo,
        task: &str,
    ) -> Result<Vec<ShownSkill>, Error> {
        let scope = Scope::new(tenant, agent)?;
        self.lessons.kept(&scope).await;
        let tools = hashes(&server.tools);
        let vector = self.vector(&scope, task).await;
        let question = Question { task, tools: &tools, vector, limit: SHOWN };
        let found = self.skills.recall(&scope, question, clock::now()).await?;
        let shown = |skill: Skill| ShownSkill {
            solution: skill.solution(),
            id: skill.id,
            task: skill.task,
        };
        Ok(found.into_iter().map(shown).collect())
    }

    /// Stores the lessons of work in a separate task: no run waits for it.
    pub(super) fn learn(&self, work: Work<'_>) -> Result<(), Error> {
        let lesson = Lesson::of(work)?;
        let skills = self.skills.clone();
        let scope = lesson.scope.clone();
        let kept = self.lessons.queue(scope.clone(), async move {
            if let Err(error) = lesson.keep(&skills).await {
                tracing::warn!(%error, "{NOTHING_LEARNED}");
            }
        });
        let index = self.skills.index.clone();
        let shared = Arc::clone(&self.shared);
        self.tasks.spawn(async move {
            kept.await;
            if let Err(error) = embed(&index, shared.embeddings.as_ref(), &scope).await {
                tracing::warn!(%error, "a new skill is found by words alone for now");
            }
        });
        Ok(())
    }
}

struct Lesson {
    scope: Scope,
    /// The lesson, if the work is an example.
    skill: Option<Skill>,
    shown: Vec<String>,
    succeeded: bool,
    at: DateTime<Utc>,
}

impl Lesson {
    fn of(work: Work<'_>) -> Result<Self, Error> {
        let at = clock::now();
        Ok(Self {
            scope: Scope::new(work.tenant, work.agent)?,
            skill: work.is_exemplary.then(|| skill(&work, at)).flatten(),
            shown: work.skills.iter().map(|skill| skill.id.clone()).collect(),
            succeeded: work.succeeded,
            at,
        })
    }

    async fn keep(self, skills: &Skills) -> Result<(), Error> {
        let Self { scope, skill, mut shown, succeeded, at } = self;
        if let Some(skill) = skill {
            let learned = skills.learn(skill, scope.tenant(), at).await?;
            // What was learned again is counted already.
            shown.retain(|id| *id != learned.id);
        }
        Ok(skills.used(&scope, &shown, succeeded, at).await?)
    }
}

fn skill(work: &Work<'_>, now: DateTime<Utc>) -> Option<Skill> {
    let call = |call: &CallRecord| Call {
        tool: call.tool.clone(),
        arguments: call.arguments.clone(),
        result: call.output.clone(),
        // What the program itself offers is no tool of the server.
        is_step: !call.is_error && !is_built_in(&call.tool),
    };
    let calls: Vec<Call> = work.calls.iter().map(call).collect();
    let lesson = distil(work.task, &calls)?;
    let mut tools = hashes(&work.server.tools);
    tools.retain(|name, _| lesson.steps.iter().any(|step| step.tool == *name));
    Some(Skill {
        agent: work.agent.to_owned(),
        server: work.server.name.clone(),
        task: lesson.task,
        steps: lesson.steps,
        tools,
        outcome: "APPROVED".to_owned(),
        successes: 1,
        source: work.source.to_owned(),
        made_at: now,
        used_at: now,
        ..Skill::default()
    })
}

/// Returns the tools' definitions as hashes: another definition is another tool.
fn hashes(tools: &[ToolDefinition]) -> ToolHashes {
    let hash = |tool: &ToolDefinition| {
        let text = (&tool.name, &tool.description, &tool.input_schema);
        let bytes = serde_json::to_vec(&text).unwrap_or_default();
        let hash: String = blake3::hash(&bytes).to_hex().chars().take(32).collect();
        (tool.name.clone(), hash)
    };
    tools.iter().map(hash).collect()
}

const SCHEMA: &str = "user_memory";

/// Characters of a message that are looked at.
const CHARS: usize = 8_000;

/// Asks the extractor for the memorable part of a user's words, and stores it; a failure is logged.
pub(super) async fn listen(shared: &Shared, scope: &Scope, heard: Statement, at: DateTime<Utc>) {
    let thread = heard.thread.clone();
    if let Err(error) = remember(shared, scope, heard, at).await {
        tracing::warn!(%error, thread, "cannot store memories of the user");
    }
}

async fn remember(
    shared: &Shared,
    scope: &Scope,
    heard: Statement,
    at: DateTime<Utc>,
) -> Result<(), Error> {
    // Keys alone: values that were recalled must not be extracted again.
    let known = shared.memory.list(scope).await?;
    let keys: Vec<&str> = known.iter().map(|entry| entry.key.as_str()).collect();
    let text: String = heard.text.chars().take(CHARS).collect();
    let prompt = json!({ "message": text, "keys": keys });
    let messages = shared.prompts.messages("extractor", prompt)?;
    let request =
        ChatRequest::new(Role::Extractor, heard.thread.clone(), messages).stage("extract");
    let answer = llm::ask::<Operations>(shared.model.as_ref(), request, SCHEMA).await?;
    let source = format!("thread {} turn {}", heard.thread, heard.turn);
    let done = shared.memory.apply(scope, &answer.value, &source, at).await?;
    if done > 0 {
        embed(&shared.memory.index, shared.embeddings.as_ref(), scope).await?;
    }
    Ok(())
}
