//! Events of agents as lines of progress.

use serde_json::Value;

use super::SHOWN;
use crate::cli::output::brief;
use perihelion_star::AgentEvent;

pub(super) struct Line {
    pub text: String,
    /// It stays visible on a terminal, where other lines disappear.
    pub lasts: bool,
}

/// Returns the line of an event; `None` if the outcome contains it.
pub(super) fn line_of(event: &AgentEvent) -> Option<Line> {
    let text = match event {
        AgentEvent::Decision { thought, .. } => {
            format!("supervisor: {}", brief(thought, SHOWN))
        }
        AgentEvent::Search { query, found } => {
            let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
            format!("supervisor: searches for agents ({}): {found}", brief(query, SHOWN))
        }
        AgentEvent::Stage { agents, remaining: 0 } => format!("starting {}", agents.join(", ")),
        AgentEvent::Stage { agents, remaining } => {
            format!("starting {} ({remaining} more stages to follow)", agents.join(", "))
        }
        AgentEvent::PipelineStage { agent, stage, attempt: 0 | 1 } => {
            format!("{agent}: {stage}")
        }
        AgentEvent::PipelineStage { agent, stage, attempt } => {
            format!("{agent}: {stage} (attempt {attempt})")
        }
        AgentEvent::Progress { agent, message } => {
            format!("{agent}: {}", brief(message, SHOWN))
        }
        AgentEvent::ToolCall { agent, tool, arguments, .. } => {
            let arguments = Value::Object(arguments.clone()).to_string();
            format!("{agent}: calls {tool} {}", brief(&arguments, SHOWN))
        }
        AgentEvent::ToolRecorded { agent, tool, .. } => {
            format!("{agent}: reuses the recorded call of {tool}")
        }
        AgentEvent::ToolProgress { agent, tool, done, total, message } => {
            let how_far = match total.filter(|total| *total > 0.0) {
                Some(total) => format!("{:.0}%", 100.0 * (done / total).clamp(0.0, 1.0)),
                None => format!("{done:.0}"),
            };
            format!("{agent}: {tool} {how_far} {}", brief(message, SHOWN))
        }
        AgentEvent::ToolResult { agent, tool, is_error, preview, .. } => {
            let how = if *is_error { "failed" } else { "returned" };
            format!("{agent}: {tool} {how}: {}", brief(preview, SHOWN))
        }
        AgentEvent::HitlRequired { agent, tool, .. } => {
            format!("{agent}: {tool} is waiting for approval")
        }
        AgentEvent::HitlApproved { agent, tool, .. } => format!("{agent}: {tool} approved"),
        AgentEvent::HitlDenied { agent, tool, reason } => {
            format!("{agent}: {tool} denied: {reason}")
        }
        AgentEvent::HitlTimeout { agent, tool } => {
            format!("{agent}: the approval of {tool} timed out")
        }
        AgentEvent::HitlSkipped { agent, tool } => {
            format!("{agent}: {tool} skipped, because this request does not wait for approval")
        }
        AgentEvent::Reflection { agent, status, attempt, of, .. } => {
            format!("{agent}: review {attempt} of {of}: {}", status.as_str())
        }
        AgentEvent::AgentResult { agent, error, not_mine, .. } => match error {
            Some(error) if *not_mine => {
                format!("{agent}: returned the task: {}", brief(error, SHOWN))
            }
            None => format!("{agent}: done"),
            Some(error) => format!("{agent}: failed: {}", brief(error, SHOWN)),
        },
        AgentEvent::DecisionRefused { .. } | AgentEvent::EndedEarly { .. } => return None,
    };
    Some(Line { text, lasts: lasts(event) })
}

/// Returns whether the line stays visible after the next event: decisions of people, and failures.
fn lasts(event: &AgentEvent) -> bool {
    matches!(
        event,
        AgentEvent::HitlRequired { .. }
            | AgentEvent::HitlApproved { .. }
            | AgentEvent::HitlDenied { .. }
            | AgentEvent::HitlTimeout { .. }
            | AgentEvent::HitlSkipped { .. }
            | AgentEvent::ToolRecorded { .. }
            | AgentEvent::AgentResult { error: Some(_), .. }
            | AgentEvent::ToolResult { is_error: true, .. }
    )
}
