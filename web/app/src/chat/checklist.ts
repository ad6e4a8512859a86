/** The work of a turn as a checklist: what is done, at work, waiting, or not begun. */

import type { AgentResult, Interrupt, Planner, TaskRecord } from "../api/types.ts";
import { agentName } from "../parts/text.ts";

/** What a turn planned, handed out and got back. */
export interface Work {
  plan: string[];
  planner: Planner | null;
  tasks: TaskRecord[];
  results: AgentResult[];
}

export type How = "working" | "done" | "failed" | "waiting" | "later" | "open";

export const HOW: { [how in How]: string } = { working: "working", done: "done", failed: "failed", waiting: "waiting for you", later: "not started", open: "not done" };

export interface Item {
  id: string;
  title: string;
  how: How;
  agent?: string;
  task?: string;
  /** More about how it stands. */
  words?: string;
  result?: AgentResult;
  /** Whether the title is the plan's own. */
  isPlanned?: boolean;
}

export function problem(error: AgentResult["error"]): string | null {
  if (!error) return null;
  return typeof error === "string" ? error : `${error.type ? `${error.type}: ` : ""}${error.message}`;
}

/** Makes the checklist; the plan gives titles where it has one for each task and one for the answer. */
export function checklist({ plan, tasks, results }: Work, open: Interrupt[], busy: boolean, isWriting: boolean): Item[] {
  const asking = new Set(open.map((one) => String(one.value.agent ?? "")));
  const resultOf = (task: TaskRecord) => results.find((result) => result.agent === task.agent && result.task === task.task);
  const before = (task: TaskRecord) => tasks.filter((other) => task.depends_on?.includes(other.id) && !resultOf(other));

  function how(task: TaskRecord): How {
    const result = resultOf(task);
    if (result) return result.error ? "failed" : "done";
    if (asking.has(task.agent)) return "waiting";
    if (before(task).length > 0) return "later";
    return busy ? "working" : "open";
  }

  const isPlanned = plan.length > 1 && plan.length === tasks.length + 1;
  const items = tasks.map((task, index): Item => {
    const state = how(task);
    const result = resultOf(task);
    const waitsFor = state === "later" ? `waits for ${before(task).map((other) => agentName(other.agent)).join(", ")}` : "";
    const words = waitsFor || (state === "waiting" ? HOW.waiting : "");
    return { id: task.id, title: isPlanned ? (plan[index] ?? task.task) : task.task, isPlanned, how: state, agent: task.agent, task: task.task, ...(words && { words }), ...(result && { result }) };
  });
  const isThrough = items.every((item) => item.how === "done" || item.how === "failed");
  const answer: How = busy ? (isWriting || isThrough ? "working" : "later") : isThrough && open.length === 0 ? "done" : "later";
  return [...items, { id: "answer", title: isPlanned ? (plan.at(-1) ?? "Answer") : "Answer", how: answer, isPlanned }];
}
