/**
 * A scripted model: an OpenAI endpoint whose answers follow from words in the question.
 *
 * `approve`: a call that a person must approve; `clarify`: the supervisor asks which year is meant; `slow`: the answer comes
 * word by word, as fast as `release()` lets it; `long`: so does a long one; `read`: the files agent reads; `quote`: the papers agent
 * quotes documents; `both`: a call that a person must approve, and a form of another agent; `eleven`: as many calls to approve; `study`: the files agent reads, and the notes agent waits for it, both as fast as `release()` lets them; `use TOOL`: the asker
 * agent calls its tool, after a look at what strangers wrote where `look` is said, too; `break`: the answer fails while `isBroken`; anything else is answered at once.
 * The nodes `agent` and `report` are those of the examples `chat` and `research`: they answer as fast as `release()` lets them.
 */

import { createServer } from "node:http";

export const STORY = Array.from({ length: 40 }, (_, index) => `word${index + 1}`);

/** Paragraphs that are written one after another. */
export const LONG = Array.from({ length: 60 }, (_, index) => `Paragraph ${index + 1} has words enough to fill a line of the page, and then some more.\n\n`);

const TEAM = {
  name: "almanac",
  description: "Reads papers and writes down what they say",
  agents: [
    { name: "reader", role: "reads", goal: "Find what the paper says", servers: ["files"] },
    { name: "writer", role: "writes", goal: "Write it down", servers: ["notes"] },
  ],
};

const decision = (agents, tasks = [], clarification = null) =>
  JSON.stringify({ thought_process: "scripted", plan: ["look", "answer"], selected_agents: agents, tasks, clarification });

const task = (agent, text) => ({ id: agent, agent, task: text, depends_on: [] });

function between(text, open, close) {
  const from = text.lastIndexOf(open);
  return from < 0 ? "" : text.slice(from + open.length).split(close, 1)[0];
}

function supervise(text) {
  const question = between(text, "<user_request>", "</user_request>");
  const worked = text.includes("<result ");
  if (question.includes("clarify") && !text.includes("1945")) return decision([], [], "Which year do you mean?");
  if (question.includes("both") && !worked) return decision(["mcp_agent_notes", "mcp_agent_asker"], [task("mcp_agent_notes", "Write it down, slowly."), task("mcp_agent_asker", "Please use order.")]);
  if (question.includes("eleven") && !worked) return decision(["mcp_agent_notes"], [task("mcp_agent_notes", "Write it down eleven times.")]);
  if (question.includes("approve") && !worked) return decision(["mcp_agent_notes"], [task("mcp_agent_notes", "Write it down.")]);
  if (question.includes("read") && !worked) return decision(["mcp_agent_files"], [task("mcp_agent_files", "Read it.")]);
  if (question.includes("quote") && !worked) return decision(["mcp_agent_papers"], [task("mcp_agent_papers", "How far does the perihelion of Mercury move in a century?")]);
  const used = /use (\w+)/.exec(question)?.[1];
  if (used && !worked) return decision(["mcp_agent_asker"], [task("mcp_agent_asker", `${question.includes("look") ? "Take a look, then" : "Please"} use ${used}.`)]);
  if (question.includes("study") && !worked) {
    const [first, second] = [task("mcp_agent_files", "Study the paper."), task("mcp_agent_notes", "Write down what the paper says.")];
    return decision(["mcp_agent_files", "mcp_agent_notes"], [first, { ...second, depends_on: [first.id] }]);
  }
  return decision(["qa"]);
}

function work(agent, messages) {
  if (agent.endsWith("papers")) return { content: "It moves by 43 seconds of arc [1]." };
  const results = messages.filter((message) => message.role === "tool");
  const text = messages.map((message) => message.content ?? "").join("\n");
  const slow = text.includes("Study the paper") || text.includes("what the paper says");
  if (agent.endsWith("asker")) {
    const wanted = [...(text.includes("Take a look") ? ["look"] : []), /use (\w+)\./.exec(text)?.[1]];
    const next = wanted[results.length];
    if (next) return { tool_calls: [{ id: `call_${results.length}`, type: "function", function: { name: next, arguments: '{"item":"a lamp"}' } }] };
  }
  const wanted = text.includes("eleven times") ? 11 : 1;
  if (results.length >= wanted || (slow && agent.endsWith("notes"))) return { content: `It gave: ${String(results.at(-1)?.content ?? "nothing").slice(0, 200)}`, slow: slow || text.includes("slowly") };
  const call = agent.endsWith("notes") ? ["append_note", { text: `Remember the milk${results.length > 0 ? `, ${results.length}` : ""}` }] : ["read", { path: "paper.md" }];
  return { tool_calls: [{ id: `call_${results.length + 1}`, type: "function", function: { name: call[0], arguments: JSON.stringify(call[1]) } }] };
}

