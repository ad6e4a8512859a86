/** A graph as a drawing, each node with how it stands. */

import { useMemo } from "preact/hooks";
import type { Drawing } from "../api/graphs.ts";
import { clip, readable } from "../parts/text.ts";
import { NODE, layout } from "./layout.ts";
import type { Standing } from "./nodes.ts";

const WORDS: { [standing in Standing["how"]]: string } = { working: "running", done: "done", failed: "failed", waiting: "waiting for you", next: "next" };

const ENDS: { [id: string]: string } = { __start__: "Start", __end__: "End" };

export function GraphDrawing({ name, drawing, standings }: { name: string; drawing: Drawing; standings: Map<string, Standing> }) {
  const { nodes, ways, width, height } = useMemo(() => layout(drawing), [drawing]);
  const words = nodes.flatMap(({ id }) => (id in ENDS ? [] : [`${readable(id)}: ${wordsOf(standings.get(id)) || "not run"}`])).join(", ");
  return (
    <svg class="star drawing" viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={`Graph ${readable(name)}. ${words}`}>
      {ways.map((way, index) => <path key={index} class={way.conditional ? "way conditional" : "way"} d={way.path} />)}
      {nodes.map(({ id, x, y }) => {
        const title = ENDS[id];
        const below = wordsOf(standings.get(id));
        return (
          <g key={id} class={title ? "end" : (standings.get(id)?.how ?? "quiet")}>
            <title>{readable(title ?? id)}</title>
            <rect x={x - NODE.width / 2} y={y - NODE.height / 2} width={NODE.width} height={NODE.height} rx={title ? NODE.height / 2 : 6} />
            <text x={x} y={below ? y - 2 : y + 4}>{readable(clip(title ?? id, 20))}</text>
            {below && <text class="below" x={x} y={y + 13}>{below}</text>}
          </g>
        );
      })}
    </svg>
  );
}

/** Says how a node stands; how often where it ran more than once at a time. */
function wordsOf(standing: Standing | undefined): string {
  if (!standing) return "";
  return `${WORDS[standing.how]}${standing.times > 1 ? ` × ${standing.times}` : ""}`;
}
