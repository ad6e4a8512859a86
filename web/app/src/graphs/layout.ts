/** Where the nodes of a graph are drawn: in layers from top to bottom, so that ways lead down unless they lead back. */

import type { Drawing } from "../api/graphs.ts";

export interface Placed {
  id: string;
  x: number;
  y: number;
}

export interface Way {
  path: string;
  conditional: boolean;
}

export interface Layout {
  nodes: Placed[];
  ways: Way[];
  width: number;
  height: number;
}

export const NODE = { width: 152, height: 40 };
const GAP = { x: 20, y: 36 };
const MARGIN = 12;

/** Pixels between ways that go past other nodes. */
const LANE = 14;

/** Returns the layer of each node: the longest way from the start that does not lead back. */
function layersOf({ nodes, edges }: Drawing): Map<string, number> {
  const next = new Map(nodes.map(({ id }) => [id, edges.filter((edge) => edge.source === id && edge.target !== id).map((edge) => edge.target)]));
  const layers = new Map<string, number>();
  const open = new Set<string>();
  const order: string[] = [];
  const back = new Set<string>();
  function visit(id: string) {
    open.add(id);
    for (const to of next.get(id) ?? []) {
      if (open.has(to)) back.add(`${id} ${to}`);
      else if (!layers.has(to)) visit(to);
    }
    open.delete(id);
    layers.set(id, 0);
    order.unshift(id);
  }
  for (const { id } of nodes) if (!layers.has(id)) visit(id);
  for (const id of order) {
    for (const to of next.get(id) ?? []) if (!back.has(`${id} ${to}`)) layers.set(to, Math.max(layers.get(to) ?? 0, (layers.get(id) ?? 0) + 1));
  }
  // Ends stand last, below everything.
  const last = Math.max(...layers.values(), 0);
  if (layers.has("__end__")) layers.set("__end__", last);
  return layers;
}

/** Lays a graph out. */
export function layout(drawing: Drawing): Layout {
  const layers = layersOf(drawing);
  const rows: string[][] = [];
  for (const [id, layer] of layers) (rows[layer] ??= []).push(id);
  const most = Math.max(...rows.map((row) => row.length), 1);
  const inner = most * (NODE.width + GAP.x) - GAP.x;
  const nodes = rows.flatMap((row, layer) => row.reverse().map((id, index) => ({
    id,
    x: MARGIN + inner / 2 + (index - (row.length - 1) / 2) * (NODE.width + GAP.x),
    y: MARGIN + NODE.height / 2 + layer * (NODE.height + GAP.y),
  })));
  const placed = new Map(nodes.map((node) => [node.id, node]));
  let lanes = 0;
  const ways = drawing.edges.flatMap(({ source, target, conditional = false }): Way[] => {
    const [from, to] = [placed.get(source), placed.get(target)];
    if (!from || !to) return [];
    const span = (layers.get(target) ?? 0) - (layers.get(source) ?? 0);
    if (span === 1) {
      const [y1, y2] = [from.y + NODE.height / 2, to.y - NODE.height / 2];
      return [{ path: `M${from.x} ${y1}C${from.x} ${(y1 + y2) / 2} ${to.x} ${(y1 + y2) / 2} ${to.x} ${y2}`, conditional }];
    }
    // Past the other nodes, at the right.
    lanes += 1;
    const lane = MARGIN + inner + lanes * LANE;
    return [{ path: `M${from.x + NODE.width / 2} ${from.y}C${lane} ${from.y} ${lane} ${to.y} ${to.x + NODE.width / 2} ${to.y}`, conditional }];
  });
  return { nodes, ways, width: inner + 2 * MARGIN + lanes * LANE, height: rows.length * (NODE.height + GAP.y) - GAP.y + 2 * MARGIN };
}
