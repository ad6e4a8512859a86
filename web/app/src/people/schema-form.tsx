/** A form made from a JSON Schema: text, numbers, switches, choices, fields within fields, lists; JSON where a schema says no more. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Json } from "../api/types.ts";
import { keep, kept } from "../chat/draft.ts";
import { Icon } from "../parts/icon.tsx";
import { DEEPEST, choices, draftOf, fieldsOf, kindOf, read, requiredOf, resolved, type Draft, type Fields } from "../parts/schema.ts";
import { readable } from "../parts/text.ts";

interface Props {
  schema: Json;
  onSubmit: (content: Json) => unknown;
  onDecline?: () => void;
  /** What the button that sends it says. */
  action?: string;
  disabled?: boolean;
  /** Where what was typed is kept over a reload. */
  place?: string | undefined;
}

export function SchemaForm({ schema, onSubmit, onDecline, action = "Send", disabled = false, place }: Props) {
  const root = resolved(schema, schema);
  const [draft, setDraft] = useState<Draft>(() => (place === undefined ? undefined : kept<Draft>(place)) ?? draftOf(root, schema));
  const [problem, setProblem] = useState("");
  function change(now: Draft) {
    setDraft(now);
    if (place !== undefined) keep(place, now);
  }
  function submit(event: Event) {
    event.preventDefault();
    try {
      setProblem("");
      onSubmit(read(draft, root, schema, true) ?? null);
    } catch (error) {
      setProblem((error as Error).message);
    }
  }
  return (
    <form class="schema-form" onSubmit={submit}>
      <Field name="Your answer" isRequired property={root} root={schema} draft={draft} depth={0} onChange={change} />
      {problem && <p class="error-text" role="alert">{problem}</p>}
      <p class="buttons">
        <button type="submit" class="primary" disabled={disabled}>{action}</button>
        {onDecline && <button type="button" class="danger" onClick={onDecline}>Decline</button>}
      </p>
    </form>
  );
}

interface FieldProps {
  name: string;
  isRequired: boolean;
  property: Fields;
  root: Json;
  draft: Draft;
  depth: number;
  onChange: (draft: Draft) => void;
}

const KINDS: { [format: string]: "email" | "url" | "date" | "datetime-local" } = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" };

export function Field(props: FieldProps) {
  const { name, isRequired: required, property, root, draft, depth, onChange } = props;
  const label = readable(String(property.title ?? name).replaceAll("_", " "));
  const hint = typeof property.description === "string" ? <span class="hint">{readable(property.description)}</span> : null;
  const text = typeof draft === "string" ? draft : "";
  const put = (event: { currentTarget: { value: string } }) => onChange(event.currentTarget.value);
  switch (kindOf(property, root, depth)) {
    case "switch":
      return <label class="choice"><input type="checkbox" checked={draft === true} onChange={(event) => onChange(event.currentTarget.checked)} /> {label} {hint}</label>;
    case "choice":
      return (
        <label>
          {label} {hint}
          <select required={required} value={text} onChange={put}>
            <option value="">Choose…</option>
            {choices(property).map(({ value, title }) => <option key={String(value)} value={String(value)}>{readable(title)}</option>)}
          </select>
        </label>
      );
    case "several":
      return <Several {...props} label={label}>{hint}</Several>;
    case "fields": {
      const names = requiredOf(property);
      const fields = Object.entries(fieldsOf(property.properties)).map(([inner, one]) => (
        <Field key={inner} name={inner} isRequired={names.has(inner) && (required || depth === 0)} property={resolved(one, root)} root={root} draft={fieldsOf(draft as Json)[inner] as Draft} depth={depth + 1} onChange={(now) => onChange({ ...(draft as { [name: string]: Draft }), [inner]: now })} />
      ));
      return depth === 0 ? <>{fields}</> : <fieldset class="nested"><legend>{label}</legend>{hint}{fields}</fieldset>;
    }
    case "list":
      return <List {...props} label={label}>{hint}</List>;
    case "json":
      return <label>{label} (JSON) {hint}<textarea class="code" rows={3} required={required} value={text} onInput={put} /></label>;
    default: {
      if (property.format === "multiline") return <label>{label} {hint}<textarea rows={3} required={required} value={text} onInput={put} /></label>;
      const isNumber = property.type !== "string";
      return (
        <label>
          {label} {hint}
          <input
            required={required}
            type={(isNumber ? "number" : (KINDS[String(property.format ?? "")] ?? "text")) as "text"}
            step={property.type === "integer" ? 1 : "any"}
            {...(typeof property.minimum === "number" && { min: property.minimum })}
            {...(typeof property.maximum === "number" && { max: property.maximum })}
            {...(typeof property.minLength === "number" && { minLength: property.minLength })}
            {...(typeof property.maxLength === "number" && { maxLength: property.maxLength })}
            value={text}
            onInput={put}
          />
        </label>
      );
    }
  }
}

type Labelled = FieldProps & { label: string; children: ComponentChildren };

/** Several choices out of some. */
function Several({ property, root, draft, onChange, label, children }: Labelled) {
  const taken = Array.isArray(draft) ? draft : [];
  return (
    <fieldset>
      <legend>{label}</legend>
      {children}
      {choices(resolved(property.items, root)).map(({ value, title }) => (
        <label key={String(value)} class="choice">
          <input type="checkbox" checked={taken.includes(String(value))} onChange={(event) => onChange(event.currentTarget.checked ? [...taken, String(value)] : taken.filter((one) => one !== String(value)))} /> {readable(title)}
        </label>
      ))}
    </fieldset>
  );
}

/** A list whose entries are added one by one. */
function List({ property, root, draft, depth, onChange, label, isRequired, children }: Labelled) {
  const items = resolved(property.items, root);
  const all = Array.isArray(draft) ? draft : isRequired ? [undefined] : [];
  return (
    <fieldset class="nested">
      <legend>{label}</legend>
      {children}
      {all.map((one, index) => (
        <div key={index} class="list-item">
          <Field name={`${label} ${index + 1}`} isRequired={false} property={items} root={root} draft={one} depth={Math.min(depth + 1, DEEPEST)} onChange={(now) => onChange(all.map((other, at) => (at === index ? now : other)))} />
          <button type="button" class="square" aria-label={`Remove ${label} ${index + 1}`} onClick={() => onChange(all.filter((_, at) => at !== index))}><Icon name="trash" /></button>
        </div>
      ))}
      <button type="button" onClick={() => onChange([...all, undefined])}><Icon name="plus" /> Add to {label}</button>
    </fieldset>
  );
}
