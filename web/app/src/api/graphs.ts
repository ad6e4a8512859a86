/** The graphs that the server runs: what they are given and keep, and how they are drawn. */

import { ServerError, json } from "./http.ts";
import type { Json } from "./types.ts";

export interface Assistant {
  assistant_id: string;
  graph_id: string;
  name: string;
  description: string | null;
}

/** Nodes with the ways between them; `__start__` and `__end__` are among them. */
export interface Drawing {
  nodes: { id: string }[];
  edges: { source: string; target: string; conditional?: boolean }[];
}

export interface Schemas {
  input_schema: Json;
  state_schema: Json;
}

/** The graph that answers questions by agents; teams are told from others by the beginning of their names. */
export const SUPERVISOR = "swarm";
const TEAM = "team_";

/** Tells whether a graph is one that the program brought along. */
export const isOwn = (graph: unknown): graph is string => typeof graph === "string" && graph !== SUPERVISOR && !graph.startsWith(TEAM);

/** Reads something of a graph, and says so where the program does not have it. */
async function ofGraph<T>(graph: string, what: "graph" | "schemas"): Promise<T> {
  try {
    return await json<T>(`assistants/${encodeURIComponent(graph)}/${what}`);
  } catch (error) {
    const isUnknown = error instanceof ServerError && error.status === 422;
    throw isUnknown ? new Error(`This program does not have the graph ${graph}. Its threads continue in the program that serves it.`) : error;
  }
}

export const graphs = {
  /** The graphs that the program brought along, each once. */
  own: async () => {
    const all = (await json<Assistant[]>("assistants/search", { limit: 1_000 })).filter((one) => isOwn(one.graph_id));
    return all.filter((one, index) => all.findIndex((other) => other.graph_id === one.graph_id) === index);
  },
  drawing: (graph: string) => ofGraph<Drawing>(graph, "graph"),
  schemas: (graph: string) => ofGraph<Schemas>(graph, "schemas"),
};
