/** What a run shows while it lasts: a value made from its events, in order; no I/O. */

import { readExact } from "../api/exact.ts";
import type { ServerEvent } from "../api/sse.ts";
import type { Interrupt, Message, Values } from "../api/types.ts";
import { agentName, contentText } from "../parts/text.ts";
import { calledTool } from "../data/tool-titles.ts";
import { withCall, type Call } from "./calls.ts";
import { afterUpdate, isOfAnotherTurn } from "./folding.ts";

export interface LiveTask {
  id: string;
  name: string;
  /** Where in a subgraph; empty at the top. */
  namespace: string;
  state: "working" | "done" | "failed" | "waiting";
  error?: string;
}

export interface Progress {
  agent: string;
  text: string;
  bad: boolean;
}

export interface Live {
  values: Values | null;
  /** The updates of which `values` are made, from the run's first on; null where the server sends whole states. */
  updates: Values[] | null;
  /** Pieces of messages that are being written, by id, in order of appearance. */
  writing: Map<string, { name: string; text: string }>;
  tasks: Map<string, LiveTask>;
  progress: Progress[];
  calls: Call[];
  interrupts: Interrupt[];
  error: string | null;
}

export const idle: Live = {
  values: null,
  updates: null,
  writing: new Map(),
  tasks: new Map(),
  progress: [],
  calls: [],
  interrupts: [],
  error: null,
};

/** Lines of progress that are kept. */
const LINES = 200;

type Fields = { [key: string]: unknown };

function parse(data: string): unknown {
  try {
    // Edited arguments of a call are sent back.
    return data.includes("__interrupt__") ? JSON.parse(data) : readExact(data);
  } catch {
    return null;
  }
}

/** Returns what is shown after an event; unknown events change nothing. */
export function after(live: Live, { event, data }: ServerEvent): Live {
  const [name = "", namespace = ""] = split(event);
  const body = parse(data);
  if (typeof body !== "object" || body === null) return live;
  const fields = body as Fields;
  switch (name) {
    case "values":
      return namespace ? live : withValues(live, fields as Values);
    case "messages":
      return Array.isArray(body) ? withPiece(live, body[0] as Message, body[1] as Fields) : live;
    case "tasks":
      return withTask(live, fields, namespace);
    case "updates":
      if (Array.isArray(fields.__interrupt__)) return { ...live, interrupts: merged(live.interrupts, fields.__interrupt__ as Interrupt[]) };
      return namespace ? live : withUpdates(live, fields);
    case "custom":
      return withProgress(live, fields);
    case "error":
      return { ...live, error: String(fields.message ?? fields.error ?? "the run failed") };
    default:
      return live;
  }
}

function split(event: string): [string, string] {
  const bar = event.indexOf("|");
  return bar < 0 ? [event, ""] : [event.slice(0, bar), event.slice(bar + 1)];
}

function withValues(live: Live, values: Values): Live {
  const known = new Set((values.messages ?? []).map((message) => message.id));
  const writing = new Map([...live.writing].filter(([id]) => !known.has(id) && !known.has(bare(id))));
  const interrupts = values.__interrupt__ ? merged(live.interrupts, values.__interrupt__) : live.interrupts;
  return { ...live, values, writing, interrupts };
}

function withUpdates(live: Live, nodes: Fields): Live {
  if (!live.updates) return live;
  const more = Object.values(nodes).filter((one): one is Values => typeof one === "object" && one !== null);
  const next = { ...live, updates: [...live.updates, ...more] };
  if (!live.values) return next;
  return isOfAnotherTurn(live.values, more) ? { ...next, values: null } : withValues(next, more.reduce(afterUpdate, live.values));
}

/** Adds the updates that a run made so far to a state of its thread. */
export const basedOn = (live: Live, values: Values) => withValues(live, (live.updates ?? []).reduce(afterUpdate, values));

function merged(old: Interrupt[], more: Interrupt[]): Interrupt[] {
  const known = new Set(old.map((interrupt) => interrupt.id));
  return [...old, ...more.filter((interrupt) => !known.has(interrupt.id))];
}

/** Returns the id of a message without the number that it has where another attempt began it with other words. */
const bare = (id: string) => id.replace(/^(\d+\.\d+\..+)\.\d+$/, "$1");

