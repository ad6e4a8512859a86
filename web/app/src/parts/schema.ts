/** JSON Schema as forms read it: references followed, what may be missing set aside, and drafts made values. */

import type { Json } from "../api/types.ts";
import { exact, parseEdited } from "./edited.ts";

export type Fields = { [key: string]: Json };

/** What stands in a form's fields: text for numbers and JSON too, until it is read. */
export type Draft = undefined | string | boolean | Draft[] | { [name: string]: Draft };

export const fieldsOf = (value: Json | undefined): Fields => (typeof value === "object" && value !== null && !Array.isArray(value) ? value : {});

/** References that are followed one after another. */
const MOST = 16;

/** Levels of fields within fields; what is below is written as JSON. */
export const DEEPEST = 4;

/** Returns what a schema asks for: its reference followed, and of “this or nothing” the former. */
export function resolved(schema: Json | undefined, root: Json, depth = 0): Fields {
  const { $ref, allOf, ...rest } = fieldsOf(schema);
  const inner = typeof $ref === "string" ? $ref.split("/").slice(1).reduce<Json | undefined>((at, part) => fieldsOf(at)[part.replaceAll("~1", "/").replaceAll("~0", "~")], root) : Array.isArray(allOf) && allOf.length === 1 ? allOf[0] : undefined;
  if (inner !== undefined && depth < MOST) return { ...resolved(inner, root, depth + 1), ...rest };
  for (const key of ["anyOf", "oneOf"]) {
    const ways = Array.isArray(rest[key]) ? rest[key].filter((way) => fieldsOf(way).type !== "null") : [];
    const { [key]: _, ...others } = rest;
    if (ways.length === 1 && fieldsOf(ways[0]).const === undefined && depth < MOST) return { ...resolved(ways[0], root, depth + 1), ...others };
  }
  const types = Array.isArray(rest.type) ? rest.type.filter((type) => type !== "null") : [];
  return types.length === 1 ? { ...rest, type: types[0] ?? null } : rest;
}

/** Returns the choices of a property, with their titles. */
export function choices(property: Fields): { value: Json; title: string }[] {
  if (Array.isArray(property.enum)) {
    const titles = Array.isArray(property.enumNames) ? property.enumNames : property.enum;
    return property.enum.map((value, index) => ({ value, title: String(titles[index] ?? value) })).filter(({ value }) => value !== null);
  }
  const ways = property.oneOf ?? property.anyOf;
  if (!Array.isArray(ways)) return [];
  return ways.map(fieldsOf).filter((way) => way.const !== undefined).map((way) => ({ value: way.const ?? null, title: String(way.title ?? way.const) }));
}

export type Kind = "switch" | "choice" | "several" | "number" | "text" | "fields" | "list" | "json";

/** Tells which field a value is written in. */
export function kindOf(property: Fields, root: Json, depth: number): Kind {
  if (property.type === "boolean") return "switch";
  if (choices(property).length > 0) return "choice";
  if (property.type === "array" && choices(resolved(property.items, root)).length > 0) return "several";
  if (property.type === "integer" || property.type === "number") return "number";
  if (property.type === "string") return "text";
  if (property.type === "object" && property.properties !== undefined && depth < DEEPEST) return "fields";
  return property.type === "array" && property.items !== undefined && property.items !== true && depth < DEEPEST ? "list" : "json";
}

/** Returns what a form begins with: the schema's default. */
export function draftOf(property: Fields, root: Json, depth = 0): Draft {
  const kind = kindOf(property, root, depth);
  if (kind === "fields") return Object.fromEntries(Object.entries(fieldsOf(property.properties)).map(([name, one]) => [name, draftOf(resolved(one, root), root, depth + 1)]));
  const { default: given } = property;
  if (given === undefined || given === null) return undefined;
  if (kind === "switch") return given === true;
  if (kind === "several" && Array.isArray(given)) return given.map(String);
  return typeof given === "object" ? (kind === "json" ? JSON.stringify(given, null, 2) : undefined) : String(given);
}

/** Returns the draft of a value that a form begins with. */
export function draftFrom(value: Json | undefined, property: Fields, root: Json, depth = 0): Draft {
  const kind = kindOf(property, root, depth);
  if (kind === "fields") return Object.fromEntries(Object.entries(fieldsOf(property.properties)).map(([name, one]) => [name, draftFrom(fieldsOf(value)[name], resolved(one, root), root, depth + 1)]));
  if (value === undefined || value === null) return undefined;
  if (kind === "switch") return value === true;
  if (kind === "several" && Array.isArray(value)) return value.map(String);
  if (kind === "list" && Array.isArray(value)) return value.map((one) => draftFrom(one, resolved(property.items, root), root, depth + 1));
  return kind === "json" ? JSON.stringify(value, null, 2) : String(value);
}

/** Reads what stands in a form; nothing where nothing does. Throws for what cannot be sent. */
export function read(draft: Draft, property: Fields, root: Json, isRequired: boolean, depth = 0): Json | undefined {
  const kind = kindOf(property, root, depth);
  const choice = (text: string, of: Fields) => choices(of).find((each) => String(each.value) === text)?.value;
  if (kind === "switch") return draft === undefined ? (isRequired ? false : undefined) : draft === true;
  if (kind === "fields") return readFields(fieldsOf(draft as Json), property, root, isRequired, depth);
  if (kind === "several" || kind === "list") {
    const items = resolved(property.items, root);
    const all = (Array.isArray(draft) ? draft : []).map((one) => (kind === "several" ? choice(String(one), items) : read(one, items, root, false, depth + 1))).filter((one) => one !== undefined);
    return all.length > 0 || isRequired ? all : undefined;
  }
  if (typeof draft !== "string" || draft === "") return undefined;
  if (kind === "choice") return choice(draft, property);
  if (kind === "text") return draft;
  const written = kind === "number" ? exact(Number(draft)) : parseEdited(draft);
  if ("problem" in written) throw new Error(written.problem);
  return written.value;
}

function readFields(draft: Fields, property: Fields, root: Json, isRequired: boolean, depth: number): Json | undefined {
  const required = requiredOf(property);
  const given = Object.entries(fieldsOf(property.properties)).flatMap(([name, one]) => {
    const value = read(draft[name] as Draft, resolved(one, root), root, required.has(name), depth + 1);
    return value === undefined ? [] : [[name, value] as const];
  });
  return given.length > 0 || isRequired || depth === 0 ? Object.fromEntries(given) : undefined;
}

/** Returns the names of the fields that may not be missing. */
export const requiredOf = (property: Fields) => new Set(Array.isArray(property.required) ? property.required.map(String) : []);
