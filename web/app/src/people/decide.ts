/** What is asked of people, recognised by its shape, and the answers that the server takes. */

import type { Interrupt, Json } from "../api/types.ts";

export interface Approval {
  kind: "approval";
  id: string;
  actions: { name: string; args: Json; description: string; allowed: string[] }[];
  agent: string;
  tainted: string[];
  expires: string | null;
}

export interface Question {
  kind: "question";
  id: string;
  text: string;
  options: string[];
  agent: string;
}

export interface Form {
  kind: "form";
  id: string;
  text: string;
  schema: Json;
  agent: string;
}

export interface Unknown {
  kind: "unknown";
  id: string;
  what: Json;
  agent: string;
}

export type Asked = Approval | Question | Form | Unknown;

type Fields = { [key: string]: Json };

const fieldsOf = (value: Json | undefined): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
const text = (value: Json | undefined) => (typeof value === "string" ? value : "");
const list = (value: Json | undefined) => (Array.isArray(value) ? value : []);

/** Recognises an interrupt. */
export function asked(interrupt: Interrupt): Asked {
  const value = fieldsOf(interrupt.value);
  const payload = { ...value, ...fieldsOf(value.payload) };
  const { id } = interrupt;
  const agent = text(value.agent);
  const kind = text(value.kind);
  if (Array.isArray(payload.action_requests)) {
    const rules = list(payload.review_configs).map(fieldsOf);
    const actions = payload.action_requests.map(fieldsOf).map((action) => ({
      name: text(action.name) || text(action.action),
      args: action.args ?? action.arguments ?? {},
      description: text(action.description),
      allowed: list(rules.find((rule) => rule.action_name === action.name)?.allowed_decisions).map(String),
    }));
    const tainted = list(payload.tainted_by).map(String);
    return { kind: "approval", id, actions, agent, tainted, expires: text(payload.expires_at) || null };
  }
  if (kind === "outcome_unknown") return { kind: "unknown", id, what: interrupt.value, agent };
  const schema = payload.schema ?? payload.requested_schema ?? payload.requestedSchema;
  if (kind === "elicitation" || schema !== undefined) {
    return { kind: "form", id, text: text(payload.message) || text(payload.question), schema: schema ?? {}, agent };
  }
  const options = list(payload.options).map((option) => text(option) || text(fieldsOf(option).label));
  const words = text(payload.question) || text(payload.message) || text(interrupt.value);
  return { kind: "question", id, text: words || JSON.stringify(interrupt.value), options, agent };
}

/** Decides all actions of an approval alike. */
export function decideAll(approval: Approval, type: "approve" | "reject", message?: string): Json {
  return { decisions: approval.actions.map(() => ({ type, ...(message && { message }) })) };
}

/** Approves with other arguments. */
export function edit(approval: Approval, args: Json[], message?: string): Json {
  const decisions = approval.actions.map((action, index) => ({
    type: "edit",
    edited_action: { name: action.name, args: args[index] ?? action.args },
    ...(message && { message }),
  }));
  return { decisions };
}
