/** Runs of all threads, found by the server. */

import { json } from "./http.ts";
import type { Run } from "./types.ts";

export interface FoundRun extends Run {
  /** Number that names its trace, once it has begun. */
  number: number | null;
  title: string | null;
  question: string | null;
  graph_id: string;
  agents: string[];
  user: string | null;
  duration_ms: number | null;
  tokens: number | null;
  cost_usd: number | null;
  error: { message?: string } | null;
}

/** The filters, as the server names them. */
export const FILTERS = ["text", "status", "agent", "graph", "user", "error", "min_cost_usd"] as const;

/** Finds runs, newest first; `next` is where the next page begins. */
export function findRuns(filters: URLSearchParams, after?: string | null): Promise<{ runs: FoundRun[]; next: string | null }> {
  const query = new URLSearchParams(filters);
  if (after) query.set("after", after);
  return json(`v1/runs?${query}`);
}

/** Returns the newest runs of a thread, newest first. */
export const ofThread = async (thread: string) => (await findRuns(new URLSearchParams({ thread, limit: "200" }))).runs;
