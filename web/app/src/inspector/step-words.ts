/** What a step did, in words. */

import type { AgentResult, Json, Message, ThreadState } from "../api/types.ts";
import { problem } from "../chat/checklist.ts";
import { calledTool } from "../data/tool-titles.ts";
import { agentName, clip, contentText } from "../parts/text.ts";
import { plural } from "../parts/time.tsx";

/** Characters that are quoted. */
const QUOTED = 80;

const quote = (text: string) => `“${clip(text.replace(/\s+/g, " ").trim(), QUOTED)}”`;

const listed = (names: string[]) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : (names[0] ?? ""));

/** Returns what a step added to a list of the state. */
function added<T extends { id?: string }>(now: T[] | undefined, before: T[] | undefined): T[] {
  const idOf = (one: T) => one.id ?? JSON.stringify(one);
  const had = new Set((before ?? []).map(idOf));
  return (now ?? []).filter((one) => !had.has(idOf(one)));
}

function resultWords(result: AgentResult): string {
  const agent = agentName(result.agent);
  const error = problem(result.error);
  if (error) return `${agent} failed: ${clip(error, QUOTED)}`;
  const calls = result.tools?.length ?? 0;
  return `${agent} answered: ${quote(result.output)}${calls > 0 ? `, ${plural(calls, "call")}` : ""}`;
}

function supervisorWords(state: ThreadState, by: ThreadState | undefined, messages: Message[]): string {
  const tasks = added(state.values.tasks, by?.values.tasks);
  const [only] = tasks;
  if (only && tasks.length === 1) return `Supervisor handed ${quote(only.task)} to ${agentName(only.agent)}`;
  if (tasks.length > 1) return `Supervisor handed tasks to ${listed(tasks.map((task) => agentName(task.agent)))}`;
  const asked = messages.find(({ name }) => name === "supervisor");
  if (asked) return `You were asked ${quote(contentText(asked.content))}`;
  return state.next.includes("qa") ? "Supervisor chose to answer" : "Supervisor planned";
}

/** Names the fields of the state that differ. */
function editedFields(state: ThreadState, by: ThreadState | undefined): string {
  const names = Object.keys(state.values).filter((name) => JSON.stringify(state.values[name]) !== JSON.stringify(by?.values[name]));
  return listed(names.map((name) => name.replaceAll("_", " "))) || "nothing";
}

/** Words by step, with the step before it that they were made with. */
const known = new WeakMap<ThreadState, { by: ThreadState | undefined; words: string }>();

/** Says what a step did; `by` is the step before it, which knows who was to work. */
export function stepWords(state: ThreadState, by: ThreadState | undefined): string {
  const found = known.get(state);
  if (found && found.by === by) return found.words;
  const words = wordsOf(state, by);
  known.set(state, { by, words });
  return words;
}

function wordsOf(state: ThreadState, by: ThreadState | undefined): string {
  const messages = added(state.values.messages, by?.values.messages);
  switch (state.metadata?.source) {
    case "input": {
      const asked = messages.findLast(({ type }) => type === "human");
      return asked ? `You asked ${quote(contentText(asked.content))}` : "Input";
    }
    case "update":
      return by ? `Edited ${editedFields(state, by)}` : "Edited";
    case "fork":
      return by ? `Branch from step ${by.metadata?.step ?? "?"}` : "Branch";
    default: {
      const nodes = by?.next ?? [];
      if (nodes.includes("supervisor")) return supervisorWords(state, by, messages);
      if (nodes.includes("preprocess")) return "Read the request";
      const results = added(state.values.results, by?.values.results);
      if (results.length > 0) return results.map(resultWords).join("; ");
      const said = messages.findLast(({ type }) => type === "ai");
      if (said) return `${nodes.includes("qa") ? "Answered" : agentName(nodes[0] ?? "step")}: ${quote(contentText(said.content))}`;
      return nodes.length > 0 ? `${listed(nodes.map(agentName))} ran` : "Step";
    }
  }
}

/** Says in a few words what a question to a person waits for. */
function waitWords({ kind, tool }: { [key: string]: Json }): string {
  if (kind === "approval") return `waits for approval of ${calledTool(String(tool ?? "a call"))}`;
  return kind === "outcome_unknown" ? "waits for you to say what happened" : "waits for your answer";
}

/** Says what a step waits for; nothing where it waits for nobody. */
export const waits = (state: ThreadState) => [...new Set(state.tasks.flatMap((task) => task.interrupts.map(({ value }) => waitWords(value))))].join(", ");
