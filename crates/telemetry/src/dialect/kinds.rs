//! The attributes of each kind of span.

use serde_json::json;

use super::names as n;
use super::text::{answered_in_chat, asked_in_chat, cut, message_text, sent};
use super::{Attributes, JUDGED, USED, count};
use crate::{About, RunOfTrace};

impl Attributes {
    pub(super) fn of_kind(&mut self, about: &About) {
        match about {
            About::Workflow { graph, runs, usage, tools, question, answer, asks, note, .. } => {
                self.observed("chain", "CHAIN", "invoke_workflow");
                self.put(n::WORKFLOW, graph.clone());
                self.used(tools);
                let status = |run: &RunOfTrace| run.status.as_str();
                self.put_some(n::RUN_STATUS, runs.last().map(status));
                let runs: Vec<String> =
                    runs.iter().map(|run| format!("{}:{}", run.number, status(run))).collect();
                self.list(&[n::RUNS], &runs);
                // Under names of our own: backends add up the tokens of every span that has theirs.
                self.put(n::INPUT_TOKENS, count(usage.input_tokens));
                self.put(n::OUTPUT_TOKENS, count(usage.output_tokens));
                let given = question.as_ref().or(note.as_ref());
                let stated = answer.as_ref().or(asks.as_ref());
                self.content(&[n::OI_INPUT, n::LF_INPUT, n::LF_TRACE_INPUT], given);
                self.content(&[n::OI_OUTPUT, n::LF_OUTPUT, n::LF_TRACE_OUTPUT], stated);
            }
            About::Transition { from, to, reason, candidates, thought } => {
                self.observed("chain", "CHAIN", "plan");
                self.named(from);
                self.put(n::FROM, from.clone());
                self.list(&[n::TO], to);
                self.put(n::REASON, reason.as_str());
                if !candidates.is_empty() {
                    self.list(&[n::CANDIDATES], candidates);
                }
                self.content(&[n::THOUGHT, n::LF_OUTPUT, n::OI_OUTPUT], thought.as_ref());
            }
            About::Chat {
                role, agent, model, provider, usage, finish_reason, attempts, ..
            } => {
                self.observed("generation", "LLM", "chat");
                self.named(agent.as_deref().unwrap_or(role));
                self.put(n::ROLE, role.clone());
                self.put(n::PROVIDER, provider.clone().unwrap_or_else(|| "openai".to_owned()));
                self.put(n::ATTEMPTS, i64::from(*attempts));
                self.put_each(&[n::RESPONSE_MODEL, n::LF_MODEL, n::OI_MODEL], model.as_ref());
                if let Some(reason) = finish_reason {
                    self.list(&[n::FINISH_REASONS], std::slice::from_ref(reason));
                }
                let input_tokens = count(usage.input_tokens);
                let output_tokens = count(usage.output_tokens);
                self.put(n::USAGE_INPUT, input_tokens);
                self.put(n::USAGE_OUTPUT, output_tokens);
                self.put(n::OI_PROMPT, input_tokens);
                self.put(n::OI_COMPLETION, output_tokens);
                self.put(n::OI_TOTAL, input_tokens.saturating_add(output_tokens));
                let details = json!({ "input": input_tokens, "output": output_tokens });
                self.put(n::LF_USAGE, details.to_string());
                self.conversation(about);
            }
            About::Agent {
                agent,
                reflection_status,
                attempts,
                usage,
                tools,
                task,
                output,
                error,
            } => {
                self.observed("agent", "AGENT", "invoke_agent");
                self.named(agent);
                self.put_each(&JUDGED, reflection_status.as_ref());
                self.used(tools);
                self.put_some(n::ATTEMPTS, attempts.map(i64::from));
                self.put(n::INPUT_TOKENS, count(usage.input_tokens));
                self.put(n::OUTPUT_TOKENS, count(usage.output_tokens));
                self.content(&[n::OI_INPUT, n::LF_INPUT], task.as_ref());
                self.content(&[n::OI_OUTPUT, n::LF_OUTPUT], output.as_ref());
                self.content(&[n::FAILURE], error.as_ref());
            }
            About::Stage { agent, stage, error } => {
                self.observed("chain", "CHAIN", "invoke_workflow");
                self.named(agent);
                self.put(n::STAGE, stage.clone());
                self.content(&[n::FAILURE], error.as_ref());
            }
            About::Tool {
                agent,
                server,
                tool,
                call_id,
                idempotency_key,
                attempts,
                via,
                arguments,
                result,
            } => {
                self.observed("tool", "TOOL", "execute_tool");
                self.named(agent);
                let is_named = *attempts > 0 || self.content;
                self.put_each(&[n::TOOL, n::OI_TOOL], Some(tool).filter(|_| is_named));
                self.put(n::TOOL_TYPE, "extension");
                self.put(n::ATTEMPTS, i64::from(*attempts));
                if !server.is_empty() {
                    self.put_each(&USED, Some(&format!("{server}.{tool}")));
                    self.put(n::MCP_METHOD, "tools/call");
                    self.put(n::MCP_SERVER, server.clone());
                }
                if let Some(via) = via {
                    self.put(n::MCP_VERSION, via.protocol_version.clone());
                    self.put(n::TRANSPORT, via.transport.clone());
                    self.put(n::RPC_REQUEST, via.request_id.clone());
                    self.put_some(n::MCP_SESSION, via.session_id.clone());
                }
                self.put_some(n::TOOL_CALL, call_id.clone());
                self.put_some(n::IDEMPOTENCY_KEY, idempotency_key.clone());
                self.content(&[n::TOOL_ARGUMENTS, n::LF_INPUT, n::OI_INPUT], arguments.as_ref());
                self.content(&[n::TOOL_RESULT, n::LF_OUTPUT, n::OI_OUTPUT], result.as_ref());
            }
            About::Question { interrupt, interrupt_kind, question, answer, .. } => {
                self.observed("span", "CHAIN", "interrupt");
                self.put(n::INTERRUPT, interrupt.clone());
                self.put(n::INTERRUPT_KIND, interrupt_kind.clone());
                self.content(&[n::OI_INPUT, n::LF_INPUT], question.as_ref());
                self.content(&[n::OI_OUTPUT, n::LF_OUTPUT], answer.as_ref());
            }
            About::Reflection { agent, verdict, attempt, of, feedback } => {
                self.observed("evaluator", "EVALUATOR", "reflect");
                self.named(agent);
                self.put_each(&JUDGED, verdict.as_ref());
                if verdict.as_deref() == Some("REJECTED") {
                    self.put(n::LF_LEVEL, "WARNING");
                }
                self.put(n::REFLECTION_ATTEMPT, i64::from(*attempt));
                self.put_some(n::REFLECTION_OF, of.map(i64::from));
                self.content(&[n::FEEDBACK, n::OI_OUTPUT], feedback.as_ref());
                let stated = match feedback.as_ref().filter(|_| self.content) {
                    Some(why) => verdict.as_ref().map(|verdict| cut(&format!("{verdict}: {why}"))),
                    None => verdict.clone(),
                };
                self.put_some(n::LF_OUTPUT, stated);
            }
        }
    }

    fn conversation(&mut self, about: &About) {
        let About::Chat { input, output, calls, finish_reason, .. } = about else { return };
        if let Some(request) = input {
            let messages = &request.messages;
            self.messages(&[n::INPUT, n::OI_INPUT], |bytes| sent(messages, bytes));
            self.in_chat(n::LF_INPUT, |bytes| asked_in_chat(messages, bytes));
        }
        if let Some(text) = output {
            let reason = finish_reason.as_deref();
            self.messages(&[n::OUTPUT, n::OI_OUTPUT], |bytes| {
                message_text(text, calls, reason, bytes)
            });
            self.in_chat(n::LF_OUTPUT, |bytes| answered_in_chat(text, calls, bytes));
        }
    }
}
