/** The state of a thread by its schema: its fields in their order, with what the schema says of them. */

import { useState } from "preact/hooks";
import type { Json } from "../api/types.ts";
import { CopyButton } from "../parts/copy.tsx";
import { JsonView } from "../parts/json-view.tsx";
import { fieldsOf, resolved, type Fields } from "../parts/schema.ts";
import { readable } from "../parts/text.ts";
import { Formatted } from "../parts/values.tsx";

export function StateCard({ schema, values, except }: { schema: Json; values: Fields; except: string[] }) {
  const [raw, setRaw] = useState(false);
  const properties = fieldsOf(resolved(schema, schema).properties);
  const names = [...new Set([...Object.keys(properties), ...Object.keys(values)])].filter((name) => !except.includes(name) && !name.startsWith("__"));
  if (names.length === 0) return null;
  return (
    <section class="card state-card" aria-label="State">
      <p class="values-head">
        <strong>State</strong>
        <button type="button" class="link small" aria-pressed={raw} onClick={() => setRaw(!raw)}>{raw ? "Formatted" : "Raw"}</button>
        <CopyButton text={JSON.stringify(values, null, 2)} />
      </p>
      {raw ? <JsonView value={values} /> : (
        <dl class="fields">
          {names.map((name) => {
            const property = resolved(properties[name], schema);
            return [
              <dt key={`${name}:`} title={typeof property.description === "string" ? property.description : undefined}>{readable(String(property.title ?? name).replaceAll("_", " "))}</dt>,
              <dd key={name}><Formatted value={values[name] ?? null} /></dd>,
            ];
          })}
        </dl>
      )}
    </section>
  );
}
