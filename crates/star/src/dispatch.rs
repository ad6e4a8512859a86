//! Hands tasks out, stage by stage: no model is asked while every upstream task succeeded (S3.01).

use serde_json::json;

use super::assignment::{Assignment, DependencyOutput};
use super::event::AgentEvent;
use super::result::{AgentResult, ResultStatus};
use super::state::{GraphState, GraphUpdate, Routing};
use perihelion_engine::graph::{Context, NodeOutput, Target};

/// Sends the first of the stages out and keeps the rest.
pub(super) fn dispatch(
    ctx: &Context<GraphState>,
    update: GraphUpdate,
    routing: Routing,
    mut stages: Vec<Vec<Assignment>>,
) -> NodeOutput<GraphState> {
    let rest = stages.split_off(stages.len().min(1));
    let stage: Vec<Assignment> =
        stages.into_iter().flatten().map(|task| with_outputs(task, ctx.state())).collect();
    let mut next: Vec<String> = Vec::new();
    for task in &stage {
        if !next.contains(&task.agent) {
            next.push(task.agent.clone());
        }
    }
    let routing =
        Routing { dispatched: stage.iter().map(|task| task.id.clone()).collect(), ..routing };
    AgentEvent::Stage { agents: next.clone(), remaining: rest.len() }.publish(ctx);
    let targets: Vec<Target> =
        stage.into_iter().map(|task| Target::send(task.agent.clone(), json!(task))).collect();
    NodeOutput::goto(update.routing(routing).stages(rest).next_step(next), targets)
}

/// Sends out the next stage of the plan as it stands.
pub(super) fn next_stage(ctx: &Context<GraphState>) -> NodeOutput<GraphState> {
    let state = ctx.state();
    dispatch(ctx, GraphUpdate::new(), state.routing.clone(), state.stages.clone())
}

/// Returns the tasks handed out last that did not succeed.
pub(super) fn failed_of_stage(state: &GraphState) -> Vec<String> {
    let succeeded = |id: &&String| {
        state.result_of(id).is_some_and(|result| result.status == ResultStatus::Success)
    };
    state.routing.dispatched.iter().filter(|id| !succeeded(id)).cloned().collect()
}

/// Names the tasks of the plan that were never handed out, and why; empty when there are none.
pub(super) fn not_started(state: &GraphState, why: &str) -> Vec<String> {
    let tasks = state.stages.iter().flatten();
    tasks
        .map(|task| format!("not started, because {why}: {} ({})", task.agent, task.task))
        .collect()
}

/// Returns an assignment with the outputs of the tasks that it depends on.
fn with_outputs(mut task: Assignment, state: &GraphState) -> Assignment {
    let output = |result: &AgentResult| DependencyOutput {
        task: result.task.clone(),
        agent: result.agent.clone(),
        output: match (&result.status, &result.error) {
            (ResultStatus::Failed, Some(error)) => format!("(failed: {error})\n{}", result.output),
            _ => result.output.clone(),
        },
    };
    let upstream: Vec<&AgentResult> =
        task.depends_on.iter().filter_map(|id| state.result_of(id)).collect();
    task.dependency_outputs = upstream.iter().map(|result| output(result)).collect();
    task.tainted_by.extend(upstream.iter().flat_map(|result| result.tainted_by.iter().cloned()));
    task
}
