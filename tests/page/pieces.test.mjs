/** How a long answer is cut into pieces that are parsed one by one. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { transform } from "../../web/app/node_modules/esbuild/lib/main.js";

const source = await readFile(new URL("../../web/app/src/parts/pieces.ts", import.meta.url), "utf8");
const { code } = await transform(source, { loader: "ts", format: "esm" });
const { Cutter } = await import(`data:text/javascript,${encodeURIComponent(code)}`);

function cut(text) {
  const cutter = new Cutter();
  cutter.take(text);
  while (!cutter.isThrough) cutter.step();
  return cutter.pieces;
}

const WORDS = "A word, **a strong one** and [a link](https://example.org/a) [1]. ";

test("a paragraph of the usual lengths is one piece, on one line or on many", () => {
  for (const paragraph of [WORDS.repeat(60).trim(), Array(60).fill(WORDS.trim()).join("\n")]) {
    assert.deepEqual(cut(`# Title\n\n${paragraph}\n\nEnd.`), ["# Title", paragraph, "End."]);
  }
});

test("a list is cut before items of its own", () => {
  const list = Array(40).fill(`- An item. ${WORDS}\n    - Within it. ${WORDS}\n    more of that`).join("\n");
  const parts = cut(list);
  assert.ok(parts.length > 3);
  for (const part of parts) assert.match(part, /^- An item/);
  assert.equal(parts.join("\n"), list);
});

test("code stays code and a table keeps its head in each piece", () => {
  const code = cut(`\`\`\`js\n${"let a = 1;\n".repeat(300)}\`\`\``);
  assert.ok(code.length > 2 && code.every((part) => part.startsWith("```js\n") && part.endsWith("\n```")));
  const table = cut(`| a | b |\n|---|---|\n${"| one | two |\n".repeat(300)}`);
  assert.ok(table.length > 2 && table.every((part) => part.startsWith("| a | b |\n|---|---|\n| one")));
});

test("a text of a megabyte without an end is cut between words", () => {
  const parts = cut("word ".repeat(200_000).trim());
  assert.ok(parts.length > 100 && parts.every((part) => part.length <= 8_000 && /(word )*word ?$/.test(part)));
});
