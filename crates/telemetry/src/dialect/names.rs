//! The names of attributes and events, all in one place.

// On every span.
pub const SESSION: &str = "session.id";
pub const CONVERSATION: &str = "gen_ai.conversation.id";
pub const THREAD: &str = "thread.id";
pub const THREAD_RUN: &str = "thread.run";
pub const CHECKPOINT: &str = "perihelion.checkpoint.id";
pub const ERROR_TYPE: &str = "error.type";

// What people sort traces by, on every span.
pub const USER: &str = "user.id";
pub const ENVIRONMENT: &str = "deployment.environment.name";

// What people filter by.
pub const AGENT_NAME: &str = "agent_name";
pub const REFLECTION_STATUS: &str = "reflection_status";
pub const TOOL_USAGE: &str = "tool_usage";

// Of the graph.
pub const GRAPH_NODE: &str = "graph.node.id";
pub const FROM: &str = "graph.transition.from";
pub const TO: &str = "graph.transition.to";
pub const REASON: &str = "graph.transition.reason";
pub const CANDIDATES: &str = "graph.transition.candidates";
pub const STEP: &str = "graph.step";
pub const THOUGHT: &str = "graph.transition.thought";
pub const RUN_STATUS: &str = "perihelion.run.status";
pub const RUNS: &str = "perihelion.runs";
pub const OPEN: &str = "perihelion.open";
pub const ATTEMPTS: &str = "perihelion.attempts";
pub const ROLE: &str = "perihelion.role";
pub const INPUT_TOKENS: &str = "perihelion.usage.input_tokens";
pub const OUTPUT_TOKENS: &str = "perihelion.usage.output_tokens";
pub const COST: &str = "perihelion.usage.cost";
pub const IDEMPOTENCY_KEY: &str = "perihelion.idempotency_key";
pub const INTERRUPT: &str = "perihelion.interrupt.id";
pub const INTERRUPT_KIND: &str = "perihelion.interrupt.kind";
pub const STAGE: &str = "perihelion.stage";
pub const REFLECTION_ATTEMPT: &str = "perihelion.reflection.attempt";
pub const REFLECTION_OF: &str = "perihelion.reflection.of";
pub const FEEDBACK: &str = "perihelion.reflection.feedback";
pub const FAILURE: &str = "perihelion.failure";

// gen_ai.*
pub const OPERATION: &str = "gen_ai.operation.name";
pub const WORKFLOW: &str = "gen_ai.workflow.name";
pub const AGENT: &str = "gen_ai.agent.name";
pub const PROVIDER: &str = "gen_ai.provider.name";
pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub const USAGE_INPUT: &str = "gen_ai.usage.input_tokens";
pub const USAGE_OUTPUT: &str = "gen_ai.usage.output_tokens";
// No convention has a name for it yet; this is the one that backends read.
pub const USAGE_COST: &str = "gen_ai.usage.cost";
pub const TOOL: &str = "gen_ai.tool.name";
pub const TOOL_TYPE: &str = "gen_ai.tool.type";
pub const TOOL_CALL: &str = "gen_ai.tool.call.id";
pub const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub const TOOL_RESULT: &str = "gen_ai.tool.call.result";
pub const INPUT: &str = "gen_ai.input.messages";
pub const OUTPUT: &str = "gen_ai.output.messages";
pub const EVALUATION_EVENT: &str = "gen_ai.evaluation.result";
pub const EVALUATION: &str = "gen_ai.evaluation.name";
pub const EVALUATION_LABEL: &str = "gen_ai.evaluation.score.label";
pub const EVALUATION_WHY: &str = "gen_ai.evaluation.explanation";
pub const MCP_METHOD: &str = "mcp.method.name";
pub const MCP_SERVER: &str = "mcp.server.name";
pub const MCP_VERSION: &str = "mcp.protocol.version";
pub const MCP_SESSION: &str = "mcp.session.id";
pub const RPC_REQUEST: &str = "jsonrpc.request.id";
pub const TRANSPORT: &str = "network.transport";

// langfuse.*
pub const LF_SESSION: &str = "langfuse.session.id";
pub const LF_TRACE: &str = "langfuse.trace.name";
pub const LF_USER: &str = "langfuse.user.id";
pub const LF_TAGS: &str = "langfuse.trace.tags";
pub const LF_ENVIRONMENT: &str = "langfuse.environment";
pub const LF_TRACE_INPUT: &str = "langfuse.trace.input";
pub const LF_TRACE_OUTPUT: &str = "langfuse.trace.output";
pub const LF_TYPE: &str = "langfuse.observation.type";
pub const LF_LEVEL: &str = "langfuse.observation.level";
pub const LF_MESSAGE: &str = "langfuse.observation.status_message";
pub const LF_MODEL: &str = "langfuse.observation.model.name";
pub const LF_USAGE: &str = "langfuse.observation.usage_details";
pub const LF_COST: &str = "langfuse.observation.cost_details";
pub const LF_INPUT: &str = "langfuse.observation.input";
pub const LF_OUTPUT: &str = "langfuse.observation.output";
pub const LF_AGENT_NAME: &str = "langfuse.observation.metadata.agent_name";
pub const LF_REFLECTION: &str = "langfuse.observation.metadata.reflection_status";
pub const LF_TOOL_USAGE: &str = "langfuse.observation.metadata.tool_usage";
pub const LF_NODE: &str = "langfuse.observation.metadata.langgraph_node";
pub const LF_STEP: &str = "langfuse.observation.metadata.langgraph_step";

// openinference.*
pub const OI_PROJECT: &str = "openinference.project.name";
pub const OI_KIND: &str = "openinference.span.kind";
pub const OI_TAGS: &str = "tag.tags";
pub const OI_MODEL: &str = "llm.model_name";
pub const OI_PROMPT: &str = "llm.token_count.prompt";
pub const OI_COMPLETION: &str = "llm.token_count.completion";
pub const OI_TOTAL: &str = "llm.token_count.total";
pub const OI_COST: &str = "llm.cost.total";
pub const OI_AGENT: &str = "agent.name";
pub const OI_TOOL: &str = "tool.name";
pub const OI_INPUT: &str = "input.value";
pub const OI_OUTPUT: &str = "output.value";
pub const OI_METADATA: &str = "metadata";

/// Begins the event on a root that says that a run was resumed, with the run's number in [`THREAD_RUN`].
pub const RESUMED_EVENT: &str = "run.resumed";
pub const LINK_KIND: &str = "link.kind";
