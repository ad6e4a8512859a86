/** What a run shows while it lasts, without a browser: states made from updates, and answers that are begun again. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { build } from "../../web/app/node_modules/esbuild/lib/main.js";
import { startModel } from "./model.mjs";
import { startServer } from "./server.mjs";

const source = new URL("../../web/app/src/", import.meta.url).pathname;
const contents = 'export { after, basedOn, idle } from "./chat/live.ts"; export { isUnnamed, withQuestion } from "./chat/folding.ts"; export { turnsOf } from "./chat/turns.ts"; export { EventParser } from "./api/sse.ts";';
const { outputFiles: [{ text }] } = await build({ stdin: { contents, resolveDir: source }, bundle: true, write: false, format: "esm", jsx: "automatic", jsxImportSource: "preact" });
const { after: next, basedOn, idle, isUnnamed, withQuestion, turnsOf, EventParser } = await import(`data:text/javascript,${encodeURIComponent(text)}`);

const MODES = ["values", "updates", "messages-tuple", "tasks"];

let model, server;
before(async () => {
  model = await startModel();
  server = await startServer({ model: model.url, further: ["asker"] });
});
after(async () => {
  await server?.stop();
  model?.close();
});

async function eventsOf(thread, run) {
  const response = await fetch(`${server.url}/threads/${thread}/runs/${run}/stream?stream_mode=${MODES.join(",")}`, { headers: { "last-event-id": "-1" } });
  return new EventParser().push(await response.text());
}

/** Answers the questions of a thread one after another, and returns the runs that take the answers. */
async function* answered(thread) {
  for (;;) {
    const open = (await server.json("/v1/approvals")).find(({ thread_id }) => thread_id === thread);
    if (!open) return;
    const reply = { clarification: { answer: "1945" }, elicitation: { answer: { city: "Brno", speed: "f" } } }[open.kind] ?? { decision: "approve" };
    yield (await server.json(`/v1/approvals/${open.id}`, reply)).run_id;
  }
}

/** Fields of the star that the page reads besides those of turns. */
const READ = ["messages", "turn", "finish_reason"];

test("a state that is made from updates is the one that the server has, after each step of any turn", async () => {
  const { thread_id: thread } = await server.json("/threads", {});
  let values = {};
  let compared = 0;
  /** Follows a run from a state; whatever the base has of the run already changes nothing. */
  async function fold(run, base) {
    const all = await eventsOf(thread, run);
    const whole = await server.json(`/threads/${thread}/state`);
    const only = (live, event) => next(live, event.event === "values" ? { ...event, event: "ignored" } : event);
    let live = { ...idle, values: base, updates: [] };
    for (const event of all) {
      live = only(live, event);
      if (event.event !== "values" || live.updates.length === 0) continue;
      const { __interrupt__, ...wanted } = JSON.parse(event.data);
      for (const field of READ) assert.deepEqual(live.values[field] ?? null, wanted[field] ?? null, field);
      assert.deepEqual(turnsOf(live.values), turnsOf(wanted));
      compared += 1;
    }
    assert.equal(isUnnamed(live.values), false);
    const late = basedOn(all.reduce(only, { ...idle, updates: [] }), whole.values);
    assert.deepEqual(turnsOf(late.values), turnsOf(live.values));
    values = live.values;
  }
  const run = async (body) => (await server.json(`/threads/${thread}/runs`, { assistant_id: "swarm", ...body })).run_id;
  for (const question of ["Please read the paper", "Please approve this note", "Please clarify this", "Hello?", "Please do both"]) {
    await fold(await run({ input: { question, include_data: true } }), withQuestion(values, question));
    for await (const one of answered(thread)) await fold(one, values);
  }
  // The second turn once more: a branch where its question came in.
  const states = await server.json(`/threads/${thread}/history`, { limit: 200 });
  const asked = states.findLastIndex((state) => turnsOf(state.values).length === 2);
  const before = states.slice(asked).find((state) => turnsOf(state.values).length === 1);
  await fold(await run({ input: null, checkpoint_id: states[asked].checkpoint.checkpoint_id }), withQuestion(before.values, "Please approve this note"));
  for await (const one of answered(thread)) await fold(one, values);
  assert.ok(compared > 25, `${compared} states`);
});

test("another turn than the state expects has the state read again", () => {
  const update = (turn) => ({ event: "updates", data: JSON.stringify({ preprocess: { turn, messages: [{ id: `${turn}.user`, type: "human", content: "Hello?" }] } }) });
  const live = { ...idle, values: withQuestion({ turn: 1, messages: [] }, "Hello?"), updates: [] };
  assert.deepEqual(next(live, update(2)).values.messages.map(({ id }) => id), ["2.user"]);
  const lost = next(live, update(3));
  assert.equal(lost.values, null);
  assert.deepEqual(basedOn(lost, { turn: 3, messages: [{ id: "2.user", type: "human", content: "Others?" }] }).values.messages.map(({ id }) => id), ["2.user", "3.user"]);
});

test("an answer that is begun again with other words takes the place of the first one", () => {
  const piece = (id, content) => ({ event: "messages", data: JSON.stringify([{ id, type: "AIMessageChunk", content }, { langgraph_node: "qa" }]) });
  const all = [piece("2.5.qa", "One "), piece("2.5.qa", "two"), piece("2.5.qa.1", "Another"), piece("2.5.qa.1", " one")];
  const live = all.reduce(next, { ...idle, values: {}, updates: [] });
  assert.deepEqual([...live.writing].map(([id, { text }]) => [id, text]), [["2.5.qa.1", "Another one"]]);
  const whole = { event: "updates", data: JSON.stringify({ qa: { messages: [{ id: "2.5.qa", type: "ai", name: "qa", content: "Another one" }] } }) };
  const ended = [whole, piece("2.5.qa.1", ".")].reduce(next, live);
  assert.equal(ended.writing.size, 0);
});

test("a question that was not taken in yet opens a turn in which nothing was done", () => {
  const messages = [["1.user", "human"], ["1.qa", "ai"], ["2.user", "human"], ["2.qa", "ai"], ["3.user", "human"]].map(([id, type]) => ({ id, type, content: id, ...(type === "ai" && { name: "qa" }) }));
  const work = (turn) => ({ id: `${turn}`, agent: "files", task: "Read it.", turn });
  const turns = turnsOf({ messages, turn: 2, plan: ["look", "answer"], tasks: [work(1), work(2)], citations: [{ number: 1, agent: "files", source: "a", turn: 2 }] });
  assert.deepEqual(turns.map((turn) => [turn.work.plan.length, turn.work.tasks.length, turn.citations.length]), [[0, 1, 0], [0, 1, 1], [0, 0, 0]]);
});
