/** The star, live: the supervisor in the middle, agents around it, who works, who waits. */

import type { AgentResult, Interrupt } from "../api/types.ts";
import { agentName, clip } from "../parts/text.ts";
import type { LiveTask } from "./live.ts";

interface Props {
  agents: string[];
  tasks: Iterable<LiveTask>;
  /** What the turn's agents handed back. */
  results: AgentResult[];
  chosen: string[];
  /** Questions that wait for a person. */
  open: Interrupt[];
}

const WIDTH = 360;
const HEIGHT = 250;

/** Nodes of the graph that are no agents. */
const CENTRE = new Set(["supervisor", "preprocess", "qa", "find_agent", "__start__", "__end__"]);

export function Star({ agents, tasks, results, chosen, open }: Props) {
  const states = new Map<string, LiveTask["state"]>();
  for (const result of results) states.set(result.agent, result.error ? "failed" : "done");
  for (const task of tasks) if (!task.namespace) states.set(task.name, task.state);
  for (const one of open) if (one.value.agent) states.set(String(one.value.agent), "waiting");
  const shown = [...new Set([...agents, ...[...states.keys()].filter((name) => !CENTRE.has(name))])].slice(0, 24);
  const [cx, cy] = [WIDTH / 2, HEIGHT / 2];
  const state = (name: string) => states.get(name) ?? (chosen.includes(name) ? "chosen" : "quiet");
  const places = shown.map((name, index) => {
    const angle = (2 * Math.PI * index) / shown.length - Math.PI / 2;
    return { name, x: cx + Math.cos(angle) * 135, y: cy + Math.sin(angle) * 95 };
  });
  const words = shown.map((name) => `${agentName(name)}: ${state(name)}`).join(", ");
  return (
    <svg class="star" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`Supervisor ${state("supervisor")}; ${words}`}>
      {places.map(({ name, x, y }) => (
        <line key={name} x1={cx} y1={cy} x2={x} y2={y} class={`ray ${state(name)}`} />
      ))}
      <g class={`node ${state("supervisor")}`}>
        <circle cx={cx} cy={cy} r="30" />
        <text x={cx} y={cy + 4}>{states.get("qa") === "working" ? "answer" : "plan"}</text>
      </g>
      {places.map(({ name, x, y }) => (
        <g key={name} class={`node ${state(name)}`}>
          <title>{`${agentName(name)}: ${state(name)}`}</title>
          <circle cx={x} cy={y} r="10" />
          <text x={x} y={y + 24}>{clip(agentName(name), 14)}</text>
        </g>
      ))}
    </svg>
  );
}
