/** What is asked of people, recognised by its kind. */

import type { Json } from "../api/types.ts";
import { fieldsOf } from "../parts/schema.ts";

export interface Approval {
  kind: "approval";
  server: string;
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

/** What a graph asks in a form of its own. */
export interface Free {
  kind: "free";
  text: string;
  what: Json;
  /** The schema of the answer; null where the graph does not say. */
  schema: Json;
  /** Why the last answer did not fit. */
  problem: string;
  agent: string;
}

export type Asked = Approval | Question | Form | Visit | Unknown | Free;

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
        server: text(fields.server),
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
    case "clarification":
      return { kind: "question", text: text(fields.question) || text(payload) || JSON.stringify(payload), options: texts(fields.options), agent };
    default:
      return free(payload, agent);
  }
}

/** Reads a question of a graph: a text or its options are a plain question, anything else is shown as it is. */
function free(payload: Json, agent: string): Question | Free {
  const problem = text(fieldsOf(payload).problem);
  // A question whose answer did not fit is put once more, with the problem beside it.
  const what = problem ? (fieldsOf(payload).question ?? payload) : payload;
  const { response_schema: schema = null, question, options, ...rest } = fieldsOf(what);
  // A single text beside the schema is the question, whatever its field is called.
  const [only, ...more] = Object.values(rest);
  const single = more.length === 0 && question === undefined ? text(only) : "";
  const others = single ? {} : rest;
  const words = text(what) || text(question) || single;
  const isPlain = schema === null && !problem && Object.keys(others).length === 0 && (words || Array.isArray(options));
  if (isPlain) return { kind: "question", text: words, options: texts(options), agent };
  const shown: Json = typeof what === "string" ? null : typeof what === "object" && !Array.isArray(what) ? { ...(words ? {} : question !== undefined && { question }), ...(options !== undefined && { options }), ...others } : what;
  return { kind: "free", text: words, what: shown, schema, problem, agent };
}
