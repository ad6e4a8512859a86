/** Evaluations, which are items of the store; data sets from threads; recorded model calls asked again. */

import { json, send } from "./http.ts";
import type { Usage } from "./types.ts";

/** A mean with its 95 % confidence interval. */
export interface Estimate {
  mean: number;
  low: number;
  high: number;
}

/** What one model achieved and took. */
export interface Figures {
  model: string;
  runs: number;
  passed: Estimate;
  cost_usd: Estimate;
  tokens: Estimate;
  calls: number;
  repairs: number;
  latency_p50_ms: number;
  latency_p95_ms: number;
  /** The judge's calls about its answers. */
  judging?: { calls: number; tokens: number; cost_usd: number };
  beside_first?: { won: number; tied: number; lost: number; undecided: number; score: Estimate } | null;
}

export interface Evaluation {
  suite: string;
  role: string | null;
  judge: string | null;
  seed: number;
  models: Figures[];
}

export interface CaseRun {
  thread_id: string;
  passed: boolean;
  findings: string[];
  seconds: number;
  cost_usd: number;
}

/** The runs of every case with one model. */
export interface ModelRecord {
  model: string;
  cases: { name: string; runs: CaseRun[] }[];
}

export interface Item<T> {
  key: string;
  created_at: string;
  value: T;
}

/** A model's answer to a recorded request with another prompt. */
export interface AnswerAgain {
  output: string;
  calls: { name: string; arguments: unknown }[];
  model: string;
  usage: Usage;
  nano_usd: number | null;
  latency_ms: number;
}

export const evaluations = {
  list: async (limit: number) => (await json<{ items: Item<Evaluation>[] }>("store/items/search", { namespace_prefix: ["evaluations"], limit })).items,
  records: async (key: string) => (await json<Item<{ records: ModelRecord[] }> | null>(`store/items?namespace=evaluation_records&key=${encodeURIComponent(key)}`))?.value.records ?? [],
  remove: async (key: string) => {
    for (const namespace of ["evaluation_records", "evaluations"]) await json("store/items", { namespace: [namespace], key }, "DELETE");
  },
  /** A data set of the answers that people rated, or of all answers of a thread. */
  data: async (thread?: string) => (await send(`v1/evaluations/data${thread ? `?thread=${encodeURIComponent(thread)}` : ""}`)).text(),
  again: (thread: string, trial: { run?: number; span_id: string; prompt: string }) => json<AnswerAgain>(`v1/threads/${encodeURIComponent(thread)}/again`, trial),
};
