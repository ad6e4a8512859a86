//! The architect as an agent of the star: it designs a team for a goal, a person agrees, and the supervisor has it.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::ARCHITECT;
use super::architect::{Brief, design};
use super::design::TeamDesign;
use crate::agent::{Agent, AgentCard};
use crate::approval::{self, Decision, Gated};
use crate::assignment::Assignment;
use crate::event::AgentEvent;
use crate::founder::Founder;
use crate::model::{RecordedModel, stop_or_failure};
use crate::parts::StarParts;
use crate::report::{Report, Reported};
use crate::result::{AgentError, ErrorKind};
use crate::seen;
use crate::state::GraphState;
use perihelion_engine::clock;
use perihelion_engine::graph::{
    Context, EffectClass, EffectFailure, EffectRequest, Node, NodeEntry, NodeError, NodeOutput,
    Outcome,
};
use perihelion_mcp::{ServerInfo, ToolDefinition};

/// The call that a person agrees to, as server and tool.
const SAVE: (&str, &str) = ("teams", "save_team");

/// What the supervisor reads of it.
const LINE: &str = "Designs a team of agents for work that none of the agents here can do alone and that will come \
    again. Its task is the goal of the team, with all that the team has to be able to do; it does no work itself. The \
    team can be chosen in the next decision.";

/// The architect of the star.
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

/// Its node.
struct ArchitectNode {
    star: Arc<StarParts>,
}

#[async_trait]
impl Node<GraphState> for ArchitectNode {
    async fn run(&self, ctx: Context<GraphState>) -> Result<NodeOutput<GraphState>, NodeError> {
        let assignment: Assignment = ctx.input()?;
        let began = clock::monotonic();
        let model = RecordedModel::new(&ctx, &self.star).remembering(ctx.state());
        let mut report = Report { attempts: 1, ..Report::default() };
        report.tainted_by.extend(assignment.tainted_by.iter().cloned());
        match self.work(&ctx, &model, &assignment).await? {
            Ok(text) => report.finding.output = text,
            Err(error) => report.error = Some(error),
        }
        report.spent = model.spent();
        let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let latency_ms = ctx.observe_unless(seen::LATENCY, &0, &took).await?;
        AgentEvent::AgentResult {
            agent: ARCHITECT.to_owned(),
            reflection: report.reflection.clone(),
            error: report.error.as_ref().map(ToString::to_string),
            not_mine: false,
            usage: report.spent.usage,
        }
        .publish(&ctx);
        let state = ctx.state();
        let step = ctx.place().step;
        let index = ctx.place().task;
        let of =
            Reported { state, step, index, agent: ARCHITECT, server: "", assignment, latency_ms };
        Ok(NodeOutput::update(report.into_update(of)))
    }
}

/// What comes of it, beside a node that has to stop.
type Worked = Result<Result<String, AgentError>, NodeError>;

impl ArchitectNode {
    async fn work(
        &self,
        ctx: &Context<GraphState>,
        model: &RecordedModel<'_>,
        assignment: &Assignment,
    ) -> Worked {
        let tenant = &ctx.place().tenant;
        let founder = self.star.founder.as_ref();
        let now = match founder {
            Some(founder) => founder.material(tenant).await,
            None => Err("no team can be designed here: teams.architect is \"off\"".to_owned()),
        };
        let asks = founder.is_none_or(|founder| founder.asks());
        let seen: (Result<(Vec<ServerInfo>, super::Material), String>, bool) =
            ctx.observe_first(seen::MATERIAL, &(now, asks)).await?;
        let (servers, material) = match seen.0 {
            Ok(material) => material,
            Err(why) => return Ok(Err(AgentError::new(ErrorKind::Configuration, why))),
        };
        let brief = Brief {
            goal: &assignment.task,
            servers: &servers,
            material: &material,
            thread: self.star.thread(ctx.place()),
        };
        let made = match design(model, &self.star.prompts, brief).await {
            Ok(made) => made,
            Err(error) => return Ok(Err(stop_or_failure(error)?.into())),
        };
        let made = match self.agreed(ctx, made, seen.1 || !assignment.tainted_by.is_empty()).await?
        {
            Ok(made) => made.cleaned(),
            Err(refused) => return Ok(Err(refused)),
        };
        // A person may have edited it.
        let problems = made.problems(&material);
        if !problems.is_empty() {
            return Ok(Err(AgentError::new(ErrorKind::Configuration, problems.join("; "))));
        }
        match self.save(ctx, founder, &made).await? {
            Ok(version) => {
                let agents: Vec<&str> = made.agents.iter().map(|one| one.name.as_str()).collect();
                let name = &made.name;
                let about = &made.description;
                let agents = agents.join(", ");
                Ok(Ok(format!(
                    "The team team_{name}, version {version}, can be chosen now: {about} Its agents: {agents}."
                )))
            }
            Err(why) => {
                Ok(Err(AgentError::new(ErrorKind::Other, format!("the team was not saved: {why}"))))
            }
        }
    }

    /// Has a person agree to a design, who may change it.
    async fn agreed(
        &self,
        ctx: &Context<GraphState>,
        design: TeamDesign,
        asks: bool,
    ) -> Result<Result<TeamDesign, AgentError>, NodeError> {
        if !asks {
            return Ok(Ok(design));
        }
        let (server, name) = SAVE;
        if ctx.state().preferences.skip_approvals {
            return Ok(Err(approval::not_waited(&format!("{server}.{name}"))));
        }
        let Value::Object(arguments) = json!(design) else { return Ok(Ok(design)) };
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
        let decision = approval::decide(ctx, &[gated]).await?.pop();
        Ok(match decision {
            Some(Decision::Approved { arguments: Some(edited), .. }) => {
                serde_json::from_value(Value::Object(edited)).map_err(|error| {
                    let why = format!("the edited design cannot be read: {error}");
                    AgentError::new(ErrorKind::Configuration, why)
                })
            }
            Some(Decision::Approved { .. }) => Ok(design),
            Some(Decision::Denied { reason }) => Err(AgentError::new(
                ErrorKind::Rejected,
                format!("a person refused the team: {reason}"),
            )),
            _ => Err(AgentError::new(ErrorKind::Timeout, "nobody agreed to the team in time")),
        })
    }

    /// Saves a design once; done again after a crash it is the same version.
    async fn save(
        &self,
        ctx: &Context<GraphState>,
        founder: Option<&Arc<dyn Founder>>,
        design: &TeamDesign,
    ) -> Result<Result<u64, String>, NodeError> {
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
                saved.map(Value::from).map_err(EffectFailure::NoEffect)
            }) as futures::future::BoxFuture<'_, _>
        });
        Ok(match ctx.effect(effect, perform).await? {
            Outcome::Value(version) => Ok(version.as_u64().unwrap_or_default()),
            Outcome::Failed(why) => Err(why),
        })
    }
}
