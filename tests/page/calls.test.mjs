/** S3.13: calls of tools, from the events of a run, read without a browser. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "../../web/app/node_modules/esbuild/lib/main.js";

const source = new URL("../../web/app/src/", import.meta.url).pathname;
const stdin = { contents: 'export * from "./chat/calls.ts"; export * from "./chat/cited.ts"; export * from "./chat/runs-of-turns.ts";', resolveDir: source };
const { outputFiles: [{ text }] } = await build({ stdin, bundle: true, write: false, format: "esm" });
globalThis.sessionStorage = { getItem: () => null };
globalThis.location = { hash: "" };
globalThis.addEventListener ??= () => {};
const { cited, runsOf, withCall } = await import(`data:text/javascript,${encodeURIComponent(text)}`);

const event = (type, call_id, more = {}) => ({ type, agent: "files", tool: "files.read", call_id, ...more });

test("each of two calls of one tool gets its own result, and one that is reported again stays one call", () => {
  const events = [
    event("tool_call", "1/1.0", { arguments: { path: "a" } }),
    event("tool_call", "1/1.1", { arguments: { path: "b" } }),
    event("tool_result", "1/1.1", { is_error: true, preview: "B" }),
    event("tool_call", "1/1.0", { arguments: { path: "a" } }),
    event("tool_result", "1/1.0", { preview: "A" }),
  ];
  const calls = events.reduce(withCall, []);
  assert.deepEqual(calls.map(({ args, state, result }) => [args.path, state, result]), [["a", "done", "A"], ["b", "failed", "B"]]);
});

test("calls of older runs, whose events have no ids, end in their order", () => {
  const calls = ["tool_call", "tool_call", "tool_result"].map((type) => event(type, undefined, { preview: "A" })).reduce(withCall, []);
  assert.deepEqual(calls.map(({ state }) => state), ["done", "working"]);
});

test("a citation of a document with pages names its page", () => {
  const source = { source: "papers.search", title: "Orbits", quote: "Mars moves on an ellipse.", page: 2 };
  const [found] = cited({ answers: [], citations: [{ number: 1, agent: "papers", source: "papers.search" }], work: { results: [{ agent: "papers", output: "", sources: [source, { ...source, quote: "Venus.", page: undefined }] }] } });
  assert.deepEqual(found.quotes.map(({ title }) => title), ["Orbits, page 2", "Orbits"]);
});

test("each of two results of one agent has its own quotes", () => {
  const result = (quote) => ({ agent: "papers", output: quote, sources: [{ source: "papers.search", title: "Orbits", quote }] });
  const citations = [1, 2].map((number) => ({ number, agent: "papers", source: "papers.search" }));
  const found = cited({ answers: [], citations, work: { results: [result("Mars."), result("Venus.")] } });
  assert.deepEqual(found.map(({ quotes, output }) => [quotes.map(({ text }) => text), output]), [[["Mars."], "Mars."], [["Venus."], "Venus."]]);
});

test("runs belong to the turn that they asked or continued, and those of abandoned branches to none", () => {
  const turns = ["Hello?", "And then?"].map((content) => ({ question: { type: "human", content } }));
  const runs = [["e", null], ["d", "And then?"], ["c", "And before?"], ["b", null], ["a", "Hello?"]].map(([run_id, question]) => ({ run_id, question }));
  const ids = (all) => all.map((some) => some.map(({ run_id }) => run_id));
  assert.deepEqual(ids(runsOf(turns, runs)), [["b", "a"], ["e", "d"]]);
  const again = [{ run_id: "f", question: null }, ...runs.slice(1)];
  assert.deepEqual(ids(runsOf(turns.slice(0, 1), again)), [["f", "b", "a"]]);
});

test("sources stand in the order in which the answer cites them first, each with how often it does", () => {
  const citations = [1, 2, 3].map((number) => ({ number, agent: `agent ${number}`, source: "notes.read" }));
  const answers = [{ type: "ai", content: "Mars [3], Venus [1] and Mars again [3]; [9] is no source." }];
  const found = cited({ answers, citations, work: { results: [] } });
  assert.deepEqual(found.map(({ number, times }) => [number, times]), [[3, 2], [1, 1], [2, 0]]);
});
