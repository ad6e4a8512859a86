/** JSON as a tree; branches open on demand, long texts are cut. */

import { useState } from "preact/hooks";
import { clip, readable } from "./text.ts";

const SHOWN = 200;

function Leaf({ value }: { value: unknown }) {
  const [whole, setWhole] = useState(false);
  if (typeof value !== "string") return <span class={`json-${value === null ? "null" : typeof value}`}>{String(value)}</span>;
  const text = readable(value);
  const long = text.length > SHOWN;
  return (
    <span class="json-string">
      {whole ? text : clip(text, SHOWN)}
      {long && (
        <button type="button" class="link" onClick={() => setWhole(!whole)}>
          {whole ? "less" : `all ${text.length} characters`}
        </button>
      )}
    </span>
  );
}

export function JsonView({ value, name, depth = 0 }: { value: unknown; name?: string; depth?: number }) {
  const [open, setOpen] = useState(depth < 1);
  const [most, setMost] = useState(100);
  const label = name === undefined ? null : <span class="json-key">{readable(name)}: </span>;
  if (typeof value !== "object" || value === null) {
    return (
      <div class="json-line">
        {label}
        <Leaf value={value} />
      </div>
    );
  }
  const entries = Object.entries(value);
  const sum = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  if (entries.length === 0) {
    return (
      <div class="json-line">
        {label}
        <span class="json-null">{Array.isArray(value) ? "[]" : "{}"}</span>
      </div>
    );
  }
  return (
    <details class="json" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {label}
        <span class="json-sum">{sum}</span>
      </summary>
      {open && (
        <div class="json-children">
          {entries.slice(0, most).map(([key, child]) => (
            <JsonView key={key} name={key} value={child} depth={depth + 1} />
          ))}
          {entries.length > most && (
            <button type="button" class="link" onClick={() => setMost(most + 500)}>
              {entries.length - most} more
            </button>
          )}
        </div>
      )}
    </details>
  );
}
