//! Skills: shown before work, learned after it.

use perihelion_memory::{Call, Question, Skill, ToolHashes, distil};
use perihelion_recall::Scope;

use super::{Error, Remembering, embed};
use crate::clock;
use crate::mcp::{ServerInfo, ToolDefinition};
use crate::swarm::{ShownSkill, Work, is_built_in};

/// Skills that an agent is shown.
const SHOWN: usize = 3;

impl Remembering {
    /// Returns skills that are like a task, as the agent is shown them.
    pub(super) async fn similar(
        &self,
        tenant: &str,
        agent: &str,
        server: &ServerInfo,
        task: &str,
    ) -> Result<Vec<ShownSkill>, Error> {
        let scope = Scope::new(tenant, agent)?;
        let tools = hashes(&server.tools);
        let vector = self.vector(&scope, task).await;
        let question = Question { task, tools: &tools, vector, limit: SHOWN };
        let found = self.skills.recall(&scope, question, clock::now()).await?;
        let shown = |skill: Skill| ShownSkill {
            solution: skill.solution(),
            id: skill.id,
            task: skill.task,
        };
        Ok(found.into_iter().map(|one| shown(one.skill)).collect())
    }

    /// Notes how work ended in which skills were shown, and learns from it where it is an example.
    pub(super) async fn learn(&self, work: Work<'_>) -> Result<(), Error> {
        let scope = Scope::new(work.tenant, work.agent)?;
        let now = clock::now();
        let learned = match work.is_exemplary {
            true => self.learn_from(&scope, work).await?,
            false => None,
        };
        // What was learned again is counted already.
        let ids =
            work.skills.iter().map(|skill| &skill.id).filter(|id| learned.as_ref() != Some(*id));
        let ids: Vec<String> = ids.cloned().collect();
        Ok(self.skills.used(&scope, &ids, work.succeeded, now).await?)
    }

    /// Learns a skill from work that is an example, and returns its id.
    async fn learn_from(&self, scope: &Scope, work: Work<'_>) -> Result<Option<String>, Error> {
        let now = clock::now();
        // What the program itself offers is no tool of the server.
        let of_server = work.calls.iter().filter(|call| !is_built_in(&call.tool));
        let calls: Vec<Call> = of_server
            .map(|call| Call {
                tool: call.tool.clone(),
                arguments: call.arguments.clone(),
                is_error: call.is_error,
            })
            .collect();
        let Some(lesson) = distil(work.task, &calls) else { return Ok(None) };
        let mut tools = hashes(&work.server.tools);
        tools.retain(|name, _| lesson.steps.iter().any(|step| step.tool == *name));
        let skill = Skill {
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
        };
        let kept = self.skills.learn(skill, scope.tenant(), now).await?;
        let scope = scope.clone();
        let (index, shared) = (self.skills.index().clone(), std::sync::Arc::clone(&self.shared));
        self.tasks.spawn(async move {
            if let Err(error) = embed(&index, shared.embeddings.as_ref(), &scope).await {
                tracing::warn!(%error, "a new skill is found by words alone for now");
            }
        });
        Ok(Some(kept.id))
    }
}

/// Returns the tools' definitions as hashes: another definition is another tool.
fn hashes(tools: &[ToolDefinition]) -> ToolHashes {
    let hash = |tool: &ToolDefinition| {
        let said = (&tool.name, &tool.description, &tool.input_schema);
        let bytes = serde_json::to_vec(&said).unwrap_or_default();
        let hash: String = blake3::hash(&bytes).to_hex().chars().take(32).collect();
        (tool.name.clone(), hash)
    };
    tools.iter().map(hash).collect()
}
