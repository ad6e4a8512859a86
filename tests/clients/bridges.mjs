// Drives a server by the bridges of other protocols from npm, unchanged: @ag-ui/langgraph and @ai-sdk/langchain.
// PERIHELION_URL names the server.
import assert from "node:assert/strict";
import { LangGraphAgent } from "@ag-ui/langgraph";
import { LangSmithDeploymentTransport } from "@ai-sdk/langchain";
import { ANSWER, APPROVE, run, url } from "./cases.mjs";

await run({
  async "ag-ui's bridge runs an agent, is interrupted and resumes"() {
    const agent = new LangGraphAgent({ deploymentUrl: url, graphId: "swarm" });
    agent.messages = [{ id: "m1", role: "user", content: "hello" }];
    const events = [];
    const hear = { onEvent: ({ event }) => { events.push(event); } };
    await agent.runAgent({ runId: crypto.randomUUID() }, hear);
    const kinds = events.map((event) => event.type);
    assert.equal(kinds[0], "RUN_STARTED");
    assert.equal(kinds.at(-1), "RUN_FINISHED", JSON.stringify(events.at(-1)));
    assert.equal(agent.messages.at(-1).content, ANSWER);
    const asking = new LangGraphAgent({ deploymentUrl: url, graphId: "swarm" });
    asking.messages = [{ id: "m2", role: "user", content: "approve this" }];
    events.length = 0;
    await asking.runAgent({ runId: crypto.randomUUID() }, hear);
    const asked = events.find((event) => event.type === "CUSTOM" && event.name === "on_interrupt");
    assert.ok(asked, JSON.stringify(events.map((event) => [event.type, event.name])));
    assert.match(JSON.stringify(asked.value), /notes\.append_note/);
    const resume = APPROVE;
    await asking.runAgent({ runId: crypto.randomUUID(), forwardedProps: { command: { resume } } }, hear);
    // In which order it shows what was said in two runs is its own.
    assert.ok(asking.messages.some((message) => message.content === ANSWER), JSON.stringify(asking.messages));
  },

  async "the ai sdk's transport streams an answer"() {
    const transport = new LangSmithDeploymentTransport({ url, graphId: "swarm" });
    const message = { id: "m1", role: "user", parts: [{ type: "text", text: "hello" }] };
    const stream = await transport.sendMessages({
      trigger: "submit-message", chatId: "one", messageId: undefined, messages: [message], abortSignal: undefined,
    });
    let text = "";
    const kinds = new Set();
    for await (const chunk of stream) {
      kinds.add(chunk.type);
      if (chunk.type === "text-delta") text += chunk.delta;
    }
    assert.equal(text, ANSWER, [...kinds].join());
    assert.ok(!kinds.has("error"), [...kinds].join());
  },
});
