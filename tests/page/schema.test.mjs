/** X11: forms made from JSON Schema, and questions of graphs, read without a browser. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "../../web/app/node_modules/esbuild/lib/main.js";

const source = new URL("../../web/app/src/", import.meta.url).pathname;
const stdin = { contents: 'export * from "./parts/schema.ts"; export * from "./parts/edited.ts"; export * from "./people/decide.ts";', resolveDir: source };
const { outputFiles: [{ text }] } = await build({ stdin, bundle: true, write: false, format: "esm" });
const { asked, draftOf, kindOf, parseEdited, read, resolved } = await import(`data:text/javascript,${encodeURIComponent(text)}`);

const SCHEMA = {
  type: "object",
  required: ["name", "tags", "place", "isGift", "speed"],
  properties: {
    name: { type: "string" },
    note: { type: ["string", "null"] },
    count: { anyOf: [{ type: "integer" }, { type: "null" }], default: 3 },
    tags: { type: "array", items: { type: "string" } },
    extras: { type: "array", items: { enum: ["ribbon", "wax"] } },
    place: { $ref: "#/$defs/Place" },
    later: { anyOf: [{ $ref: "#/$defs/Place" }, { type: "null" }] },
    isGift: { type: "boolean" },
    speed: { oneOf: [{ const: 1, title: "Slow" }, { const: 2, title: "Fast" }] },
    anything: true,
  },
  $defs: { Place: { type: "object", required: ["city"], properties: { city: { type: "string" }, inner: { $ref: "#/$defs/Place" } } } },
};
const root = resolved(SCHEMA, SCHEMA);

test("each property has the field that its schema asks for", () => {
  const kinds = Object.entries(root.properties).map(([name, one]) => [name, kindOf(resolved(one, SCHEMA), SCHEMA, 1)]);
  assert.deepEqual(Object.fromEntries(kinds), { name: "text", note: "text", count: "number", tags: "list", extras: "several", place: "fields", later: "fields", isGift: "switch", speed: "choice", anything: "json" });
  // A schema that contains itself ends somewhere.
  assert.equal(draftOf(root, SCHEMA).place.inner.inner.inner, undefined);
});

test("what stands in the fields becomes values of the schema's types, and nothing stays away", () => {
  const draft = { ...draftOf(root, SCHEMA), name: "globe", tags: ["a", "", "b"], extras: ["wax"], place: { city: "Padua" }, speed: "2", anything: '{"a":[1]}' };
  assert.deepEqual(read(draft, root, SCHEMA, true), { name: "globe", count: 3, tags: ["a", "b"], extras: ["wax"], place: { city: "Padua" }, isGift: false, speed: 2, anything: { a: [1] } });
  assert.throws(() => read({ ...draft, anything: "{" }, root, SCHEMA, true), /This is not JSON/);
  const choice = { title: "Length", enum: ["short", "long"] };
  assert.equal(read("short", choice, choice, true), "short");
  assert.equal(read('"any"', {}, {}, true), "any");
});

test("a number that a browser would round is not sent", () => {
  const draft = { ...draftOf(root, SCHEMA), name: "globe", place: { city: "Padua" }, speed: "2" };
  for (const [field, text] of [["count", "12345678901234567"], ["anything", "[9007199254740993]"]]) {
    assert.throws(() => read({ ...draft, [field]: text }, root, SCHEMA, true), /more digits/);
    assert.match(parseEdited(`{"${field}":${text}}`).problem, /more digits/);
  }
  assert.equal(read({ ...draft, count: ".5" }, root, SCHEMA, true).count, 0.5);
  assert.deepEqual(parseEdited("[9007199254740991, 0.1]"), { value: [9007199254740991, 0.1] });
});

test("a question of a graph is put in words, with its options, its schema, or as it is", () => {
  assert.deepEqual(asked("length", "How long?", "choose"), { kind: "question", text: "How long?", options: [], agent: "choose" });
  assert.deepEqual(asked("length", { ask: "How long?", options: ["short", "long"] }).options, ["short", "long"]);
  const schema = { enum: ["short", "long"] };
  const free = asked("length", { ask: "How long?", response_schema: schema });
  assert.deepEqual([free.kind, free.text, free.what, free.schema, free.problem], ["free", "How long?", {}, schema, ""]);
  const again = asked("length", { question: { ask: "How long?", response_schema: schema }, problem: "the last answer does not fit: x" });
  assert.deepEqual([again.text, again.schema, again.problem], ["How long?", schema, "the last answer does not fit: x"]);
  const bare = asked("place", { lat: 1, lon: 2 });
  assert.deepEqual([bare.kind, bare.what, bare.schema], ["free", { lat: 1, lon: 2 }, null]);
});
