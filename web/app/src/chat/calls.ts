/** Calls of tools, from the events of a run, from what its agents handed back, and from its trace. */

import { json } from "../api/http.ts";
import type { AgentResult, Json } from "../api/types.ts";
import { clip } from "../parts/text.ts";
import { count, plural } from "../parts/time.tsx";

/** A call of a tool, with what is known of it. */
export interface Call {
  /** Names it among the calls of its thread; older runs have none. */
  id?: string;
  agent: string;
  tool: string;
  args: Json;
  state: "working" | "done" | "failed" | "waiting";
  /** The result, or its beginning. */
  result?: Json;
  /** When it was seen to begin, by the page's own clock. */
  began?: number;
  /** Milliseconds that it took. */
  ms?: number;
}

type Fields = { [key: string]: unknown };

/** Returns a tool's name without its server. */
export const toolName = (tool: string) => tool.slice(tool.lastIndexOf(".") + 1);

/** Milliseconds below which the page's clock says nothing: what is read again after a refresh arrives at once. */
const SEEN = 5;

const ENDS: { [type: string]: Call["state"] } = { tool_result: "done", hitl_denied: "failed", hitl_timeout: "failed", hitl_skipped: "failed" };

/** Returns the calls after an agent's event; the same list where it is about none. */
export function withCall(calls: Call[], fields: Fields): Call[] {
  const { type, agent, tool } = fields as { type: string; agent: string; tool: string };
  const now = performance.now();
  const id = typeof fields.call_id === "string" ? { id: fields.call_id } : {};
  if (type === "tool_call" || type === "tool_recorded") {
    // What is reported again, after a question or a crash, stays one call.
    const index = calls.findIndex((call) => call.id !== undefined && call.id === id.id);
    const begun: Call = { ...id, agent, tool, args: (fields.arguments ?? {}) as Json, ...(type === "tool_call" ? { state: "working", began: now } : { state: "done" }) };
    return index < 0 ? [...calls, begun] : calls.with(index, { ...calls[index], ...begun });
  }
  const state = type === "hitl_required" ? "waiting" : type === "hitl_approved" ? "working" : ENDS[type];
  if (!state) return calls;
  const isOpen = (call: Call) => call.state === "working" || call.state === "waiting";
  const index = calls.findIndex((call) => (id.id !== undefined && call.id !== undefined ? call.id === id.id : call.agent === agent && call.tool === tool && isOpen(call)));
  const call = calls[index];
  if (!call) return calls;
  const ms = now - (call.began ?? now);
  const ended: Call = { ...call, state: fields.is_error === true ? "failed" : state };
  if (typeof fields.preview === "string") ended.result = fields.preview;
  if (type === "tool_result" && ms > SEEN) ended.ms = ms;
  return calls.with(index, ended);
}

/** Returns the calls that an agent's result names. */
export const callsOf = (result: AgentResult): Call[] =>
  (result.tools ?? []).map((call) => ({ agent: result.agent, tool: call.tool, args: call.arguments, state: call.is_error ? "failed" : "done" }));

interface Span {
  kind: string;
  name: string;
  start: string;
  end: string;
  status: { code: string };
  server?: string | null;
  tool?: string;
  arguments?: Json;
  result?: Json;
  spent?: Spent | null;
}

/** What the model calls of a run took. */
interface Spent {
  calls: number;
  input_tokens: number;
  output_tokens: number;
  /** Billionths of a dollar; none where the model has no price. */
  nano_usd?: number;
}

/** What the trace of a run knows of its work. */
export interface Recorded {
  calls: Call[];
  spent: Spent | null;
}

const length = (span: Span) => new Date(span.end).getTime() - new Date(span.start).getTime();

/** Reads the calls of a thread's run with their durations and results; of its newest run without a number. */
export async function recorded(thread: string, run?: number): Promise<Recorded> {
  const { spans = [] } = await json<{ spans?: Span[] }>(`v1/threads/${encodeURIComponent(thread)}/trace${run === undefined ? "" : `?run=${run}`}`);
  const calls = spans.filter((span) => span.kind === "tool").map((span): Call => ({
    agent: "",
    tool: [span.server, span.tool].filter(Boolean).join("."),
    args: resultOf(span.arguments ?? {}),
    state: span.status.code === "error" ? "failed" : "done",
    result: span.result ?? null,
    ms: length(span),
  }));
  return { calls, spent: spans[0]?.spent ?? null };
}

/** Adds durations and results to the calls that results name, from what a trace or the run itself showed of them. */
export function completed(named: Call[], seen: Call[]): Call[] {
  const left = [...seen];
  return named.map((call) => {
    const index = left.findIndex((one) => toolName(one.tool) === toolName(call.tool) && JSON.stringify(one.args) === JSON.stringify(call.args));
    const [found] = index < 0 ? [] : left.splice(index, 1);
    return found ? { ...call, ...(found.ms !== undefined && { ms: found.ms }), ...(found.result !== undefined && { result: found.result }) } : call;
  });
}

/** Reads what a tool gave back: JSON where it is some. */
export function resultOf(result: Json | undefined): Json {
  if (typeof result !== "string") return result ?? null;
  try {
    return JSON.parse(result) as Json;
  } catch {
    return result;
  }
}

/** Says what a text is: a table of so many rows, so many lines, or its one line. */
function textWords(text: string): string {
  const known = /^\{.*?"row_count"\s*:\s*(\d+)/s.exec(text)?.[1] ?? /\((\d+) rows?\)$/.exec(text)?.[1];
  if (known) return plural(Number(known), "row");
  const lines = text.split("\n").filter((line) => line.trim() && !/^[-|+ ]+$/.test(line));
  if (lines.length > 1 && lines[0]?.includes(" | ")) return plural(lines.length - 1, "row");
  return lines.length > 1 ? plural(lines.length, "line") : clip(text, 60);
}

/** Says in a few words what a call gave. */
export function resultWords(result: Json | undefined): string {
  const value = resultOf(result);
  if (value === null) return "";
  if (Array.isArray(value)) return plural(value.length, "item");
  if (typeof value !== "object") {
    return textWords(String(value).trim());
  }
  const list = Object.entries(value).find(([, part]) => Array.isArray(part));
  if (Array.isArray(value.rows)) return plural(Number(value.row_count ?? value.rows.length), "row");
  if (list && Array.isArray(list[1])) return `${count(list[1].length)} ${list[0].replaceAll("_", " ")}`;
  return "";
}

/** Says what a call is about: its longest simple argument, on one line. */
export function mainArgument(args: Json): string {
  if (typeof args !== "object" || args === null) return String(args ?? "");
  const simple = Object.values(args).filter((value) => typeof value === "string" || typeof value === "number").map(String);
  const longest = simple.sort((a, b) => b.length - a.length)[0] ?? "";
  return clip(longest.replace(/\s+/g, " "), 120);
}
