//! What the star's nodes say of themselves, each in a line.

use serde_json::Value;

use super::SHOWN;
use crate::cli::output::brief;
use perihelion_star::AgentEvent;

/// A line of progress.
pub(super) struct Line {
    pub text: String,
    /// It stays in sight on a terminal, where the others pass by.
    pub lasts: bool,
}

/// Returns the line of an event; nothing for what the outcome says.
pub(super) fn line_of(event: &AgentEvent) -> Option<Line> {
    let text = match event {
        AgentEvent::Decision { thought, .. } => {
            format!("supervisor: {}", brief(thought, SHOWN))
        }
        AgentEvent::Search { query, found } => {
            let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
            format!("supervisor: looks for agents ({}): {found}", brief(query, SHOWN))
        }
        AgentEvent::Stage { agents, remaining: 0 } => format!("stage: {}", agents.join(", ")),
        AgentEvent::Stage { agents, remaining } => {
            format!("stage: {} ({remaining} to come)", agents.join(", "))
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
        AgentEvent::ToolCall { agent, tool, arguments } => {
            let arguments = Value::Object(arguments.clone()).to_string();
            format!("{agent}: calls {tool} {}", brief(&arguments, SHOWN))
        }
        AgentEvent::ToolRecorded { agent, tool, .. } => {
            format!("{agent}: reads back the recorded call of {tool}")
        }
        AgentEvent::ToolProgress { agent, tool, done, total, message } => {
            let how_far = match total.filter(|total| *total > 0.0) {
                Some(total) => format!("{:.0}%", 100.0 * (done / total).clamp(0.0, 1.0)),
                None => format!("{done:.0}"),
            };
            format!("{agent}: {tool} {how_far} {}", brief(message, SHOWN))
        }
        AgentEvent::ToolResult { agent, tool, is_error, preview } => {
            let how = if *is_error { "failed" } else { "gave" };
            format!("{agent}: {tool} {how}: {}", brief(preview, SHOWN))
        }
        AgentEvent::HitlRequired { agent, tool, .. } => {
            format!("{agent}: {tool} waits for approval")
        }
        AgentEvent::HitlApproved { agent, tool, .. } => format!("{agent}: {tool} was approved"),
        AgentEvent::HitlDenied { agent, tool, reason } => {
            format!("{agent}: {tool} was denied: {reason}")
        }
        AgentEvent::HitlTimeout { agent, tool } => {
            format!("{agent}: nobody decided on {tool} in time")
        }
        AgentEvent::HitlSkipped { agent, tool } => {
            format!("{agent}: {tool} needs approval, which this request does not wait for")
        }
        AgentEvent::Reflection { agent, status, attempt, of, .. } => {
            format!("{agent}: judged {} ({attempt} of {of})", status.as_str())
        }
        AgentEvent::AgentResult { agent, error, not_mine, .. } => match error {
            Some(error) if *not_mine => {
                format!("{agent}: hands the task back: {}", brief(error, SHOWN))
            }
            None => format!("{agent}: done"),
            Some(error) => format!("{agent}: could not do it: {}", brief(error, SHOWN)),
        },
        AgentEvent::DecisionRefused { .. } | AgentEvent::EndedEarly { .. } => return None,
    };
    Some(Line { text, lasts: lasts(event) })
}

/// Returns whether a person should see it after the next thing happened: what people decided on, and what did not work.
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
