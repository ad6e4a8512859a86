/** The supervisor graph as a drawing: the supervisor, a row for each agent with how it stands, the answer. */

import type { AgentResult, Interrupt, TaskRecord } from "../api/types.ts";
import { agentName, clip, readable } from "../parts/text.ts";

interface Props {
  agents: string[];
  /** Tasks of the newest turn. */
  tasks: TaskRecord[];
  /** What the turn's agents handed back. */
  results: AgentResult[];
  /** Nodes that run next. */
  next: string[];
  /** Questions that wait for a person. */
  open: Interrupt[];
  isBusy: boolean;
}

const ROW = 56;
const [MARGIN, MIDDLE, RIGHT, WIDTH] = [16, 260, 560, 720];
/** Of a narrow window: its width, and how far agents stand in. */
const [NARROW, INDENT] = [340, 48];
const BOX = { width: 144, height: 40 };
const AGENT = { width: 220, height: 40 };

/** Agents that are drawn. */
const MOST = 24;

const WORDS: { [state: string]: string } = { working: "working", done: "done", failed: "failed", waiting: "waiting for you", quiet: "not used" };

export function Star({ agents, tasks, results, next, open, isBusy }: Props) {
  const states = new Map<string, string>();
  for (const task of tasks) states.set(task.agent, isBusy ? "working" : "quiet");
  for (const result of results) states.set(result.agent, result.error ? "failed" : "done");
  for (const one of open) if (one.value.agent) states.set(String(one.value.agent), "waiting");
  const all = [...new Set([...states.keys(), ...agents])].slice(0, MOST);
  // Across where there is room; in a narrow window one below the other.
  const isNarrow = innerWidth < 640;
  const rows = Math.max(all.length, 1) + (isNarrow ? 2 : 0);
  const height = rows * ROW + 16;
  const at = (row: number) => 8 + row * ROW + ROW / 2;
  const [first, last] = isNarrow ? [at(0), at(rows - 1)] : [height / 2, height / 2];
  const [left, right, width] = isNarrow ? [MARGIN + INDENT, MARGIN, NARROW] : [MIDDLE, RIGHT, WIDTH];
  const state = (name: string) => states.get(name) ?? "quiet";
  const isOver = !isBusy && open.length === 0;
  const supervisor = isBusy && (next.includes("supervisor") || next.length === 0) ? "working" : "done";
  const answer = isOver ? "done" : isBusy && next.includes("qa") ? "working" : "quiet";
  const words = all.map((name) => `${agentName(name)}: ${WORDS[state(name)]}`).join(", ");
  const curve = (x1: number, y1: number, x2: number, y2: number) => `M${x1} ${y1}C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`;
  const into = (y: number) => (isNarrow ? `M${MARGIN + INDENT / 2} ${first + BOX.height / 2}V${y}H${left}` : curve(MARGIN + BOX.width, first, left, y));
  const out = (y: number) => (isNarrow ? `M${left + AGENT.width} ${y}h${INDENT / 2}V${last}H${right + BOX.width}` : curve(left + AGENT.width, y, right, last));
  return (
    <svg class="star" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`Supervisor graph. ${words}`}>
      {all.map((name, index) => {
        const y = at(index + (isNarrow ? 1 : 0));
        const used = state(name) !== "quiet";
        return (
          <g key={name} class={state(name)}>
            <path class="way" d={into(y)} />
            {used && <path class="way" d={out(y)} />}
            <Node x={left} y={y} size={AGENT} title={readable(clip(agentName(name), 24))} below={WORDS[state(name)] ?? ""} />
          </g>
        );
      })}
      <g class={supervisor}><Node x={MARGIN} y={first} size={BOX} title="Supervisor" below={supervisor === "working" ? "planning" : "planned"} /></g>
      <g class={answer}><Node x={right} y={last} size={BOX} title="Answer" below={answer === "quiet" ? "not started" : (WORDS[answer] ?? "")} /></g>
    </svg>
  );
}

function Node({ x, y, size, title, below }: { x: number; y: number; size: { width: number; height: number }; title: string; below: string }) {
  return (
    <>
      <rect x={x} y={y - size.height / 2} width={size.width} height={size.height} rx="6" />
      <text x={x + 12} y={y - 2}>{title}</text>
      <text class="below" x={x + 12} y={y + 13}>{below}</text>
    </>
  );
}
