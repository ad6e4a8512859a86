//! The start of a team's star, and its result in the parent star: one result with all its marks.

use super::GONE;
use super::design::{MAX_DEPTH, TeamDesign};
use crate::addresses::Shown;
use crate::{
    AgentError, AgentResult, Allowance, Assignment, CallRecord, DependencyOutput, ErrorKind,
    FinishReason, GraphState, GraphUpdate, Preferences, ReflectionVerdict, Report, Result,
    ResultStatus, Table, check_citations, taint,
};
use perihelion_engine::graph::Context;

/// Verdicts on results, the least certain first.
const VERDICTS: [ReflectionVerdict; 4] = [
    ReflectionVerdict::Rejected,
    ReflectionVerdict::Unverified,
    ReflectionVerdict::Fixed,
    ReflectionVerdict::Approved,
];

pub(super) fn report_of(end: &GraphState, assignment: &Assignment) -> Report {
    let results: Vec<&AgentResult> = end.results_of_turn().collect();
    let found: Vec<&AgentResult> =
        results.iter().copied().filter(|one| one.status == ResultStatus::Success).collect();
    // Its numbers are those of the team's own results, which nobody sees above.
    let answer = check_citations(end.answer.as_deref().unwrap_or_default(), 0).text;
    let mut report = Report {
        attempts: 1,
        spent: end.spent,
        tainted_by: taint::of_talk(end),
        ..Report::default()
    };
    report.tainted_by.extend(assignment.tainted_by.iter().cloned());
    report.finding.output = answer;
    report.finding.table = found.iter().rev().find_map(|one| one.tabular.clone()).map(|table| {
        Table { artifact: table.artifact.map(|key| below(assignment, &key)), ..table }
    });
    report.finding.chart = found.iter().rev().find_map(|one| one.chart.clone());
    report.finding.sources = found.iter().flat_map(|one| one.sources.clone()).collect();
    report.finding.citations_removed = end.citations_removed_of_turn();
    report.finding.confidence =
        found.iter().filter_map(|one| one.confidence).min_by(|one, other| one.total_cmp(other));
    report.calls = results.iter().flat_map(|one| calls_of(one)).collect();
    report.instructions = results.iter().flat_map(|one| one.instructions.clone()).collect();
    let artifacts = end.global_state.iter();
    report.artifacts = artifacts.map(|(key, one)| (below(assignment, key), one.clone())).collect();
    let stands =
        |verdict: &ReflectionVerdict| found.iter().any(|one| one.reflection == verdict.as_str());
    report.reflection = VERDICTS.into_iter().find(stands).unwrap_or_default();
    report.error = failure(end, &results, &found);
    report
}

/// Returns why a team failed: there are no findings, although tasks were tried or could not be.
fn failure(
    end: &GraphState,
    results: &[&AgentResult],
    found: &[&AgentResult],
) -> Option<AgentError> {
    if !found.is_empty() {
        return None;
    }
    if let Some(ended) = &end.finish_reason {
        let kind = match ended.reason {
            FinishReason::Limit => ErrorKind::Budget,
            FinishReason::ModelFailed | FinishReason::Truncated => ErrorKind::Model,
            _ => ErrorKind::Other,
        };
        return Some(AgentError::new(kind, format!("the team ended early: {}", ended.text)));
    }
    let error = results.iter().rev().find_map(|one| Some((one, one.error.as_ref()?)));
    error.map(|(one, error)| AgentError {
        message: format!("{}: {}", one.agent, error.message),
        ..error.clone()
    })
}

fn calls_of(result: &AgentResult) -> impl Iterator<Item = CallRecord> {
    result.tools.iter().map(|call| CallRecord {
        tool: call.tool.clone(),
        arguments: call.arguments.clone(),
        output: String::new(),
        is_error: call.is_error || result.status == ResultStatus::Failed,
        source: call.tool.clone(),
    })
}

fn below(assignment: &Assignment, key: &str) -> String {
    format!("{}/{key}", assignment.id)
}

/// Reports that none of a team's agents can work.
pub(super) fn nobody(design: &TeamDesign) -> Report {
    if design.agents.is_empty() {
        return unusable(GONE.to_owned());
    }
    let mut servers: Vec<&str> =
        design.agents.iter().flat_map(|agent| &agent.servers).map(String::as_str).collect();
    servers.sort_unstable();
    servers.dedup();
    unusable(format!("none of the team's servers is available: {}", servers.join(", ")))
}

fn unusable(message: String) -> Report {
    let error = Some(AgentError::new(ErrorKind::Configuration, message));
    Report { error, ..Report::default() }
}

pub(super) fn too_deep() -> Report {
    unusable(format!("teams can be nested at most {MAX_DEPTH} deep; change one of them"))
}

/// Returns the start of a team: its task as the request, and the sources of the task.
pub(super) async fn opening_of(
    ctx: &Context<GraphState>,
    assignment: &Assignment,
    allowance: Allowance,
) -> Result<GraphUpdate> {
    let state = ctx.state();
    let mut request = assignment.described();
    for upstream in &assignment.dependency_outputs {
        let DependencyOutput { agent, task, output } = upstream;
        request.push_str(&format!("\n\nWhat {agent} found for \"{task}\":\n{output}"));
    }
    let tainted_by = assignment.tainted_by.clone();
    let Preferences { skip_approvals, interactive, .. } = state.preferences;
    // Its own agents have other names; teams within it keep off the same ones.
    let disable = state.preferences.disable.clone();
    let preferences = Preferences {
        disable,
        tainted_by,
        skip_approvals,
        interactive,
        allowance: Some(allowance),
        invented: Shown::at_opening(state).unknown_in(ctx, &request).await?,
        ..Preferences::default()
    };
    let update = GraphUpdate::new()
        .input_request(request)
        .request_context(state.request_context.clone())
        .preferences(preferences);
    Ok(GraphUpdate { user: state.user.clone().map(Some), ..update })
}
