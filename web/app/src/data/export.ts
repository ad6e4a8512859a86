/** Tables and other things as files. */

import { evaluations } from "../api/evaluations.ts";
import { send } from "../api/http.ts";
import type { Json } from "../api/types.ts";
import { say } from "../parts/notice.tsx";
import { cell, gently, named, written } from "./rows.ts";

export function download(name: string, parts: string[], type: string) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 1_000);
}

/** Saves a thread with all its steps, as `perihelion threads import` reads it. */
export async function saveThread(thread: string) {
  const response = await send(`v1/threads/${encodeURIComponent(thread)}/export`);
  download(`thread-${thread}.jsonl`, [await response.text()], "application/x-ndjson");
}

/** Saves the answers of a thread, or those that people rated, as a data set for `perihelion eval`. */
export async function saveDataSet(thread?: string) {
  const lines = await evaluations.data(thread);
  if (lines) download(thread ? `data-${thread}.jsonl` : "data.jsonl", [lines], "application/x-ndjson");
  else say(thread ? "This thread has no answers yet." : "No answer has feedback yet.");
}

/** Writes a field of CSV (RFC 4180); what a spreadsheet would take for a formula is quoted as text. */
function field(value: Json | undefined): string {
  const text = cell(value);
  const safe = typeof value === "string" && /^([=+@\t\r]|-(?!\d+$))/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Saves rows as CSV. */
export async function saveCsv(name: string, columns: string[], rows: Json[][]) {
  const line = (row: Json[]) => `\r\n${columns.map((_, index) => field(row[index])).join(",")}`;
  const parts = await gently(written(rows, line), new AbortController().signal);
  download(`${name}.csv`, [columns.map(field).join(","), ...parts], "text/csv");
}

/** Saves rows as JSON: an object for each. */
export async function saveJson(name: string, columns: string[], rows: Json[][]) {
  const names = named(columns);
  const object = (row: Json[]) => JSON.stringify(Object.fromEntries(names.map((name, index) => [name, row[index] ?? null])));
  const parts = await gently(written(rows, (row) => `${row === rows[0] ? "" : ",\n"}${object(row)}`), new AbortController().signal);
  download(`${name}.json`, ["[", ...parts, "]\n"], "application/json");
}
