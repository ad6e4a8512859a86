/** Drafts: what was typed for a thread stays until the server has accepted it. */

import { store, stored } from "../parts/stored.ts";
import type { Request } from "./conversation.ts";

export type Choice = "free" | "prefer" | "disable";

export interface Draft {
  text: string;
  choices: { [agent: string]: Choice };
  context: string;
  turns: string;
  data: boolean;
  instructions: string;
  /** Documents that are attached: what the request says of each. */
  attached: { id: string; title: string }[];
  /** Names the request from its first try on, so that it is never accepted twice. */
  request?: string;
  /** The open question that it answers, in place of asking something. */
  answers?: string;
  /** Why it was not sent. */
  unsent?: string;
}

export const EMPTY: Draft = { text: "", choices: {}, context: "", turns: "", data: true, instructions: "", attached: [] };

const PREFIX = "perihelion-draft-";

/** Returns what is kept in a place, if something is. */
export const kept = <Kept>(place: string) => stored<Kept>(PREFIX + place);

/** Keeps something in a place, or nothing. */
export const keep = (place: string, draft: unknown) => store(PREFIX + place, draft);

export const readDraft = (thread = "new"): Draft => ({ ...EMPTY, ...kept<Partial<Draft>>(thread) });

/** Keeps a draft; an empty one is forgotten. */
export const keepDraft = (thread = "new", draft: Draft) => keep(thread, JSON.stringify(draft) === JSON.stringify(EMPTY) ? undefined : draft);

/** Forgets all drafts, as when somebody logs out. */
export function forgetDrafts() {
  for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX)) localStorage.removeItem(key);
}

/** Makes an id that is like no other; browsers have their own function only on a secure origin. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** Key of the request's context under which agents find which documents were attached. */
const ATTACHED = "attached_documents";

/** Returns what a draft asks for. */
export function requestOf(draft: Draft): Request {
  const chosen = (choice: Choice) => Object.keys(draft.choices).filter((agent) => draft.choices[agent] === choice);
  const lines = draft.context.split("\n").map((line) => line.split(/=(.*)/s)).filter(([key]) => key?.trim());
  const pairs = lines.map(([key = "", value = ""]) => [key.trim(), value.trim()]);
  if (draft.attached.length) pairs.push([ATTACHED, draft.attached.map((one) => `${one.title} (document ${one.id})`).join("; ")]);
  const request: Request = { question: draft.text.trim(), include_data: draft.data };
  if (chosen("prefer").length) request.prefer_agents = chosen("prefer");
  if (chosen("disable").length) request.disable_agents = chosen("disable");
  if (pairs.length) request.context = Object.fromEntries(pairs) as { [key: string]: string };
  if (Number(draft.turns) > 0) request.max_turns = Number(draft.turns);
  if (draft.instructions.trim()) request.system_prompt = draft.instructions.trim();
  return request;
}
