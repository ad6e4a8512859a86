/** Numbers, times and amounts as the page writes them, and columns as it saves them, without a browser. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "../../web/app/node_modules/esbuild/lib/main.js";

const source = new URL("../../web/app/src/", import.meta.url).pathname;
const contents = 'export { named } from "./data/rows.ts"; export { dollars } from "./parts/money.ts"; export { Newest, Rest } from "./parts/rest.tsx"; export { dayText, duration } from "./parts/time.tsx";';
const { outputFiles: [{ text }] } = await build({ stdin: { contents, resolveDir: source }, bundle: true, write: false, format: "esm", jsx: "automatic", jsxImportSource: "preact" });
const { Newest, Rest, dayText, dollars, duration, named } = await import(`data:text/javascript,${encodeURIComponent(text)}`);

test("a duration never has sixty of anything", () => {
  const all = [999.4, 999.7, 1_540, 59_940, 59_980, 119_700, 3_599_700, 5_400_000].map(duration);
  assert.deepEqual(all, ["999 ms", "1.0 s", "1.5 s", "59.9 s", "1 min 0 s", "2 min 0 s", "1 h 0 min", "1 h 30 min"]);
});

test("a day of another year has its year, and a small cost is not nothing", () => {
  const now = new Date();
  assert.ok(!dayText(now).includes(String(now.getFullYear())));
  assert.ok(dayText(new Date(2_019, 10, 28)).includes("2019"));
  assert.deepEqual([0, 1, 49_000, 51_000, 2e9].map(dollars), ["$0.00", "< $0.0001", "< $0.0001", "$0.0001", "$2.00"]);
});

test("a list that is cut says so", () => {
  assert.equal(Rest({ shown: 30, all: 30 }), null);
  assert.deepEqual(Rest({ shown: 30, all: 1_034 }).props.children, ["1,004", " more"]);
  assert.equal(Newest({ shown: 99, most: 100 }), null);
  assert.deepEqual(Newest({ shown: 100, most: 100 }).props.children, ["Only the newest ", "100", " are shown."]);
});

test("columns of the same name are all saved", () => {
  assert.deepEqual(named(["id", "name"]), ["id", "name"]);
  assert.deepEqual(named(["id", "id", "id_2", "id"]), ["id", "id_3", "id_2", "id_4"]);
});
