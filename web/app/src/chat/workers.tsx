/** Who works on what, at which stage, and what waits: the tasks of a turn. */

import type { AgentResult, Interrupt, TaskRecord } from "../api/types.ts";
import { agentName, clip, readable } from "../parts/text.ts";
import type { LiveTask, Progress } from "./live.ts";

type Standing = "working" | "done" | "failed" | "asks" | "later" | "open";

interface Props {
  tasks: TaskRecord[];
  results: AgentResult[];
  live: Iterable<LiveTask>;
  progress: Progress[];
  open: Interrupt[];
  busy: boolean;
}

const MARKS: { [standing in Standing]: string } = { working: "…", done: "✓", failed: "✗", asks: "?", later: "·", open: "·" };
const CLASSES: { [standing in Standing]: string } = { working: "busy", done: "good", failed: "bad", asks: "interrupted", later: "", open: "" };

export function Workers({ tasks, results, live, progress, open, busy }: Props) {
  if (tasks.length === 0) return null;
  const states = new Map<string, LiveTask["state"]>();
  for (const task of live) if (!task.namespace) states.set(task.name, task.state);
  const asking = new Set(open.map((one) => String(one.value.agent ?? "")));
  const resultOf = (task: TaskRecord) => results.find((result) => result.agent === task.agent && result.task === task.task);
  const isOver = (id: string) => tasks.some((task) => task.id === id && resultOf(task));

  function standing(task: TaskRecord): Standing {
    const result = resultOf(task);
    if (result) return result.error ? "failed" : "done";
    if (asking.has(task.agent) || states.get(task.agent) === "waiting") return "asks";
    if (states.get(task.agent) === "failed") return "failed";
    if (task.depends_on?.some((id) => !isOver(id))) return "later";
    return busy ? "working" : "open";
  }

  function words(task: TaskRecord, how: Standing): string {
    switch (how) {
      case "working":
        return progress.findLast((line) => line.agent === task.agent)?.text ?? "works";
      case "asks":
        return "waiting for you";
      case "later": {
        const before = tasks.filter((other) => task.depends_on?.includes(other.id) && !resultOf(other));
        return `waits for ${before.map((other) => agentName(other.agent)).join(", ")}`;
      }
      case "open":
        return "not done yet";
      default:
        return how;
    }
  }

  return (
    <section>
      <h2>Tasks</h2>
      <ul class="workers" aria-label="Tasks">
        {tasks.map((task) => {
          const how = standing(task);
          return (
            <li key={task.id} class={how}>
              <span class={`mark ${CLASSES[how]}`} aria-hidden="true">{MARKS[how]}</span> <strong>{readable(agentName(task.agent))}</strong> <span class="hint">{readable(clip(words(task, how), 120))}</span>
              <p>{readable(clip(task.task, 300))}</p>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
