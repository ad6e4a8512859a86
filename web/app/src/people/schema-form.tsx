/** A form made from the flat JSON Schema of an MCP elicitation: text, numbers, switches, one choice or several. */

import { useState } from "preact/hooks";
import type { Json } from "../api/types.ts";
import { readable } from "../parts/text.ts";

type Fields = { [key: string]: Json };

const fieldsOf = (value: Json | undefined): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};

interface Props {
  schema: Json;
  onSubmit: (content: Json) => void;
  onDecline: () => void;
}

/** Returns the choices of a property, with their titles. */
function choices(property: Fields): { value: Json; title: string }[] {
  if (Array.isArray(property.enum)) {
    const titles = Array.isArray(property.enumNames) ? property.enumNames : property.enum;
    return property.enum.map((value, index) => ({ value, title: String(titles[index] ?? value) }));
  }
  const ways = property.oneOf ?? property.anyOf;
  if (!Array.isArray(ways)) return [];
  return ways.map(fieldsOf).filter((way) => way.const !== undefined).map((way) => ({ value: way.const ?? null, title: String(way.title ?? way.const) }));
}

/** Returns the choices of which several may be taken; none where the property is no list of them. */
function several(property: Fields): { value: Json; title: string }[] {
  return property.type === "array" ? choices(fieldsOf(property.items)) : [];
}

function convert(property: Fields, text: string): Json {
  if (property.type === "integer" || property.type === "number") return Number(text);
  const choice = choices(property).find((each) => String(each.value) === text);
  return choice ? choice.value : text;
}

const KINDS: { [format: string]: "email" | "url" | "date" | "datetime-local" } = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" };

export function SchemaForm({ schema, onSubmit, onDecline }: Props) {
  const properties = Object.entries(fieldsOf(fieldsOf(schema).properties)).map(([name, property]) => [name, fieldsOf(property)] as const);
  const requiredNames = fieldsOf(schema).required;
  const required = new Set(Array.isArray(requiredNames) ? requiredNames.map(String) : []);
  const [values, setValues] = useState<Fields>(() => Object.fromEntries(properties.filter(([, property]) => property.default !== undefined).map(([name, property]) => [name, property.default ?? null])));
  const put = (name: string, value: Json) => setValues({ ...values, [name]: value });

  function submit(event: Event) {
    event.preventDefault();
    const given = properties.filter(([name]) => values[name] !== undefined && values[name] !== "");
    onSubmit(Object.fromEntries(given.map(([name, property]) => {
      const value = values[name] ?? null;
      return [name, typeof value === "string" ? convert(property, value) : value];
    })));
  }

  return (
    <form class="schema-form" onSubmit={submit}>
      {properties.map(([name, property]) => {
        const options = choices(property);
        const label = readable(String(property.title ?? name));
        const hint = typeof property.description === "string" ? <span class="hint">{readable(property.description)}</span> : null;
        if (property.type === "boolean") {
          return (
            <label key={name} class="choice">
              <input type="checkbox" checked={values[name] === true} onChange={(event) => put(name, event.currentTarget.checked)} /> {label} {hint}
            </label>
          );
        }
        const many = several(property);
        if (many.length > 0) {
          const taken = Array.isArray(values[name]) ? values[name] : [];
          return (
            <fieldset key={name}>
              <legend>{label}</legend>
              {hint}
              {many.map(({ value, title }) => (
                <label key={String(value)} class="choice">
                  <input type="checkbox" checked={taken.includes(value)} onChange={(event) => put(name, event.currentTarget.checked ? [...taken, value] : taken.filter((one) => one !== value))} /> {readable(title)}
                </label>
              ))}
            </fieldset>
          );
        }
        const numeric = property.type === "integer" || property.type === "number";
        return (
          <label key={name}>
            {label} {hint}
            {options.length > 0 ? (
              <select required={required.has(name)} value={String(values[name] ?? "")} onChange={(event) => put(name, event.currentTarget.value)}>
                <option value="">Choose…</option>
                {options.map((option) => <option key={String(option.value)} value={String(option.value)}>{readable(option.title)}</option>)}
              </select>
            ) : (
              <input
                required={required.has(name)}
                type={(numeric ? "number" : (KINDS[String(property.format ?? "")] ?? "text")) as "text"}
                step={property.type === "integer" ? 1 : "any"}
                {...(typeof property.minimum === "number" && { min: property.minimum })}
                {...(typeof property.maximum === "number" && { max: property.maximum })}
                {...(typeof property.minLength === "number" && { minLength: property.minLength })}
                {...(typeof property.maxLength === "number" && { maxLength: property.maxLength })}
                value={String(values[name] ?? "")}
                onInput={(event) => put(name, event.currentTarget.value)}
              />
            )}
          </label>
        );
      })}
      <p class="buttons">
        <button type="submit" class="primary">Send</button>
        <button type="button" class="danger" onClick={onDecline}>Decline</button>
      </p>
    </form>
  );
}
