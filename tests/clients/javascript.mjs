// Drives a server with @langchain/langgraph-sdk 1.15.0 and openai from npm, unchanged. PERIHELION_URL names the server.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { ANSWER, APPROVE, client, collect, human, run, url } from "./cases.mjs";

await run({
  async "a run is streamed, and its id known before it ends"() {
    const { thread_id } = await client.threads.create();
    let created;
    const parts = await collect(client.runs.stream(thread_id, "swarm", {
      input: human("hello"),
      streamMode: ["values", "messages-tuple", "updates", "custom"],
      onRunCreated: (run) => { created = run; },
    }));
    assert.equal(parts[0].event, "metadata");
    assert.equal(created.run_id, parts[0].data.run_id);
    assert.equal(created.thread_id, thread_id);
    const last = parts.filter((part) => part.event === "values").at(-1).data;
    assert.equal(last.messages.at(-1).content, ANSWER);
    assert.equal((await client.runs.get(thread_id, created.run_id)).status, "success");
  },

  async "an approval is resumed as agent-chat-ui does it"() {
    const { thread_id } = await client.threads.create();
    const parts = await collect(client.runs.stream(thread_id, "swarm", {
      input: human("approve this"), streamMode: ["messages-tuple", "values", "custom"], streamSubgraphs: true,
    }));
    const asked = parts.filter((part) => part.event === "values").at(-1).data.__interrupt__;
    assert.equal(asked[0].value.action_requests[0].name, "notes.append_note");
    const done = await collect(client.runs.stream(thread_id, "swarm", {
      input: {}, command: { resume: APPROVE }, streamMode: ["values"], onDisconnect: "cancel",
    }));
    assert.equal(done.at(-1).data.answer, ANSWER);
    const history = await client.threads.getHistory(thread_id, { limit: 10 });
    assert.equal(history[0].next.length, 0);
  },

  async "a stream is joined again from the last event"() {
    const { thread_id } = await client.threads.create();
    const run = await client.runs.create(thread_id, "swarm", {
      input: human("slow"), streamMode: ["messages-tuple", "values"], streamResumable: true,
    });
    const first = [];
    for await (const part of client.runs.joinStream(thread_id, run.run_id, { lastEventId: "-1" })) {
      first.push(part);
      if (first.length === 4) break;
    }
    const rest = await collect(client.runs.joinStream(thread_id, run.run_id, { lastEventId: first.at(-1).id }));
    const all = await collect(client.runs.joinStream(thread_id, run.run_id, { lastEventId: "-1" }));
    assert.deepEqual([...first, ...rest].map((part) => part.id), all.map((part) => part.id));
  },

  async "openai's client creates responses and chat completions, streamed too"() {
    const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
    const response = await openai.responses.create({ model: "swarm", input: "clarify" });
    assert.equal(response.output_text, "Which year?");
    const next = await openai.responses.create({ model: "swarm", input: "1945", previous_response_id: response.id });
    assert.equal(next.output_text, ANSWER);
    let text = "";
    for await (const event of await openai.responses.create({ model: "swarm", input: "hello", stream: true })) {
      if (event.type === "response.output_text.delta") text += event.delta;
      if (event.type === "response.completed") assert.equal(event.response.output[0].content[0].text, text);
    }
    assert.equal(text, ANSWER);
    const chat = await openai.chat.completions.create({ model: "swarm", messages: [{ role: "user", content: "hello" }] });
    assert.equal(chat.choices[0].message.content, ANSWER);
    text = "";
    const stream = await openai.chat.completions.create({
      model: "swarm", stream: true, stream_options: { include_usage: true },
      messages: [{ role: "user", content: "hi" }, { role: "assistant", content: "yes?" }, { role: "user", content: "hello" }],
    });
    let usage;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta?.content ?? "";
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, ANSWER);
    assert.ok(usage.total_tokens > 0);
  },
});
