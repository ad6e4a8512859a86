/** Edits a call's arguments: a field for each, or all of them as JSON. */

import { useState } from "preact/hooks";
import type { Json } from "../api/types.ts";
import { difference } from "../inspector/difference.ts";
import { parseEdited } from "../parts/edited.ts";
import { draftFrom, fieldsOf as schemaFields, read, resolved, type Draft } from "../parts/schema.ts";
import { readable } from "../parts/text.ts";
import { Field as SchemaField } from "./schema-form.tsx";

interface Props {
  /** The arguments as JSON. */
  text: string;
  /** What the tool takes, where that is known. */
  schema?: Json | undefined;
  onChange: (text: string) => void;
  /** Tells whether a field has a text that is no value. */
  onBad: (isBad: boolean) => void;
}

type Fields = { [name: string]: Json };

/** Reads the arguments; null while they are no object. */
function fieldsOf(text: string): Fields | null {
  try {
    const value = JSON.parse(text) as Json;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

export function EditArguments({ text, schema, onChange, onBad }: Props) {
  const fields = fieldsOf(text);
  const isBySchema = schema !== undefined && fields !== null && isWhole(fields, schema);
  const [bad, setBad] = useState<string[]>([]);
  const [asJson, setAsJson] = useState(fields === null || Object.keys(fields).length === 0);
  if (asJson || fields === null) {
    return (
      <>
        <label>
          Arguments
          <textarea class="code" rows={Math.min(16, text.split("\n").length + 1)} value={text} onInput={(event) => onChange(event.currentTarget.value)} />
        </label>
        {fields && <button type="button" class="link small" onClick={() => setAsJson(false)}>Edit as fields</button>}
      </>
    );
  }
  /** Takes a field's value; none if its text is no value. */
  function put(name: string, value: Json | undefined) {
    const others = bad.filter((one) => one !== name);
    const now = value === undefined ? [...others, name] : others;
    setBad(now);
    onBad(now.length > 0);
    if (value !== undefined) onChange(JSON.stringify({ ...fields, [name]: value }, null, 2));
  }
  return (
    <>
      {isBySchema ? <BySchema value={fields} schema={schema} onChange={(now) => (onBad(now === undefined), now && onChange(JSON.stringify(now, null, 2)))} /> : Object.entries(fields).map(([name, value]) => <Field key={name} name={name} value={value} onChange={(now) => put(name, now)} />)}
      <button type="button" class="link small" onClick={() => (setBad([]), onBad(false), setAsJson(true))}>Edit as JSON</button>
    </>
  );
}

/** Tells whether the form of a schema shows all of the arguments and changes none. */
function isWhole(fields: Fields, schema: Json): boolean {
  const root = resolved(schema, schema);
  if (root.type !== "object" || root.properties === undefined) return false;
  try {
    return difference(fields, read(draftFrom(fields, root, schema), root, schema, true)).length === 0;
  } catch {
    return false;
  }
}

/** The tool's own form, with what may be added and what each field means. */
function BySchema({ value, schema, onChange }: { value: Fields; schema: Json; onChange: (now: Fields | undefined) => void }) {
  const [root] = useState(() => {
    const { properties, ...rest } = resolved(schema, schema);
    const all = Object.entries(schemaFields(properties)).map(([name, one]) => [name, isLong(value[name]) ? { ...resolved(one, schema), format: "multiline" } : one]);
    return { ...rest, properties: Object.fromEntries(all) as Json };
  });
  const [draft, setDraft] = useState(() => draftFrom(value, root, schema));
  const [problem, setProblem] = useState("");
  function change(now: Draft) {
    setDraft(now);
    try {
      onChange(schemaFields(read(now, root, schema, true)));
      setProblem("");
    } catch (error) {
      onChange(undefined);
      setProblem((error as Error).message);
    }
  }
  return (
    <>
      <SchemaField name="Arguments" isRequired property={root} root={schema} draft={draft} depth={0} onChange={change} />
      {problem && <p class="error-text">{problem}</p>}
    </>
  );
}

/** Characters from which on a text has several lines. */
const LONG = 60;

const isLong = (value: Json | undefined) => typeof value === "string" && (value.length >= LONG || value.includes("\n"));

function Field({ name, value, onChange }: { name: string; value: Json; onChange: (value: Json | undefined) => void }) {
  const label = readable(name.replaceAll("_", " "));
  if (typeof value === "boolean") return <label class="choice"><input type="checkbox" checked={value} onChange={(event) => onChange(event.currentTarget.checked)} /> {label}</label>;
  if (typeof value !== "string") return <JsonField label={label} value={value} onChange={onChange} />;
  if (!isLong(value)) return <label>{label}<input value={value} onInput={(event) => onChange(event.currentTarget.value)} /></label>;
  return <label>{label}<textarea rows={Math.min(12, value.split("\n").length + 2)} value={value} onInput={(event) => onChange(event.currentTarget.value)} /></label>;
}

/** A number, a list or an object, which changes once it is JSON again. */
function JsonField({ label, value, onChange }: { label: string; value: Json; onChange: (value: Json | undefined) => void }) {
  const isNumber = typeof value === "number";
  const [text, setText] = useState(() => JSON.stringify(value));
  const [isBad, setBad] = useState(false);
  function edit(now: string) {
    setText(now);
    const read = parseEdited(now);
    const isValue = "value" in read && (!isNumber || typeof read.value === "number");
    setBad(!isValue);
    onChange(isValue ? read.value : undefined);
  }
  return (
    <label>
      {label} {!isNumber && "(JSON)"} {isBad && <span class="error-text">{isNumber ? "This is not a number that can be sent." : "This is not JSON that can be sent."}</span>}
      <textarea class="code" rows={isNumber ? 1 : 2} aria-invalid={isBad} value={text} onInput={(event) => edit(event.currentTarget.value)} />
    </label>
  );
}
