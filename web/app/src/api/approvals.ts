/** What waits for a person, over all threads, and the answers to it. */

import { json } from "./http.ts";
import type { Json } from "./types.ts";

export interface Waiting {
  id: string;
  thread_id: string;
  title: string | null;
  kind: string;
  agent: string | null;
  payload: Json;
  /** The request in whose course it was asked. */
  question: string | null;
  waits_since: string;
}

/** A request for approval, and what became of it. */
export interface Decided {
  id: string;
  thread: string;
  agent: string;
  tool: string;
  status: string;
  asked_at: string;
  decided_at: string | null;
  decided_by: string | null;
}

/** A decision, or an answer in the form that the kind of question takes. */
export type Reply = { decision: "approve" | "deny"; reason?: string; arguments?: Json } | { answer: Json };

/** Requests that are read at a time, of all threads and of one. */
export const HISTORY = 50;
const OF_THREAD = 1_000;

export const approvals = {
  list: () => json<Waiting[]>("v1/approvals"),
  /** What was asked, newest first, with who decided it. */
  history: async (thread?: string) => (await json<{ requests: Decided[] }>(`v1/approvals/history?limit=${thread ? `${OF_THREAD}&thread=${encodeURIComponent(thread)}` : HISTORY}`)).requests,
  /** Answers by id alone, so that an answer never reaches another question; the thread continues in the run that is returned. */
  answer: (id: string, reply: Reply) => json<{ thread_id: string; run_id: string }>(`v1/approvals/${encodeURIComponent(id)}`, reply),
};
