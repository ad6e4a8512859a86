//! The architect as an agent of the star: it designs a team for a goal, a person agrees, and the supervisor has it.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::design::{MAX_AGENTS, MAX_DEPTH, Material, TeamDesign};
use crate::approval::{self, Decision, Gated};
use crate::{
    ARCHITECT, Agent, AgentCard, AgentError, Assignment, ErrorKind, Founder, GraphState, Report,
    Result, StarParts, TEAM_PREFIX, model::RecordedModel, pipeline::StageError, report::reported,
    seen,
};
use perihelion_engine::graph::{
    Context, EffectClass, EffectFailure, EffectRequest, Node, NodeEntry, NodeOutput, Outcome,
};
use perihelion_llm::{self as llm, ChatModel, ChatRequest, Prompts, Role};
use perihelion_mcp::{ServerInfo, ToolDefinition};

/// The call that a person agrees to, as server and tool.
const SAVE: (&str, &str) = ("teams", "save_team");

const LINE: &str = "Designs a team of agents for work that none of the agents here can do alone and that will come \
    again. Its task is the goal of the team, with all that the team has to be able to do; it does no work itself. The \
    team can be chosen in the next decision.";

#[derive(Debug)]
pub struct Architect {
    card: AgentCard,
}

impl Default for Architect {
    fn default() -> Self {
        let card = AgentCard {
            name: ARCHITECT.to_owned(),
            kind: ARCHITECT.to_owned(),
            capabilities: LINE.to_owned(),
            ..AgentCard::default()
        };
        Self { card }
    }
}

impl Agent for Architect {
    fn card(&self) -> &AgentCard {
        &self.card
    }

    fn menu_line(&self, _: &[usize]) -> String {
        LINE.to_owned()
    }

    fn node(&self, star: &Arc<StarParts>) -> NodeEntry<GraphState> {
        NodeEntry::new(Arc::new(ArchitectNode { star: Arc::clone(star) }))
    }
}

struct ArchitectNode {
    star: Arc<StarParts>,
}

#[async_trait]
impl Node<GraphState> for ArchitectNode {
    async fn run(&self, ctx: Context<GraphState>) -> Result<NodeOutput<GraphState>> {
        let assignment: Assignment = ctx.input()?;
        reported(&ctx, ARCHITECT, "", &assignment, self.report(&ctx, &assignment)).await
    }
}

impl ArchitectNode {
    async fn report(&self, ctx: &Context<GraphState>, assignment: &Assignment) -> Result<Report> {
        let model = RecordedModel::new(ctx, &self.star).in_turn(ctx.state(), ctx.place());
        let model = model.remembering(ctx.state());
        let mut report = Report { attempts: 1, ..Report::default() };
        report.tainted_by.extend(assignment.tainted_by.iter().cloned());
        match self.work(ctx, &model, assignment).await {
            Ok(text) => report.finding.output = text,
            Err(StageError::Failed(error)) => report.error = Some(error),
            Err(StageError::Stop(stop)) => return Err(stop),
        }
        report.spent = model.spent();
        Ok(report)
    }

    async fn work(
        &self,
        ctx: &Context<GraphState>,
        model: &RecordedModel<'_>,
        assignment: &Assignment,
    ) -> Result<String, StageError> {
        let tenant = &ctx.place().tenant;
        let founder = self.star.founder.as_ref();
        let now = match founder {
            Some(founder) => founder.material(tenant).await.map_err(|error| error.to_string()),
            None => Err("no team can be designed here: teams.architect is \"off\"".to_owned()),
        };
        let asks = founder.is_none_or(|founder| founder.asks());
        let seen: (Result<(Vec<ServerInfo>, super::Material), String>, bool) =
            ctx.observe_first(seen::MATERIAL, &(now, asks)).await?;
        let unfit = |why: String| AgentError::new(ErrorKind::Configuration, why);
        let (servers, material) = seen.0.map_err(unfit)?;
        let brief = Brief {
            goal: &assignment.task,
            servers: &servers,
            material: &material,
            thread: self.star.thread(ctx.place()),
        };
        let made = design(model, &self.star.prompts, brief).await?;
        let asks = seen.1 || !assignment.tainted_by.is_empty();
        let made = if asks { self.agreed(ctx, made).await?.cleaned() } else { made };
        // A person may have edited it.
        let problems = made.problems(&material);
        if !problems.is_empty() {
            return Err(unfit(problems.join("; ")).into());
        }
        let version = self.save(ctx, founder, &made).await?;
        let agents: Vec<&str> = made.agents.iter().map(|one| one.name.as_str()).collect();
        let name = &made.name;
        let about = &made.description;
        let agents = agents.join(", ");
        Ok(format!(
            "The team team_{name}, version {version}, can be chosen now: {about} Its agents: {agents}."
        ))
    }

