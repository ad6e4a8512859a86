/** A value as people read it: fields with labels, text with its line breaks; as JSON on request. */

import { useState } from "preact/hooks";
import type { Json } from "../api/types.ts";
import { CopyButton } from "./copy.tsx";
import { JsonView } from "./json-view.tsx";
import { clip, readable } from "./text.ts";

/** Characters of a text that are shown at first. */
const SHOWN = 2_000;

const label = (name: string) => readable(name.replaceAll("_", " "));

export function Values({ value, title }: { value: Json; title?: string }) {
  const [raw, setRaw] = useState(false);
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return (
    <div class="values">
      <p class="values-head">
        {title && <strong>{title}</strong>}
        {typeof value === "object" && value !== null && <button type="button" class="link small" aria-pressed={raw} onClick={() => setRaw(!raw)}>{raw ? "Formatted" : "Raw"}</button>}
        <CopyButton text={text} />
      </p>
      {raw ? <pre tabIndex={0}>{readable(text)}</pre> : <Formatted value={value} />}
    </div>
  );
}

/** A value without its tools. */
export function Formatted({ value, depth = 0 }: { value: Json; depth?: number }) {
  if (typeof value === "string") return <Text text={value} />;
  if (typeof value !== "object" || value === null) return <span class="value-simple">{value === null ? "–" : String(value)}</span>;
  if (isTable(value)) return <Rows columns={value.columns.map(String)} rows={value.rows} />;
  if (Array.isArray(value)) {
    const simple = value.every((one) => typeof one !== "object" || one === null);
    if (simple && value.length < 20) return <span class="value-simple">{value.length === 0 ? "none" : readable(value.map(String).join(", "))}</span>;
    return <JsonView value={value} />;
  }
  const fields = Object.entries(value);
  if (fields.length === 0) return <span class="hint">none</span>;
  if (depth > 1) return <JsonView value={value} />;
  return (
    <dl class="fields">
      {fields.map(([name, part]) => [<dt key={`${name}:`}>{label(name)}</dt>, <dd key={name}><Formatted value={part} depth={depth + 1} /></dd>])}
    </dl>
  );
}

function Text({ text }: { text: string }) {
  const [whole, setWhole] = useState(false);
  const shown = readable(whole ? text : clip(text, SHOWN));
  const more = text.length > SHOWN && !whole && <button type="button" class="link" onClick={() => setWhole(true)}>Show all</button>;
  if (!text.includes("\n") && text.length < 120) return <span class="value-simple">{shown || "–"}</span>;
  return <><pre tabIndex={0}>{shown}</pre>{more}</>;
}

function isTable(value: Json): value is { columns: Json[]; rows: Json[][] } {
  return typeof value === "object" && value !== null && !Array.isArray(value) && Array.isArray(value.columns) && Array.isArray(value.rows) && value.rows.every(Array.isArray);
}

/** Rows of a table that are shown. */
const ROWS = 10;

function Rows({ columns, rows }: { columns: string[]; rows: Json[][] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Rows">
      <table>
        <thead><tr>{columns.map((column) => <th key={column}>{readable(column)}</th>)}</tr></thead>
        <tbody>{rows.slice(0, ROWS).map((row, index) => <tr key={index}>{columns.map((_, at) => <td key={at} class={typeof row[at] === "number" ? "number" : ""}>{readable(clip(String(row[at] ?? "–"), 200))}</td>)}</tr>)}</tbody>
      </table>
      {rows.length > ROWS && <p class="hint small">{rows.length - ROWS} more rows</p>}
    </div>
  );
}