function withPiece(live: Live, message: Message, about: Fields | undefined): Live {
  const id = message?.id;
  if (!id || message.type === "human") return live;
  const first = bare(id);
  if (live.values?.messages?.some((known) => known.id === id || known.id === first)) return live;
  const old = live.writing.get(id);
  const piece = contentText(message.content);
  const isChunk = message.type.endsWith("Chunk");
  const text = isChunk && old ? old.text + piece : piece;
  const node = typeof about?.langgraph_node === "string" ? about.langgraph_node : "";
  const others = [...live.writing].filter(([other]) => other === id || bare(other) !== first);
  const writing = new Map(others).set(id, { name: message.name ?? node, text });
  return { ...live, writing };
}

function withTask(live: Live, fields: Fields, namespace: string): Live {
  const id = String(fields.id ?? "");
  if (!id) return live;
  const name = String(fields.name ?? "");
  const tasks = new Map(live.tasks);
  if (!("result" in fields) && !("error" in fields)) {
    tasks.set(id, { id, name, namespace, state: "working" });
    return { ...live, tasks };
  }
  const interrupts = Array.isArray(fields.interrupts) ? (fields.interrupts as Interrupt[]) : [];
  const error = fields.error === null || fields.error === undefined ? undefined : String(fields.error);
  const state = error ? "failed" : interrupts.length ? "waiting" : "done";
  tasks.set(id, { id, name, namespace, state, ...(error && { error }) });
  return { ...live, tasks, interrupts: merged(live.interrupts, interrupts) };
}

function withProgress(live: Live, fields: Fields): Live {
  const line = progressLine(fields);
  const calls = withCall(live.calls, fields);
  if (!line) return calls === live.calls ? live : { ...live, calls };
  return { ...live, calls, progress: [...live.progress.slice(1 - LINES), line] };
}

/** What the stages of bundled pipelines do. */
const STAGES: { [stage: string]: string } = {
  survey: "is looking at the tables",
  triage: "is sorting the question",
  intent: "is working out what is asked",
  interpret: "is reading the question",
  clarify: "is checking whether the question is clear",
  ground: "is choosing tables and columns",
  generate: "is writing the query",
  check: "is checking the query",
  execute: "is running the query",
  review: "is reviewing the result",
};

/** Says in a sentence, which the agent's name begins, what its event is about. */
function progressLine(fields: Fields): Progress | null {
  const text = (key: string) => (typeof fields[key] === "string" ? (fields[key] as string) : "");
  const texts = (key: string) => (Array.isArray(fields[key]) ? (fields[key] as unknown[]).map(String) : []);
  const agent = text("agent");
  const tool = calledTool(text("tool"));
  const line = (words: string, bad = false, by = agent): Progress => ({ agent: by, text: words, bad });
  switch (fields.type) {
    case "decision":
      return line("planned the next steps", false, "supervisor");
    case "decision_refused":
      return line(`is planning again: ${texts("problems").join("; ")}`, true, "supervisor");
    case "search":
      return line(`is looking for agents: “${text("query")}”`, false, "supervisor");
    case "stage":
      return line(`handed work to ${texts("agents").map(agentName).join(", ")}`, false, "supervisor");
    case "pipeline_stage":
      return line(STAGES[text("stage")] ?? `is at the stage “${text("stage").replaceAll("_", " ")}”`);
    case "tool_call":
      return line(`is calling ${tool}`);
    case "tool_recorded":
      return line(`reads the recorded call of ${tool}`);
    case "tool_progress":
      return line(text("message") || `is at ${String(fields.done ?? "")} of ${tool}`);
    case "tool_result":
      return line(fields.is_error ? `could not finish ${tool}` : `has the result of ${tool}`, fields.is_error === true);
    case "hitl_required":
      return line(`waits for your approval of ${tool}`);
    case "reflection":
      return line(`had its result ${text("status").toLowerCase()}${text("feedback") ? `: ${text("feedback")}` : ""}`, fields.status === "REJECTED");
    case "agent_result":
      return line(text("error") ? `failed: ${text("error")}` : "is done", Boolean(text("error")));
    case "ended_early":
      return line(`ended early: ${text("reason")}`, true, "supervisor");
    default: {
      const words = text("message");
      // Agents say what they do, such as “writing SQL”.
      return words ? line(/^[a-z]+ing\b/.test(words) ? `is ${words}` : words) : null;
    }
  }
}
