/** What is asked of people, recognised by its kind. */

import type { Json } from "../api/types.ts";

export interface Approval {
  kind: "approval";
  tool: string;
  args: Json;
  description: string;
  /** Why a person is asked. */
  reasons: string[];
  agent: string;
  tainted: string[];
  expires: string | null;
}

export interface Question {
  kind: "question";
  text: string;
  options: string[];
  agent: string;
}

export interface Form {
  kind: "form";
  text: string;
  schema: Json;
  agent: string;
}

export interface Visit {
  kind: "visit";
  text: string;
  address: string;
  warning: string;
  agent: string;
}

export interface Unknown {
  kind: "unknown";
  tool: string;
  reason: string;
  what: Json;
  agent: string;
}

export type Asked = Approval | Question | Form | Visit | Unknown;

type Fields = { [key: string]: Json };

const fieldsOf = (value: Json | undefined): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
const text = (value: Json | undefined) => (typeof value === "string" ? value : "");
const texts = (value: Json | undefined) => (Array.isArray(value) ? value.map((one) => text(one)) : []);

/** Reasons of the server, as sentences. */
const REASONS: [RegExp, string][] = [
  [/^the server says of this tool that it destroys$/, "This tool can delete or overwrite data."],
  [/^the servers file wants each call of this tool approved$/, "Every call of this tool needs approval."],
];

function reason(said: string): string {
  const known = REASONS.find(([pattern]) => pattern.test(said));
  return known ? known[1] : `${said.slice(0, 1).toUpperCase()}${said.slice(1)}${said.endsWith(".") ? "" : "."}`;
}

/** Reads a question; one of a kind that is not known is put in words. */
export function asked(kind: string, payload: Json, by?: string | null): Asked {
  const fields = fieldsOf(payload);
  const agent = by || text(fields.agent);
  const tool = [text(fields.server), text(fields.tool)].filter(Boolean).join(".");
  switch (kind) {
    case "approval":
      return {
        kind: "approval",
        tool,
        args: fields.arguments ?? {},
        description: text(fields.description),
        reasons: texts(fields.reasons).map(reason),
        agent,
        tainted: texts(fields.tainted_by),
        expires: text(fields.expires_at) || null,
      };
    case "outcome_unknown":
      return { kind: "unknown", tool, reason: text(fields.reason), what: fields.request ?? payload, agent };
    case "elicitation":
      return fields.mode === "url"
        ? { kind: "visit", text: text(fields.message), address: text(fields.url), warning: text(fields.warning), agent }
        : { kind: "form", text: text(fields.message), schema: fields.requested_schema ?? {}, agent };
    default: {
      const words = text(fields.question) || text(payload) || JSON.stringify(payload);
      return { kind: "question", text: words, options: texts(fields.options), agent };
    }
  }
}
