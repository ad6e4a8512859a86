// Drives a server by the bridges of other protocols and by React's hooks, from npm, unchanged: @ag-ui/langgraph,
// @ai-sdk/langchain, useStream of the SDK (as agent-chat-ui has it) and of @langchain/react. PERIHELION_URL names the server.
import assert from "node:assert/strict";
import { LangGraphAgent } from "@ag-ui/langgraph";
import { LangSmithDeploymentTransport } from "@ai-sdk/langchain";
import { useStream as useRunStream } from "@langchain/langgraph-sdk/react";
import { useStream as useThreadStream } from "@langchain/react";
import React, { act } from "react";
import { create } from "react-test-renderer";
import { run, url } from "./cases.mjs";

globalThis.IS_REACT_ACT_ENVIRONMENT = true;

// Renders a hook, and waits until what it returns is as it is to be.
const rendered = async (hook, options) => {
  let now;
  const Shown = () => { now = hook(options); return null; };
  let root;
  await act(async () => { root = create(React.createElement(Shown)); });
  const until = async (isSo) => {
    const end = Date.now() + 60_000;
    while (!isSo(now)) {
      assert.ok(Date.now() < end, `it never became so: ${JSON.stringify(now.values)} ${now.error}`);
      await act(async () => { await new Promise((done) => setTimeout(done, 20)); });
    }
    return now;
  };
  return { now: () => now, until, end: () => act(async () => root.unmount()) };
};
const last = (stream) => {
  const content = stream.messages.at(-1)?.content;
  return Array.isArray(content) ? content.map((part) => part.text ?? "").join("") : content;
};

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
    assert.equal(agent.messages.at(-1).content, "Hello from the star.");
    const asking = new LangGraphAgent({ deploymentUrl: url, graphId: "swarm" });
    asking.messages = [{ id: "m2", role: "user", content: "approve this" }];
    events.length = 0;
    await asking.runAgent({ runId: crypto.randomUUID() }, hear);
    const asked = events.find((event) => event.type === "CUSTOM" && event.name === "on_interrupt");
    assert.ok(asked, JSON.stringify(events.map((event) => [event.type, event.name])));
    assert.match(JSON.stringify(asked.value), /notes\.append_note/);
    const resume = { decisions: [{ type: "approve" }] };
    await asking.runAgent({ runId: crypto.randomUUID(), forwardedProps: { command: { resume } } }, hear);
    // In which order it shows what was said in two runs is its own.
    assert.ok(asking.messages.some((message) => message.content === "Hello from the star."), JSON.stringify(asking.messages));
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
    assert.equal(text, "Hello from the star.", [...kinds].join());
    assert.ok(!kinds.has("error"), [...kinds].join());
  },

  async "useStream of the sdk submits, shows an interrupt and resumes it"() {
    const hook = await rendered(useRunStream, { apiUrl: url, assistantId: "swarm", messagesKey: "messages" });
    await act(async () => hook.now().submit({ messages: [{ type: "human", content: "approve this" }] }));
    const asked = await hook.until((stream) => !stream.isLoading && stream.interrupt);
    assert.equal(asked.interrupt.value.action_requests[0].name, "notes.append_note");
    await act(async () => hook.now().submit(undefined, { command: { resume: { decisions: [{ type: "approve" }] } } }));
    await hook.until((stream) => !stream.isLoading && last(stream) === "Hello from the star.");
    await hook.end();
  },

  async "useStream of @langchain/react follows a thread by its protocol"() {
    const hook = await rendered(useThreadStream, { apiUrl: url, assistantId: "swarm" });
    await act(async () => { hook.now().submit({ messages: [{ type: "human", content: "hello" }] }); });
    const done = await hook.until((stream) => !stream.isLoading && last(stream) === "Hello from the star.");
    assert.equal(done.error ?? null, null);
    await hook.end();
  },
});