    async fn agreed(
        &self,
        ctx: &Context<GraphState>,
        design: TeamDesign,
    ) -> Result<TeamDesign, StageError> {
        let (server, name) = SAVE;
        if ctx.state().preferences.skip_approvals {
            return Err(approval::not_waited(&format!("{server}.{name}")).into());
        }
        let Value::Object(arguments) = json!(design) else { return Ok(design) };
        let tool = ToolDefinition {
            name: name.to_owned(),
            description: "Saves the team, which supervisors can choose from then on.".to_owned(),
            ..ToolDefinition::default()
        };
        let gated = Gated {
            agent: ARCHITECT,
            server,
            tool: &tool,
            arguments: &arguments,
            tainted_by: Default::default(),
            unknown: None,
            timeout: self.star.limits.approval_timeout,
        };
        let (kind, why) = match approval::decide(ctx, &[gated]).await?.pop() {
            Some(Decision::Approved { arguments: None, .. }) => return Ok(design),
            Some(Decision::Approved { arguments: Some(edited), .. }) => {
                match serde_json::from_value(Value::Object(edited)) {
                    Ok(edited) => return Ok(edited),
                    Err(error) => (
                        ErrorKind::Configuration,
                        format!("the edited design cannot be read: {error}"),
                    ),
                }
            }
            Some(Decision::Denied { reason }) => {
                (ErrorKind::Rejected, format!("a person refused the team: {reason}"))
            }
            _ => (ErrorKind::Timeout, "nobody agreed to the team in time".to_owned()),
        };
        Err(AgentError::new(kind, why).into())
    }

    /// Saves a design once; done again after a crash it is the same version.
    async fn save(
        &self,
        ctx: &Context<GraphState>,
        founder: Option<&Arc<dyn Founder>>,
        design: &TeamDesign,
    ) -> Result<u64, StageError> {
        let tenant = &ctx.place().tenant;
        let (server, name) = SAVE;
        let effect = EffectRequest {
            class: EffectClass::Action { repeatable: true },
            name: format!("{server}.{name}"),
            request: json!(design),
        };
        let perform = Box::new(move |_key| {
            Box::pin(async move {
                let Some(founder) = founder else {
                    return Err(EffectFailure::NoEffect("there is nowhere to save it".to_owned()));
                };
                let saved = founder.found(tenant, design).await;
                saved.map(Value::from).map_err(EffectFailure::no_effect)
            }) as futures::future::BoxFuture<'_, _>
        });
        match ctx.effect(effect, perform).await? {
            Outcome::Value(version) => Ok(version.as_u64().unwrap_or_default()),
            Outcome::Failed(why) => {
                let why = format!("the team was not saved: {why}");
                Err(AgentError::new(ErrorKind::Other, why).into())
            }
        }
    }
}

/// Characters of a server's description, and of a tool's, that the architect is shown.
const SHOWN_CHARS: usize = 240;

const SHOWN_TOOLS: usize = 40;

#[derive(Debug)]
pub struct Brief<'a> {
    pub goal: &'a str,
    pub servers: &'a [ServerInfo],
    /// The same servers by name, and the teams that there are.
    pub material: &'a Material,
    /// The thread ID for the model's endpoint.
    pub thread: String,
}

/// Designs a team; the model gets an invalid design back with its problems, at most twice.
///
/// # Errors
/// [`llm::Error::Invalid`] when no design was acceptable; otherwise the model's own error.
pub async fn design(
    model: &dyn ChatModel,
    prompts: &Prompts,
    brief: Brief<'_>,
) -> Result<TeamDesign, llm::Error> {
    let catalogue: Vec<Value> = brief.servers.iter().map(entry).collect();
    let prompt = json!({
        "goal": brief.goal.trim(),
        "servers": catalogue,
        "teams": brief.material.teams.values().map(of_team).collect::<Vec<_>>(),
        "deepest": MAX_DEPTH,
        "most_agents": MAX_AGENTS,
    });
    let messages = prompts.messages("architect", prompt)?;
    let request = ChatRequest::new(Role::Architect, brief.thread, messages);
    let check = |design: TeamDesign| {
        let design = design.cleaned();
        let problems = design.problems(brief.material);
        if problems.is_empty() { Ok(design) } else { Err(problems) }
    };
    Ok(llm::ask_checked(model, request, "team_design", check).await?.value)
}

fn of_team(team: &TeamDesign) -> Value {
    let name = format!("{TEAM_PREFIX}{}", team.name);
    json!({ "name": name, "description": llm::line(&team.description, SHOWN_CHARS) })
}

/// Returns the description of a server for the architect; without its own words if it reaches the open world.
fn entry(server: &ServerInfo) -> Value {
    let tools = server.tools.iter().filter(|_| !server.open_world).take(SHOWN_TOOLS);
    let tools = tools.map(|tool| {
        if server.undeclared {
            tool.name.clone()
        } else {
            format!("{}: {}", tool.name, llm::line(&tool.description, SHOWN_CHARS))
        }
    });
    json!({
        "name": server.name,
        "description": llm::line(&server.description, SHOWN_CHARS),
        "tools": tools.collect::<Vec<_>>(),
    })
}
