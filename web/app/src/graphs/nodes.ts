/** How the nodes of a graph stand: from the steps that are kept, and from what a run shows while it lasts. */

import type { LiveTask } from "../chat/live.ts";
import type { ThreadState } from "../api/types.ts";

export interface Standing {
  how: "working" | "done" | "failed" | "waiting" | "next";
  /** Tasks of the node that stand so. */
  times: number;
}

/** Which of two tasks of a node is shown: the one that needs a look. */
const RANK: Standing["how"][] = ["next", "done", "working", "waiting", "failed"];

function put(standings: Map<string, Standing>, name: string, how: Standing["how"]) {
  const known = standings.get(name);
  if (!known || RANK.indexOf(how) > RANK.indexOf(known.how)) standings.set(name, { how, times: 1 });
  else if (known.how === how) standings.set(name, { how, times: known.times + 1 });
}

/** Tells how nodes stand by the steps since the newest input, newest first. */
export function recorded(steps: ThreadState[]): Map<string, Standing> {
  const standings = new Map<string, Standing>();
  const input = steps.findIndex((step) => step.metadata?.source === "input");
  const since = input < 0 ? steps : steps.slice(0, input + 1);
  for (const task of since[0]?.tasks ?? []) put(standings, task.name, task.error ? "failed" : task.interrupts.length > 0 ? "waiting" : "next");
  for (const step of since.slice(1)) for (const task of step.tasks) if (!standings.has(task.name) || standings.get(task.name)?.how === "done") put(standings, task.name, "done");
  return standings;
}

/** Adds what the run that is under way shows. */
export function withLive(known: Map<string, Standing>, tasks: Iterable<LiveTask>): Map<string, Standing> {
  const live = new Map<string, Standing>();
  for (const task of tasks) if (!task.namespace) put(live, task.name, task.state);
  return new Map([...known, ...live]);
}
