//! Answers from an HTTP API: finds operations, plans one request, sends it, and explains the response.
//!
//! Enter at [`kind`]. Invariant: the sent request is the one that the server renders from the plan, within its base
//! address and with its own credentials. Deliberately absent: addresses and tokens in prompts.

mod plan;
mod send;

use std::sync::Arc;

use serde_json::Value;

use crate::pipeline::{Kind, Pipeline};

perihelion_engine::graph_state! {
    /// The state that the stages pass on.
    pub struct Call, update CallUpdate, version 1 {
        /// Operations that may answer, described.
        candidates: Value => overwrite,
        documentation: Value => overwrite,
        /// The planned request, as arguments of the call.
        arguments: Value => overwrite,
        /// Requests that were sent or refused.
        attempts: u32 => overwrite,
        /// Why the last plan did not work.
        problem: Option<String> => overwrite,
        answer: Value => overwrite,
    }
}

/// How often a plan that the server or the API refused is made again.
const REPAIRS: u32 = 2;

pub fn kind() -> Arc<dyn Kind> {
    Pipeline::<Call>::new("api")
        .about("answers from an HTTP API that it finds operations in")
        .tool("find", "finds operations that fit a question")
        .optional_tool("describe", "describes one operation")
        .optional_tool("read", "sends one request that only reads")
        .tool("call", "sends one request")
        .profile(
            "api",
            &[
                ("find", "find_operations"),
                ("describe", "describe_operation"),
                ("read", "read_operation"),
                ("call", "call_operation"),
            ],
        )
        .natural_for("api")
        .template("api_plan", include_str!("../../../../prompts/api_plan.md"))
        .template("api_summary", include_str!("../../../../prompts/api_summary.md"))
        .stage("find", send::find)
        .stage("plan", plan::plan)
        .stage("send", send::send)
        .stage("summary", send::summary)
        .into_kind()
}
