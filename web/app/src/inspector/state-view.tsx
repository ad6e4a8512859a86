/** A thread's state: a field on each line, opened to its value; empty fields last, on one line. */

import type { Json } from "../api/types.ts";
import { JsonView } from "../parts/json-view.tsx";
import { clip, readable } from "../parts/text.ts";
import { plural } from "../parts/time.tsx";
import { Values } from "../parts/values.tsx";

const isEmpty = (value: Json) => value === null || value === "" || (typeof value === "object" && Object.keys(value).length === 0);

/** Says in a few words what a field holds. */
function about(value: Json): string {
  if (typeof value !== "object" || value === null) return clip(String(value).replace(/\s+/g, " "), 100);
  return Array.isArray(value) ? plural(value.length, "item") : plural(Object.keys(value).length, "field");
}

export function StateView({ values }: { values: { [field: string]: Json } }) {
  const fields = Object.entries(values);
  const empty = fields.filter(([, value]) => isEmpty(value)).map(([name]) => name);
  return (
    <>
      {fields.filter(([, value]) => !isEmpty(value)).map(([name, value]) => (
        <details key={name} class="state-field">
          <summary><strong>{readable(name)}</strong> <span class="hint json-line">{readable(about(value))}</span></summary>
          <Values value={value} />
        </details>
      ))}
      {empty.length > 0 && <p class="hint small">Empty: {empty.map(readable).join(", ")}</p>}
      <details>
        <summary class="hint">All as JSON</summary>
        <JsonView value={values} />
      </details>
    </>
  );
}