/** Answers a node of an example's graph; nothing for the agents of servers. */
function ofGraph(node, messages) {
  if (node === "report") return { content: "The earth moves.", slow: true };
  if (node !== "agent") return undefined;
  // A call of this turn was answered already.
  if (messages.at(-1).role === "tool") return { content: "It is warm and dry in Padua today, with some clouds in the afternoon, at 21 degrees.", slow: true };
  return { tool_calls: [{ id: "call_1", type: "function", function: { name: "weather", arguments: '{"place":"Padua"}' } }] };
}

/** Starts the model; `words` are let through one by one while it is held. */
export async function startModel() {
  let waiting = [];
  let credit = 0;
  const model = {
    held: false,
    /** Whether answers to what should `break` fail. */
    isBroken: false,
    /** Has slow answers wait for `release`. */
    hold() {
      model.held = true;
      credit = 0;
    },
    /** Requests by role. */
    asked: [],
    /** Lets as many words of a slow answer through; all of them, and those to come, without a number. */
    release(words = Infinity) {
      if (words === Infinity) model.held = false;
      else credit += words;
      const all = waiting;
      waiting = [];
      for (const next of all) next();
    },
  };
  async function word() {
    while (model.held && credit === 0) await new Promise((next) => waiting.push(next));
    if (model.held) credit -= 1;
  }

  async function answer(request, response) {
    if (request.method === "GET") return send(response, { object: "list", data: [{ id: "scripted", object: "model" }] });
    const body = JSON.parse(await read(request));
    const role = request.headers["x-perihelion-role"] ?? "";
    const text = body.messages.map((message) => message.content ?? "").join("\n");
    model.asked.push(role);
    let message = { content: "Hello from the star." };
    if (role === "supervisor") message = { content: supervise(text) };
    else if (role === "reflector") message = { content: JSON.stringify({ status: "APPROVED", refined_output: null, feedback: null }) };
    else if (role === "summarizer") message = { content: "They greeted each other.", slow: true };
    else if (role === "architect") message = { content: JSON.stringify(TEAM) };
    else if (role === "agent") message = ofGraph(request.headers["x-perihelion-agent"], body.messages) ?? work(request.headers["x-perihelion-agent"] ?? "", body.messages);
    else if (role === "qa" && model.isBroken && between(text, "<user_request>", "</user_request>").includes("break")) {
      response.writeHead(400, { "content-type": "application/json" });
      return response.end(JSON.stringify({ error: { message: "the model is broken", type: "invalid_request_error" } }));
    } else if (request.headers["x-perihelion-stage"] === "judge_pair") message = { content: JSON.stringify({ reason: "It came first.", better: "first" }) };
    else if (text.includes("as a pirate")) message = { content: "Ahoy from the star." };
    else if (role !== "qa") message = { content: JSON.stringify({ operations: [] }) };
    else if (between(text, "<user_request>", "</user_request>").includes("slow")) message = { content: STORY.join(" "), slow: true };
    else if (between(text, "<user_request>", "</user_request>").includes("long")) message = { pieces: LONG, content: LONG.join(""), slow: true };
    else if (text.includes("<result ")) message = { content: "It is written down [1]." };
    const finish_reason = message.tool_calls ? "tool_calls" : "stop";
    const shell = (object, choice) => ({ id: "scripted", object, created: 1, model: "scripted", choices: [{ index: 0, ...choice }], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } });
    if (!body.stream && message.slow) await word();
    if (!body.stream) return send(response, shell("chat.completion", { message: { role: "assistant", content: null, ...message }, finish_reason }));
    response.writeHead(200, { "content-type": "text/event-stream" });
    const chunk = (delta, finish = null) => response.write(`data: ${JSON.stringify(shell("chat.completion.chunk", { delta, finish_reason: finish }))}\n\n`);
    for (const piece of message.pieces ?? (message.content ?? "").match(/\S+\s*/g) ?? []) {
      if (message.slow) await word();
      chunk({ content: piece });
    }
    for (const [index, call] of (message.tool_calls ?? []).entries()) chunk({ tool_calls: [{ index, ...call }] });
    chunk({}, finish_reason);
    response.end("data: [DONE]\n\n");
  }

  const server = createServer((request, response) => answer(request, response).catch((error) => response.destroy(error)));
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  model.url = `http://127.0.0.1:${server.address().port}/v1`;
  model.close = () => (server.closeAllConnections(), server.close());
  return model;
}

async function read(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces).toString("utf8");
}

function send(response, body) {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
