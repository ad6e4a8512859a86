//! The attributes of each kind of span.

use serde_json::json;

use super::names as n;
use super::text::{answered_in_chat, asked_in_chat, cut, message_text, sent};
use super::{Attributes, count};
use crate::{About, RunOfTrace, Span};

impl Attributes {
    pub(super) fn workflow(&mut self, about: &About) {
        let About::Workflow { graph, runs, usage, tools, question, answer, asks, note, .. } = about
        else {
            return;
        };
        self.observed("chain", "CHAIN", "invoke_workflow");
        self.put(n::WORKFLOW, graph.clone());
        self.used(tools);
        let status = |run: &RunOfTrace| run.status.as_str();
        if let Some(last) = runs.last() {
            self.put(n::RUN_STATUS, status(last));
        }
        let runs: Vec<String> =
            runs.iter().map(|run| format!("{}:{}", run.number, status(run))).collect();
        self.list(n::RUNS, &runs);
        self.put(n::INPUT_TOKENS, count(usage.input_tokens));
        self.put(n::OUTPUT_TOKENS, count(usage.output_tokens));
        let given = question.as_ref().or(note.as_ref());
        let message_text = answer.as_ref().or(asks.as_ref());
        let given = given.map(String::as_str);
        let message_text = message_text.map(String::as_str);
        self.content(&[n::OI_INPUT, n::LF_INPUT, n::LF_TRACE_INPUT], given);
        self.content(&[n::OI_OUTPUT, n::LF_OUTPUT, n::LF_TRACE_OUTPUT], message_text);
    }

    pub(super) fn transition(&mut self, about: &About) {
        let About::Transition { from, to, reason, candidates, thought } = about else { return };
        self.observed("chain", "CHAIN", "plan");
        self.named(from);
        self.put(n::FROM, from.clone());
        self.list(n::TO, to);
        self.put(n::REASON, reason.as_str());
        if !candidates.is_empty() {
            self.list(n::CANDIDATES, candidates);
        }
        self.content(&[n::THOUGHT, n::LF_OUTPUT, n::OI_OUTPUT], thought.as_deref());
    }

    pub(super) fn chat(&mut self, about: &About) {
        let About::Chat {
            role,
            agent,
            model,
            provider,
            usage,
            finish_reason,
            attempts,
            input,
            output,
            calls,
        } = about
        else {
            return;
        };
        self.observed("generation", "LLM", "chat");
        self.named(agent.as_deref().unwrap_or(role));
        self.put(n::ROLE, role.clone());
        self.put(n::PROVIDER, provider.clone().unwrap_or_else(|| "openai".to_owned()));
        self.put(n::ATTEMPTS, i64::from(*attempts));
        if let Some(model) = model {
            for name in [n::RESPONSE_MODEL, n::LF_MODEL, n::OI_MODEL] {
                self.put(name, model.clone());
            }
        }
        if let Some(reason) = finish_reason {
            self.list(n::FINISH_REASONS, std::slice::from_ref(reason));
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

    pub(super) fn agent(&mut self, about: &About) {
        let About::Agent { agent, reflection_status, attempts, usage, tools, task, output, error } =
            about
        else {
            return;
        };
        self.observed("agent", "AGENT", "invoke_agent");
        self.named(agent);
        self.judged(reflection_status.as_ref());
        self.used(tools);
        self.put_some(n::ATTEMPTS, attempts.map(i64::from));
        // Under names of our own: backends add up the tokens of every span that has theirs.
        self.put(n::INPUT_TOKENS, count(usage.input_tokens));
        self.put(n::OUTPUT_TOKENS, count(usage.output_tokens));
        self.content(&[n::OI_INPUT, n::LF_INPUT], task.as_deref());
        self.content(&[n::OI_OUTPUT, n::LF_OUTPUT], output.as_deref());
        self.content(&[n::FAILURE], error.as_deref());
    }

    pub(super) fn stage(&mut self, about: &About) {
        let About::Stage { agent, stage, error } = about else { return };
        self.observed("chain", "CHAIN", "invoke_workflow");
        self.named(agent);
        self.put(n::STAGE, stage.clone());
        self.content(&[n::FAILURE], error.as_deref());
    }

    pub(super) fn tool(&mut self, span: &Span) {
        let About::Tool {
            agent,
            server,
            tool,
            call_id,
            idempotency_key,
            attempts,
            via,
            arguments,
            result,
        } = &span.about
        else {
            return;
        };
        self.observed("tool", "TOOL", "execute_tool");
        self.named(agent);
        if *attempts > 0 || self.content {
            self.put(n::TOOL, tool.clone());
            self.put(n::OI_TOOL, tool.clone());
        }
        self.put(n::TOOL_TYPE, "extension");
        self.put(n::ATTEMPTS, i64::from(*attempts));
        if !server.is_empty() {
            let usage = format!("{server}.{tool}");
            self.put(n::TOOL_USAGE, usage.clone());
            self.put(n::LF_TOOL_USAGE, usage);
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
        self.content(&[n::TOOL_ARGUMENTS, n::LF_INPUT, n::OI_INPUT], arguments.as_deref());
        self.content(&[n::TOOL_RESULT, n::LF_OUTPUT, n::OI_OUTPUT], result.as_deref());
    }

    pub(super) fn question(&mut self, about: &About) {
        let About::Question { interrupt, interrupt_kind, question, answer, .. } = about else {
            return;
        };
        self.observed("span", "CHAIN", "interrupt");
        self.put(n::INTERRUPT, interrupt.clone());
        self.put(n::INTERRUPT_KIND, interrupt_kind.clone());
        self.content(&[n::OI_INPUT, n::LF_INPUT], question.as_deref());
        self.content(&[n::OI_OUTPUT, n::LF_OUTPUT], answer.as_deref());
    }

    pub(super) fn reflection(&mut self, about: &About) {
        let About::Reflection { agent, verdict, attempt, of, feedback } = about else { return };
        self.observed("evaluator", "EVALUATOR", "reflect");
        self.named(agent);
        self.judged(verdict.as_ref());
        if verdict.as_deref() == Some("REJECTED") {
            self.put(n::LF_LEVEL, "WARNING");
        }
        self.put(n::REFLECTION_ATTEMPT, i64::from(*attempt));
        self.put_some(n::REFLECTION_OF, of.map(i64::from));
        self.content(&[n::FEEDBACK, n::OI_OUTPUT], feedback.as_deref());
        let message_text = match feedback.as_ref().filter(|_| self.content) {
            Some(feedback) => {
                verdict.as_ref().map(|verdict| cut(&format!("{verdict}: {feedback}")))
            }
            None => verdict.clone(),
        };
        self.put_some(n::LF_OUTPUT, message_text);
    }
}
